"""TLS to a server that takes nothing else: who is trusted, who is not, and what is said about it."""

import pytest
from sqlalchemy import make_url, text

from applier.database.session import Tls, TlsMode
from applier.model.errors import FatalSinkError
from applier.sinks.mysql.session import Purpose, open_session
from tests.integration.mysql_replica import run, settings
from tests.rig.certificate import Certificates
from tests.rig.database import Database

BEYOND_LATIN_1 = "p\N{EURO SIGN}ss"
LOCALHOST = "localhost"
"""The server's certificate names only 127.0.0.1."""


def cipher(url: str, tls: Tls) -> str:
    connection = open_session(settings(url, tls=tls), Purpose.CONTROL)
    try:
        return str(connection.execute(text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")).one()[1])
    finally:
        connection.close()


def refusal(url: str, tls: Tls) -> FatalSinkError:
    with pytest.raises(FatalSinkError) as caught:
        cipher(url, tls)
    return caught.value


@pytest.mark.parametrize(
    ("mode", "ca"),
    [
        (TlsMode.PREFERRED, None),
        (TlsMode.REQUIRED, None),
        (TlsMode.VERIFY_CA, "ca.pem"),
        (TlsMode.VERIFY_IDENTITY, "ca.pem"),
    ],
)
def test_what_is_written_is_encrypted(encrypted_database: Database, certificates: Certificates, mode: TlsMode, ca: str | None) -> None:
    assert cipher(encrypted_database.url, Tls(mode=mode, ca=ca and certificates.path(ca))).startswith("TLS_")


@pytest.mark.parametrize("mode", [TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY])
@pytest.mark.parametrize("ca", ["stranger.pem", None], ids=["another authority", "the system's authorities"])
def test_a_server_that_the_authority_does_not_know_is_not_trusted(
    encrypted_database: Database, certificates: Certificates, mode: TlsMode, ca: str | None
) -> None:
    error = refusal(encrypted_database.url, Tls(mode=mode, ca=ca and certificates.path(ca)))
    assert error.facts["code"] == 2026
    assert "certificate verify failed" in error.message
    assert "tls_ca" in error.remedy


def test_a_certificate_of_another_host_is_refused_unless_only_its_authority_is_asked_for(
    encrypted_database: Database, certificates: Certificates
) -> None:
    other = make_url(encrypted_database.url).set(host=LOCALHOST).render_as_string(hide_password=False)
    error = refusal(other, Tls(mode=TlsMode.VERIFY_IDENTITY, ca=certificates.path("ca.pem")))
    assert "not valid for 'localhost'" in error.message
    assert "host's name" in error.remedy
    assert cipher(other, Tls(mode=TlsMode.VERIFY_CA, ca=certificates.path("ca.pem")))


def test_a_connection_without_tls_is_refused_with_a_remedy(encrypted_database: Database) -> None:
    error = refusal(encrypted_database.url, Tls(mode=TlsMode.DISABLED))
    assert "tls_mode" in error.remedy


@pytest.mark.parametrize("name", ["nothing.pem", "client.key"], ids=["missing", "no certificate"])
def test_an_authority_that_cannot_be_read_names_its_key(encrypted_database: Database, certificates: Certificates, name: str) -> None:
    assert "tls_ca" in refusal(encrypted_database.url, Tls(mode=TlsMode.VERIFY_CA, ca=certificates.path(name))).remedy


def test_a_user_may_have_to_show_a_certificate(encrypted_database: Database, certificates: Certificates) -> None:
    run(
        encrypted_database.url,
        "DROP USER IF EXISTS applier_shown@'%'",
        f"CREATE USER applier_shown@'%' IDENTIFIED BY '{BEYOND_LATIN_1}' REQUIRE X509",
    )
    url = make_url(encrypted_database.url).set(username="applier_shown", password=BEYOND_LATIN_1).render_as_string(hide_password=False)
    ca, cert, key = (certificates.path(name) for name in ("ca.pem", "client.pem", "client.key"))
    assert cipher(url, Tls(mode=TlsMode.VERIFY_IDENTITY, ca=ca, cert=cert, key=key))
    assert "Access denied" in refusal(url, Tls(mode=TlsMode.VERIFY_IDENTITY, ca=ca)).message
    assert "tls_cert" in refusal(url, Tls(mode=TlsMode.VERIFY_IDENTITY, ca=ca, cert=cert)).remedy


def test_a_server_without_tls_is_refused_where_tls_is_required(mysql_url: str) -> None:
    assert "SSL is required" in refusal(mysql_url, Tls(mode=TlsMode.REQUIRED)).message
