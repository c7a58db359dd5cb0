"""The executor side: one segment in one transaction of the file."""

import sqlite3
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from applier.model.errors import ApplierError, SinkFull
from applier.model.rejected_event import EventPlace
from applier.planner.statement import Statement
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.failpoint import reach
from applier.sinks.guarded import Guard
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.quarantine import Quarantined
from applier.sinks.sqlite.errors import commit_failed, translate
from applier.sinks.sqlite.session import open_engine, raw
from applier.sinks.write_outcome import WriteOutcome, WriteState


@dataclass(frozen=True, slots=True)
class SqliteWriter:
    """Writes a segment from any process of the machine that holds the file."""

    path: Path
    bookkeeping: Bookkeeping
    lock_wait_timeout_s: int

    def write(
        self, fence: Fence, statements: Iterable[Statement], commit: ProgressCommit, quarantined: Quarantined | None = None
    ) -> WriteOutcome:
        """BEGIN IMMEDIATE, check the fence, run the statements in order, move the progress, COMMIT. Raises nothing of the database."""
        try:
            with open_engine(self.path, self.lock_wait_timeout_s).connect() as connection:
                outcome = self._write(connection, fence, statements, commit, quarantined)
        except (DBAPIError, sqlite3.Error) as error:
            return WriteOutcome(state=WriteState.FAILED, error=translate(error))
        except ApplierError as error:
            return WriteOutcome(state=WriteState.FAILED, error=error)
        reach("write.after_commit")
        return outcome

    def _write(
        self, connection: Connection, fence: Fence, statements: Iterable[Statement], commit: ProgressCommit, quarantined: Quarantined | None
    ) -> WriteOutcome:
        # The block rolls back unless it commits, also when a statement or the planner behind the iterator raises.
        with connection.begin() as transaction:
            refusal = self.bookkeeping.lock(connection, fence).refusal
            if refusal is not None:
                transaction.rollback()
                return WriteOutcome(state=refusal)
            quarantine = Quarantine(self.bookkeeping)
            guard = _guard(raw(connection), quarantined, partial(quarantine.stored, connection))
            guard.begin()
            rows = sum(map(guard.run, statements))
            stored = quarantine.store_all(connection, quarantined, guard.refused)
            self.bookkeeping.advance(connection, fence, commit)
            reach("write.before_commit")
            try:
                transaction.commit()
            except DBAPIError as error:
                failure = commit_failed(error)
                state = WriteState.FAILED if isinstance(failure, SinkFull) else WriteState.REBUILD
                return WriteOutcome(state=state, error=failure)
        return WriteOutcome(state=WriteState.COMMITTED, rows=rows, quarantined=stored)


def _guard(
    connection: sqlite3.Connection, quarantined: Quarantined | None, stored: Callable[[Iterable[EventPlace]], AbstractSet[EventPlace]]
) -> Guard:
    def execute(statement: Statement) -> None:
        try:
            connection.execute(statement.text)
        except sqlite3.Error as error:
            raise translate(error, table=statement.table, min_ts=statement.min_ts, max_ts=statement.max_ts) from error

    return Guard(
        execute,
        savepoint=lambda: _execute(connection, "SAVEPOINT applier_rows"),
        roll_back=lambda: _execute(connection, "ROLLBACK TO applier_rows"),
        quarantined=quarantined,
        stored=stored,
    )


def _execute(connection: sqlite3.Connection, statement: str) -> None:
    connection.execute(statement)
