"""How many rows of a range lie where, by counts at a few points."""

import pytest

from applier.coordinator.cache import OpenRange
from applier.model.events import TableName
from applier.model.position import Offset, Ts
from applier.model.range_report import RangeId, RangeReport, RowCount, TableRows
from tests.timeline.scenario import P0

COUNTS = (RowCount(Ts(10), 4), RowCount(Ts(20), 9), RowCount(Ts(30), 12))


def opened(*tables):
    rows = tuple(TableRows(TableName("s", name), ("id",), 1, Ts(first), Ts(last), Offset(0)) for name, first, last in tables)
    report = RangeReport(range=RangeId(P0, 0, 12), resolved_ts=Ts(0), rows=12, min_ts=Ts(5), max_ts=Ts(30), row_counts=COUNTS, tables=rows)
    return OpenRange(1, report)


@pytest.mark.parametrize(
    ("after", "upto", "rows"),
    [(0, 30, 12), (0, 40, 12), (0, 20, 9), (0, 19, 8), (10, 20, 5), (10, 25, 7), (9, 20, 9), (30, 40, 0), (0, 4, 0), (20, 20, 0)],
)
def test_rows_of_a_segment_are_counted_from_above(after, upto, rows):
    assert opened().rows_between(Ts(after), Ts(upto)) == rows


def test_rows_at_one_ts_are_counted_from_above():
    assert [opened().rows_at(Ts(ts)) for ts in (4, 5, 10, 15, 20, 30, 31)] == [0, 3, 4, 4, 5, 3, 0]


def test_rows_are_given_by_the_points_at_which_they_are_counted():
    assert list(opened().counts(Ts(0))) == [(10, 4), (20, 5), (30, 3)]
    assert list(opened().counts(Ts(10))) == [(20, 5), (30, 3)]
    assert list(opened().counts(Ts(30))) == []


def test_a_table_is_open_from_its_first_to_its_last_row():
    found = opened(("a", 5, 12), ("b", 20, 30))
    assert [table.name.table for table in found.tables(Ts(0), Ts(10))] == ["a"]
    assert [table.name.table for table in found.tables(Ts(12), Ts(20))] == ["a", "b"]
    assert [table.name.table for table in found.tables(Ts(13), Ts(20))] == ["b"]
