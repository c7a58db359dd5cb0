"""What every SQL sink does in the same way: its progress, and the transactions of its bookkeeping.

A dialect adds how it reaches its database (``read``, ``change``), how a run owns the replica, its catalogue and its DDL.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

from sqlalchemy import Connection, text

from applier.model.errors import NeedsOperator, Remedy
from applier.model.position import Ts
from applier.model.xa_store import XaReader
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.owner_table import OwnerRow
from applier.sinks.bookkeeping.progress_table import ProgressTable, of_epoch
from applier.sinks.bookkeeping.replica_bookkeeping import ReplicaBookkeeping
from applier.sinks.overview import OwnerView
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, Progress, ProgressCommit, WriteOutcome
from applier.sinks.quarantine import Quarantined
from applier.sinks.settings import SCHEMA, SinkSettings


def refuse_other_schema(connection: Connection, books: Bookkeeping) -> None:
    """Raise NeedsOperator if the replica has progress in the default schema. The caller has seen that ``books`` does not have one."""
    # A user without privileges on the default schema sees no table there: then this user's progress is not there either.
    default = {"schema_name": SCHEMA, "table_name": "progress"}
    if books.schema == SCHEMA or not connection.execute(text(books.dialect.counts_tables), default).scalar_one():
        return
    left = connection.execute(Bookkeeping(books.name, books.dialect).query("progress_read"), {"name": books.name}).one_or_none()
    if left is not None:
        raise NeedsOperator(
            "the replica's bookkeeping is not in the schema that [sink] schema names",
            remedy=Remedy("bookkeeping.restore-schema-setting", "Set [sink] schema back, or move the tables (`applier docs sink`)"),
            replica=books.name,
            configured=books.schema,
            found_in=SCHEMA,
        )


T = TypeVar("T")


class SqlSink(ABC):
    """The part of a ``Sink`` that all SQL databases share."""

    def __init__(self, settings: SinkSettings, tables: Bookkeeping) -> None:
        self._settings = settings
        self._tables = tables
        self._ledger = Ledger(tables)
        self.bookkeeping: Final = ReplicaBookkeeping(tables, self)
        self.epoch: int | None = None
        """The epoch of this run; None before ``acquire``."""

    # What a dialect adds

    @property
    @abstractmethod
    def writer(self) -> Writer:
        """The writing part, for executors."""

    @property
    @abstractmethod
    def xa_reader(self) -> XaReader:
        """What reads prepared transactions on executors."""

    @abstractmethod
    def close(self) -> None:
        """Release the lock and the connections."""

    @abstractmethod
    def read(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run reads in one transaction. ``work`` may run twice."""

    @abstractmethod
    def change(self, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
        """Run ``work`` in one transaction and commit, without owning the replica; roll back if it raises. ``work`` may run twice."""

    @abstractmethod
    def judge(self, connection: Connection, owner: OwnerRow) -> OwnerView:
        """Judge whether the run that owns the replica lives."""

    # Progress

    def load(self, *, known: Progress | None = None) -> Progress | None:
        """Read the progress; None before the first ``begin``. Fenced if another run has become the owner."""
        table = ProgressTable(self._tables)
        progress = self.read(lambda connection: table.load(connection, known), "reading the progress")
        return of_epoch(progress, self.epoch, self._settings.name)

    def save(self, fence: Fence, commit: ProgressCommit, quarantined: Quarantined | None = None) -> WriteOutcome:
        """Write progress without rows, under the fence, with what is quarantined."""
        return self.writer.write(fence, (), commit, quarantined)

    def _begin(self, connection: Connection, run_id: str, start_ts: Ts, source_state: str | None) -> Progress:
        """Create the progress row, unless an earlier attempt whose answer was lost has created it."""
        if present := ProgressTable(self._tables).load(connection):
            return present
        refuse_other_schema(connection, self._tables)
        return Epochs(self._tables).begin(connection, run_id, start_ts, source_state)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()
