"""The writer of the MySQL family: one segment, one transaction, on a session that this process keeps.

Whatever happens between the first statement and COMMIT is rolled back by the server, so it may be repeated. Once COMMIT was sent and
its answer did not come, nobody here knows: that is reported as such, and the driver raises the epoch before it looks.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import ApplierError, InvariantViolation, RowRefused, SinkError, UnknownOutcome
from applier.model.events import TableName
from applier.model.rejected_event import EventPlace, RejectedEvent
from applier.planner.statement import Phase, Statement
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, FenceState
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.failpoint import reach
from applier.sinks.guarded import Guard
from applier.sinks.mysql.catalogue import describe
from applier.sinks.mysql.errors import ErrorVerdict, code_of, is_database_error, meaning_of, translate
from applier.sinks.mysql.registry import SessionRegistry
from applier.sinks.mysql.session import QUERIES, Purpose, discard, execute_text, open_session, roll_back
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.quarantine import Quarantined
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteOutcome, WriteState

HARMLESS: Final = frozenset({1592, 3170, 1287, 1681, 3719, 3778, 4166, 6414})
"""Warnings that say nothing about values: a statement that is unsafe for statement-based binary logs, one that was too large for a plan by
ranges (MySQL's range_optimizer_max_mem_size), and what MySQL calls deprecated (engines with and without transactions in one transaction
too: the table check stops at such a table unless it is accepted)."""
TRUNCATED: Final = 1265
"""Raised by ENUM ordinal 0, which is what upstream holds (the dialect refuses ordinals beyond the sink's elements), and by real losses."""


class _Warning(NamedTuple):
    code: int
    text: str

    def is_about(self, columns: frozenset[str]) -> bool:
        """Tell whether it says that the value of one of ``columns`` was truncated."""
        return self.code == TRUNCATED and any(f"'{column}'" in self.text for column in columns)


_sessions: dict[tuple[int, SinkSettings], Connection] = {}
"""One session per process and sink. The process is part of the key: a forked one must not use its parent's."""


@dataclass(frozen=True, slots=True)
class MysqlWriter:
    """Writes segments of one replica. Picklable; its session lives in the process that writes."""

    settings: SinkSettings

    def write(
        self, fence: Fence, statements: Iterable[Statement], commit: ProgressCommit, quarantined: Quarantined | None = None
    ) -> WriteOutcome:
        """Lock the progress row, check the fence, run the statements, move the progress, COMMIT. Raises nothing of the database."""
        reach("write.before_lock")
        try:
            connection, state = self._locked(fence)
        except ApplierError as error:
            return WriteOutcome(state=WriteState.FAILED, error=error)
        if (refusal := state.refusal) is not None:
            roll_back(connection)
            return WriteOutcome(state=refusal)
        try:
            guard = self._guard(connection, quarantined)
            guard.begin()
            rows = _run(guard, statements)
            stored = self._store(connection, quarantined, guard.refused)
            self._advance(connection, fence, commit)
        except ApplierError as error:
            self._forget()
            return WriteOutcome(state=WriteState.FAILED, error=error)
        except BaseException:
            self._forget()
            raise
        reach("write.before_commit")
        return self._commit(connection, WriteOutcome(state=WriteState.COMMITTED, rows=rows, quarantined=stored))

    @property
    def _bookkeeping(self) -> Bookkeeping:
        return Bookkeeping(self.settings.name, "mysql", self.settings.schema)

    def _locked(self, fence: Fence) -> tuple[Connection, FenceState]:
        """Return a session that holds the progress row. A kept session may have died of idleness: then a new one, once."""
        kept = _sessions.get(self._key)
        if kept is not None:
            try:
                return kept, self._bookkeeping.lock(kept, fence)
            except (SQLAlchemyError, OSError) as error:
                self._forget()
                if meaning_of(error).verdict is not ErrorVerdict.LOST:
                    raise _ours(error, "locking the progress") from None
        connection = self._open()
        try:
            return connection, self._bookkeeping.lock(connection, fence)
        except (SQLAlchemyError, OSError) as error:
            self._forget()
            raise _ours(error, "locking the progress") from None

    def _open(self) -> Connection:
        connection = open_session(self.settings, Purpose.WRITE)
        try:
            SessionRegistry(self._bookkeeping).register(connection)
        except (SQLAlchemyError, OSError) as error:
            discard(connection)
            raise _ours(error, "registering a session") from None
        _sessions[self._key] = connection
        return connection

    def _advance(self, connection: Connection, fence: Fence, commit: ProgressCommit) -> None:
        try:
            self._bookkeeping.advance(connection, fence, commit)
        except (SQLAlchemyError, OSError) as error:
            raise _ours(error, "moving the progress") from None

    def _store(
        self, connection: Connection, quarantined: Quarantined | None, refused: Sequence[RejectedEvent]
    ) -> tuple[RejectedEvent, ...]:
        try:
            return Quarantine(self._bookkeeping).store_all(connection, quarantined, refused)
        except (SQLAlchemyError, OSError) as error:
            raise _ours(error, "writing to the quarantine") from None

    def _stored(self, connection: Connection, places: Iterable[EventPlace]) -> frozenset[EventPlace]:
        try:
            return Quarantine(self._bookkeeping).stored(connection, places)
        except (SQLAlchemyError, OSError) as error:
            raise _ours(error, "reading the quarantine") from None

    def _guard(self, connection: Connection, quarantined: Quarantined | None) -> Guard:
        return Guard(
            lambda statement: _execute(connection, statement),
            savepoint=lambda: _control(connection, "SAVEPOINT applier_rows"),
            roll_back=lambda: _control(connection, "ROLLBACK TO SAVEPOINT applier_rows"),
            quarantined=quarantined,
            stored=lambda places: self._stored(connection, places),
        )

    def _commit(self, connection: Connection, outcome: WriteOutcome) -> WriteOutcome:
        try:
            connection.commit()
        except (SQLAlchemyError, OSError) as error:
            self._forget()
            ours = _ours(error, "COMMIT")
            # Only these codes say that the server has rolled back; anything else leaves it open.
            if meaning_of(error).verdict is ErrorVerdict.RETRY:
                return WriteOutcome(state=WriteState.FAILED, error=ours)
            return WriteOutcome(state=WriteState.REBUILD, error=_unknown(ours))
        reach("write.after_commit")
        return outcome

    @property
    def _key(self) -> tuple[int, SinkSettings]:
        return os.getpid(), self.settings

    def _forget(self) -> None:
        """End the session, which rolls back. After any error a new one is cheaper than to reason about the old."""
        discard(_sessions.pop(self._key, None))


def close_writer_sessions() -> None:
    """End the sessions that writers of this process keep."""
    for key in [key for key in _sessions if key[0] == os.getpid()]:
        discard(_sessions.pop(key))


def _run(guard: Guard, statements: Iterable[Statement]) -> int:
    """Run the statements in order and return how many rows were written."""
    rows = 0
    replaced: set[str] = set()
    for statement in statements:
        _check_order(statement, replaced)
        rows += guard.run(statement)
    return rows


def _execute(connection: Connection, statement: Statement) -> None:
    """Run one statement; an error names its table and timestamps."""
    try:
        _, warnings = execute_text(connection, statement.text)
    except Exception as error:
        if not is_database_error(error):
            raise
        # Not chained: the driver's words may quote values of the row.
        raise _ours(error, "writing rows", **_facts(statement)) from None
    if warnings:
        _judge(connection, statement, warnings)


def _control(connection: Connection, command: str) -> None:
    try:
        execute_text(connection, command)
    except Exception as error:
        if not is_database_error(error):
            raise
        raise _ours(error, "guarding rows") from None


def _check_order(statement: Statement, replaced: set[str]) -> None:
    if statement.phase is Phase.REPLACE:
        replaced.add(statement.table)
    elif statement.table in replaced:
        message = "a segment deletes from a table that it has begun to fill"
        raise InvariantViolation(message, **_facts(statement))


def _judge(connection: Connection, statement: Statement, count: int) -> None:
    """Raise RowRefused unless every warning is known to be harmless."""
    try:
        shown = [_Warning(int(row[1]), str(row[2])) for row in connection.execute(QUERIES["warnings"])]
        suspect = [warning for warning in shown if warning.code not in HARMLESS]
        if any(warning.code == TRUNCATED for warning in suspect):
            enums = _enum_columns(connection, statement.table)
            suspect = [warning for warning in suspect if not warning.is_about(enums)]
    except (SQLAlchemyError, OSError) as error:
        raise _ours(error, "reading warnings", **_facts(statement)) from None
    if not suspect and len(shown) == count:
        return
    code = suspect[0].code if suspect else 0
    message = "the database would have altered a value silently; the transaction was rolled back"
    remedy = "Give the sink's table the definition that it has upstream"
    raise RowRefused(message, remedy=remedy, code=code, **_facts(statement), **_column(suspect))


def _enum_columns(connection: Connection, table: str) -> frozenset[str]:
    """Name the ENUM columns of ``schema.table``. Either name may hold dots, so every place to cut is tried."""
    parts = table.split(".")
    names = [TableName(".".join(parts[:cut]), ".".join(parts[cut:])) for cut in range(1, len(parts))]
    columns = (column for described in describe(connection, names).values() for column in described.columns)
    return frozenset(column.name for column in columns if column.labels and not column.is_set)


def _column(suspect: list[_Warning]) -> dict[str, str]:
    """Name the column. Only this warning's text is known to hold no value before the name."""
    if not suspect or suspect[0].code not in {TRUNCATED, 1264}:
        return {}
    return {"column": suspect[0].text.rpartition(" at row ")[0].rpartition(" ")[2].strip("'")}


def _facts(statement: Statement) -> dict[str, Any]:
    return {"table": statement.table, "min_ts": statement.min_ts, "max_ts": statement.max_ts}


def _ours(error: BaseException, doing: str, **facts: Any) -> ApplierError:
    return error if isinstance(error, ApplierError) else translate(error, doing, **facts)


def _unknown(error: ApplierError) -> SinkError:
    message = "the answer to COMMIT was lost: the write may or may not have happened"
    return UnknownOutcome(message, cause=error.message, code=error.facts.get("code", code_of(error)))
