"""Segments of bounded size, and the tables that they name."""

from dataclasses import replace

from applier.coordinator import Policy
from applier.coordinator.step import ApplySegment
from tests.timeline.report import report_of
from tests.timeline.scenario import P0, P1, Scenario, ddl, resolved, row


def test_a_segment_is_cut_near_the_row_limit_and_never_inside_a_commit_ts():
    rows = [row(ts, key=key) for ts in (1, 2, 3, 4) for key in (1, 2, 3)]
    s = Scenario(policy=Policy(segment_rows=4)).write(P0, *rows, resolved(9))
    assert s.turn() == [("apply", 0, 1, 3), ("apply", 1, 2, 3), ("apply", 2, 3, 3), ("apply", 3, 9, 3)]


def test_one_upstream_transaction_above_the_limit_stays_whole():
    s = Scenario(P0, P1, policy=Policy(segment_rows=2)).write(P0, row(5, key=1), row(5, key=2), row(6), resolved(9))
    s.write(P1, row(5, key=3), resolved(9))
    assert s.turn() == [("apply", 0, 5, 3), ("apply", 5, 9, 1)]


def test_rows_of_one_commit_ts_count_together_over_all_streams():
    s = Scenario(P0, P1, policy=Policy(segment_rows=2)).write(P0, row(1), row(2), resolved(9)).write(P1, row(2), resolved(9))
    assert s.turn() == [("apply", 0, 1, 1), ("apply", 1, 9, 2)]


def test_a_segment_without_a_known_count_inside_is_not_cut():
    s = Scenario(policy=Policy(segment_rows=1)).write(P0, row(1), row(2), row(7), resolved(5))
    s.list()
    (range_id,) = s.coordinator.plan()
    report, _ = report_of(range_id, s.log[P0], 1)
    s.coordinator.report(replace(report, row_counts=report.row_counts[-1:]))
    s.list()
    assert s.steps() == [("apply", 0, 5, 2)]


def test_a_row_beyond_the_watermark_does_not_count_in_a_segment():
    s = Scenario(policy=Policy(segment_rows=1)).write(P0, row(1), row(2), row(8), resolved(5))
    assert s.turn() == [("apply", 0, 1, 1), ("apply", 1, 5, 1)]


def test_a_segment_before_a_ddl_says_where_those_behind_it_will_end():
    s = Scenario(policy=Policy(segment_rows=2))
    s.write(P0, row(1), row(2), ddl(3, "DROP TABLE `x`", "x"), row(4), row(5), row(6), ddl(7, "DROP TABLE `y`", "y"), row(8), resolved(9))
    s.list()
    s.read()
    s.list()
    found = []
    while (step := s.coordinator.next_step()) is not None:
        s.confirm(step)
        if isinstance(step, ApplySegment):
            found.append((step.window.after_ts, step.window.upto_ts, step.later))
    # The one that was cut by its rows ends before the next DDL.
    assert found == [(0, 3, (7,)), (3, 5, ()), (5, 7, ()), (7, 9, ())]


def test_a_segment_names_its_tables_once_with_all_their_keys():
    s = Scenario(P0, P1).write(P0, row(1, "a"), row(2, "b"), resolved(3)).write(P1, row(3, "a"), resolved(3))
    s.list()
    s.read()
    s.list()
    tables = {table.name.table: table for table in s.next_segment().segment.tables}
    assert sorted(tables) == ["a", "b"]
    assert (tables["a"].rows, tables["a"].min_ts, tables["a"].max_ts) == (2, 1, 3)
