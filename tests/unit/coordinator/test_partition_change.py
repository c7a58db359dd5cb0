"""When the versions of one row may lie in two streams."""

from applier.coordinator.partition_change import PartitionChange
from applier.coordinator.policy import RowPolicy
from applier.coordinator.stream_state import StreamState
from applier.model.listing import PartitionExtent
from applier.model.position import Offset, Ts
from applier.sources.kafka.tso import later_by
from tests.timeline.scenario import P0, P1

POLICY = RowPolicy(by_table=False, settle_span=later_by(Ts(0), 600_000))
READ = [StreamState(stream, Offset(5), PartitionExtent(Offset(0), Offset(5)), Ts(10)) for stream in (P0, P1)]


def test_a_change_that_a_run_has_not_seen_may_have_happened_just_before_it():
    """A producer's nodes take note of new partitions one after the other: until then some send rows to the old ones."""
    change = PartitionChange((), POLICY)
    change.listed(READ)
    change.saw(Ts(10))
    assert not change.settle(READ, later_by(Ts(10), 600_000))  # rows at exactly the checkpoint may be applied again
    assert change.settle(READ, later_by(Ts(11), 600_000))
    assert change.is_over


def test_an_announced_change_needs_no_new_partition():
    change = PartitionChange((P0, P1), POLICY)
    assert change.is_over
    change.saw(Ts(10))
    change.announced()
    assert not change.is_over
    assert not change.settle(READ, later_by(Ts(10), 600_000))  # rows at exactly the checkpoint may be applied again
    assert change.settle(READ, later_by(Ts(11), 600_000))
    assert change.is_over
