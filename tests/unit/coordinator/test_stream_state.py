"""One stream: ranges in any order, promises in order."""

import pytest

from applier.coordinator.pace import GUESS
from applier.coordinator.stream_state import StreamState
from applier.model.errors import InvariantViolation
from applier.model.position import PartitionExtent
from applier.model.range_report import RangeId, RangeReport, ResumePoint
from tests.timeline.scenario import P0


def read(state, start, end, resolved_ts=0, min_ts=0):
    return state.take(RangeReport(range=RangeId(P0, start, end), resolved_ts=resolved_ts, min_ts=min_ts), ())


def test_ranges_end_at_the_listed_end_and_failed_ones_come_first():
    state = StreamState(P0, 2, PartitionExtent(0, 9), 0)
    assert state.plan(99, 3) == [RangeId(P0, 2, 5), RangeId(P0, 5, 7), RangeId(P0, 7, 9)]
    assert (state.plan(9, 3), state.outstanding, state.has_more) == ([], 3, False)
    state.forget(RangeId(P0, 7, 9))
    state.forget(RangeId(P0, 2, 5))
    state.grow(PartitionExtent(0, 10))
    assert (state.has_more, state.expected_bytes) == (True, 6 * GUESS)
    assert state.plan(1, 3) == [RangeId(P0, 2, 5)]
    assert state.plan(3, 3) == [RangeId(P0, 7, 9), RangeId(P0, 9, 10)]


def test_a_long_part_is_planned_in_pieces_of_about_equal_length():
    lengths = [name.end - name.start for name in StreamState(P0, 0, PartitionExtent(0, 1000), 0).plan(100, 30)]
    assert lengths == [25, 25, 25, 25]


def test_a_report_joins_the_prefix_when_all_earlier_ones_have():
    state = StreamState(P0, 0, PartitionExtent(0, 6), 0)
    state.plan(6, 2)
    assert read(state, 2, 4, resolved_ts=7) == []
    assert (state.prefix, state.resolved_ts) == (0, 0)
    assert [report.range.start for report in read(state, 0, 2, resolved_ts=5)] == [0, 2]
    assert (state.prefix, state.resolved_ts, state.outstanding) == (4, 7, 1)


def test_a_promise_never_steps_back_and_what_lies_below_it_is_counted():
    state = StreamState(P0, 0, PartitionExtent(0, 6), 0)
    state.plan(6, 2)
    read(state, 0, 2, resolved_ts=5)
    read(state, 2, 4, resolved_ts=3)
    read(state, 4, 6, resolved_ts=9, min_ts=4)
    assert (state.resolved_ts, state.fallbacks) == (9, 2)


def test_a_position_is_remembered_until_its_record_does_not_matter_any_more_or_something_is_read():
    state = StreamState(P0, 0, PartitionExtent(0, 6), 0)
    state.plan(6, 6)
    state.take(RangeReport(range=RangeId(P0, 0, 6), resolved_ts=9, resume_points=(ResumePoint(1, 4), ResumePoint(3, 8))), ())
    first = state.position(2, ())
    assert (first.next_offset, first.resolved_ts) == (1, 9)
    assert state.position(4, ()) is first
    assert [state.position(ts, ()).next_offset for ts in (5, 8, 9, 5, 3)] == [3, 3, 6, 3, 1]
    assert state.position(12, ()).resolved_ts == 12
    known = state.position(9, ())
    state.grow(PartitionExtent(0, 7))
    state.plan(1, 1)
    state.take(RangeReport(range=RangeId(P0, 6, 7), resolved_ts=11, resume_points=(ResumePoint(6, 10),)), ())
    assert (known.next_offset, state.position(9, ()).next_offset, state.position(11, ()).next_offset) == (6, 6, 7)
    assert state.position(9, ()).resolved_ts == 11


def test_a_range_that_is_not_read_is_not_taken():
    with pytest.raises(InvariantViolation, match="not being read"):
        read(StreamState(P0, 0, PartitionExtent(0, 6), 0), 0, 2)
