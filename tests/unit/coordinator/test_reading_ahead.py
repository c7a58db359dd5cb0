"""Ranges, back-pressure, segments of bounded size, release of what is spent, and when a catch-up is done."""

from dataclasses import replace

from applier.coordinator import Policy, stored_offset
from applier.coordinator.merging import FAN
from applier.coordinator.range_size import FIRST_RECORDS, GROWTH, MOST_RECORDS, RANGE_BYTES, RangeSize
from applier.coordinator.step import Evict, SaveProgress
from applier.model.range_report import RangeId
from tests.timeline.replica import report_of
from tests.timeline.scenario import P0, P1, P2, Scenario, ddl, positions, resolved, row


def test_a_backlog_is_split_into_several_ranges():
    s = Scenario(policy=Policy(range_records=2, ranges_per_stream=2)).write(P0, *[row(i) for i in range(1, 6)])
    s.list()
    assert s.coordinator.plan() == (RangeId(P0, 0, 2), RangeId(P0, 2, 4))
    s.read(RangeId(P0, 2, 4))
    assert s.coordinator.plan() == (RangeId(P0, 4, 5),)


def test_reading_begins_at_the_stored_offset_and_ends_at_the_listed_end():
    s = Scenario(stored=positions(t0=1)).write(P0, row(1), row(2), row(3))
    s.list()
    s.write(P0, row(4))
    assert s.coordinator.plan() == (RangeId(P0, 1, 3),)


def test_a_stream_that_leads_by_too_many_ranges_waits_and_the_one_that_holds_the_watermark_does_not():
    s = Scenario(P0, P1, policy=Policy(lead_ranges=2, range_records=1, ranges_per_stream=1))
    s.write(P0, resolved(1), row(3), row(4), row(5)).write(P1, row(2), row(3), row(4), row(5))
    planned = []
    for _ in range(4):
        s.list()
        ranges = s.coordinator.plan()
        planned.append([r.stream for r in ranges])
        s.read(*ranges) if ranges else None
    assert planned == [[P0, P1], [P1, P0], [P1, P0], [P1]]


def test_a_full_cache_stops_the_streams_ahead_and_no_others():
    s = Scenario(P0, P1, policy=Policy(cached_bytes=10, range_records=2))
    s.write(P0, row(2), resolved(2)).write(P1, row(2), row(3))
    s.list()
    s.read()
    s.write(P0, row(4)).write(P1, row(4))
    s.list()
    assert s.coordinator.cached_bytes == 30
    assert [r.stream for r in s.coordinator.plan()] == [P1]


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


def test_a_segment_names_its_tables_once_with_all_their_keys():
    s = Scenario(P0, P1).write(P0, row(1, "a"), row(2, "b"), resolved(3)).write(P1, row(3, "a"), resolved(3))
    s.list()
    s.read()
    s.list()
    tables = {table.name.table: table for table in s.next_segment().tables}
    assert sorted(tables) == ["a", "b"]
    assert (tables["a"].rows, tables["a"].min_ts, tables["a"].max_ts) == (2, 1, 3)


def test_a_range_is_released_when_all_its_rows_are_below_the_checkpoint():
    s = Scenario(P0, P1).write(P0, row(1), row(2)).write(P1, resolved(2))
    s.list()
    s.read()
    step = s.coordinator.next_step()
    assert step == Evict((RangeId(P1, 0, 1),))
    s.coordinator.evicted(step)
    s.write(P0, resolved(2))
    assert s.turn() == [("apply", 0, 2, 2)]
    assert s.coordinator.cached_bytes == 20
    s.write(P0, resolved(3)).write(P1, resolved(3))
    s.turn()
    assert s.coordinator.cached_bytes == 0
    assert [x.cached_ranges for x in s.coordinator.streams] == [0, 0]


def test_positions_can_be_saved_without_moving_the_checkpoint():
    s = Scenario(P0, P1).write(P0, row(1)).write(P1, resolved(3))
    s.turn()
    step = s.coordinator.progress_step()
    assert isinstance(step, SaveProgress)
    assert {str(stream): p.next_offset for stream, p in step.positions.items()} == {"t/0": 0, "t/1": 0}
    s.coordinator.saved(step)
    assert s.coordinator.checkpoint_ts == 0


def test_a_catch_up_is_done_when_every_stream_was_read_to_its_end_and_no_step_is_left():
    s = Scenario(P0, P1).write(P0, row(1), resolved(2)).write(P1, resolved(2))
    s.list()
    assert not s.coordinator.is_caught_up({P0: 2, P1: 1})
    s.read()
    s.list()
    assert not s.coordinator.is_caught_up({P0: 2, P1: 1})
    s.steps()
    assert s.coordinator.is_caught_up({P0: 2, P1: 1})
    assert not s.coordinator.is_caught_up({P0: 3, P1: 1})


def test_a_stream_that_must_wait_for_one_that_has_ended_does_not_keep_a_catch_up_going():
    s = Scenario(P0, P1, policy=Policy(lead_ranges=1, range_records=2)).write(P0, resolved(2))
    s.write(P1, row(3), resolved(5), row(6), row(7))
    s.list()
    s.read(*[r for r in s.coordinator.plan() if r.start == 0])
    s.coordinator.forget(RangeId(P1, 2, 4))
    s.list()
    assert s.steps() == [("apply", 0, 2, 0)]
    assert s.coordinator.plan() == ()
    assert s.coordinator.is_caught_up({P0: 1, P1: 4})


def test_a_catch_up_to_a_ts_ends_there_and_reads_no_further():
    s = Scenario(P0, P1, until=4, policy=Policy(range_records=3, ranges_per_stream=1))
    s.write(P0, row(3), row(5), resolved(6), row(7)).write(P1, resolved(4), ddl(4, "DROP TABLE `a`"), resolved(5), row(8))
    assert s.turn() == [("apply", 0, 4, 1)]
    assert s.coordinator.watermark == 4
    assert s.coordinator.is_caught_up({P0: 4, P1: 4})
    assert s.coordinator.plan() == ()
    assert [d.commit_ts for d in s.coordinator.pending_ddls] == [4]


def test_without_streams_nothing_is_planned_and_nothing_holds():
    s = Scenario(P0, P1, P2)
    assert s.turn() == []
    assert (s.coordinator.holding_stream, s.coordinator.streams, s.coordinator.plan()) == (None, (), ())
    assert s.coordinator.is_caught_up({P0: 0})


def test_when_the_cache_is_full_the_streams_that_hold_the_watermark_get_one_range_at_a_time():
    s = Scenario(policy=Policy(cached_bytes=10, range_records=1, ranges_per_stream=3)).write(P0, *[row(ts) for ts in range(1, 9)])
    s.list()
    s.read()
    assert s.coordinator.cached_bytes == 30
    assert s.coordinator.plan() == (RangeId(P0, 3, 4),)
    assert s.coordinator.plan() == ()


def test_a_range_is_as_long_as_a_bounded_number_of_bytes_allows():
    pace = RangeSize()
    assert (pace.records, pace.expected_bytes(10)) == (FIRST_RECORDS, 0)
    pace.learn(FIRST_RECORDS, 0)
    assert pace.records == FIRST_RECORDS * GROWTH
    pace.learn(100, 100 * 1024)
    assert pace.records == RANGE_BYTES // 1024
    pace.learn(10, 10 * RANGE_BYTES)
    assert (pace.records, pace.expected_bytes(2)) == (1, 2 * RANGE_BYTES)
    pace.learn(1, 1)
    assert pace.records == GROWTH
    for _ in range(9):
        pace.learn(pace.records, 0)
    assert pace.records == MOST_RECORDS


def fed_row_by_row(rows, **policy):
    """A stream that does not resolve, read in ranges of one row each; and the most ranges that were cached at once."""
    s, most = Scenario(policy=Policy(merge_ranges=8, **policy)), 0
    for ts in range(1, rows + 1):
        s.write(P0, row(ts))
        s.list()
        s.read()
        s.steps()
        most = max(most, s.coordinator.streams[0].cached_ranges)
    return s, most


def test_ranges_of_a_stream_that_does_not_resolve_are_merged_again_and_again_and_its_rows_are_applied_once():
    s, most = fed_row_by_row(700)
    assert most < 8 + 3 * FAN
    assert s.coordinator.cached_bytes == 7000
    s.write(P0, resolved(700))
    assert s.turn() == [("apply", 0, 700, 700)]


def test_ranges_that_are_long_enough_are_not_merged():
    _, most = fed_row_by_row(40, range_records=FAN - 1)
    assert most == 40


def test_a_merge_that_fails_leaves_its_parts_and_nothing_is_merged_until_there_are_few_ranges():
    s, _ = fed_row_by_row(8)
    s.write(P0, row(9))
    s.list()
    s.read()
    s.write(P0, row(10))
    s.list()
    ranges = s.coordinator.plan()
    (merge,) = [name for name in ranges if s.coordinator.is_merge(name)]
    assert merge == RangeId(P0, 0, 8)
    s.coordinator.forget(merge)
    s.read(*[name for name in ranges if name != merge])
    assert not any(s.coordinator.is_merge(name) for name in s.coordinator.plan())
    s.write(P0, resolved(10))
    assert s.turn() == [("apply", 0, 10, 10)]
    assert s.coordinator.plan() == ()


def test_a_merge_that_holds_fewer_rows_than_its_parts_does_not_take_their_place():
    s, _ = fed_row_by_row(9)
    s.write(P0, resolved(10))
    s.list()
    ranges = s.coordinator.plan()
    (merge,) = [name for name in ranges if s.coordinator.is_merge(name)]
    s.read(*[name for name in ranges if name != merge])
    lost_in_kafka = s.log[P0][1 : merge.end]
    report, _ = report_of(RangeId(P0, 1, merge.end), lost_in_kafka, s.coordinator.floor_ts)
    s.coordinator.report(replace(report, range=merge))
    released = s.coordinator.next_step()
    assert merge in released.ranges
    s.confirm(released)
    s.list()
    assert s.steps() == [("apply", 0, 10, 9)]


def test_parts_that_were_released_while_they_were_read_again_leave_nothing_behind():
    s, _ = fed_row_by_row(9)
    s.write(P0, resolved(10), row(11), resolved(12))
    s.list()
    ranges = s.coordinator.plan()
    (merge,) = [name for name in ranges if s.coordinator.is_merge(name)]
    s.read(*[name for name in ranges if name != merge])
    s.list()
    s.steps()
    s.read(merge)
    assert s.coordinator.next_step() == Evict((merge,))


def test_the_hold_points_of_very_many_ranges_are_joined_and_stand_for_an_earlier_offset(monkeypatch):
    monkeypatch.setattr(stored_offset, "MAX_HELD", 4)
    s = Scenario(policy=Policy(merge_ranges=99)).write(P0, resolved(1))
    s.turn()
    for ts in range(2, 12):
        s.write(P0, row(ts))
        s.turn()
    assert s.coordinator.streams[0].next_offset == 1
    s.write(P0, resolved(10))
    s.turn()
    assert s.coordinator.streams[0].next_offset <= 10


def test_a_step_is_due_from_the_window_that_closes_to_the_step_that_is_taken():
    s = Scenario().write(P0, row(5))
    s.list()
    s.read()
    s.list()
    assert not s.coordinator.is_step_due
    s.write(P0, resolved(10))
    s.list()
    s.read()
    s.list()
    assert s.coordinator.is_step_due
    step = s.coordinator.next_step()
    assert isinstance(step, Evict)
    assert not s.coordinator.is_step_due, "a step is open"
    s.coordinator.withdraw(step)
    assert s.steps() == [("apply", 0, 10, 1)]
    assert not s.coordinator.is_step_due
