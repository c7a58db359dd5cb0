"""Opens the file: which URLs are allowed, and one kind of connection for driver and executors.

With WAL, readers do not wait while the applier writes; ``synchronous = FULL`` makes every COMMIT durable. Python's transactions are off:
``BEGIN IMMEDIATE`` takes the write lock before the fence is read, so two writers never decide on the same progress row.
"""

import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from applier.database.session import BadAddress, SingleSession, never_replace, parse_address
from applier.model.errors import ConfigError, FatalSinkError, Remedy
from applier.sinks.sqlite.errors import translate

DRIVERS: Final = ("sqlite", "sqlite+pysqlite")
FORM: Final = "sqlite:///file.db"
FILE_FORM: Final = Remedy(
    "sink.write-sqlite-url", "Write sqlite:///replica.db, or sqlite:////var/lib/applier/replica.db for an absolute path"
)


def read_file_url(text: str) -> URL:
    """Return the URL of a file; BadAddress for everything else, which executors could not share."""
    url, options = parse_address(text, FILE_FORM)
    if url.host or url.username or url.password or url.port:
        raise BadAddress("names a host, which a SQLite file does not have", FILE_FORM)
    if not url.database or url.database == ":memory:" or ("mode", "memory") in options:
        raise BadAddress("names no file", Remedy("sink.use-file", f"A database in memory would lose the progress. {FILE_FORM}"))
    if url.database.startswith("file:"):
        raise BadAddress("names the file as a URI (file:…)", FILE_FORM)
    if options:
        raise BadAddress(
            f"has an option, and a SQLite sink takes no options: {options[0][0]!r}",
            Remedy("sink.remove-sqlite-options", "Remove it: the applier opens the file itself"),
        )
    return url


def database_path(url: str) -> Path:
    """Return the absolute path of ``sqlite:///replica.db``; ConfigError for anything but a file."""
    try:
        return Path(str(read_file_url(url).database)).absolute()
    except BadAddress as bad:
        raise ConfigError(f"the sink's url {bad.problem}", remedy=bad.remedy) from None


OLDEST: Final = (3, 37, 0)
"""STRICT tables came with 3.37."""
GLANCE_S: Final = 3
"""How long a viewer of the page waits for a busy file."""
WRITE_AHEAD_PATIENCE_S: Final = 50.0
WRITE_AHEAD_PAUSE_S: Final = 0.01
PRIMARY_CODE: Final = 0xFF
"""The part of an extended result code that is the primary one."""
_READS: Final = "applier_reads"


class FileSession(SingleSession):
    """One connection to the file, as ``open_engine`` sets it up, for one transaction. It cannot be replaced within it."""

    def end(self) -> None:
        """Close SQLite's connection, which rolls back."""
        raw(self).close()


def open_engine(path: Path, lock_wait_timeout_s: int) -> Engine:
    """Make an engine for ``FileSession``, without a pool, whose transactions begin with BEGIN IMMEDIATE. Nothing is opened yet."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise FatalSinkError(
            "the SQLite library is too old",
            remedy=Remedy("sqlite.use-newer-sqlite", "Use a Python with SQLite 3.37 or newer"),
            version=sqlite3.sqlite_version,
        )
    # isolation_level None: Python would begin transactions implicitly, DEFERRED, and none before a DDL.
    arguments = {"timeout": float(lock_wait_timeout_s), "isolation_level": None, "check_same_thread": False}
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args=arguments)
    never_replace(engine)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def require_file_place(path: Path) -> None:
    """FatalSinkError if it is a directory, or its directory is missing.

    The directory is not created: a misspelt path would begin a second replica there.
    """
    if path.is_dir():
        raise FatalSinkError(
            "the SQLite file is a directory", remedy=Remedy("sqlite.give-file-in-url", "Give a file in [sink] url"), path=str(path)
        )
    if not path.parent.is_dir():
        raise FatalSinkError(
            "the directory of the database file does not exist",
            remedy=Remedy("sqlite.make-directory", f"Create it: `mkdir -p {shlex.quote(str(path.parent))}`. Or correct [sink] url"),
            path=str(path),
        )


def _set_up(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    _write_ahead(cursor)
    # legacy_alter_table: views keep the names that they were written with, as in MySQL, and a table is renamed whatever they name.
    for pragma in ("synchronous = FULL", "foreign_keys = OFF", "legacy_alter_table = ON", "trusted_schema = OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _write_ahead(cursor: DBAPICursor) -> None:
    """Switch to WAL. Of two processes that create the file at once, SQLite refuses one without waiting."""
    deadline = time.monotonic() + WRITE_AHEAD_PATIENCE_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(WRITE_AHEAD_PAUSE_S)
        else:
            return


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(_READS) else "BEGIN IMMEDIATE")


def raw(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection: DDL and rows go through it, because their text must not be searched for parameters."""
    driver: Any = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise TypeError(driver)
    return driver


@contextmanager
def transaction(engine: Engine, **facts: Any) -> Iterator[Connection]:
    """Run a block in one transaction: COMMIT at its end, ROLLBACK at an error. SQLite's errors come out as ours, with ``facts``."""
    try:
        with FileSession(engine) as connection, connection.begin():
            yield connection
    except (DBAPIError, sqlite3.Error) as error:
        raise translate(error, **facts) from error


@contextmanager
def glancing(url: str, *, changes: bool) -> Iterator[Connection]:
    """Give a separate connection for one short transaction; other work of this process with the file continues.

    ``changes``: it writes. FatalSinkError if there is no file.
    """
    path = database_path(url)
    engine = open_engine(path, GLANCE_S)
    try:
        with transaction(engine, path=str(path)) if changes else snapshot(engine, path) as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def snapshot(engine: Engine, path: Path, **facts: Any) -> Iterator[Connection]:
    """Run a block of reads on one state of the file, without waiting for a writer. FatalSinkError if there is no file."""
    require_file_place(path)
    # To connect would create an empty file, which the next reader takes for a replica without tables.
    if not path.exists():
        raise FatalSinkError("there is no database file yet", remedy=Remedy("sqlite.run-migrate", "Run `applier migrate`"), path=str(path))
    with transaction(engine.execution_options(**{_READS: True}), path=str(path), **facts) as connection:
        yield connection
