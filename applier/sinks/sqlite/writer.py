"""The sessions of SQLite's writers: one connection and one transaction per segment. Opening a file is cheap, so none is kept open."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from applier.model.errors import ApplierError
from applier.planner.port import Statement
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.progress_table import FenceState
from applier.sinks.bookkeeping.xa_table import read_pieces
from applier.sinks.sqlite.errors import commit_failed, translate
from applier.sinks.sqlite.session import FileSession, open_engine, raw, snapshot
from applier.sinks.write_transaction import check_deleted


@dataclass(frozen=True, slots=True)
class SqliteXaReader:
    """A ``XaReader``. Picklable; opens the file for each transaction that it reads."""

    path: Path
    bookkeeping: Bookkeeping
    lock_wait_timeout_s: int

    def read(self, place: int) -> Iterator[bytes]:
        """Yield the pieces of a transaction."""
        engine = open_engine(self.path, self.lock_wait_timeout_s)
        try:
            with snapshot(engine, self.path) as connection:
                yield from read_pieces(self.bookkeeping, connection, place)
        finally:
            engine.dispose()


@dataclass(frozen=True, slots=True)
class SqliteWriteSession:
    """A ``WriteSession`` on a file."""

    connection: FileSession
    driver: sqlite3.Connection
    """The same connection: the text of rows must not be searched for parameters."""

    def execute(self, statement: Statement) -> int:
        """Run one statement and return how many rows it has changed. SQLite has no warnings: STRICT tables refuse what does not fit."""
        rows = self.driver.execute(statement.text.decode()).rowcount
        check_deleted(statement, rows)
        return rows

    def read(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Run a READ. The transaction holds the file's write lock already."""
        return self.driver.execute(statement.text.decode()).fetchall()

    def control(self, command: str) -> None:
        """Run a command of transaction control."""
        self.driver.execute(command)

    def commit(self) -> None:
        """COMMIT."""
        self.connection.commit()

    def translate(self, error: Exception, doing: str, **facts: Any) -> ApplierError | None:
        """Return our error for one of SQLite's. Its messages name what failed, so ``doing`` is not needed."""
        del doing
        return translate(error, **facts) if isinstance(error, DBAPIError | sqlite3.Error) else None

    def translate_commit(self, error: Exception) -> ApplierError | None:
        """Return our error for a COMMIT that failed."""
        return commit_failed(error) if isinstance(error, DBAPIError | sqlite3.Error) else None

    def release(self) -> None:
        """Close the connection, which rolls back what is not committed."""
        self.connection.close()

    def discard(self) -> None:
        """Close the connection, which rolls back."""
        self.connection.close()


@dataclass(frozen=True, slots=True)
class SqliteWriteSessions:
    """Opens the file at ``path`` from any process of its machine."""

    path: Path
    lock_wait_timeout_s: int

    def locked(self, lock: Callable[[Connection], FenceState]) -> tuple[SqliteWriteSession, FenceState]:
        """BEGIN IMMEDIATE, which waits for another writer, and call ``lock``."""
        try:
            connection = FileSession(open_engine(self.path, self.lock_wait_timeout_s))
        except (DBAPIError, sqlite3.Error) as error:
            raise translate(error) from error
        try:
            state = lock(connection)
            return SqliteWriteSession(connection, raw(connection)), state
        except (DBAPIError, sqlite3.Error) as error:
            connection.close()
            raise translate(error) from error
        except BaseException:
            connection.close()
            raise
