"""The port of a sink: what the engine (driver) and the writer (executor) ask of a database.

The pipeline never asks which database it has. One package per dialect implements these protocols over the shared bookkeeping.
Only what was committed is durable; nothing else moves progress. The sink, not the driver's memory, holds the position of a replica.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol, Self

from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.planner.ordered_rows import KeyLink
from applier.planner.port import Dialect, Statement, TableDescription
from applier.planner.table_check import SinkTable
from applier.sinks.bookkeeping.replica_bookkeeping import ReplicaBookkeeping
from applier.sinks.progress import Fence, Progress, ProgressCommit, WriteOutcome
from applier.sinks.quarantine import Quarantined
from applier.sinks.reserved import Reserved


class Writer(Protocol):
    """Executor side: writes one segment in one transaction. Frozen and picklable; opens its own connection."""

    def write(
        self, fence: Fence, statements: Iterable[Statement], commit: ProgressCommit, quarantined: Quarantined | None = None
    ) -> WriteOutcome:
        """Lock the progress row, check the fence, run the statements in order, store what is quarantined, move the progress, COMMIT.

        A consumed iterable cannot be retried here: a retryable error is reported and the driver repeats the job.
        Raises no error of the database: each one comes back in the outcome. A statement that raises warnings is rolled back.
        """
        ...

    def write_rows(self, fence: Fence, statements: Iterable[Statement], *, at_once: bool = False) -> WriteOutcome:
        """Write rows ahead of the checkpoint; the progress stays where it is. Several writers do so at once, in several transactions.

        Each transaction holds the progress row shared, under the fence. COMMITTED: all rows are durable. FENCED, RELOAD: as for ``write``.
        FAILED: some may be durable; to write them again is right. A call may be repeated, also late, for as long as the window stays: so
        DELETEs and REPLACEs of one table come in two windows, or ``at_once``: in one transaction.
        """
        ...


class Sink(Protocol):
    """Driver side of one replica. Not thread-safe; one per run."""

    @property
    def dialect(self) -> Dialect:
        """The rendering part, for executors."""
        ...

    @property
    def reserved(self) -> Reserved:
        """The schemas that upstream's events must not touch: the bookkeeping's and the database's own."""
        ...

    @property
    def writer(self) -> Writer:
        """The writing part, for executors."""
        ...

    @property
    def bulk(self) -> bool:
        """Whether the database takes bulk loads. Asked once: a server that refuses one later raises BulkUnavailable."""
        ...

    def migrate(self) -> Sequence[str]:
        """Create or upgrade the bookkeeping tables; return the revisions that were applied."""
        ...

    def acquire(self, *, take_over: bool = False) -> None:
        """Own the replica: lock, heartbeat, a new epoch. Fenced (exit 5) names the owner if the lock is not free within lock_timeout_s."""
        ...

    def load(self, *, known: Progress | None = None) -> Progress | None:
        """Read the progress; None before the first ``begin``. All but the progress row is copied from ``known``, if given.

        Fenced if another run has become the owner since ``acquire``: this run must not write under the other run's epoch.
        """
        ...

    def begin(self, start_ts: Ts, source_state: str | None = None) -> Progress:
        """Create the progress row of a new replica at ``start_ts`` (0: from the beginning), with what its source says of it."""
        ...

    def raise_epoch(self) -> Progress:
        """After an unknown outcome: raise the epoch, so that a write in flight can never arrive later, and read the progress."""
        ...

    def describe(self, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
        """Describe the sink's tables; missing ones are skipped."""
        ...

    def present(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return which of the names a table or a view has. May be asked for all tables of upstream at once: names alone are read."""
        ...

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        """Examine the sink's tables, views and the like for the table check; missing ones are skipped.

        May be asked for all tables of a replica at once: the number of statements does not depend on them.
        """
        ...

    def foreign_keys(self, tables: Collection[TableName] | None = None) -> Sequence[KeyLink] | None:
        """Return the foreign keys of these tables, or of all, as they are now; None: the database does not execute their actions."""
        ...

    def tables_with_rows(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return which of the tables exist and hold a row. A segment may ask for thousands: no table costs an extra statement."""
        ...

    def save(self, fence: Fence, commit: ProgressCommit, quarantined: Quarantined | None = None) -> WriteOutcome:
        """Write progress without rows, under the fence, with what is quarantined."""
        ...

    def run_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        """Write intent (with ``before``), run the statement, write done (with ``after``); return the fence that now holds.

        Fenced, FatalSinkError and RetryableSinkError (an intent that was written stays, with the error), NeedsOperator (undecidable, or
        not expressible in the dialect: then there is no intent), UnknownOutcome (the intent may or may not be written: reload).
        """
        ...

    def load_ddl(self, identity: DdlIdentity, ddl: DdlEvent) -> None:
        """Run a definition of a dump and write it as done. Needs no ownership: the replica has not begun. Errors as in ``run_ddl``."""
        ...

    def skip_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress."""
        ...

    def settle(self, fence: Fence) -> Fence:
        """Settle every intent that a dead run left: compare the tables, then write done or run again. NeedsOperator: undecidable."""
        ...

    def finish_ddls(self) -> None:
        """Wait for the DDLs that run in the background (``SinkSettings.background``), and write done. Errors as in ``run_ddl``."""
        ...

    @property
    def bookkeeping(self) -> ReplicaBookkeeping:
        """What else is stored of the replica: ledger, quarantine, pause, how the last run ended. Costs nothing until it is asked."""
        ...

    def heartbeat_lost(self) -> Exception | None:
        """Return the error of the heartbeat (lock lost, fenced) if there is one."""
        ...

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why this run must stop, if the heartbeat knows a reason; None: no reason. Any thread may read it: it costs no statement."""
        ...

    def close(self) -> None:
        """Release the lock and the connections."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
