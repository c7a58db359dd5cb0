"""The driver side of a replica in one SQLite file.

DDL is transactional here: the statement, its ledger entry and the progress share one transaction, so a crash never leaves an intent,
and nothing has to be compared afterwards. Writers on the same machine open the file themselves.
"""

import os
import socket
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import uuid4
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection

from applier.model.errors import ConfigError, Remedy, SinkError
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import Ts
from applier.planner.port import TableDescription
from applier.planner.table_check import SinkTable
from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import PastDdls
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.failpoint import reach
from applier.sinks.ledger_entry import DdlState
from applier.sinks.overview import OwnerView
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.reserved import Reserved
from applier.sinks.settings import SinkSettings
from applier.sinks.sql_sink import SqlSink
from applier.sinks.sqlite import catalogue
from applier.sinks.sqlite.bookkeeping import bookkeeping_of
from applier.sinks.sqlite.catalogue import examine, with_upstream_names
from applier.sinks.sqlite.dialect import SqliteDialect
from applier.sinks.sqlite.errors import commit_failed
from applier.sinks.sqlite.ownership import FileLock
from applier.sinks.sqlite.schema_change import apply_ddl
from applier.sinks.sqlite.session import database_path, open_engine, raw, require_file_place, snapshot, transaction
from applier.sinks.sqlite.writer import SqliteWriteSessions, SqliteXaReader
from applier.sinks.write_transaction import WriteTransaction

T = TypeVar("T")


class SqliteSink(SqlSink):
    """A replica in one file. Not thread-safe; one per run."""

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings, bookkeeping_of(settings))
        self._path = database_path(settings.url)
        self._zone = _checked_zone(settings.time_zone)
        self._engine = open_engine(self._path, settings.lock_wait_timeout_s)
        self._lock = FileLock(self._path, lease_s=settings.lease_s, timeout_s=settings.lock_timeout_s)
        self._run_id = uuid4().hex
        self._is_owner = False
        self._past = PastDdls(self._ledger)

    @property
    def dialect(self) -> SqliteDialect:
        """The rendering part, for executors."""
        return SqliteDialect()

    @property
    def reserved(self) -> Reserved:
        """None: names of upstream's tables have a dot in the file, names of the bookkeeping and of SQLite have no dot."""
        return Reserved("", frozenset())

    @property
    def writer(self) -> WriteTransaction:
        """The writing part, for executors on this machine."""
        return WriteTransaction(self._tables, SqliteWriteSessions(self._path, self._settings.lock_wait_timeout_s))

    @property
    def xa_reader(self) -> SqliteXaReader:
        """What reads prepared transactions on executors of this machine."""
        return SqliteXaReader(self._path, self._tables, self._settings.lock_wait_timeout_s)

    @property
    def bulk(self) -> bool:
        """Never: statements of SQLite run in this process, without a server between."""
        return False

    # Run and progress

    def migrate(self) -> Sequence[str]:
        """Create the file and the bookkeeping tables, or upgrade them; return the revisions that were applied."""
        require_file_place(self._path)
        with transaction(self._engine, path=str(self._path)) as connection:
            return migration.upgrade(connection, self._tables)

    def acquire(self, *, take_over: bool = False) -> None:
        """Own the replica: take the file's lock, then a new epoch. Fenced names the owner; a dead one's lock is free at once."""
        require_file_place(self._path)
        self._lock.acquire(take_over=take_over)
        try:
            with transaction(self._engine, path=str(self._path)) as connection:
                migration.check(connection, self._tables)
                self.epoch = Epochs(self._tables).claim(connection, self._run_id, socket.gethostname(), os.getpid())
        except BaseException:
            self._lock.release()
            raise
        self._is_owner = True

    def begin(self, start_ts: Ts, source_state: str | None = None) -> Progress:
        """Create the progress row of a new replica."""
        with transaction(self._engine) as connection:
            return self._begin(connection, self._run_id, start_ts, source_state)

    def raise_epoch(self) -> Progress:
        """Raise the epoch and read the progress."""
        with transaction(self._engine) as connection:
            progress = Epochs(self._tables).raise_epoch(connection, self._run_id)
        self.epoch = progress.fence.epoch
        return progress

    def heartbeat_lost(self) -> Exception | None:
        """Return the error of the heartbeat, if another run has taken the lock."""
        return self._lock.lost

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why this run must stop, if the heartbeat knows a reason."""
        return self._lock.lost

    # Catalogue

    def describe(self, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
        """Describe the sink's tables; missing ones are skipped."""
        with snapshot(self._engine, self._path) as connection:
            return catalogue.describe(raw(connection), tables)

    def present(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return which of the names a table or a view has."""
        with snapshot(self._engine, self._path) as connection:
            return frozenset({table.fold() for table in tables} & catalogue.find_objects(raw(connection)).keys())

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        """Examine the sink's tables for the table check; missing ones are skipped."""
        with snapshot(self._engine, self._path) as connection:
            return examine(raw(connection), tables)

    def foreign_keys(self, tables: Collection[TableName] | None = None) -> None:  # noqa: ARG002 - of the port
        """Return None: the tables of the file have none."""
        return

    def tables_with_rows(self, tables: Collection[TableName]) -> frozenset[FoldedName]:
        """Return which of the tables exist and hold a row."""
        with snapshot(self._engine, self._path) as connection:
            return catalogue.tables_with_rows(raw(connection), tables)

    # DDL

    def run_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, before: ProgressCommit, after: ProgressCommit) -> Fence:
        """Run the statement, write it as done and move the progress, in one transaction; return the fence that now holds.

        An error leaves the file as it was: no intent, no part of the statement.
        """
        reach("ddl.before_intent")
        # `before` moves with the intent on servers. Here is no intent: its known tables must not be lost.
        return self._settle_ddl(fence, identity, ddl, after.including(before), DdlState.DONE)

    def load_ddl(self, identity: DdlIdentity, ddl: DdlEvent) -> None:
        """Run a definition of a dump and write it as done, in one transaction."""
        with transaction(self._engine, statement=ddl.query, commit_ts=ddl.commit_ts) as connection:
            apply_ddl(raw(connection), ddl, self._zone)
            self._ledger.settled(connection, identity, ddl, DdlState.DONE)

    def skip_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, *, after: ProgressCommit) -> Fence:
        """Write the DDL as skipped, with the progress."""
        return self._settle_ddl(fence, identity, ddl, after, DdlState.SKIPPED)

    def _settle_ddl(self, fence: Fence, identity: DdlIdentity, ddl: DdlEvent, commit: ProgressCommit, state: DdlState) -> Fence:
        with transaction(self._engine, statement=ddl.query, commit_ts=ddl.commit_ts) as connection:
            ProgressTable(self._tables).lock_or_raise(connection, fence)
            if state is DdlState.DONE:
                ddl = with_upstream_names(connection, self._past, ddl)
                apply_ddl(raw(connection), ddl, self._zone)
                reach("ddl.after_statement")
            self._ledger.settled(connection, identity, ddl, state)
            moved = ProgressTable(self._tables).advance(connection, fence, commit)
            reach("ddl.before_done")
            # By hand: at the end of the block a failed COMMIT would look like any other error, although its outcome is unknown.
            try:
                raw(connection).commit()
            except sqlite3.Error as error:
                raise commit_failed(error) from error
        reach("ddl.after_done")
        return moved

    def finish_ddls(self) -> None:
        """Do nothing: a DDL is part of a transaction here."""

    def settle(self, fence: Fence) -> Fence:
        """Return the fence: a transaction that did not commit left no intent to settle."""
        self._past.forget()
        return fence

    # Transactions

    def read(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run reads in one transaction, in one state of the file."""
        del doing  # SQLite's messages name it
        with snapshot(self._engine, self._path, **facts) as connection:
            return work(connection)

    def change(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` in one transaction, which locks the file from its beginning."""
        del doing
        with transaction(self._engine, **facts) as connection:
            return work(connection)

    def judge(self, connection: Connection, owner: OwnerRow) -> OwnerView:
        """Judge whether the run that owns the replica lives."""
        del connection  # the lock file knows more than the database
        return self._lock.judge(owner)

    # End

    def close(self) -> None:
        """Release the replica and its lock, whatever state the file is in."""
        try:
            self._release_owner()
        finally:
            self._lock.release()
            self._engine.dispose()

    def _release_owner(self) -> None:
        if not self._is_owner:
            return
        self._is_owner = False
        # A file that is busy or full must not hide why the run ends. The next run finds the lock free, whatever the owner's row says.
        with suppress(SinkError), transaction(self._engine) as connection:
            OwnerTable(self._tables).release(connection, self._run_id)


def _checked_zone(zone: str) -> str:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ConfigError(
            "the time zone is not known",
            remedy=Remedy("sqlite.use-iana-zone", "Name it as in the IANA database: UTC, Europe/Berlin"),
            time_zone=zone,
        ) from error
    return zone
