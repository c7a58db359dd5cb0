"""The write transaction, once for every database: lock, fence, run, store, advance, commit (DESIGN.md section 8).

A dialect decides how a session is opened, how a statement is sent, what an error means, and whether a failed COMMIT may have happened.
It does not decide the order of the steps, so every database checks the order of statements.

Whatever happens between the lock and COMMIT is rolled back, so it may be repeated. Once COMMIT was sent and its answer did not come,
no one here knows the outcome: that is reported as such, and the driver raises the epoch before it reads the progress.

``RefusedRows`` finds the rows that the database refuses, in a statement that knows its rows: they are quarantined, or the first one is
named. Each try runs after a savepoint. A refused statement is halved until single rows are left: for n rows and few refused ones, about
2 log2(n) further statements per refused row. Row by row would be n statements, and a savepoint per row costs every good segment.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import IO, Any, Final, NoReturn, Protocol, TypeVar

from sqlalchemy import Connection

from applier.model.errors import (
    ApplierError,
    FatalSinkError,
    InvariantViolation,
    NeedsOperator,
    Remedy,
    RetryableSinkError,
    RowRefused,
    UnknownOutcome,
)
from applier.model.rejected_event import EventPosition, RejectedEvent, error_of_event, reason_of
from applier.model.seal import seal, unseal
from applier.planner.port import Phase, Statement, StatementRows
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.progress_table import FenceState, ProgressTable
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.failpoint import reach
from applier.sinks.progress import Fence, ProgressCommit, WriteOutcome, WriteState
from applier.sinks.quarantine import Quarantined

HELD_BYTES: Final = 64 << 20
"""They are held in memory up to here, and in a file of the task beyond it."""

LENGTH_BYTES: Final = 8
"""Of the number before each statement in the file, which says how many bytes it takes."""


class HeldStatements:
    """Statements that wait until all of an earlier phase have run; many of them wait in a file."""

    def __init__(self) -> None:
        self._held: list[Statement] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def add(self, statement: Statement) -> None:
        """Hold one more."""
        self._held.append(statement)
        self._size += statement.size
        if self._size > HELD_BYTES:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by __iter__, or with the task
        for statement in self._held:
            data = seal(statement)
            self._file.write(len(data).to_bytes(LENGTH_BYTES, "big"))
            self._file.write(data)
        self._held, self._size = [], 0

    def __iter__(self) -> Iterator[Statement]:
        """Yield them, once, in the order in which they came. DamagedData: the file does not hold what was written to it."""
        if self._file is not None:
            with self._file as file:
                end = file.tell()
                file.seek(0)
                while file.tell() < end:
                    size = int.from_bytes(file.read(LENGTH_BYTES), "big")
                    # A damaged length must not ask for memory that no one has.
                    yield unseal(file.read(min(size, end)))
        yield from self._held


def check_deleted(statement: Statement, rows: int) -> None:
    """Raise RowRefused unless a statement that deletes whole rows has deleted as many as upstream."""
    # An error, and not a count: upstream had the row, so the sink has lost it or holds another version of it.
    if statement.deletes_exactly and rows != statement.rows:
        raise RowRefused(
            "the sink's table has no key, and it lacks a row that upstream has deleted",
            remedy=Remedy(
                "sink.compare-keyless-table",
                "Compare the table with upstream's. Without a key, upstream must send old values "
                "(output-old-value = true of a changefeed, binlog_row_image = FULL of a server)",
            ),
            table=statement.table,
            min_ts=statement.min_ts,
            max_ts=statement.max_ts,
        )


@dataclass(slots=True)
class RefusedRows:
    """Collects the rows that the database refuses in one transaction.

    ``execute`` runs a statement; after a RowRefused, ``roll_back`` undoes it back to the last ``savepoint``. If ``quarantined`` takes
    refused rows, they are collected and all others are written; otherwise the first refused row ends the transaction. ``stored`` returns
    the events that the quarantine has already: rows at the checkpoint are applied again after a restart, and refused again.
    """

    execute: Callable[[Statement], None]
    savepoint: Callable[[], None]
    roll_back: Callable[[], None]
    quarantined: Quarantined | None
    stored: Callable[[Iterable[EventPosition]], AbstractSet[EventPosition]]
    refused: list[RejectedEvent] = field(default_factory=list)
    _unexpected: int = 0
    _uncounted: list[RejectedEvent] = field(default_factory=list)

    @property
    def _taker(self) -> Quarantined | None:
        """What takes refused rows; None if nothing does."""
        return self.quarantined if self.quarantined is not None and self.quarantined.takes_refused else None

    def count_planned(self) -> None:
        """Count the events that the planner quarantines. FatalSinkError if they are more than ``at_most``."""
        for event in self.quarantined.events if self.quarantined is not None else ():
            self._count(event)

    def run(self, statement: Statement) -> int:
        """Run a statement and return how many rows were written.

        RowRefused if the statement does not know its rows; with the row's position if nothing takes refused rows.
        """
        source = statement.source_rows
        if source is None:
            self.execute(statement)
            return statement.rows
        # Also for a statement that will succeed: MySQL's REPLACE with a warning has already changed rows when it is judged.
        self.savepoint()
        try:
            self.execute(statement)
        except RowRefused as error:
            self.roll_back()
            if len(source.rows) == 1:
                self._refuse(source, error)
                return 0
            rows = sum(map(self.run, source.halves()))
            if self._taker is None:
                raise  # the database took each half alone: no row can be named, but the statement was refused
            return rows
        return statement.rows

    def _refuse(self, source: StatementRows, error: RowRefused) -> None:
        self.refuse((*source.rows, *(event for events in source.earlier for event in events)), source.key, error)

    def refuse(self, events: Sequence[RejectedEvent], key: Sequence[str], error: ApplierError) -> None:
        """Quarantine all events that one row consists of, or raise its error at the position of the first."""
        if self._taker is None or not isinstance(error, RowRefused):
            raise error_of_event(error, events[0], key) from error
        for event in events:
            self.refused.append(replace(event, error=reason_of(error)))
            self._count(self.refused[-1])

    def _count(self, event: RejectedEvent) -> None:
        """Count a rejected event. The quarantine is only asked which of them it has if all of them would be too many."""
        at_most = None if self.quarantined is None else self.quarantined.at_most
        self._uncounted.append(event)
        if at_most is None or self._unexpected + len(self._uncounted) <= at_most:
            return
        stored = self.stored(event.position for event in self._uncounted)
        self._unexpected += sum(event.position not in stored for event in self._uncounted)
        self._uncounted.clear()
        if self._unexpected > at_most:
            raise FatalSinkError(
                f"the database refuses more than {at_most} rows of one transaction",
                remedy=Remedy(
                    "sink.compare-refused-rows",
                    "Compare the sink's tables with upstream's. `applier skip --ts … --table …` skips one upstream transaction",
                ),
                reason=event.error,
                **event.facts,
            )


T = TypeVar("T")

CHUNK_ROWS: Final = 10_000
CHUNK_BYTES: Final = 8 << 20
CHUNK_ATTEMPTS: Final = 5
CHUNK_WAIT_S: Final = 0.1


class WriteSession(Protocol):
    """A session inside a write transaction. ``execute``, ``control`` and ``commit`` raise the errors of the database as they are."""

    @property
    def connection(self) -> Connection:
        """The connection, for the statements of the bookkeeping."""
        ...

    def execute(self, statement: Statement) -> int:
        """Send one statement and return how many rows a DELETE has found. RowRefused if the database warns that it altered a value."""
        ...

    def read(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Send a READ and return its rows."""
        ...

    def control(self, command: str) -> None:
        """Send a command of transaction control."""
        ...

    def commit(self) -> None:
        """Send COMMIT."""
        ...

    def translate(self, error: Exception, doing: str, **facts: Any) -> ApplierError | None:
        """Return our error for one of the database; None if ``error`` is not of the database."""
        ...

    def translate_commit(self, error: Exception) -> ApplierError | None:
        """Return our error for a COMMIT that failed: UnknownOutcome unless the database has certainly rolled back."""
        ...

    def release(self) -> None:
        """Roll back what is not committed, and keep or close the session."""
        ...

    def discard(self) -> None:
        """Roll back and close the session, whatever its state. After an error a new one is cheaper than to reason about the old."""
        ...


class WriteSessions(Protocol):
    """Opens the sessions of one database, or keeps them from one write to the next."""

    def locked(self, lock: Callable[[Connection], FenceState]) -> tuple[WriteSession, FenceState]:
        """Begin a transaction, call ``lock`` in it, and return the session with what ``lock`` returned. ApplierError if that fails."""
        ...


@dataclass(frozen=True, slots=True)
class WriteTransaction:
    """Implements ``Writer`` for every database: each segment of a replica is one transaction of a session of ``sessions``."""

    bookkeeping: Bookkeeping
    sessions: WriteSessions

    def write(
        self, fence: Fence, statements: Iterable[Statement], commit: ProgressCommit, quarantined: Quarantined | None = None
    ) -> WriteOutcome:
        """Write one segment: see ``Writer.write``."""
        reach("write.before_lock")
        try:
            session, state = self.sessions.locked(lambda connection: ProgressTable(self.bookkeeping).lock(connection, fence))
        except ApplierError as error:
            return WriteOutcome(state=WriteState.FAILED, error=error)
        if (refusal := state.refusal) is not None:
            session.release()
            return WriteOutcome(state=refusal)
        try:
            absent: Counter[str] = Counter()
            refused_rows = self._refused_rows(session, quarantined, absent)
            refused_rows.count_planned()
            rows = _run(session, refused_rows, statements)
            # After the lock and before the progress moves: an event is stored once, and never skipped by a moved offset.
            stored = self._store(session, quarantined, refused_rows.refused)
            _translated(
                session, "updating the progress", lambda: ProgressTable(self.bookkeeping).advance(session.connection, fence, commit)
            )
        except ApplierError as error:
            session.discard()
            return WriteOutcome(state=WriteState.FAILED, error=error)
        except BaseException:  # a defect, or Spark that ends the task: a kept session would hold the progress row
            session.discard()
            raise
        # From here on nothing may be repeated blindly: after COMMIT was sent, only the progress row knows the outcome.
        reach("write.before_commit")
        return _commit(
            session, WriteOutcome(state=WriteState.COMMITTED, rows=rows, quarantined=stored, absent=tuple(sorted(absent.items())))
        )

    def write_rows(self, fence: Fence, statements: Iterable[Statement], *, at_once: bool = False) -> WriteOutcome:
        """Write rows ahead of the checkpoint: see ``Writer.write_rows``."""
        rows = 0
        for chunk in filter(None, [list(statements)]) if at_once else _chunks(statements):
            outcome = self._write_chunk(fence, chunk)
            for attempt in range(1, CHUNK_ATTEMPTS):
                if not isinstance(outcome.error, RetryableSinkError):
                    break
                # Rolled back. Parallel writers of one table meet in its secondary indexes, so a deadlock is nothing unusual.
                time.sleep(random.uniform(0, CHUNK_WAIT_S * attempt))  # noqa: S311 - no secret
                outcome = self._write_chunk(fence, chunk)
            if outcome.state is not WriteState.COMMITTED:
                return outcome
            rows += outcome.rows
        return WriteOutcome(state=WriteState.COMMITTED, rows=rows)

    def _write_chunk(self, fence: Fence, statements: Sequence[Statement]) -> WriteOutcome:
        reach("rows.before_lock")
        try:
            # A shared lock until COMMIT: a session that moves the progress or raises the epoch waits until no such write is open.
            session, state = self.sessions.locked(lambda connection: ProgressTable(self.bookkeeping).share(connection, fence))
        except ApplierError as error:
            return WriteOutcome(state=WriteState.FAILED, error=error)
        if (refusal := state.refusal) is not None:
            session.release()
            return WriteOutcome(state=refusal)
        try:
            for statement in statements:
                _execute(session, statement)
            reach("rows.before_commit")
        except ApplierError as error:
            session.discard()
            return WriteOutcome(state=WriteState.FAILED, error=error)
        except BaseException:  # as in ``write``
            session.discard()
            raise
        return _commit(session, WriteOutcome(state=WriteState.COMMITTED, rows=sum(statement.rows for statement in statements)))

    def _refused_rows(self, session: WriteSession, quarantined: Quarantined | None, absent: Counter[str]) -> RefusedRows:
        quarantine = Quarantine(self.bookkeeping)

        def stored(positions: Iterable[EventPosition]) -> frozenset[EventPosition]:
            return _translated(session, "reading the quarantine", lambda: quarantine.stored(session.connection, positions))

        def execute(statement: Statement) -> None:
            found = _execute(session, statement)
            if found < statement.present:
                absent[statement.table] += statement.present - found

        return RefusedRows(
            execute,
            savepoint=lambda: _translated(session, "setting a savepoint", lambda: session.control("SAVEPOINT applier_rows")),
            roll_back=lambda: _translated(session, "setting a savepoint", lambda: session.control("ROLLBACK TO SAVEPOINT applier_rows")),
            quarantined=quarantined,
            stored=stored,
        )

    def _store(self, session: WriteSession, quarantined: Quarantined | None, refused: Sequence[RejectedEvent]) -> tuple[RejectedEvent, ...]:
        quarantine = Quarantine(self.bookkeeping)
        return _translated(session, "writing to the quarantine", lambda: quarantine.store(session.connection, quarantined, refused))


def _chunks(statements: Iterable[Statement]) -> Iterator[list[Statement]]:
    """Divide statements into transactions: few enough rows that no other writer waits long, so many that COMMIT does not count."""
    chunk: list[Statement] = []
    rows = size = 0
    for statement in statements:
        chunk.append(statement)
        rows, size = rows + statement.rows, size + statement.size
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield chunk
            chunk, rows, size = [], 0, 0
    if chunk:
        yield chunk


def _run(session: WriteSession, refused_rows: RefusedRows, statements: Iterable[Statement]) -> int:
    """Run the statements in order and return how many rows were written."""
    rows = 0
    reached: dict[str, Phase] = {}
    completed = HeldStatements()
    for statement in statements:
        _check_order(statement, reached)
        if statement.reading is None:
            rows += refused_rows.run(statement)
            continue
        for replacing in statement.reading.replaces(_read(session, statement), refused_rows.refuse):
            completed.add(replacing)
    return rows + sum(map(refused_rows.run, completed))


def _read(session: WriteSession, statement: Statement) -> dict[int, Sequence[Any]]:
    """Return the values of the rows that a READ finds and locks, by the number of the key."""
    found = _translated(session, "reading rows", lambda: session.read(statement), **_facts(statement))
    if any(number is None for number, *_ in found):
        message = "the sink has found a row by a key that it does not call equal to it"
        raise InvariantViolation(message, **_facts(statement))
    rows: dict[int, Sequence[Any]] = {int(number): values for number, *values in found}
    # Two rows of the sink for one key: to write either of them whole would give it what the other one has.
    if len(rows) != len(found):
        raise NeedsOperator(
            "several rows of the sink have the key of one row of upstream",
            remedy=Remedy(
                "sink.add-upstream-key",
                "Give the sink's table the primary or unique key that it has upstream, and delete the rows that upstream lacks",
            ),
            **_facts(statement),
        )
    return rows


def _check_order(statement: Statement, reached: dict[str, Phase]) -> None:
    # Two spellings of one key under a `_ci` collation are one row of the sink: a DELETE of the old spelling that runs after the REPLACE
    # of the new one would delete the new row (DESIGN.md section 3). And a row is read before anything of the segment can delete it.
    if statement.phase < reached.get(statement.table, Phase.READ):
        message = "the statements of a segment on one table are not in the order of their phases"
        raise InvariantViolation(message, phase=statement.phase.name, **_facts(statement))
    reached[statement.table] = statement.phase


def _execute(session: WriteSession, statement: Statement) -> int:
    """Run one statement and return how many rows a DELETE has found; an error names its table and timestamps."""
    try:
        return session.execute(statement)
    except Exception as error:  # noqa: BLE001 - every path of the handler raises
        raise_translated(session, error, "writing rows", **_facts(statement))


def _translated(session: WriteSession, doing: str, work: Callable[[], T], **facts: Any) -> T:
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - as above
        raise_translated(session, error, doing, **facts)


def raise_translated(session: WriteSession, error: Exception, doing: str, **facts: Any) -> NoReturn:
    """Raise our error for one of the database; others as they are."""
    if isinstance(error, ApplierError):
        raise error
    ours = session.translate(error, doing, **facts)
    if ours is None:
        raise error
    # Not chained: the driver's words may quote values of the row.
    raise ours from None


def _commit(session: WriteSession, outcome: WriteOutcome) -> WriteOutcome:
    try:
        session.commit()
    except Exception as error:
        session.discard()
        ours = session.translate_commit(error)
        if ours is None:
            raise
        state = WriteState.RELOAD if isinstance(ours, UnknownOutcome) else WriteState.FAILED
        return WriteOutcome(state=state, error=ours)
    except BaseException:  # as above
        session.discard()
        raise
    reach("write.after_commit")
    session.release()
    return outcome


def _facts(statement: Statement) -> dict[str, Any]:
    return {"table": statement.table, "min_ts": statement.min_ts, "max_ts": statement.max_ts}
