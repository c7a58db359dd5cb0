"""The driver side of a replica in a vault. DDL is transactional, as in PostgreSQL."""

import os
import socket
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Connection

from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.planner.port import TableDescription
from applier.planner.table_check import SinkTable
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.ledger_entry import DdlState
from applier.sinks.overview import OwnerState, OwnerView
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.reserved import Reserved
from applier.sinks.settings import SinkSettings
from applier.sinks.sql_sink import SqlSink
from applier.sinks.write_transaction import WriteTransaction
from tests.vault import catalogue
from tests.vault.dialect import VaultDialect, stored
from tests.vault.session import Vault, raw
from tests.vault.words import bookkeeping_of
from tests.vault.writer import VaultSessions, VaultXaReader

T = TypeVar("T")


class VaultSink(SqlSink):
    bulk = False
    heartbeat_error = None
    dialect = VaultDialect()
    reserved = Reserved("", frozenset())

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings, bookkeeping_of(settings))
        self._vault = Vault.of(settings)
        self._run_id = uuid4().hex

    @property
    def writer(self) -> WriteTransaction:
        return WriteTransaction(self._tables, VaultSessions(self._vault))

    @property
    def xa_reader(self) -> VaultXaReader:
        return VaultXaReader(self._vault, self._tables)

    def migrate(self) -> Sequence[str]:
        return self.change(lambda connection: migration.upgrade(connection, self._tables), "")

    def acquire(self, *, take_over: bool = False) -> None:
        del take_over

        def work(connection: Connection) -> int:
            migration.check(connection, self._tables)
            return Epochs(self._tables).claim(connection, self._run_id, socket.gethostname(), os.getpid())

        self.epoch = self.change(work, "")

    def begin(self, start_ts: Ts, source_state: str | None = None) -> Progress:
        return self.change(lambda connection: self._begin(connection, self._run_id, start_ts, source_state), "")

    def raise_epoch(self) -> Progress:
        progress = self.change(lambda connection: Epochs(self._tables).raise_epoch(connection, self._run_id), "")
        self.epoch = progress.fence.epoch
        return progress

    def describe(self, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
        return self.read(lambda connection: catalogue.describe(raw(connection), tables), "")

    def present(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        there = self.read(lambda connection: {table.fold() for table in catalogue.names_of(raw(connection))}, "")
        return frozenset({table.fold() for table in tables} & there)

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        return {folded: SinkTable(name=TableName(found.schema, found.table)) for folded, found in self.describe(tables).items()}

    def foreign_keys(self, tables: Collection[TableName] | None = None) -> None:
        del tables

    def tables_with_rows(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        def work(connection: Connection) -> frozenset[FoldedName]:
            found = catalogue.describe(raw(connection), tables)
            return frozenset(name for name in found if raw(connection).execute(f"SELECT 1 FROM {stored(*name)} LIMIT 1").fetchone())

        return self.read(work, "")

    def run_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        return self._settle_ddl(fence, identity, ddl, after.including(before), DdlState.DONE)

    def skip_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        return self._settle_ddl(fence, identity, ddl, after, DdlState.SKIPPED)

    def _settle_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, commit: ProgressCommit, state: DdlState) -> Fence:
        def work(connection: Connection) -> Fence:
            ProgressTable(self._tables).lock_or_raise(connection, fence)
            if state is DdlState.DONE:
                catalogue.apply_ddl(raw(connection), ddl)
            self._ledger.settled(connection, identity, ddl, state)
            return ProgressTable(self._tables).advance(connection, fence, commit)

        return self.change(work, "", statement=ddl.query)

    def load_ddl(self, identity: DdlIdentity, ddl: DdlEvent) -> None:
        def work(connection: Connection) -> None:
            catalogue.apply_ddl(raw(connection), ddl)
            self._ledger.settled(connection, identity, ddl, DdlState.DONE)

        self.change(work, "")

    def settle(self, fence: Fence) -> Fence:
        return fence

    def finish_ddls(self) -> None:
        pass

    def heartbeat_lost(self) -> None:
        pass

    def read(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        del doing
        with self._vault.transaction(**facts) as connection:
            return work(connection)

    change = read

    def judge(self, connection: Connection, owner: OwnerRow) -> OwnerView:
        del connection
        return OwnerView(owner=owner.owner, silent_s=owner.silent_s, state=OwnerState.ALIVE)

    def close(self) -> None:
        if self.epoch is not None:
            self.change(lambda connection: OwnerTable(self._tables).release(connection, self._run_id), "")
            self.epoch = None
