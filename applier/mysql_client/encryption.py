"""TLS to a server of the MySQL family: from the operator's words to what PyMySQL takes.

A process has one context per choice of the operator: to load the system's certificates takes 30 ms of CPU, and there are many sessions.
"""

import ssl
from functools import cache
from typing import Any

import pymysql

from applier.mysql_client.tls import Tls, TlsMode


def tls_arguments(tls: Tls) -> dict[str, Any]:
    """Return PyMySQL's arguments; OSError (ssl.SSLError among them) if a file cannot be read or used."""
    match tls.mode:
        case TlsMode.PREFERRED:
            return {}  # what PyMySQL does; see ``DriverConnection``
        case TlsMode.DISABLED:
            return {"ssl_disabled": True}
        case TlsMode.REQUIRED | TlsMode.VERIFY_CA | TlsMode.VERIFY_IDENTITY:
            return {"ssl": _context(tls)}


class DriverConnection(pymysql.Connection):  # type: ignore[misc]  # PyMySQL ships no types
    """PyMySQL's connection, which takes TLS without certificates where the server offers it, without a new context each time."""

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return super()._create_ssl_ctx(sslp) if sslp else _unverified()


@cache
def _unverified() -> ssl.SSLContext:
    # As PyMySQL makes it for its own "preferred" mode, except that no certificates are loaded, since none are compared.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@cache
def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca)
    # Python 3.13 refuses certificates without key usage extensions: those that MySQL and MariaDB generate.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # In this order: Python refuses CERT_NONE while the host's name is checked.
    context.check_hostname = tls.mode is TlsMode.VERIFY_IDENTITY
    context.verify_mode = ssl.CERT_NONE if tls.mode is TlsMode.REQUIRED else ssl.CERT_REQUIRED
    if tls.cert is not None:
        # Without the password function, OpenSSL would ask the terminal for that of an encrypted key, and wait.
        context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
    return context
