"""Segments that are handed out before it is their turn keep their bounds and their ranges, whatever is read meanwhile."""

import pytest

from applier.coordinator import Policy
from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl
from applier.model.range_report import RangeId
from tests.timeline.report import report_of
from tests.timeline.scenario import OTHER, P0, P1, Scenario, ddl, positions, resolved, row

ALTER = "ALTER TABLE `a` ADD COLUMN `x` INT"


def closed(*streams, **options):
    """Prepare a scenario of one row per ts from 1 to 6 on each stream, all of them closed."""
    s = Scenario(*streams, policy=Policy(segment_rows=2, **options))
    for stream in streams or (P0,):
        s.write(stream, *[row(ts) for ts in range(1, 7)], resolved(6))
    read(s)
    return s


def read(s):
    s.list()
    s.read()
    s.list()


def ahead(s, most_rows=1000):
    return [(segment.window.after_ts, segment.window.upto_ts) for segment in s.coordinator.segments_ahead(most_rows)]


def segments(s):
    return [(after, upto) for _, after, upto, _ in s.steps()]


def test_segments_are_handed_out_once_and_come_as_steps_in_their_order():
    s = closed()
    assert ahead(s) == [(0, 2), (2, 4), (4, 6)]
    assert ahead(s) == []
    assert segments(s) == [(0, 2), (2, 4), (4, 6)]


def test_about_as_many_rows_are_handed_out_as_are_asked_for_and_never_less_than_a_segment():
    s = closed()
    assert [ahead(s, 3), ahead(s, 1), ahead(s, 1)] == [[(0, 2), (2, 4)], [(4, 6)], []]


def test_segments_ahead_begin_behind_the_step_that_is_open():
    s = closed()
    step = s.next_segment()
    assert (step.window.after_ts, step.window.upto_ts) == (0, 2)
    assert ahead(s) == [(2, 4), (4, 6)]
    s.confirm(step)
    assert segments(s) == [(2, 4), (4, 6)]


def test_segments_ahead_end_at_the_next_ddl_and_go_on_when_it_is_executed():
    s = Scenario().write(P0, row(1), ddl(3, ALTER), row(4), resolved(5))
    read(s)
    assert (ahead(s), ahead(s)) == ([(0, 3)], [])
    s.confirm(s.next_segment())
    step = s.coordinator.next_step()
    assert ahead(s) == [], "rows behind the DDL are rendered by the catalogue that it leaves"
    s.confirm(step)
    assert ahead(s) == [(3, 5)]


def test_few_rows_between_two_ddls_are_not_handed_out():
    s = Scenario().write(P0, row(1), row(2), ddl(3, ALTER), row(4), row(5), ddl(6, "DROP TABLE `x`", "x"), row(7), resolved(8))
    read(s)
    assert s.coordinator.segments_ahead(1000, between_ddls=3) == ()
    assert [len(s.coordinator.segments_ahead(1000, between_ddls=2)), s.next_segment().window.upto_ts] == [1, 3]
    s.coordinator.withdraw(s.coordinator._open.step)
    while not isinstance(step := s.coordinator.next_step(), ExecuteDdl):
        s.confirm(step)
    s.confirm(step)
    # The DDL behind these rows is the last one: nothing is divided there.
    assert [(segment.window.after_ts, segment.window.upto_ts) for segment in s.coordinator.segments_ahead(1000, between_ddls=3)] == [(3, 6)]


def test_a_window_without_rows_is_not_cut_ahead_so_that_it_can_grow():
    s = Scenario().write(P0, resolved(5))
    read(s)
    assert ahead(s) == []
    s.write(P0, resolved(8))
    assert s.turn() == [("apply", 0, 8, 0)]


def test_a_row_at_the_watermark_that_comes_after_the_cut_brings_its_group_along():
    s = closed()
    assert ahead(s) == [(0, 2), (2, 4), (4, 6)]
    s.write(P0, row(6, key=2), row(7), resolved(8))
    read(s)
    assert ahead(s) == [(6, 8)]
    assert s.steps()[-2:] == [("apply", 4, 6, 2), ("again", 6, 8, 3)]


def test_a_replay_inside_of_what_was_handed_out_changes_nothing():
    s = closed()
    handed_out = s.coordinator.segments_ahead(1000)
    s.write(P0, row(3), row(3), resolved(6))
    read(s)
    steps = [step for step in iter(lambda: taken(s), None) if isinstance(step, ApplySegment)]
    assert [step.segment for step in steps[:3]] == list(handed_out)


def taken(s):
    if (step := s.coordinator.next_step()) is not None:
        s.confirm(step)
    return step


def test_a_step_that_is_taken_back_is_given_again():
    s = closed()
    handed_out = ahead(s)
    step = s.next_segment()
    s.coordinator.withdraw(step)
    assert s.next_segment() == step
    s.confirm(step := s.coordinator._open.step)
    assert segments(s) == handed_out[1:]


def test_ranges_of_a_segment_ahead_are_not_released_before_it_is_applied():
    s = closed(range_records=2)
    last = s.coordinator.segments_ahead(1000)[-1]
    while not isinstance(step := s.coordinator.next_step(), ApplySegment) or step.window.upto_ts != last.window.upto_ts:
        assert not isinstance(step, Evict) or not set(step.ranges) & set(last.ranges)
        s.confirm(step)


def test_ranges_of_a_segment_ahead_are_not_merged_before_it_is_applied():
    s = Scenario(P0, P1, policy=Policy(merge_ranges=1, segment_rows=1000)).write(P1, resolved(3))
    for ts in range(1, 10):
        s.write(P0, row(ts))
        if ts == 9:
            s.write(P0, resolved(3))
        read_without_merges(s)
    (merge,) = [name for name in s.coordinator.plan() if s.coordinator.is_merge(name)]
    assert merge == RangeId(P0, 0, 8)
    assert [segment.ranges for segment in s.coordinator.segments_ahead(1000)] == [tuple(RangeId(P0, at, at + 1) for at in range(3))]
    report, _ = report_of(merge, s.log[P0][:8], s.coordinator.floor_ts)
    s.coordinator.report(report)
    released = s.coordinator.next_step()
    assert merge in released.ranges
    assert not set(released.ranges) & {RangeId(P0, at, at + 1) for at in range(8)}
    s.confirm(released)
    assert s.steps() == [("apply", 0, 3, 3)]


def read_without_merges(s):
    s.list()
    ranges = [name for name in s.coordinator.plan() if not s.coordinator.is_merge(name)]
    s.read(*ranges)
    s.list()


def test_a_new_partition_takes_the_watermark_back_and_what_lies_beyond_is_handed_out_again():
    s = closed()
    step = s.next_segment()
    assert ahead(s) == [(2, 4), (4, 6)]
    s.write(P1, row(7), resolved(5))
    s.list()
    assert s.coordinator.watermark == 0
    assert ahead(s) == []
    s.confirm(step)
    assert s.coordinator.next_step() is None
    s.read()
    s.list()
    assert s.coordinator.watermark == 5
    assert ahead(s) == [(2, 4), (4, 5)]
    assert segments(s) == [(2, 4), (4, 5)]
    assert s.coordinator.is_caught_up({})


def test_a_ddl_at_the_end_of_what_was_handed_out_runs_behind_it():
    s = closed()
    handed_out = ahead(s)
    s.write(P0, ddl(6, ALTER), resolved(7))
    read(s)
    assert ahead(s) == []
    assert s.steps() == [("apply", *bounds, 2) for bounds in handed_out] + [("ddl", 6, ALTER), ("apply", 6, 7, 0)]


@pytest.mark.parametrize("ts", [2, 3, 4])
def test_a_ddl_below_the_watermark_that_no_stream_had_shown_has_the_rest_cut_again(ts):
    s = closed()
    step = s.next_segment()
    assert ahead(s) == [(2, 4), (4, 6)]
    s.write(P0, ddl(ts, ALTER))
    read(s)
    assert ahead(s) == ([(2, 3)] if ts == 3 else []), "(2, 4] was handed out, and still holds where the DDL lies at its end"
    s.confirm(step)
    before = [("apply", 2, ts, ts - 2)] if ts > 2 else []
    after = [("apply", first, min(first + 2, 6), min(2, 6 - first)) for first in range(ts, 6, 2)]
    assert s.steps() == [*before, ("ddl", ts, ALTER), *after]


def test_a_new_topic_is_not_taken_in_while_a_step_moves_the_checkpoint_that_it_is_checked_against():
    s = Scenario(checkpoint=3, stored=positions(t0=0)).write(P0, row(4), resolved(5))
    read(s)
    step = s.next_segment()
    s.write(OTHER, row(6), resolved(7))
    s.list()
    assert [status.stream for status in s.coordinator.streams] == [P0]
    s.confirm(step)
    s.list()
    assert [status.stream for status in s.coordinator.streams] == [OTHER, P0]
