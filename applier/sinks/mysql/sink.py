"""The sink of MySQL, MariaDB and TiDB: the driver's side of one replica, put together from ownership, bookkeeping and DDL."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import stamina
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import Remedy, RetryableSinkError, UnknownOutcome
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.mysql import catalogue
from applier.mysql.errors import translate
from applier.mysql.names import SYSTEM_SCHEMAS, has_schema, spellings
from applier.mysql.session import ServerSession, discard, limits, transaction
from applier.planner.ordered_rows import KeyLink
from applier.planner.port import TableDescription
from applier.planner.table_check import SinkTable
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import PastDdls
from applier.sinks.bookkeeping.owner_table import OwnerRow
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.bookkeeping import DIALECT, bookkeeping_of
from applier.sinks.mysql.bulk_write import takes_loads
from applier.sinks.mysql.ddl.runner import DdlRunner
from applier.sinks.mysql.ddl.statement import run_loaded
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.ownership import Ownership, commit_owned
from applier.sinks.mysql.registry import release_lock, take_lock
from applier.sinks.mysql.server_check import examine, foreign_keys, refuse_unshared_locks
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.writer import MysqlXaReader, close_writer_sessions, writer_of
from applier.sinks.overview import OwnerView
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.reserved import Reserved
from applier.sinks.settings import BulkLoad, SinkSettings
from applier.sinks.sql_sink import SqlSink
from applier.sinks.write_transaction import WriteTransaction

T = TypeVar("T")

MIGRATION_LOCK = "applier:migration"
NEW_SCHEMA = "CREATE SCHEMA IF NOT EXISTS {0}{1}{0} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


class MysqlSink(SqlSink):
    """One replica in a database of the MySQL family. Not thread-safe. Opens nothing before it is used."""

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings, bookkeeping_of(settings))
        self._ownership = Ownership(settings, self._tables)
        self._ddl = DdlRunner(settings, self._ledger, self._ownership)
        self._control: ServerSession | None = None
        self._dialect: MysqlDialect | None = None
        self._bulk: bool | None = None

    @property
    def dialect(self) -> MysqlDialect:
        """The rendering part, which knows the server's limits."""
        if self._dialect is None:
            max_packet_bytes, max_warnings = self.read(limits, "reading the server's limits")
            self._dialect = MysqlDialect(max_packet_bytes=max_packet_bytes, max_warnings=max_warnings)
        return self._dialect

    @property
    def reserved(self) -> Reserved:
        """The schemas that upstream's events must not touch."""
        return Reserved(self._settings.schema, SYSTEM_SCHEMAS)

    @property
    def writer(self) -> WriteTransaction:
        """The writing part."""
        return writer_of(self._settings)

    @property
    def xa_reader(self) -> MysqlXaReader:
        """What reads prepared transactions on executors."""
        return MysqlXaReader(self._settings)

    @property
    def bulk(self) -> bool:
        """Whether the operator and the server allow bulk loads."""
        if self._bulk is None:
            is_allowed = self._settings.bulk_load is BulkLoad.AUTO
            self._bulk = is_allowed and self.read(takes_loads, "asking whether the server takes bulk loads")
        return self._bulk

    def migrate(self) -> Sequence[str]:
        """Create or upgrade the bookkeeping's schema; return the revisions that were applied."""

        def work(connection: Connection) -> Sequence[str]:
            if not take_lock(connection, MIGRATION_LOCK, self._settings.lock_timeout_s):
                message = "another applier is migrating the bookkeeping tables"
                raise RetryableSinkError(
                    message, remedy=Remedy("mysql.wait-for-other-run", "Wait until it has ended, then run the command again")
                )
            try:
                # Only where it is missing: the user may lack the privilege to create one.
                schema = self._settings.schema
                if not has_schema(connection, schema):
                    connection.execute(text(NEW_SCHEMA.format(DIALECT.quote, schema)))
                applied = migration.upgrade(connection, self._tables)
                connection.commit()  # before the lock is released: the next one to hold it must see the revision
                return applied
            finally:
                release_lock(connection, MIGRATION_LOCK)

        return self.read(work, "migrating the bookkeeping tables")

    def acquire(self, *, take_over: bool = False) -> None:
        """Own the replica. Fenced names the owner; FatalSinkError if the bookkeeping tables are missing or old.

        ConfigError if rows are written ahead and the server cannot keep its writers apart.
        """
        self.read(lambda connection: migration.check(connection, self._tables), "reading the version of the bookkeeping tables")
        if self._settings.rows_ahead:
            self.read(refuse_unshared_locks, "asking whether the server's shared locks hold")
        self.epoch = self._ownership.acquire(take_over=take_over)

    def begin(self, start_ts: Ts, source_state: str | None = None) -> Progress:
        """Create the progress row of a new replica at ``start_ts``."""
        run_id = self._ownership.run_id
        return self._repeated(lambda connection: self._begin(connection, run_id, start_ts, source_state), "creating the replica")

    def raise_epoch(self) -> Progress:
        """End the replica's other sessions, raise the epoch, and read the progress."""

        def work(connection: Connection) -> Progress:
            # A writer in flight holds the progress row, which raise_epoch locks: without this it would wait for that transaction.
            self._ownership.end_other_sessions()
            return Epochs(self._tables).raise_epoch(connection, self._ownership.run_id)

        progress = self._repeated(work, "raising the epoch")
        self.epoch = progress.fence.epoch
        return progress

    def describe(self, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
        """Describe the sink's tables; missing ones are skipped."""
        return self.read(lambda connection: catalogue.describe(connection, tables), "reading the catalogue")

    def present(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return which of the names a table or a view has."""
        return self.read(lambda connection: frozenset(spellings(connection, tables)), "reading the names of tables")

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        """Examine the sink's tables for the table check; missing ones are skipped."""
        return self.read(lambda connection: examine(connection, tables), "examining tables")

    def foreign_keys(self, tables: Collection[TableName] | None = None) -> Sequence[KeyLink] | None:
        """Return the foreign keys of these tables, or of all; None on TiDB, whose actions are not tested."""
        return self.read(lambda connection: foreign_keys(connection, tables), "reading foreign keys")

    def tables_with_rows(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return which of the tables exist and hold a row."""
        return self.read(lambda connection: catalogue.tables_with_rows(connection, tables), "checking tables for rows")

    def run_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        """Write intent, run the statement, write done."""
        return self._ddl.run(fence, identity, ddl, before=before, after=after)

    def load_ddl(self, identity: DdlIdentity, ddl: DdlEvent) -> None:
        """Run a definition of a dump and write it as done."""
        self.reserved.refuse_ddl(ddl)

        def work(connection: Connection) -> None:
            named = run_loaded(connection, PastDdls(self._ledger), ddl, self._settings.collations)
            self._ledger.settled(connection, identity, named, DdlState.DONE)

        self.change(work, "making what a dump defines", table=str(ddl.name))

    def skip_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress."""
        return self._ddl.skip(fence, identity, ddl, after=after)

    def settle(self, fence: Fence) -> Fence:
        """Settle every intent that a dead run left."""
        return self._ddl.settle(fence)

    def finish_ddls(self) -> None:
        """Wait for the DDLs that run in the background."""
        self._ddl.finish()

    def heartbeat_lost(self) -> Exception | None:
        """Return why this run must stop; a lock that was lost is taken again, and what was built in the background is written."""
        return self._ownership.lost() or self._ddl.stopped_by

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why this run must stop, if the heartbeat knows a reason."""
        return self._ownership.heartbeat_error

    def close(self) -> None:
        """Release the lock and end the sessions."""
        # The lock first: the next run waits for it, and for nothing else.
        self._ownership.release()
        discard(self._control)
        self._control = None
        close_writer_sessions()

    def _repeated(self, work: Callable[[Connection], T], doing: str) -> T:
        """Commit on the owner's session; for work that may happen twice, an unknown outcome is repeated."""
        for attempt in stamina.retry_context(on=UnknownOutcome, attempts=self._settings.retries + 1, timeout=None):
            with attempt:
                return commit_owned(self._ownership, self._settings.retries, work, doing)
        raise UnknownOutcome("retries ended without an outcome", doing=doing)

    def read(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run work that may happen twice on the control session, in one transaction; a lost session is replaced."""
        for attempt in stamina.retry_context(on=RetryableSinkError, attempts=self._settings.retries + 1, timeout=None):
            with attempt:
                return self._once(work, doing, facts)
        raise RetryableSinkError("retries ended without an outcome", doing=doing)

    change = read  # both are work that may happen twice, in a transaction of the control session

    def judge(self, connection: Connection, owner: OwnerRow) -> OwnerView:
        """Judge whether the run that owns the replica lives."""
        return self._ownership.judge(connection, owner)

    def _once(self, work: Callable[[Connection], T], doing: str, facts: dict[str, Any]) -> T:
        if self._control is None or self._control.is_lost:
            discard(self._control)
            self._control = None  # to open another one may fail
            self._control = open_session(self._settings, Purpose.CONTROL)
        try:
            with transaction(self._control) as connection:
                return work(connection)
        except (SQLAlchemyError, OSError) as error:
            discard(self._control)
            self._control = None
            raise translate(error, doing, replica=self._settings.name, **facts) from error
