"""The sink of MySQL, MariaDB and TiDB: the driver's side of one replica, put together from ownership, bookkeeping and DDL."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Self, TypeVar

import stamina
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import RetryableSinkError, UnknownOutcome
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.planner.catalogue import TableDescription
from applier.planner.table_check import SinkTable
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.named_queries import load_queries
from applier.sinks.bookkeeping.other_schema import refuse_other_schema
from applier.sinks.bookkeeping.overview import look
from applier.sinks.bookkeeping.progress_table import ProgressTable, of_epoch
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.bookkeeping.quarantine_store import SqlQuarantineStore
from applier.sinks.ledger_entry import DdlState, LedgerEntry, LedgerKey
from applier.sinks.mysql import catalogue
from applier.sinks.mysql.ddl.runner import DdlRunner
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.errors import translate
from applier.sinks.mysql.owned import commit_owned
from applier.sinks.mysql.ownership import Ownership
from applier.sinks.mysql.registry import release_lock, take_lock
from applier.sinks.mysql.session import FILE, QUERIES, Purpose, discard, limits, open_session, transaction
from applier.sinks.mysql.structure.examination import examine
from applier.sinks.mysql.write_session import close_writer_sessions
from applier.sinks.mysql.writer import MysqlWriter
from applier.sinks.overview import Overview
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.quarantine import Quarantined, QuarantineStore
from applier.sinks.reserved import SYSTEM_SCHEMAS, Reserved
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteOutcome

T = TypeVar("T")

MIGRATION_LOCK = "applier:migration"


class MysqlSink:
    """One replica in a database of the MySQL family. Not thread-safe. Opens nothing before it is used."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._bookkeeping = Bookkeeping(settings.name, "mysql", settings.schema)
        self._ledger = Ledger(self._bookkeeping)
        self._ownership = Ownership(settings, self._bookkeeping)
        self._ddl = DdlRunner(settings, self._ledger, self._ownership)
        self._control: Connection | None = None
        self._dialect: MysqlDialect | None = None

    @property
    def dialect(self) -> MysqlDialect:
        """The rendering part, which knows the server's limits."""
        if self._dialect is None:
            max_packet_bytes, max_warnings = self._read(limits, "reading the server's limits")
            self._dialect = MysqlDialect(max_packet_bytes=max_packet_bytes, max_warnings=max_warnings)
        return self._dialect

    @property
    def reserved(self) -> Reserved:
        """The schemas that upstream's events must not touch."""
        return Reserved(self._settings.schema, SYSTEM_SCHEMAS)

    @property
    def writer(self) -> MysqlWriter:
        """The writing part."""
        return MysqlWriter(self._settings)

    def migrate(self) -> Sequence[str]:
        """Create or upgrade the bookkeeping's schema; return the revisions that were applied."""

        def work(connection: Connection) -> Sequence[str]:
            if not take_lock(connection, MIGRATION_LOCK, self._settings.lock_timeout_s):
                message = "another applier is migrating the bookkeeping tables"
                raise RetryableSinkError(message, remedy="Try again in a moment")
            try:
                # Not asked for where it exists: the user may lack the privilege then.
                schema = self._settings.schema
                if not connection.execute(QUERIES["schema_exists"], {"schema_name": schema}).scalar_one():
                    connection.execute(load_queries("mysql", FILE, schema)["schema_create"])
                applied = migration.upgrade(connection, schema)
                connection.commit()  # before the lock goes: who waits for it must see the revision
                return applied
            finally:
                release_lock(connection, MIGRATION_LOCK)

        return self._read(work, "migrating the bookkeeping tables")

    def acquire(self, *, take_over: bool = False) -> None:
        """Own the replica. Fenced names the owner; FatalSinkError if the bookkeeping tables are missing or old."""
        self._read(lambda connection: migration.check(connection, self._settings.schema), "looking for the bookkeeping tables")
        self._ownership.acquire(take_over=take_over)

    def load(self, *, known_tables: frozenset[FoldedName] | None = None) -> Progress | None:
        """Read the progress; None before the first ``begin``. Fenced if another run has become the owner."""
        progress = self._read(lambda connection: ProgressTable(self._bookkeeping).load(connection, known_tables), "reading the progress")
        return of_epoch(progress, self._ownership.epoch, self._settings.name)

    def begin(self, start_ts: Ts) -> Progress:
        """Create the progress row of a new replica at ``start_ts``."""

        def work(connection: Connection) -> Progress:
            # After an unknown outcome the row may be there already: then it is ours.
            if present := ProgressTable(self._bookkeeping).load(connection):
                return present
            refuse_other_schema(connection, self._bookkeeping)
            return Epochs(self._bookkeeping).begin(connection, self._ownership.run_id, start_ts)

        return self._repeated(work, "beginning the replica")

    def raise_epoch(self) -> Progress:
        """End the replica's other sessions, raise the epoch, and read the progress."""

        def work(connection: Connection) -> Progress:
            self._ownership.end_other_sessions()
            return Epochs(self._bookkeeping).raise_epoch(connection, self._ownership.run_id)

        progress = self._repeated(work, "raising the epoch")
        self._ownership.epoch = progress.fence.epoch
        return progress

    def describe(self, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
        """Describe the sink's tables; missing ones are left out."""
        return self._read(lambda connection: catalogue.describe(connection, tables), "reading the catalogue")

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        """Examine the sink's tables for the table check; missing ones are left out."""
        return self._read(lambda connection: examine(connection, tables), "examining tables")

    def tables_with_rows(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return those of the tables that exist and hold a row."""
        return self._read(lambda connection: catalogue.tables_with_rows(connection, tables), "looking for rows")

    def save(self, fence: Fence, commit: ProgressCommit, quarantined: Quarantined | None = None) -> WriteOutcome:
        """Write progress without rows, under the fence, with what is set aside."""
        return self.writer.write(fence, (), commit, quarantined)

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

    def run_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        """Write intent, run the statement, write done."""
        return self._ddl.run(fence, identity, ddl, before=before, after=after)

    def skip_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress."""
        return self._ddl.skip(fence, identity, ddl, after=after)

    def settle(self, fence: Fence) -> Fence:
        """Settle every intent that a dead run left."""
        return self._ddl.settle(fence)

    def resolve_ddl(self, ts: Ts, schema: str, table: str, state: DdlState | None) -> int:
        """Carry out the operator's word on matching intents; return how many there were."""
        name = TableName(schema, table)
        return self._read(lambda connection: self._ledger.resolve(connection, ts, name, state), "resolving a DDL")

    @property
    def quarantine(self) -> QuarantineStore:
        """The events that were set aside."""

        def run(work: Callable[[Connection], T]) -> T:
            return self._read(work, "looking into the quarantine")

        return SqlQuarantineStore(Quarantine(self._bookkeeping), run, run)

    def overview(self) -> Overview:
        """Look at the replica from outside."""

        def work(connection: Connection) -> Overview:
            return look(connection, self._ledger, lambda owner: self._ownership.view(connection, owner))

        return self._read(work, "looking at the replica")

    def heartbeat_lost(self) -> Exception | None:
        """Return why this run may not go on; a lock that was lost is taken again."""
        return self._ownership.lost()

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why this run may not go on, as far as the heartbeat knows."""
        return self._ownership.heartbeat_error

    def close(self) -> None:
        """Release the lock and end the sessions."""
        self._ownership.release()
        discard(self._control)
        self._control = None
        close_writer_sessions()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()

    def _repeated(self, work: Callable[[Connection], T], doing: str) -> T:
        """Commit on the owner's session; for work that may happen twice, an unknown outcome is repeated."""
        for attempt in stamina.retry_context(on=UnknownOutcome, attempts=self._settings.retries + 1, timeout=None):
            with attempt:
                return commit_owned(self._ownership, self._settings.retries, work, doing)
        raise UnknownOutcome("retries ended without an outcome", doing=doing)

    def _read(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run work that may happen twice on the control session, in one transaction; a lost session is replaced."""
        for attempt in stamina.retry_context(on=RetryableSinkError, attempts=self._settings.retries + 1, timeout=None):
            with attempt:
                return self._once(work, doing, facts)
        raise RetryableSinkError("retries ended without an outcome", doing=doing)

    def _once(self, work: Callable[[Connection], T], doing: str, facts: dict[str, Any]) -> T:
        self._control = self._control or open_session(self._settings, Purpose.CONTROL)
        try:
            with transaction(self._control) as connection:
                return work(connection)
        except (SQLAlchemyError, OSError) as error:
            discard(self._control)
            self._control = None
            raise translate(error, doing, replica=self._settings.name, **facts) from error
