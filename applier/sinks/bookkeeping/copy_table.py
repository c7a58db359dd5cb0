"""The initial copy of one replica: the tables ``copy``, ``copy_table`` and ``copy_chunk``.

Theory. The row of ``copy`` is the fence of the copy, as the progress row is that of segments: there is none before the copy has ended.
Every transaction that writes a chunk locks it shared and compares epoch and attempt. A run that takes the copy up locks it alone, and so
waits for chunks that are still being written; what an older run sends later finds another epoch. A chunk is planned by the driver before a
task gets it, and is marked as done in the transaction that writes its rows: so a kill at any time loses nothing and repeats nothing.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection

from applier.copy.port import Bound, ChunkDone, CopyFence, CopyTable, KeyRange, PlannedChunk
from applier.model.errors import Fenced, InvariantViolation
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions, as_datetime
from applier.sinks.bookkeeping.owner_table import OwnerTable, fenced
from applier.sinks.bookkeeping.progress_table import FenceState
from applier.sinks.copy_state import CopyRow, CopyState
from applier.sinks.overview import CopyView

T = TypeVar("T")
CHANGING: Final = "writing about the copy"
READING: Final = "reading about the copy"


VIEW: Final = ""
"""The digest of a view: it has no chunks."""


class PlannedTable(NamedTuple):
    """A table of the copy: its name in the sink, and the digest of the definition that all chunks must have; or a view (``VIEW``)."""

    name: TableName
    target: TableName
    digest: str
    rows: int = 0
    size_bytes: int = 0

    @property
    def is_view(self) -> bool:
        """Whether it is a view."""
        return self.digest == VIEW


class TableSum(NamedTuple):
    """What the sink has of one table. ``is_whole``: all of its chunks are planned and done."""

    rows: int
    size_bytes: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class CopyBook:
    """The copy of the replica that ``bookkeeping`` is of. Statements inside the caller's transaction."""

    bookkeeping: Bookkeeping

    def read(self, connection: Connection) -> CopyRow | None:
        """Return the copy; None: the replica has not begun with one."""
        row = self.bookkeeping.run(connection, "copy_read").one_or_none()
        if row is None:
            return None
        return CopyRow(
            epoch=row.epoch,
            attempt=row.attempt,
            state=CopyState(row.state),
            start_ts=Ts(int(row.start_ts)),
            upto_ts=Ts(int(row.upto_ts)),
            left_out=json.loads(row.left_out),
            began_at=as_datetime(row.began_at),
            read_at=None if row.read_at is None else as_datetime(row.read_at),
        )

    def share(self, connection: Connection, fence: CopyFence) -> FenceState:
        """Lock the copy together with other writers of chunks, until COMMIT. FENCED: another run, or another attempt, copies by now."""
        row = self.bookkeeping.run(connection, "copy_share").one_or_none()
        is_ours = row is not None and CopyFence(row.epoch, row.attempt) == fence and row.state != CopyState.READ
        return FenceState.HELD if is_ours else FenceState.FENCED

    def fenced(self, connection: Connection) -> Fenced:
        """Return the error that names the run which owns the replica."""
        return fenced(self.bookkeeping.name, OwnerTable(self.bookkeeping).read(connection))

    def find(self, connection: Connection, table: TableName, number: int) -> ChunkDone | None:
        """Return what a chunk has put into the sink; None: it is not done."""
        row = self.bookkeeping.run(connection, "copy_chunk_find", **_key(table), chunk=number).one_or_none()
        return None if row is None else ChunkDone(row.row_count, row.size_bytes, Ts(int(row.high_ts)))

    def store(self, connection: Connection, table: TableName, number: int, done: ChunkDone) -> None:
        """Mark a chunk as done, in the transaction that has written its rows. InvariantViolation: it was not planned."""
        high_ts = self.bookkeeping.number(done.high_ts)
        values = {"row_count": done.rows, "size_bytes": done.size_bytes, "high_ts": high_ts}
        if self.bookkeeping.run(connection, "copy_chunk_done", **_key(table), chunk=number, **values).rowcount != 1:
            raise InvariantViolation("a chunk was written that is not planned", table=str(table), chunk=number)

    def view(self, connection: Connection) -> CopyView | None:
        """Return the copy with its sums, for people; None: the replica has not begun with one."""
        row = self.read(connection)
        if row is None:
            return None
        tables, sums = [table for table in self.tables(connection) if not table.is_view], self.sums(connection)
        return CopyView(
            row=row,
            tables=len(tables),
            tables_done=sum(each.is_whole for each in sums.values()),
            rows=sum(each.rows for each in sums.values()),
            rows_planned=sum(table.rows for table in tables),
            size_bytes=sum(each.size_bytes for each in sums.values()),
        )

    def tables(self, connection: Connection) -> list[PlannedTable]:
        """Return the tables that are copied."""
        return [
            PlannedTable(
                TableName(row.schema_name, row.table_name),
                TableName(row.sink_schema, row.sink_table),
                row.digest,
                row.row_estimate,
                row.size_estimate,
            )
            for row in self.bookkeeping.run(connection, "copy_table_read")
        ]

    def sums(self, connection: Connection) -> dict[TableName, TableSum]:
        """Return how much the sink has of each table with a chunk."""
        return {
            TableName(row.schema_name, row.table_name): TableSum(
                int(row.row_count or 0), int(row.size_bytes or 0), bool(row.last_ones) and row.chunks == row.done
            )
            for row in self.bookkeeping.run(connection, "copy_chunk_sums")
        }

    def chunks(self, connection: Connection) -> dict[TableName, list[PlannedChunk]]:
        """Return the planned chunks of each table, in their order."""
        found = dict[TableName, list[PlannedChunk]]()
        for row in self.bookkeeping.run(connection, "copy_chunk_read"):
            done = None if row.done_at is None else ChunkDone(row.row_count, row.size_bytes, Ts(int(row.high_ts)))
            chunk = KeyRange(row.chunk, _bound(row.lower_key), _bound(row.upper_key))
            found.setdefault(TableName(row.schema_name, row.table_name), []).append(PlannedChunk(chunk, done))
        return found


@dataclass(frozen=True, slots=True)
class CopyStore:
    """The copy as the driver uses it: each call is a separate transaction. ``epoch``: that of this run, which owns the replica."""

    bookkeeping: Bookkeeping
    epoch: int | None
    transactions: Transactions

    @property
    def book(self) -> CopyBook:
        """The statements."""
        return CopyBook(self.bookkeeping)

    def read(self) -> CopyRow | None:
        """Return the copy; None: the replica has not begun with one. Needs no ownership."""
        return self.transactions.read(self.book.read, READING)

    def tables(self) -> Sequence[PlannedTable]:
        """Return the tables that are copied. Needs no ownership."""
        return self.transactions.read(self.book.tables, READING)

    def chunks(self) -> Mapping[TableName, Sequence[PlannedChunk]]:
        """Return the planned chunks of each table, in their order."""
        return self.transactions.read(self.book.chunks, READING)

    def begin(self, start_ts: Ts, left_out: Mapping[str, int], tables: Iterable[PlannedTable]) -> CopyFence:
        """Begin a copy, instead of an earlier attempt; return the fence of its chunks. Fenced: this run does not own the replica."""
        planned = list(tables)

        def work(connection: Connection) -> CopyFence:
            books = self.bookkeeping
            before = books.run(connection, "copy_lock").one_or_none()
            epoch = self._own(connection)
            for kind in ("copy_chunk", "copy_table"):
                books.run(connection, f"{kind}_delete")
            fence = CopyFence(epoch, 1 if before is None else before.attempt + 1)
            said = json.dumps(dict(left_out), sort_keys=True)
            books.run(connection, "copy_begin", epoch=epoch, attempt=fence.attempt, start_ts=books.number(start_ts), left_out=said)
            for table in planned:
                books.run(
                    connection,
                    "copy_table_write",
                    **_key(table.name),
                    sink_schema=table.target.schema,
                    sink_table=table.target.table,
                    digest=table.digest,
                    row_estimate=table.rows,
                    size_estimate=table.size_bytes,
                )
            return fence

        return self._change(work)

    def copying(self) -> CopyFence:
        """Store that tables and those without a key are there, or take the copy up; return the fence of its chunks. Fenced."""

        def work(connection: Connection) -> CopyFence:
            row = self.bookkeeping.run(connection, "copy_lock").one_or_none()
            epoch = self._own(connection)
            if row is None:
                raise InvariantViolation("a copy is taken up that has not begun")
            self.bookkeeping.run(connection, "copy_move", epoch=epoch, state=CopyState.COPYING)
            return CopyFence(epoch, row.attempt)

        return self._change(work)

    def sums(self) -> Mapping[TableName, TableSum]:
        """Return how much the sink has of each table with a chunk. Needs no ownership."""
        return self.transactions.read(self.book.sums, READING)

    def plan(self, chunks: Iterable[tuple[CopyTable, KeyRange]]) -> None:
        """Store chunks before tasks get them. A chunk that is planned already must not come again. Fenced."""
        planned = list(chunks)

        def work(connection: Connection) -> None:
            self._own(connection)
            for table, chunk in planned:
                keys = {"lower_key": _text(chunk.lower), "upper_key": _text(chunk.upper)}
                self.bookkeeping.run(connection, "copy_chunk_plan", **_key(table.name), chunk=chunk.number, **keys)

        self._change(work)

    def end(self, upto_ts: Ts) -> None:
        """Store that all rows are in the sink, and that the replica begins at the start of the copy. One transaction. Fenced."""

        def work(connection: Connection) -> None:
            self.bookkeeping.run(connection, "copy_lock").one_or_none()
            self._own(connection)
            self.bookkeeping.run(connection, "copy_end", upto_ts=self.bookkeeping.number(upto_ts))
            self.bookkeeping.run(connection, "loaded_dump_end")

        self._change(work)

    def _own(self, connection: Connection) -> int:
        owner = OwnerTable(self.bookkeeping).read(connection, locked=True)
        if owner is None or self.epoch is None or owner.owner.epoch != self.epoch:
            raise fenced(self.bookkeeping.name, owner)
        return self.epoch

    def _change(self, work: Callable[[Connection], T]) -> T:
        return self.transactions.change(work, CHANGING)


def _key(table: TableName) -> dict[str, Any]:
    return {"schema_name": table.schema, "table_name": table.table}


def _text(bound: Bound | None) -> str | None:
    return None if bound is None else json.dumps(bound)


def _bound(text: str | None) -> Bound | None:
    return None if text is None else tuple(json.loads(text))
