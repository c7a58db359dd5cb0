"""A source whose offsets count nothing: ranges end at its cuts, and the bytes between them say how much is read."""

import time

import pytest

from applier.coordinator import Policy
from applier.coordinator.pace import RangeCuts
from applier.coordinator.stream_state import StreamState
from applier.model.position import Cut, Listing, PartitionExtent
from applier.model.range_report import RangeId, RangeReport
from tests.timeline.scenario import P0, Scenario

FILE = 1 << 32
MIB = 1 << 20


def extent(*cuts, end=None):
    return PartitionExtent(0, end or cuts[-1][0], tuple(Cut(*cut) for cut in cuts))


def backlog(cuts, begin=FILE):
    return extent(*((begin + number * FILE, MIB) for number in range(1, cuts + 1)))


@pytest.mark.parametrize(
    ("after", "records", "most", "ends"),
    [
        (0, 100, 100, [(30, 100)]),
        (0, 55, 100, [(10, 50)]),
        (0, 100, 50, [(10, 50), (30, 50)]),
        (10, 100, 10, [(20, 30), (30, 20)]),
        (10, 1, 100, [(20, 30)]),
        (15, 100, 100, [(30, 50)]),
        (30, 100, 100, []),
        (99, 100, 100, []),
    ],
)
def test_ranges_end_at_cuts_and_a_cut_that_is_too_far_is_one_range(after, records, most, ends):
    cuts = RangeCuts(extent((10, 50), (20, 30), (30, 20), end=45))
    assert list(cuts.ends(after, records, most)) == ends
    assert cuts.has_more(after) is bool(ends)


def test_no_range_holds_what_lies_on_both_sides_of_the_beginning_of_another_log():
    def ends(*cuts, most=100):
        return list(RangeCuts(extent(*cuts)).ends(0, 100, most))

    assert ends((10, 0)) == ends((10, 0), (20, 3), (30, 3)) == [(10, 0)]
    assert ends((10, 0), (20, 3), (30, 3), most=2) == [(10, 0), (20, 3), (30, 3)]
    assert ends((8, 1), (10, 0), (20, 3), most=2) == [(8, 1), (10, 0)]


def test_a_failed_range_is_planned_again_as_it_was_although_the_cuts_are_others_by_then():
    state = StreamState(P0, 0, extent((10, 50), (20, 30)), 0)
    assert state.plan(80, 50) == [RangeId(P0, 0, 10), RangeId(P0, 10, 20)]
    state.forget(RangeId(P0, 0, 10))
    state.grow(extent((12, 60), (40, 5), end=50))
    assert (state.has_more, state.plan(1, 50), state.expected_bytes_of(RangeId(P0, 0, 10))) == (True, [RangeId(P0, 0, 10)], 50)
    assert state.plan(100, 50) == [RangeId(P0, 20, 40)]
    # After that the scan has begun anew, and has not come so far yet.
    state.grow(extent((15, 5), end=50))
    assert (state.has_more, state.expected_bytes, state.plan(100, 50)) == (False, 0, [])


def test_what_a_byte_of_the_source_takes_in_the_cache_is_learnt():
    state = StreamState(P0, 0, extent((FILE, 1000), (2 * FILE, 1000)), 0)
    [first] = state.plan(1000, 1000)
    assert state.expected_bytes_of(first) == 1000
    state.take(RangeReport(range=first, resolved_ts=FILE, bytes=5000), ())
    assert (state.expected_bytes, state.course.records_of(2500)) == (5000, 500)


def test_a_backlog_of_files_is_read_in_parallel_and_its_live_end_as_one_range():
    s = Scenario(policy=Policy(plan_bytes=64 * MIB))
    planned = []
    listing = Listing({P0: backlog(200)})
    for _ in range(4):
        s.coordinator.list(listing)
        ranges = s.coordinator.plan()
        planned.append(len(ranges))
        for name in ranges:
            size = (name.end - name.start) // FILE * MIB
            s.coordinator.report(RangeReport(range=name, resolved_ts=name.end, bytes=size, events=1))
    assert planned == [1, 2, 8, 8]
    assert not s.coordinator.is_caught_up({P0: 300 * FILE})
    s = Scenario(stored={})
    s.coordinator.list(Listing({P0: extent((7, 7), (9, 2), end=11)}))
    [live] = s.coordinator.plan()
    assert live == RangeId(P0, 0, 9)
    s.coordinator.report(RangeReport(range=live, resolved_ts=9))
    s.coordinator.list(Listing({P0: extent((9, 2), end=11)}))
    while step := s.coordinator.next_step():
        s.confirm(step)
    assert (s.coordinator.checkpoint_ts, s.coordinator.plan()) == (9, ())
    assert [s.coordinator.is_caught_up({P0: end}) for end in (8, 9, 11)] == [True, True, False]


def test_a_thousand_cuts_cost_little():
    s = Scenario()
    listing = Listing({P0: backlog(1000)})
    began_s = time.process_time()
    for _ in range(1000):
        s.coordinator.list(listing)
        s.coordinator.plan()
    assert time.process_time() - began_s < 1
