"""Certificates for one run of the tests: an authority, the server that it vouches for, a client, and an authority that nobody knows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOST = "127.0.0.1"
"""The one name in the server's certificate: ``localhost`` is another."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as texts in PEM."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class Certificates:
    """``directory`` holds ``ca.pem``, ``stranger.pem``, ``client.pem`` and ``client.key`` for the program under test."""

    directory: Path
    ca: str
    server: Pair

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def environment(self) -> dict[str, str]:
        """Return what a server's script wants to know."""
        return {"RIG_TLS_CA": self.ca, "RIG_TLS_CERT": self.server.cert, "RIG_TLS_KEY": self.server.key}


class _Authority:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self.cert = _pem(self._signed(_builder(self._name, self._key.public_key()), x509.BasicConstraints(ca=True, path_length=0)))

    def pair(self, name: str, *extensions: x509.ExtensionType) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_builder(_named(name), key.public_key()), *extensions)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Pair(_pem(certificate), text)

    def _signed(self, builder: x509.CertificateBuilder, *extensions: x509.ExtensionType) -> x509.Certificate:
        builder = builder.issuer_name(self._name)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, SHA256())


def make_certificates(directory: Path) -> Certificates:
    """Make new certificates, which are good for a day."""
    authority = _Authority("applier test authority")
    server = authority.pair(
        "applier test server",
        x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
    )
    client = authority.pair("applier", x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))
    files = {"ca.pem": authority.cert, "stranger.pem": _Authority("a stranger").cert, "client.pem": client.cert, "client.key": client.key}
    for name, text in files.items():
        (directory / name).write_text(text, encoding="ascii")
    return Certificates(directory, authority.cert, server)


def _builder(name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).public_key(key).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - DAY).not_valid_after(now + DAY)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
