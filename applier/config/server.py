"""The keys that name a database's server: its address, the password, TLS."""

from typing import ClassVar, Self

from pydantic import SecretStr, field_validator, model_validator
from sqlalchemy import URL

from applier.config.section import ReadableFile, SecretFile, Section
from applier.config.value import parse_server_url, refuse
from applier.database.session import Tls, TlsMode
from applier.model.errors import Remedy

_VERIFYING = frozenset({TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY})


class ServerSection(Section):
    """A database's server, and how it is reached. ``prefix``: what the names of the keys begin with."""

    prefix: ClassVar[str] = ""

    url: SecretStr
    """URL of the server: ``mysql+pymysql://applier@host:3306/``; ``mariadb+pymysql://`` is the same. ``@`` is ``%40``."""
    password: SecretStr | None = None
    """The password. Prefer the environment or a file."""
    password_file: SecretFile | None = None
    """The file that holds it."""
    tls_mode: TlsMode | None = None
    """Default: ``verify_identity`` with ``tls_ca``, ``required`` with ``tls_cert``, else ``preferred``."""
    tls_ca: ReadableFile | None = None
    """The authority that signed the server's certificate."""
    tls_cert: ReadableFile | None = None
    """The applier's own certificate for the server."""
    tls_key: ReadableFile | None = None
    """The key of ``tls_cert``."""

    @staticmethod
    def parse(text: str) -> URL:
        """Read the URL. ValueError with a remedy, which never quotes it."""
        return parse_server_url(text)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        # Checked, but kept as it is: the parsed form would show the password in a repr.
        cls.parse(url.get_secret_value())
        return url

    @model_validator(mode="after")
    def _check_server(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """Refuse two passwords, and TLS that is less safe than it looks."""
        if self.password is not None and self.password_file is not None:
            both = f"sets both {self.prefix}password and {self.prefix}password_file"
            raise refuse(both, Remedy("config.remove-password-or-file", "Remove one of them"))
        _ = self.tls

    @property
    def tls(self) -> Tls:
        """TLS to the server. Without a mode: with a CA its identity is verified; with a client certificate TLS is required."""
        at = self.prefix
        if self.tls_key and not self.tls_cert:
            remedy = Remedy("config.set-tls-cert", f"Set {at}tls_cert to the certificate of the key")
            raise refuse(f"sets {at}tls_key without {at}tls_cert", remedy)
        # PREFERRED is what MySQL's own clients do by default: it protects from listening, not from a false server.
        chosen = self.tls_mode or (TlsMode.VERIFY_IDENTITY if self.tls_ca else TlsMode.REQUIRED if self.tls_cert else TlsMode.PREFERRED)
        if self.tls_ca and chosen not in _VERIFYING:
            raise refuse(
                f'sets {at}tls_ca, which {at}tls_mode = "{chosen}" ignores',
                Remedy("config.verify-or-remove-tls-mode", f'Set {at}tls_mode = "verify_identity", or remove it'),
            )
        if self.tls_cert and chosen in {TlsMode.DISABLED, TlsMode.PREFERRED}:
            raise refuse(
                f'sets {at}tls_cert, but {at}tls_mode = "{chosen}" does not require TLS',
                Remedy("config.verify-or-require-tls", f'Set {at}tls_mode = "verify_identity" or "required"'),
            )
        return Tls(mode=chosen, ca=self.tls_ca, cert=self.tls_cert, key=self.tls_key)

    @property
    def address(self) -> str:
        """The URL with its password masked."""
        return self.parse(self.url.get_secret_value()).render_as_string(hide_password=True)

    @property
    def user(self) -> str:
        """The user's name; '': the URL names none."""
        return self.parse(self.url.get_secret_value()).username or ""

    def full_url(self) -> str:
        """Return the URL with the password in it. Never log or print it."""
        url = self.parse(self.url.get_secret_value())
        password = self.password_file if self.password is None else self.password
        # A password from the environment overrides one in the URL; a file does not have one.
        if password is not None and url.host is not None:
            url = url.set(password=password.get_secret_value())
        return url.render_as_string(hide_password=False)
