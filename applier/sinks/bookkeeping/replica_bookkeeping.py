"""The bookkeeping of one replica as the driver and the commands use it: each call is a separate transaction, which the sink runs.

Writers and DDLs use the tables of this package inside their own transactions. ``read_overview`` reads the state of a replica without
owning it, changing it or waiting for a writer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import Connection

from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.model.xa_store import XaReader, XaStore
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions, as_datetime
from applier.sinks.bookkeeping.copy_table import CopyBook, CopyStore
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.migration import check
from applier.sinks.bookkeeping.owner_table import LoadedDumpStore, OwnerRow, OwnerTable, PauseStore, read_loaded, read_pause
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.bookkeeping.quarantine import Quarantine, QuarantineStore
from applier.sinks.bookkeeping.replica_tables import ReplicaStore
from applier.sinks.bookkeeping.run_end_table import RunEndTable
from applier.sinks.bookkeeping.xa_table import XaTable
from applier.sinks.ledger_entry import DdlState, LedgerEntry, LedgerKey
from applier.sinks.overview import Overview, OwnerState, OwnerView, RunEnd


def read_overview(connection: Connection, ledger: Ledger, judge: Callable[[OwnerRow], OwnerView]) -> Overview:
    """Read the bookkeeping of one replica; FatalSinkError if the tables are missing, or have another version.

    ``judge`` decides, as this database shows it, whether the owner lives.
    """
    books = ledger.bookkeeping
    migration.check(connection, books)
    updated = connection.execute(books.query("progress_updated"), {"name": books.name}).scalar_one_or_none()
    owner = OwnerTable(books).read(connection)
    return Overview(
        progress=ProgressTable(books).load(connection),
        updated_at=None if updated is None else as_datetime(updated),
        owner=None if owner is None else judge(owner),
        undecided=tuple(ledger.intents(connection)),
        quarantined=Quarantine(books).count(connection),
        last_end=RunEndTable(books).read(connection),
        pause=read_pause(connection, books),
        copy=CopyBook(books).view(connection),
        loaded=read_loaded(connection, books),
    )


LEDGER: Final = "reading the ledger"


class SinkSessions(Transactions, Protocol):
    """The part of a sink that the bookkeeping needs."""

    @property
    def epoch(self) -> int | None:
        """The epoch of this run; None before ``acquire``."""
        ...

    @property
    def xa_reader(self) -> XaReader:
        """What reads prepared transactions on executors."""
        ...

    def judge(self, connection: Connection, owner: OwnerRow) -> OwnerView:
        """Judge whether the run that owns the replica lives."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaBookkeeping:
    """What the sink stores about one replica, except its progress. Not thread-safe. Needs no ownership, except where noted."""

    tables: Bookkeeping
    sessions: SinkSessions

    def locations(self) -> Mapping[FoldedName, FoldedName]:
        """Return the sink's name of each table of upstream that has a stored location; ('', ''): rows of it were skipped."""
        return self.sessions.read(ProgressTable(self.tables).locations, "reading the locations of tables")

    # Ledger

    def ledger(self) -> Sequence[LedgerEntry]:
        """Read the whole ledger, by ts: for people. A run asks for what it needs."""
        return self.sessions.read(Ledger(self.tables).read, LEDGER)

    def ledger_since(self, ts: Ts) -> Sequence[LedgerKey]:
        """Return what the ledger has at or above ``ts``, without texts."""
        return self.sessions.read(lambda connection: Ledger(self.tables).since(connection, ts), LEDGER)

    def ledger_at(self, times: Sequence[Ts]) -> Sequence[LedgerKey]:
        """Return what the ledger has at these timestamps, without texts; a statement for hundreds of them."""
        return self.sessions.read(lambda connection: Ledger(self.tables).at(connection, times), LEDGER)

    def statements(self) -> Sequence[DdlEvent]:
        """Read upstream's statements that are done or skipped, by ts. Without their other facts: there may be tens of thousands."""
        return self.sessions.read(Ledger(self.tables).statements, LEDGER)

    def resolve_ddl(self, ts: Ts, schema: str, table: str, state: DdlState | None) -> int:
        """Apply the operator's decision (``applier ddl done|skip|retry``) to matching intents; return how many there were.

        Their state becomes ``state``; with None, ``before`` is cleared, so that the statement runs again.
        """
        name = TableName(schema, table)
        return self.sessions.change(lambda connection: Ledger(self.tables).resolve(connection, ts, name, state), "resolving a DDL")

    def note_skipped_ddl(self, identity: DdlIdentity, note: str) -> None:
        """Add to a skipped DDL who has skipped it."""
        doing = "noting who has skipped a DDL"
        self.sessions.change(lambda connection: Ledger(self.tables).note_skipped(connection, identity, note), doing)

    def forget_skipped_ddl(self, identity: DdlIdentity) -> bool:
        """Undo the skip of a DDL that the replica has not passed: remove it; return whether it was there. Needs ownership."""
        doing = "undoing the skip of a DDL"
        return self.sessions.change(lambda connection: Ledger(self.tables).forget_skipped(connection, identity), doing)

    # What operators and commands store

    @property
    def quarantine(self) -> QuarantineStore:
        """The quarantined events, and the operator's rules about events to skip."""
        return QuarantineStore(Quarantine(self.tables), self.sessions)

    @property
    def pauses(self) -> PauseStore:
        """Whether the operator has paused the replica."""
        return PauseStore(self.tables, self.sessions)

    @property
    def loaded_dump(self) -> LoadedDumpStore:
        """The dump that the sink was loaded from."""
        return LoadedDumpStore(self.tables, self.sessions)

    @property
    def copy(self) -> CopyStore:
        """The initial copy of upstream. What changes it needs ownership."""
        return CopyStore(self.tables, self.sessions.epoch, self.sessions)

    @property
    def xa(self) -> XaStore:
        """What a source keeps in the sink until a transaction is committed."""
        return XaTable(self.tables, self.sessions.xa_reader, self.sessions)

    @property
    def replicas(self) -> ReplicaStore:
        """What is stored of this replica, and the names of all replicas of the bookkeeping."""
        return ReplicaStore(self.tables, self.sessions.epoch, self.sessions)

    # The state of the replica, from outside

    def overview(self) -> Overview:
        """Read the state of the replica; needs only the privilege to read the bookkeeping.

        FatalSinkError if the bookkeeping is missing, or has another version.
        """

        def work(connection: Connection) -> Overview:
            return read_overview(connection, Ledger(self.tables), lambda owner: self.sessions.judge(connection, owner))

        return self.sessions.read(work, "reading the overview")

    def store_end(self, end: RunEnd, host: str, process: int) -> None:
        """Store how a run of this process has ended, for ``overview``; nothing is stored while a living process owns the replica."""
        # Read first: where there is no bookkeeping, nothing may be made.
        self.sessions.read(lambda connection: check(connection, self.tables), "reading the version of the bookkeeping tables")

        def is_dead(connection: Connection, row: OwnerRow) -> bool:
            return self.sessions.judge(connection, row).state is OwnerState.DEAD

        def work(connection: Connection) -> bool:
            return RunEndTable(self.tables).store(connection, end, (host, process), lambda row: is_dead(connection, row))

        self.sessions.change(work, "storing how the run has ended")
