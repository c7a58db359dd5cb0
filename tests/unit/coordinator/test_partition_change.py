"""When the versions of one row may lie in two streams."""

import pytest

from applier.coordinator.policy import RowPolicy
from applier.coordinator.rows_ahead import PartitionChange
from applier.coordinator.stream_state import StreamState
from applier.model.position import Offset, PartitionExtent, Ts
from applier.model.range_report import Promises, RangeId, RangeReport
from applier.sources.ticdc.tso import later_by
from tests.timeline.scenario import P0, P1

POLICY = RowPolicy(by_table=False, settle_span=later_by(Ts(0), 600_000))
READ = [StreamState(stream, Offset(5), PartitionExtent(Offset(0), Offset(5)), Ts(10)) for stream in (P0, P1)]


def test_a_change_that_a_run_has_not_seen_may_have_happened_just_before_it():
    """A producer's nodes take note of new partitions one after the other: until then some send rows to the old ones."""
    change = PartitionChange((), POLICY, is_new=False)
    change.looked(READ)
    change.saw(Ts(10))
    assert not change.settle(READ, later_by(Ts(10), 600_000))  # rows at exactly the checkpoint may be applied again
    assert change.settle(READ, later_by(Ts(11), 600_000))
    assert change.is_over


def test_an_announced_change_needs_no_new_partition():
    change = PartitionChange((P0, P1), POLICY, is_new=False)
    assert change.is_over
    change.saw(Ts(10))
    change.announced()
    assert not change.is_over
    assert not change.settle(READ, later_by(Ts(10), 600_000))  # rows at exactly the checkpoint may be applied again
    assert change.settle(READ, later_by(Ts(11), 600_000))
    assert change.is_over


def test_a_beginning_is_proven_when_the_checkpoint_has_passed_what_the_topic_held():
    change = PartitionChange((), POLICY, is_new=True)
    states = [stream_from_the_beginning(stream, Promises(first_ts=Ts(10))) for stream in (P0, P1)]
    change.looked(states)
    change.saw(Ts(10))
    assert change.settle(states, Ts(10))
    assert (change.is_over, change.is_proven) == (True, False)
    change.settle(states, later_by(Ts(11), 600_000))
    assert change.is_proven


def test_a_beginning_waits_for_rows_that_came_before_any_promise():
    change = PartitionChange((), POLICY, is_new=True)
    states = [stream_from_the_beginning(P0, Promises(first_ts=Ts(10), unpromised_ts=Ts(15)))]
    change.looked(states)
    assert not change.settle(states, Ts(15))  # rows at exactly the checkpoint may be applied again
    assert change.settle(states, Ts(16))


@pytest.mark.parametrize("again_ts", [9, 10])
def test_a_first_promise_that_comes_again_is_a_change_until_the_beginning_is_proven(again_ts):
    change = PartitionChange((), POLICY, is_new=True)
    states = [stream_from_the_beginning(stream, Promises(first_ts=Ts(10))) for stream in (P0, P1)]
    change.looked(states)
    assert change.settle(states, Ts(10))
    read(states[1], Promises(first_ts=Ts(again_ts)))
    assert change.looked(states)
    assert not change.is_over


def test_promises_that_were_repeated_before_all_had_one_are_a_change():
    change = PartitionChange((), POLICY, is_new=True)
    states = [
        stream_from_the_beginning(P0, Promises(first_ts=Ts(10), least_later_ts=Ts(10))),
        stream_from_the_beginning(P1, Promises(first_ts=Ts(10))),
    ]
    change.looked(states)
    assert not change.settle(states, Ts(12))


def stream_from_the_beginning(stream, promises):
    state = StreamState(stream, Offset(0), PartitionExtent(Offset(0), Offset(5)), Ts(1))
    state.plan(5, 5)
    state.take(RangeReport(range=RangeId(stream, 0, 5), resolved_ts=promises.first_ts, promises=promises), ())
    return state


def read(state, promises):
    start, end = state.end, state.end + 1
    state.grow(PartitionExtent(Offset(0), Offset(end)))
    state.plan(1, 1)
    state.take(RangeReport(range=RangeId(state.stream, start, end), resolved_ts=promises.first_ts, promises=promises), ())
