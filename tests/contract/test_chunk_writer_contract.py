"""What the writer of a copy's chunks promises on every database: rows and bookkeeping in one transaction, once, under the fence."""

import pytest

from applier.copy.lines import lines_of
from applier.copy.port import ChunkDone, ColumnKind, CopyColumn, CopyFence, CopyTable, KeyRange, RowBlock
from applier.model.errors import Fenced
from applier.model.position import NO_TS, Ts
from applier.sinks.bookkeeping.copy_table import PlannedTable
from applier.sinks.registry import kit_of
from tests.contract.replica_on_database import TABLE, DatabaseReplica, settings

COLUMNS = (CopyColumn("id", ColumnKind.TEXT, upstream_type="int"), CopyColumn("v", ColumnKind.TEXT, upstream_type="varchar"))
COPIED = CopyTable(name=TABLE, definition="", digest="d", key=("id",), columns=COLUMNS)
WHOLE = KeyRange(0, None, None)
HIGH = Ts(9)


@pytest.fixture
def fence(replica: DatabaseReplica) -> CopyFence:
    """The fence of a copy with one chunk."""
    store = replica.sink.bookkeeping.copy
    store.begin(NO_TS, {}, [PlannedTable(TABLE, TABLE, "d")])
    fence = store.copying()
    store.plan([(COPIED, WHOLE)])
    return fence


def write(replica: DatabaseReplica, fence: CopyFence, *rows: tuple[bytes, bytes], finish=lambda: HIGH) -> ChunkDone:
    writer = kit_of(replica.url).chunk_writer(settings(replica.url))
    assert writer is not None
    return writer.write(fence, COPIED, TABLE, WHOLE, iter([RowBlock(lines_of(rows), len(rows))]), finish)


def test_a_chunk_that_is_done_is_not_written_again(replica: DatabaseReplica, fence: CopyFence) -> None:
    done = write(replica, fence, (b"1", b"a"), (b"2", b"b"))
    assert (done.rows, done.high_ts) == (2, HIGH)
    assert write(replica, fence, (b"3", b"c")) == done
    assert replica.rows() == [(1, "a"), (2, "b")]


def test_what_prevents_the_end_leaves_neither_rows_nor_a_mark(replica: DatabaseReplica, fence: CopyFence) -> None:
    def changed() -> Ts:
        raise RuntimeError("the definition has changed")

    with pytest.raises(RuntimeError, match="the definition has changed"):
        write(replica, fence, (b"1", b"a"), finish=changed)
    assert replica.rows() == []
    assert [planned.done for planned in replica.sink.bookkeeping.copy.chunks()[TABLE]] == [None]


def test_a_fenced_chunk_writes_nothing_and_holds_no_lock(replica: DatabaseReplica, fence: CopyFence) -> None:
    write_before = CopyFence(fence.epoch, fence.attempt + 1)
    for _ in range(2):  # the second time in a session that the process has kept
        with pytest.raises(Fenced):
            write(replica, write_before, (b"1", b"a"))
        # It locks the row of the copy alone, and would wait for a session that shares it.
        replica.sink.bookkeeping.copy.copying()
    assert replica.rows() == []
