"""The URL of a sink: which URLs are allowed, and why others are refused. No message here quotes a part that may be a password.

SQLAlchemy hands the options of a URL to the driver as texts. PyMySQL takes some of them for true whatever their text is
(``autocommit=false`` switches it on), and others change what a session writes or how long it waits. So only options on a list of
harmless ones are allowed; the applier sets everything else.
"""

import re
from difflib import get_close_matches
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from applier.model.errors import ConfigError

MYSQL: Final = ("mysql+pymysql", "mariadb+pymysql")
SQLITE: Final = ("sqlite", "sqlite+pysqlite")
URL_FORM: Final = "Write mysql+pymysql://user@host:3306/, mariadb+pymysql://user@host:3306/ or sqlite:///file.db"
FILE_FORM: Final = "Write sqlite:///replica.db, or sqlite:////var/lib/applier/replica.db for an absolute path"
QUOTED: Final = (
    "If user or password contain such characters, encode them (@ as %40, : as %3A, / as %2F, # as %23, ? as %3F, % as %25), "
    "or give the password as password_file, APPLIER_SINK__PASSWORD or APPLIER_SOURCE__PASSWORD, without encoding"
)

CONNECT_TIMEOUT: Final = "connect_timeout"
MAX_CONNECT_TIMEOUT_S: Final = 60
"""With a longer one, neither a retry nor a shutdown would come in time."""
HARMLESS: Final = frozenset({"bind_address", CONNECT_TIMEOUT, "program_name", "unix_socket"})
"""How the server is reached, and what it shows of the session."""

_IN_THE_URL: Final = "Write it before the '?': mysql+pymysql://user@host:3306/"
_NO_DATABASE: Final = (
    "Remove it: mysql+pymysql://user@host:3306/ reaches the server. "
    "Each table is in the schema that it has upstream; source.route chooses others"
)
_SECRET: Final = "Give the password as password or password_file. Use a tls_key that has no password"  # noqa: S105 - a remedy
_SETTINGS: Final = "Remove it: the applier sets the variables of its sessions itself"
_TIMEOUTS: Final = "Remove it: the applier sets the timeouts of its sessions itself"
_DRIVER: Final = "Remove it: the applier sets the driver's options itself"
_FILE: Final = "Write user, host and port into the url, and name the password's file as password_file"
_TLS: Final = "Use the settings beside the url: tls_mode, tls_ca, tls_cert and tls_key"
_SECRET_OPTIONS: Final = frozenset({"password", "passwd", "ssl_key_password"})
_INSTEAD: Final = {
    "autocommit": "Remove it: the applier decides what is committed together",
    "charset": "Remove it: the applier's sessions use utf8mb4",
    "collation": "Remove it: the applier's sessions use utf8mb4",
    "use_unicode": "Remove it: the applier's sessions use utf8mb4",
    "init_command": f"{_SETTINGS}; the zone of TIMESTAMP columns is source.time_zone",
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

Options: TypeAlias = list[tuple[str, str]]


class BadAddress(ValueError):
    """What is wrong with a URL (a text that follows the URL's name in a message), and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def sink_url(text: str) -> URL:
    """Return the checked URL; ConfigError names what is wrong with it."""
    try:
        return read_address(text)
    except BadAddress as bad:
        raise ConfigError(f"the sink's url {bad.problem}", remedy=bad.remedy) from None


def read_address(text: str) -> URL:
    """Return the URL of a supported sink, with options that do no harm; BadAddress for everything else."""
    # Before SQLAlchemy parses it: a password with an '@' would end up in the host, which errors show.
    server = _SERVER.match(text)
    if server is not None and server[1] in MYSQL and "@" in text[server.end() :]:
        raise BadAddress("contains an '@' that is not encoded as %40", QUOTED)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Not chained: the library's message may hold the password.
        raise BadAddress("is not a URL of a database", f"{URL_FORM}. {QUOTED}" if "@" in text else URL_FORM) from None
    # SQLAlchemy leaves out options without a value; parsed here, they are refused like others.
    options = parse_qsl(text.rpartition("@")[2].partition("?")[2], keep_blank_values=True)
    if url.drivername in MYSQL:
        _check_server(url, options)
    elif url.drivername in SQLITE:
        _check_file(url, options)
    else:
        raise _unsupported(url.drivername)
    return url


def connect_timeout_of(url: URL, usual_s: int) -> int:
    """Return how long a connection may take to open: the option of the checked URL, else ``usual_s``."""
    return int(str(url.query.get(CONNECT_TIMEOUT, usual_s)))


def _unsupported(driver: str) -> BadAddress:
    choices = (*MYSQL, SQLITE[0])
    near = [name for name in choices if name.startswith(driver)] or get_close_matches(driver, choices, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return BadAddress(f"names a kind of database that is not supported: {driver!r}", hint + URL_FORM)


def _check_server(url: URL, options: Options) -> None:
    names = [name for name, _ in options]
    for option, value in options:
        if option in _SECRET_OPTIONS:
            raise BadAddress(f"holds a secret in its option {option!r}", _SECRET)
        if option not in HARMLESS:
            raise BadAddress(f"has an unsupported option: {option!r}", _INSTEAD.get(option) or _nearest(option))
        if names.count(option) > 1 or not value:
            raise BadAddress(f"must give its option {option!r} exactly one value", "Give it once with a value, or remove it")
        if option == CONNECT_TIMEOUT and not (_SECONDS.fullmatch(value) and 1 <= int(value) <= MAX_CONNECT_TIMEOUT_S):
            raise BadAddress(f"has a wrong value of {option!r}", f"Give whole seconds, from 1 to {MAX_CONNECT_TIMEOUT_S}")
    if url.database:
        raise BadAddress("names a database", _NO_DATABASE)
    if not url.host and "unix_socket" not in names:
        raise BadAddress("names no host", URL_FORM)


def _nearest(option: str) -> str:
    near = get_close_matches(option, sorted(HARMLESS), n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Remove it. The supported options are: {', '.join(sorted(HARMLESS))}"


def _check_file(url: URL, options: Options) -> None:
    if url.host or url.username or url.password or url.port:
        raise BadAddress("names a host, but a SQLite file has none", FILE_FORM)
    if not url.database or url.database == ":memory:" or ("mode", "memory") in options:
        raise BadAddress("names no file", f"A database in memory would lose the progress. {FILE_FORM}")
    if url.database.startswith("file:"):
        raise BadAddress("names the file as a URI (file:…)", FILE_FORM)
    if options:
        raise BadAddress(f"has an option, but a SQLite sink has none: {options[0][0]!r}", "Remove it: the applier opens the file itself")
