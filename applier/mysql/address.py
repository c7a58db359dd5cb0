"""The URL of a server: which URLs are allowed, and why others are refused. No message here quotes a part that may be a password.

SQLAlchemy hands the options of a URL to the driver as texts. PyMySQL treats some of them as true whatever their text is
(``autocommit=false`` switches it on), and others change what a session writes or how long it waits. So only options on a list of
harmless ones are allowed; the applier sets everything else.
"""

import re
from difflib import get_close_matches
from typing import Final

from sqlalchemy.engine import URL

from applier.database.session import QUOTED, BadAddress, Options, parse_address
from applier.model.errors import Remedy

DRIVERS: Final = ("mysql+pymysql", "mariadb+pymysql")
FORMS: Final = tuple(f"{driver}://user@host:3306/" for driver in DRIVERS)
URL_FORM: Final = Remedy("mysql.write-url", f"Write {' or '.join(FORMS)}")

CONNECT_TIMEOUT: Final = "connect_timeout"
MAX_CONNECT_TIMEOUT_S: Final = 60
"""With a longer one, neither a retry nor a shutdown would come in time."""
HARMLESS: Final = frozenset({"bind_address", CONNECT_TIMEOUT, "program_name", "unix_socket"})
"""Options about how the server is reached, and how it shows the session."""

_IN_THE_URL: Final = Remedy("sink.write-into-url", "Write it before the '?': mysql+pymysql://user@host:3306/")
_NO_DATABASE: Final = Remedy(
    "sink.remove-database",
    "Remove it: mysql+pymysql://user@host:3306/ reaches the server. "
    "Each table is in the schema that it has upstream; source.route chooses others",
)
_SECRET: Final = Remedy("sink.use-password-key", "Give the password as password or password_file. Use a tls_key that has no password")
_SETTINGS: Final = Remedy("sink.remove-session-variables", "Remove it: the applier sets the variables of its sessions itself")
_TIMEOUTS: Final = Remedy("sink.remove-timeouts", "Remove it: the applier sets the timeouts of its sessions itself")
_DRIVER: Final = Remedy("sink.remove-driver-options", "Remove it: the applier sets the driver's options itself")
_FILE: Final = Remedy("sink.replace-option-file", "Write user, host and port into the url, and name the password's file as password_file")
_TLS: Final = Remedy("sink.use-tls-settings", "Use the settings next to the url: tls_mode, tls_ca, tls_cert and tls_key")
_SECRET_OPTIONS: Final = frozenset({"password", "passwd", "ssl_key_password"})
_INSTEAD: Final = {
    "autocommit": Remedy("sink.remove-autocommit", "Remove it: the applier decides what is committed together"),
    "charset": Remedy("sink.remove-charset", "Remove it: the applier's sessions use utf8mb4"),
    "collation": Remedy("sink.remove-collation", "Remove it: the applier's sessions use utf8mb4"),
    "use_unicode": Remedy("sink.remove-use-unicode", "Remove it: the applier's sessions use utf8mb4"),
    "init_command": Remedy("sink.remove-init-command", f"{_SETTINGS}; the zone of TIMESTAMP columns is source.time_zone"),
    "sql_mode": _SETTINGS,
    "read_timeout": _TIMEOUTS,
    "write_timeout": _TIMEOUTS,
    "local_infile": _DRIVER,
    **dict.fromkeys(("auth_plugin_map", "binary_prefix", "client_flag", "compress", "conv", "cursorclass", "defer_connect"), _DRIVER),
    **dict.fromkeys(("max_allowed_packet", "named_pipe", "server_public_key"), _DRIVER),
    **dict.fromkeys(("read_default_file", "read_default_group"), _FILE),
    **dict.fromkeys(("database", "db", "host", "port", "user", "username"), _IN_THE_URL),
    **dict.fromkeys(("ssl", "ssl_ca", "ssl_capath", "ssl_cert", "ssl_check_hostname", "ssl_cipher", "ssl_disabled", "ssl_key"), _TLS),
    **dict.fromkeys(("ssl_verify_cert", "ssl_verify_identity"), _TLS),
    **dict.fromkeys(_SECRET_OPTIONS, _SECRET),
}
"""Options of PyMySQL and SQLAlchemy that are refused, and what to do instead."""

_SERVER: Final = re.compile(r"([\w+]+)://(?:[^:/]*(?::[^@]*)?@)?")
"""Scheme, user and password as SQLAlchemy finds them: the password ends at its first ``@``."""

_SECONDS: Final = re.compile("[0-9]{1,9}")


def read_server_url(text: str) -> URL:
    """Return the URL of a server of the family, with options that do no harm; BadAddress for everything else."""
    # Before SQLAlchemy parses it: a password with an '@' would end up in the host, which errors show.
    server = _SERVER.match(text)
    if server is not None and server[1] in DRIVERS and "@" in text[server.end() :]:
        raise BadAddress("contains an '@' that is not encoded as %40", QUOTED)
    url, options = parse_address(text, URL_FORM)
    if url.drivername not in DRIVERS:
        raise BadAddress("is not a server of the MySQL family", URL_FORM)
    _check(url, options)
    return url


def connect_timeout_of(url: URL, usual_s: int) -> int:
    """Return how long a connection may take to open: the option of the checked URL, else ``usual_s``."""
    return int(str(url.query.get(CONNECT_TIMEOUT, usual_s)))


def _check(url: URL, options: Options) -> None:
    names = [name for name, _ in options]
    for option, value in options:
        if option in _SECRET_OPTIONS:
            raise BadAddress(f"holds a secret in its option {option!r}", _SECRET)
        if option not in HARMLESS:
            raise BadAddress(f"has an unsupported option: {option!r}", _INSTEAD.get(option) or _nearest(option))
        if names.count(option) > 1 or not value:
            raise BadAddress(
                f"must give its option {option!r} exactly one value",
                Remedy("sink.give-option-once", "Give it once with a value, or remove it"),
            )
        if option == CONNECT_TIMEOUT and not (_SECONDS.fullmatch(value) and 1 <= int(value) <= MAX_CONNECT_TIMEOUT_S):
            raise BadAddress(
                f"has a wrong value of {option!r}",
                Remedy("sink.give-whole-seconds", f"Give whole seconds, from 1 to {MAX_CONNECT_TIMEOUT_S}"),
            )
    if url.database:
        raise BadAddress("names a database", _NO_DATABASE)
    if not url.host and "unix_socket" not in names:
        raise BadAddress("names no host", URL_FORM)


def _nearest(option: str) -> Remedy:
    near = get_close_matches(option, sorted(HARMLESS), n=1)
    if near:
        return Remedy("sink.correct-option", f"Did you mean {near[0]!r}?")
    return Remedy("sink.remove-option", f"Remove it. The supported options are: {', '.join(sorted(HARMLESS))}")
