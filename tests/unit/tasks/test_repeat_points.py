"""What one range shows of repeated rows: its promises between rows of tables without a key, steps back, rows below the floor."""

from applier.model.range_report import RepeatPoint
from applier.sources.column_flags import shape_of
from applier.sources.port import PlacedRows
from applier.tasks.range_summary import RepeatPoints

KEYLESS, KEYED = shape_of("s", "t", (("n", 3, 65),)), shape_of("s", "k", (("n", 3, 11),))

OTHER, TABLE = shape_of("s", "other", (("n", 3, 65),)), KEYLESS.name.fold()


def placed(*rows):
    """Rows from (offset, shape)."""
    shapes = [KEYLESS, KEYED, OTHER]
    offsets, numbers = [offset for offset, _ in rows], [shapes.index(shape) for _, shape in rows]
    return PlacedRows(shapes, numbers, [5] * len(rows), [1] * len(rows), offsets, [0] * len(rows), [b""] * len(rows), [b"{}"] * len(rows))


def test_of_promises_without_a_row_between_them_the_first_and_the_last_stay():
    points = RepeatPoints()
    for offset, ts in ((1, 10), (2, 11), (3, 12)):
        points.promise(offset, ts)
    assert points.found() == (RepeatPoint(1, 10), RepeatPoint(3, 12))
    points.rows()
    points.promise(5, 13)
    assert points.found() == (RepeatPoint(1, 10), RepeatPoint(3, 12), RepeatPoint(5, 13))


def test_a_promise_below_the_last_one_is_a_return():
    points = RepeatPoints()
    for offset, ts in ((1, 10), (2, 8), (3, 9), (4, 12)):
        points.promise(offset, ts)
    assert points.found() == (RepeatPoint(1, 10), RepeatPoint(2, 8, is_return=True), RepeatPoint(4, 12))


def test_rows_below_the_floor_show_a_return_where_they_begin():
    points = RepeatPoints()
    rows = placed((1, KEYLESS), (2, KEYED), (3, KEYLESS), (4, KEYLESS), (5, KEYLESS), (6, KEYLESS))
    points.replays(rows, [True, False, False, False, True, False])
    assert points.found() == (RepeatPoint(3, 0, is_return=True, table=TABLE), RepeatPoint(6, 0, is_return=True, table=TABLE))


def test_rows_below_the_floor_are_one_return_until_another_row_comes():
    """A producer that sends a day again: a report holds a point, and not one for each run of its rows."""
    points = RepeatPoints()
    for offset in (1, 2, 3):
        points.replays(placed((offset, KEYLESS)), [False])
    points.promise(4, 3)
    points.replays(placed((5, KEYLESS)), [False])
    points.rows()
    points.replays(placed((7, KEYLESS)), [False])
    assert points.found() == (
        RepeatPoint(1, 0, is_return=True, table=TABLE),
        RepeatPoint(4, 3),
        RepeatPoint(7, 0, is_return=True, table=TABLE),
    )


def test_a_row_below_the_floor_says_nothing_of_another_table():
    """Tables keep no order among one another: between two equal rows of one, a late row of another one is no return."""
    points = RepeatPoints()
    points.replays(placed((1, KEYLESS), (2, OTHER), (3, KEYLESS)), [True, False, True])
    assert points.found() == (RepeatPoint(2, 0, is_return=True, table=OTHER.name.fold()),)
