"""TLS to a server of the MySQL family: from the operator's settings to PyMySQL's arguments.

A process has one context per choice of the operator: to load the system's certificates takes 30 ms of CPU, and there are many sessions.
"""

import ssl
from functools import cache
from struct import error as StructError  # noqa: N812 - a class
from typing import Any, Final

import pymysql
from pymysql.constants import CR

from applier.database.session import Tls, TlsMode

NO_SUCH_PROTOCOL: Final = CR.CR_SERVER_HANDSHAKE_ERR
"""The code of an error about a port on which something else answers."""


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
    """PyMySQL's connection, which takes TLS without certificates where the server offers it, without a new context each time.

    To connect takes ``connect_timeout`` at most for each answer, whatever statements may take later: a port may accept and stay silent.
    """

    _read_timeout: float | None
    _write_timeout: float | None

    def connect(self, sock: Any = None) -> None:
        """Connect. OperationalError: what fails, by name if the port does not speak the protocol (``NO_SUCH_PROTOCOL``)."""
        read, write = self._read_timeout, self._write_timeout
        self._read_timeout, self._write_timeout = (min(limit or self.connect_timeout, self.connect_timeout) for limit in (read, write))
        try:
            super().connect(sock)
        finally:
            self._read_timeout, self._write_timeout = read, write

    def _get_server_information(self) -> None:
        try:
            super()._get_server_information()
        except pymysql.MySQLError as error:
            code = error.args[0] if error.args else None
            if code == CR.CR_SERVER_LOST:
                message = f"{self._place} accepts connections, and sends no greeting of a MySQL server: {error.args[-1]}"
                raise pymysql.OperationalError(code, message) from error
            # A server that refuses says so with a number of its own. What does not have one was no packet of the protocol.
            if not isinstance(code, int):
                raise self._no_such_protocol() from error
            raise
        except (IndexError, LookupError, ValueError, StructError) as error:
            raise self._no_such_protocol() from error

    def _no_such_protocol(self) -> pymysql.OperationalError:
        return pymysql.OperationalError(NO_SUCH_PROTOCOL, f"{self._place} does not speak the protocol of MySQL")

    @property
    def _place(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"

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
    # Python 3.13 refuses certificates without key usage extensions: as MySQL and MariaDB generate them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # In this order: Python refuses CERT_NONE while the host's name is checked.
    context.check_hostname = tls.mode is TlsMode.VERIFY_IDENTITY
    context.verify_mode = ssl.CERT_NONE if tls.mode is TlsMode.REQUIRED else ssl.CERT_REQUIRED
    if tls.cert is not None:
        # Without the password function, OpenSSL would ask the terminal for that of an encrypted key, and wait.
        context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
    return context
