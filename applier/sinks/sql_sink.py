"""What every SQL sink does in the same way: progress, ledger, quarantine and overview, over the bookkeeping.

A dialect adds how it reaches its database (``_read``, ``_change``), how a run owns the replica, its catalogue and its DDL.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.model.prepared_store import PreparedReader, PreparedStore
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.loaded_dump_table import LoadedDumpTable
from applier.sinks.bookkeeping.migration import check
from applier.sinks.bookkeeping.other_schema import refuse_other_schema
from applier.sinks.bookkeeping.overview import read_overview
from applier.sinks.bookkeeping.owner_table import OwnerRow
from applier.sinks.bookkeeping.pause_table import SqlPauseStore
from applier.sinks.bookkeeping.prepared_table import PreparedTable
from applier.sinks.bookkeeping.progress_table import ProgressTable, of_epoch
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.bookkeeping.quarantine_store import SqlQuarantineStore
from applier.sinks.bookkeeping.replica_tables import ReplicaTables
from applier.sinks.bookkeeping.run_end_table import RunEndTable
from applier.sinks.ledger_entry import DdlState, LedgerEntry, LedgerKey
from applier.sinks.loaded_dump import LoadedDumpStore
from applier.sinks.overview import Overview, OwnerState, OwnerView
from applier.sinks.pause import PauseStore
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.quarantine import Quarantined, QuarantineStore
from applier.sinks.replicas import ReplicaStore
from applier.sinks.run_end import RunEnd
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteOutcome

T = TypeVar("T")


class SqlSink(ABC):
    """The part of a ``Sink`` that all SQL databases share."""

    def __init__(self, settings: SinkSettings, bookkeeping: Bookkeeping) -> None:
        self._settings = settings
        self._bookkeeping = bookkeeping
        self._ledger = Ledger(self._bookkeeping)
        self._epoch: int | None = None
        """The epoch of this run; None before ``acquire``."""

    # What a dialect adds

    @property
    @abstractmethod
    def writer(self) -> Writer:
        """The writing part, for executors."""

    @property
    @abstractmethod
    def prepared_reader(self) -> PreparedReader:
        """What reads prepared transactions on executors."""

    @abstractmethod
    def close(self) -> None:
        """Release the lock and the connections."""

    @abstractmethod
    def _read(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run reads in one transaction. ``work`` may run twice."""

    @abstractmethod
    def _change(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` in one transaction and commit, without owning the replica. ``work`` may run twice."""

    @abstractmethod
    def _judge(self, connection: Connection, owner: OwnerRow) -> OwnerView:
        """Judge whether the run that owns the replica lives."""

    # Progress

    def load(self, *, known: Progress | None = None) -> Progress | None:
        """Read the progress; None before the first ``begin``. Fenced if another run has become the owner."""
        table = ProgressTable(self._bookkeeping)
        progress = self._read(lambda connection: table.load(connection, known), "reading the progress")
        return of_epoch(progress, self._epoch, self._settings.name)

    def locations(self) -> Mapping[FoldedName, FoldedName]:
        """Read where the sink has each table of upstream."""
        return self._read(ProgressTable(self._bookkeeping).locations, "reading the locations of tables")

    def save(self, fence: Fence, commit: ProgressCommit, quarantined: Quarantined | None = None) -> WriteOutcome:
        """Write progress without rows, under the fence, with what is quarantined."""
        return self.writer.write(fence, (), commit, quarantined)

    def _begin(self, connection: Connection, run_id: str, start_ts: Ts, source_state: str | None) -> Progress:
        """Create the progress row, unless an earlier attempt whose answer was lost has created it."""
        if present := ProgressTable(self._bookkeeping).load(connection):
            return present
        refuse_other_schema(connection, self._bookkeeping)
        return Epochs(self._bookkeeping).begin(connection, run_id, start_ts, source_state)

    # Ledger

    def ledger(self) -> Sequence[LedgerEntry]:
        """Read the whole ledger, by ts."""
        return self._read(self._ledger.read, "reading the ledger")

    def statements(self) -> Sequence[DdlEvent]:
        """Read upstream's statements that are done or skipped, by ts."""
        return self._read(self._ledger.statements, "reading the ledger")

    def ledger_since(self, ts: Ts) -> Sequence[LedgerKey]:
        """Return what the ledger has at or above ``ts``, without texts."""
        return self._read(lambda connection: self._ledger.since(connection, ts), "reading the ledger")

    def ledger_at(self, times: Sequence[Ts]) -> Sequence[LedgerKey]:
        """Return what the ledger has at these timestamps, without texts."""
        return self._read(lambda connection: self._ledger.at(connection, times), "reading the ledger")

    def resolve_ddl(self, ts: Ts, schema: str, table: str, state: DdlState | None) -> int:
        """Apply the operator's decision to matching intents; return how many there were."""
        name = TableName(schema, table)
        return self._change(lambda connection: self._ledger.resolve(connection, ts, name, state), "resolving a DDL")

    def note_skipped_ddl(self, identity: DdlIdentity, note: str) -> None:
        """Write beside a skipped DDL who has skipped it."""
        self._change(lambda connection: self._ledger.note_skipped(connection, identity, note), "noting who has skipped a DDL")

    def forget_skipped_ddl(self, identity: DdlIdentity) -> bool:
        """Remove a skipped DDL from the ledger; return whether there was one."""
        return self._change(lambda connection: self._ledger.forget_skipped(connection, identity), "undoing the skip of a DDL")

    # Quarantine and overview

    @property
    def quarantine(self) -> QuarantineStore:
        """The quarantined events, and the operator's skip rules."""

        def read(work: Callable[[Connection], T]) -> T:
            return self._read(work, "reading the quarantine")

        def change(work: Callable[[Connection], T]) -> T:
            return self._change(work, "changing the quarantine")

        return SqlQuarantineStore(Quarantine(self._bookkeeping), read, change)

    @property
    def pauses(self) -> PauseStore:
        """The operator's pause."""

        def read(work: Callable[[Connection], T]) -> T:
            return self._read(work, "reading whether the replica is paused")

        def change(work: Callable[[Connection], T]) -> T:
            return self._change(work, "pausing or resuming the replica")

        return SqlPauseStore(self._bookkeeping, read, change)

    @property
    def loaded_dump(self) -> LoadedDumpStore:
        """The dump that the sink was loaded from."""

        def read(work: Callable[[Connection], T]) -> T:
            return self._read(work, "reading about the loaded dump")

        def change(work: Callable[[Connection], T]) -> T:
            return self._change(work, "writing about the loaded dump")

        return LoadedDumpTable(self._bookkeeping, read, change)

    @property
    def prepared(self) -> PreparedStore:
        """What a source keeps until a transaction is committed."""

        def read(work: Callable[[Connection], T]) -> T:
            return self._read(work, "reading which prepared transactions are kept")

        def change(work: Callable[[Connection], T]) -> T:
            return self._change(work, "keeping prepared transactions")

        return PreparedTable(self._bookkeeping, self.prepared_reader, read, change)

    @property
    def replicas(self) -> ReplicaStore:
        """The bookkeeping of this replica and the names of the others."""

        def read(work: Callable[[Connection], T]) -> T:
            return self._read(work, "reading what is stored of the replicas")

        def change(work: Callable[[Connection], T]) -> T:
            return self._change(work, "deleting what is stored of the replica")

        return ReplicaTables(self._bookkeeping, self._epoch, read, change)

    def overview(self) -> Overview:
        """Look at the replica from outside."""

        def work(connection: Connection) -> Overview:
            return read_overview(connection, self._ledger, lambda owner: self._judge(connection, owner))

        return self._read(work, "reading the overview")

    # End

    def store_end(self, end: RunEnd, host: str, process: int) -> None:
        """Store how a run of this process has ended, unless a living process owns the replica. Needs no ownership."""
        # Read first: where there is no bookkeeping, nothing may be made.
        self._read(lambda connection: check(connection, self._bookkeeping), "reading the version of the bookkeeping tables")
        table = RunEndTable(self._bookkeeping)

        def work(connection: Connection) -> bool:
            return table.store(connection, end, (host, process), lambda row: self._judge(connection, row).state is OwnerState.DEAD)

        self._change(work, "storing how the run has ended")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()
