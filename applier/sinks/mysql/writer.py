"""The sessions of MySQL's writers: one per process and sink, kept from one segment to the next. One segment is one transaction.

The transaction begins with the statement that locks the progress row (autocommit is off).
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import ApplierError, SinkError, UnknownOutcome
from applier.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of, translate
from applier.mysql.session import ServerSession, discard, execute_text, read_rows, roll_back, transaction
from applier.planner.port import Statement
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.progress_table import FenceState
from applier.sinks.bookkeeping.xa_table import read_pieces
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.bulk_write import load
from applier.sinks.mysql.registry import SessionRegistry
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.warnings import judge_warnings
from applier.sinks.settings import SinkSettings
from applier.sinks.write_transaction import WriteTransaction, check_deleted


@dataclass(frozen=True, slots=True)
class MysqlXaReader:
    """A ``XaReader``. Picklable; connects for each transaction that it reads."""

    settings: SinkSettings = field(repr=False)

    def read(self, place: int) -> Iterator[bytes]:
        """Yield the pieces of a transaction."""
        settings = self.settings
        connection = open_session(settings, Purpose.CONTROL)
        try:
            with transaction(connection):
                yield from read_pieces(bookkeeping_of(settings), connection, place)
        except (SQLAlchemyError, OSError) as error:
            raise translate(error, "reading a prepared transaction", replica=settings.name) from error
        finally:
            discard(connection)


_kept: dict[tuple[int, SinkSettings], ServerSession] = {}
"""One session per process and sink. The process is part of the key: a forked one must not use its parent's."""


@dataclass(frozen=True, slots=True)
class MysqlWriteSession:
    """A ``WriteSession`` on a server of the MySQL family."""

    connection: ServerSession
    settings: SinkSettings

    def execute(self, statement: Statement) -> int:
        """Send one statement and return how many rows it has changed; RowRefused unless every warning is known to be harmless.

        BulkRefused: a load that was not exact.
        """
        if statement.checks_keys is not self.connection.checks_keys:
            execute_text(self.connection, f"SET SESSION foreign_key_checks = {int(statement.checks_keys)}")
            self.connection.checks_keys = statement.checks_keys
        if statement.data:
            load(self.connection, statement)
            return statement.rows
        rows, warnings = execute_text(self.connection, statement.text)
        if warnings:
            judge_warnings(self.connection, statement, warnings)
        check_deleted(statement, rows)
        return rows

    def read(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Send a READ, which locks its rows."""
        return read_rows(self.connection, statement.text)

    def control(self, command: str) -> None:
        """Send a command of transaction control."""
        execute_text(self.connection, command)

    def commit(self) -> None:
        """Send COMMIT."""
        self.connection.commit()

    def translate(self, error: Exception, doing: str, **facts: Any) -> ApplierError | None:
        """Return our error for one of the database, the driver or the network."""
        return translate(error, doing, **facts) if is_database_error(error) else None

    def translate_commit(self, error: Exception) -> ApplierError | None:
        """Return our error for a COMMIT that failed."""
        if not is_database_error(error):
            return None
        ours = translate(error, "COMMIT")
        # Only these codes say that the server has rolled back; anything else leaves it open.
        return ours if meaning_of(error).verdict is ErrorVerdict.RETRY else _unknown(ours, error)

    def release(self) -> None:
        """Roll back what is not committed; the session stays open for the next segment."""
        roll_back(self.connection)

    def discard(self) -> None:
        """Close the session; the server rolls back."""
        discard(_kept.pop(_key(self.settings), None))


@dataclass(frozen=True, slots=True)
class MysqlWriteSessions:
    """Keeps the session of this process, and opens a new one where the kept one is lost."""

    settings: SinkSettings
    bookkeeping: Bookkeeping

    def locked(self, lock: Callable[[Connection], FenceState]) -> tuple[MysqlWriteSession, FenceState]:
        """Return a session with what ``lock`` returned on it. A kept session may have timed out: then a new one is opened, once."""
        kept = _kept.get(_key(self.settings))
        if kept is not None:
            try:
                return MysqlWriteSession(kept, self.settings), lock(kept)
            except (SQLAlchemyError, OSError) as error:
                self._forget()
                if meaning_of(error).verdict is not ErrorVerdict.LOST:
                    raise translate(error, "locking the progress") from None
        connection = self._open()
        try:
            return MysqlWriteSession(connection, self.settings), lock(connection)
        except (SQLAlchemyError, OSError) as error:
            self._forget()
            raise translate(error, "locking the progress") from None

    def _open(self) -> ServerSession:
        connection = open_session(self.settings, Purpose.WRITE)
        try:
            SessionRegistry(self.bookkeeping).register(connection)
        except (SQLAlchemyError, OSError) as error:
            discard(connection)
            raise translate(error, "registering a session") from None
        _kept[_key(self.settings)] = connection
        return connection

    def _forget(self) -> None:
        discard(_kept.pop(_key(self.settings), None))


def close_writer_sessions() -> None:
    """Close the sessions that writers of this process keep."""
    for key in [key for key in _kept if key[0] == os.getpid()]:
        discard(_kept.pop(key))


def _key(settings: SinkSettings) -> tuple[int, SinkSettings]:
    # Spark forks its Python workers from one daemon: a session that a fork inherits would be used by two processes.
    return os.getpid(), settings


def _unknown(ours: SinkError, error: Exception) -> UnknownOutcome:
    message = "the answer to COMMIT was lost: the write may or may not have happened"
    return UnknownOutcome(message, cause=ours.message, code=ours.facts.get("code", code_of(error)))


def writer_of(settings: SinkSettings) -> WriteTransaction:
    """Return what writes segments of one replica. Picklable; its session lives in the process that writes."""
    bookkeeping = bookkeeping_of(settings)
    return WriteTransaction(bookkeeping, MysqlWriteSessions(settings, bookkeeping))
