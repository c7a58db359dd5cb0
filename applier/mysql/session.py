"""Sessions of MySQL, MariaDB and TiDB: opened with fixed settings, so that a server's defaults never change what is written.

There is no pool, and nothing reconnects: each session has one purpose and one owner, who discards a lost one and opens another. Its errors
are SQLAlchemy's, whichever way a statement is sent.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from applier.database.session import PREFERRED, BadAddress, SingleSession, Tls, never_replace
from applier.model.errors import ConfigError, InvariantViolation
from applier.mysql.address import connect_timeout_of, read_server_url
from applier.mysql.connection import DriverConnection, tls_arguments
from applier.mysql.errors import NoSession
from applier.mysql.queries import QUERIES
from applier.mysql.session_variables import SQL_MODE, reading_variables, set_variables

CONNECT_TIMEOUT_S = 10
SILENCE_S = 120
"""A server that is silent for longer than a statement may take, and this, counts as lost."""


class ServerSession(SingleSession):
    """One session of a server of the MySQL family, as ``open_session`` sets it up. It cannot reconnect."""

    checks_keys = False
    """Whether ``foreign_key_checks`` was switched on since."""

    def end(self) -> None:
        """Close the socket: PyMySQL opens no other one."""
        driver_of(self)._force_close()  # noqa: SLF001 - close() would wait for a server that is silent

    @property
    def is_lost(self) -> bool:
        """Whether it is known to be lost: no statement can be sent any more."""
        return self.closed or not driver_of(self).open


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server is, and whose session it is: ``name`` is the replica's. Picklable; ``repr`` never shows the password."""

    url: str = field(repr=False)
    tls: Tls = PREFERRED
    name: str = "replica"


class SessionOptions(NamedTuple):
    """How long a session waits for its server in seconds, and what it may do."""

    read_timeout_s: float | None
    """None: without limit. A DDL may run for hours, and is silent meanwhile."""
    connect_timeout_s: int | None = None
    """At most, whatever the URL says."""
    loads: bool = False
    """Whether it sends bulk loads."""
    autocommits: bool = False
    """Whether each statement is a transaction: of a session that only asks."""


def open_server_session(address: ServerAddress, variables: Mapping[str, str | float], options: SessionOptions) -> ServerSession:
    """Open a session and fix its variables, if there are any to fix; NoSession if that fails."""
    try:
        connection = ServerSession(_engine(address, options))
    except (SQLAlchemyError, OSError, RuntimeError) as error:
        raise NoSession("connecting") from error
    try:
        if variables:
            set_variables(connection, variables)
    except BaseException:
        discard(connection)
        raise
    return connection


def open_reader(address: ServerAddress, time_zone: str, statement_timeout_s: int) -> ServerSession:
    """Open a session that only reads; errors as in ``open_server_session``. It needs no privilege but SELECT."""
    return open_server_session(address, reading_variables(time_zone, statement_timeout_s), SessionOptions(statement_timeout_s + SILENCE_S))


def discard(connection: Connection | None) -> None:
    """Close a session whatever its state; what it had not committed is rolled back by the server."""
    if connection is None:
        return
    connection.close()


@contextmanager
def transaction(connection: Connection) -> Iterator[Connection]:
    """Commit at the end of the block; roll back, if the connection still can, when it raises."""
    try:
        yield connection
        connection.commit()
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: Connection) -> None:
    """Roll back; a session that cannot any more is ended, and the server rolls back."""
    try:
        connection.rollback()
    except (SQLAlchemyError, OSError):
        connection.invalidate()


@contextmanager
def driven(connection: Connection) -> Iterator[pymysql.Connection]:
    """Give PyMySQL's own connection to the block; its errors come out as SQLAlchemy's, without the statement."""
    try:
        yield driver_of(connection)
    except (pymysql.err.MySQLError, OSError) as error:
        raise DBAPIError(None, None, error, hide_parameters=True) from error
    except (KeyboardInterrupt, SystemExit):
        # The answer to the block's statement would be taken for that of the next one.
        connection.invalidate()
        raise


def execute_text(connection: Connection, statement: bytes | str) -> tuple[int, int]:
    """Run a whole statement without parameters (nothing in it is looked for) and return (rows affected, warnings).

    Bytes are sent as they are: the session's character set is utf8mb4.
    """
    with driven(connection) as driver, driver.cursor() as cursor:
        return cursor.execute(statement), cursor.warning_count


def read_rows(connection: Connection, query: bytes | str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Run a query with ``%s`` for each value (without values, nothing is looked for) and return its rows as PyMySQL reads them."""
    with driven(connection) as driver, driver.cursor() as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())


@contextmanager
def _undecoded(connection: Connection) -> Iterator[pymysql.Connection]:
    """Let texts come as bytes in the block: PyMySQL decodes with the session's character set, and raises where that fails."""
    with driven(connection) as driver:
        driver.use_unicode = False
        try:
            yield driver
        finally:
            driver.use_unicode = True


def read_bytes(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """Run a query without parameters and return its rows with every text as the bytes that came.

    MariaDB writes binary defaults into SHOW CREATE TABLE as they are, which is not text in any character set.
    """
    with _undecoded(connection) as driver, driver.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def read_undecoded(connection: Connection, query: str) -> list[tuple[bytes | None, ...]]:
    """Run a query without parameters and return its rows, every value as the bytes that came."""
    with _undecoded(connection) as driver:
        decoders, driver.decoders = driver.decoders, {}
        try:
            with driver.cursor() as cursor:
                cursor.execute(query)
                return list(cursor.fetchall())
        finally:
            driver.decoders = decoders


def read_checked(connection: Connection, query: str) -> tuple[list[tuple[Any, ...]], list[tuple[int, str]]]:
    """Run a query as ``read_bytes`` does, and return the warnings (code, message) that it raised, too."""
    with _undecoded(connection) as driver, driver.cursor() as cursor:
        cursor.execute(query)
        rows = list(cursor.fetchall())
        warned = driver.show_warnings() if cursor.warning_count else ()
        return rows, [(int(code), str(_decoded(message))) for _, code, message in warned]


def read_named(connection: Connection, query: str, values: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Run a query with ``%s`` for each value and return its rows by column name, in upper case, with every text decoded.

    What is not UTF-8 (MariaDB shows binary literals as they are) becomes halves of surrogate pairs.
    """
    with _undecoded(connection) as driver, driver.cursor() as cursor:
        cursor.execute(query, values)
        names = [str(column[0]).upper() for column in cursor.description or ()]
        return [dict(zip(names, map(_decoded, row), strict=True)) for row in cursor.fetchall()]


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def driver_of(connection: Connection) -> pymysql.Connection:
    """Return PyMySQL's own connection. What is sent through it belongs into ``driven``."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, pymysql.Connection):
        message = "the session does not use PyMySQL"
        raise InvariantViolation(message, driver=type(driver).__name__)
    return driver


def session_id(connection: Connection) -> int:
    """Return the server's number of this session."""
    return int(connection.execute(QUERIES["session_id"]).scalar_one())


@cache
def _engine(server: ServerAddress, options: SessionOptions) -> Engine:
    # An engine is a recipe: with NullPool it holds no connection, so it may be kept and survives a fork.
    address = _checked(server.url)
    connect_timeout_s = connect_timeout_of(address, CONNECT_TIMEOUT_S)
    # These override the options of the URL, of which only harmless ones are allowed.
    forced: dict[str, Any] = {
        "autocommit": options.autocommits,
        "charset": "utf8mb4",
        # Before SQLAlchemy asks: it would quote names as the server's ANSI_QUOTES wants, and this is the session's mode.
        "sql_mode": SQL_MODE,
        "connect_timeout": min(connect_timeout_s, options.connect_timeout_s or connect_timeout_s),
        "read_timeout": options.read_timeout_s,
        "write_timeout": options.read_timeout_s,
        # PyMySQL answers no request for a file. A session that loads tells the server that it can: see ``bulk_session``.
        "local_infile": False,
        "program_name": address.query.get("program_name") or f"applier {server.name}",
        "client_flag": CLIENT.LOCAL_FILES if options.loads else 0,
    }
    if address.password is not None:
        forced["password"] = str(address.password).encode()  # PyMySQL would encode it as Latin-1, which not every password can be
    # The schema that a URL may name is not entered: it need not exist, and every name is qualified.
    arguments = forced | tls_arguments(server.tls)
    engine = create_engine(address.set(database=None), poolclass=NullPool, connect_args=arguments, hide_parameters=True)
    never_replace(engine)
    event.listen(engine, "do_connect", lambda dialect, record, args, options: DriverConnection(*args, **options))  # noqa: ARG005 - its form
    return engine


def _checked(url: str) -> URL:
    try:
        return read_server_url(url)
    except BadAddress as bad:
        raise ConfigError(f"the server's url {bad.problem}", remedy=bad.remedy) from None


def limits(connection: Connection) -> tuple[int, int]:
    """Return the largest statement that the server takes, in bytes, and how many warnings of a statement it shows."""
    max_packet_bytes, max_warnings = connection.execute(QUERIES["limits"]).one()
    return int(max_packet_bytes), int(max_warnings)
