"""The planner of a copy: the chunks of a table are disjoint and cover all keys, and a kill repeats nothing that is done."""

from applier.copy.planner import LEAST_ROWS, MOST_ROWS, CopyPlanner
from applier.copy.port import Bound, ChunkDone, CopyTable, KeyRange, PlannedChunk
from applier.model.events import TableName
from applier.model.position import Ts


def table(name: str = "orders", **facts: object) -> CopyTable:
    whole: dict[str, object] = {"definition": "", "digest": name, "key": ("id",), "columns": ("id",), **facts}
    return CopyTable(name=TableName("shop", name), **whole)


def planned(planner: CopyPlanner, *uppers: Bound | None) -> list[KeyRange]:
    found = []
    for upper in uppers:
        walk = planner.walk(100)
        assert walk is not None
        found.append(planner.bounded(walk, upper))
    return found


def test_chunks_of_a_table_meet_at_their_bounds_and_have_no_outer_ones() -> None:
    planner = CopyPlanner([table()], {})
    assert planned(planner, ("5",), ("9",), None) == [KeyRange(0, None, ("5",)), KeyRange(1, ("5",), ("9",)), KeyRange(2, ("9",), None)]
    assert planner.walk(100) is None


def test_boundaries_are_asked_for_until_enough_chunks_wait() -> None:
    planner = CopyPlanner([table(), table("items")], {})
    planned(planner, ("5",), ("9",))
    assert planner.walk(2) is None
    walk = planner.walk(3)
    assert walk is not None
    assert (walk.table.name.table, walk.lower) == ("orders", ("9",))


def test_a_copy_is_done_when_every_planned_chunk_of_every_table_is() -> None:
    planner = CopyPlanner([table(), table("items")], {})
    planned(planner, None, None)
    first, second = planner.take(10)
    planner.done(first, ChunkDone(3, 30, Ts(7)))
    assert not planner.is_done
    assert planner.tables_done == 1
    planner.done(second, ChunkDone(2, 20, Ts(5)))
    assert planner.is_done
    assert (planner.rows, planner.size_bytes, planner.high_ts) == (5, 50, 7)


def test_a_copy_of_no_table_is_done() -> None:
    assert CopyPlanner([], {}).is_done


def test_a_chunk_that_failed_is_given_out_again() -> None:
    planner = CopyPlanner([table()], {})
    planned(planner, None)
    (task,) = planner.take(10)
    assert planner.take(10) == []
    planner.failed(task)
    assert planner.take(10) == [task]
    assert not planner.is_done


def test_a_later_run_gives_out_what_is_not_done_and_walks_on_behind_the_last_chunk() -> None:
    chunks = [
        PlannedChunk(KeyRange(0, None, ("5",)), None),
        PlannedChunk(KeyRange(1, ("5",), ("9",)), ChunkDone(4, 40, Ts(8))),
    ]
    planner = CopyPlanner([table()], {TableName("shop", "orders"): chunks})
    assert [task.chunk for task in planner.take(10)] == [KeyRange(0, None, ("5",))]
    walk = planner.walk(1)
    assert walk is not None
    assert walk.lower == ("9",)
    assert planner.bounded(walk, None) == KeyRange(2, ("9",), None)
    assert (planner.rows, planner.high_ts) == (4, 8)


def test_a_table_whose_chunks_are_all_done_is_not_walked_again() -> None:
    planner = CopyPlanner([table()], {TableName("shop", "orders"): [PlannedChunk(KeyRange(0, None, None), ChunkDone(0, 0, Ts(1)))]})
    assert planner.is_done
    assert planner.walk(1) is None


def rows_of(planner: CopyPlanner) -> int:
    walk = planner.walk(1)
    assert walk is not None
    return walk.rows


def test_the_size_of_a_chunk_follows_the_weight_of_its_rows_within_limits() -> None:
    assert rows_of(CopyPlanner([table(rows=1_000_000, size_bytes=1_000_000 * 200)], {})) == (32 << 20) // 200
    assert rows_of(CopyPlanner([table(rows=10, size_bytes=10)], {})) == MOST_ROWS
    assert rows_of(CopyPlanner([table(rows=10, size_bytes=10 << 24)], {})) == LEAST_ROWS
    # A table without statistics.
    assert rows_of(CopyPlanner([table()], {})) == (32 << 20) // 100


def test_done_chunks_correct_what_the_statistics_say() -> None:
    done = PlannedChunk(KeyRange(0, None, ("5",)), ChunkDone(100, 100 * 3_200, Ts(1)))
    planner = CopyPlanner([table(rows=1_000_000, size_bytes=1_000_000)], {TableName("shop", "orders"): [done]})
    assert rows_of(planner) == (32 << 20) // 3_200
