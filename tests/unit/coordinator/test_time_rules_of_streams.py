"""DESIGN.md section 3, paragraph by paragraph: what streams promise, and which streams count."""

import pytest

from applier.coordinator import Policy
from applier.coordinator.pace import GUESS
from applier.model.errors import InvariantViolation, NeedsOperator
from applier.model.position import PartitionExtent
from applier.model.range_report import RangeId
from tests.timeline.scenario import OTHER, P0, P1, Scenario, ddl, positions, resolved, row

ALTER = "ALTER TABLE `a` ADD COLUMN `x` INT"


# --- streams -----------------------------------------------------------------------------------------------------------


def test_a_later_range_counts_only_when_all_earlier_ones_have_reported():
    s = Scenario(policy=Policy(range_records=2)).write(P0, row(1), resolved(1), row(4), resolved(5))
    s.list()
    first, second = s.coordinator.plan()
    s.read(second)
    s.list()
    assert (s.coordinator.watermark, s.coordinator.resolved_ts(P0)) == (0, 0)
    s.read(first)
    s.list()
    assert s.coordinator.watermark == 5


def test_s8_a_smaller_resolved_event_is_a_replay_and_is_counted():
    s = Scenario().write(P0, resolved(5))
    s.turn()
    s.write(P0, resolved(3), row(4))
    assert s.turn() == []
    assert s.coordinator.resolved_ts(P0) == 5
    assert s.coordinator.streams[0].fallbacks == 1
    assert s.coordinator.streams[0].replays == 1


def test_a_promise_holds_after_a_smaller_one_follows_it():
    s = Scenario(P0, P1).write(P0, resolved(9)).write(P1, resolved(5))
    s.turn()
    s.write(P0, resolved(7)).write(P1, resolved(8))
    assert s.turn() == [("apply", 5, 8, 0)]
    assert s.coordinator.resolved_ts(P0) == 9


def test_the_stored_offset_is_the_first_row_at_or_above_the_checkpoint():
    s = Scenario(P0, P1).write(P0, row(1), row(3), row(2), row(5), resolved(2)).write(P1, resolved(2))
    s.turn()
    assert [x.next_offset for x in s.coordinator.streams] == [1, 1]


def test_the_stored_offset_is_the_first_resolved_event_above_the_checkpoint():
    s = Scenario(P0, P1).write(P0, resolved(2), resolved(3), resolved(4)).write(P1, resolved(3))
    s.turn()
    assert [x.next_offset for x in s.coordinator.streams] == [2, 1]


def test_the_stored_offset_is_the_first_ddl_that_the_ledger_has_not_settled():
    s = Scenario().write(P0, row(1), ddl(3, ALTER), resolved(3))
    s.turn()
    assert s.coordinator.streams[0].next_offset == 1
    s.write(P0, resolved(4))
    assert s.turn() == [("ddl", 3, ALTER), ("apply", 3, 4, 0)]
    assert s.coordinator.streams[0].next_offset == 4


def test_the_intent_keeps_the_ddl_in_the_stored_offset_and_done_releases_it():
    s = Scenario().write(P0, ddl(3, ALTER), resolved(4))
    s.list()
    s.read()
    s.list()
    s.confirm(s.coordinator.next_step())  # the range without rows goes
    step = s.coordinator.next_step()
    assert step.positions[P0].next_offset == 0
    assert step.positions_done[P0].next_offset == 1


def test_a_range_is_not_planned_twice_and_keeps_its_ends_when_reading_it_failed():
    s = Scenario(policy=Policy(range_records=2)).write(P0, row(1), row(2), row(3))
    s.list()
    first, second = s.coordinator.plan()
    assert s.coordinator.plan() == ()
    s.write(P0, row(4))
    s.list()
    s.coordinator.forget(second)
    s.coordinator.forget(first)
    assert s.coordinator.plan() == (first, second, RangeId(P0, 3, 4))
    with pytest.raises(InvariantViolation):
        s.coordinator.forget(first._replace(end=1))
    with pytest.raises(InvariantViolation):
        s.coordinator.forget(first._replace(stream=OTHER))


# --- which streams count -----------------------------------------------------------------------------------------------


def test_the_window_closes_only_at_a_listing_after_the_resolved_events_were_read():
    s = Scenario().write(P0, row(1), resolved(1))
    s.list()
    s.read()
    assert (s.coordinator.watermark, s.steps()) == (0, [])
    assert not s.coordinator.is_caught_up({P0: 2})
    s.list()
    assert s.steps() == [("apply", 0, 1, 1)]
    assert s.coordinator.is_caught_up({P0: 2})


def test_the_watermark_is_the_least_resolved_ts_over_all_streams():
    s = Scenario(P0, P1, OTHER).write(P0, resolved(9)).write(P1, resolved(4)).write(OTHER, resolved(6))
    assert s.turn() == [("apply", 0, 4, 0)]
    assert s.coordinator.holding_stream == P1


def test_s12_a_new_partition_that_holds_a_record_is_required_from_its_first_offset():
    s = Scenario().write(P0, resolved(5))
    s.turn()
    s.write(P1, row(3), row(7)).write(P0, resolved(9))
    assert s.turn() == []
    assert (s.coordinator.watermark, s.coordinator.holding_stream) == (5, P1)
    s.write(P1, resolved(8))
    assert s.turn() == [("apply", 5, 8, 1)]


def test_a_partition_that_has_never_held_a_record_is_not_required():
    s = Scenario(P0, P1).write(P0, row(1), resolved(5))
    assert s.turn() == [("apply", 0, 5, 1)]
    assert [x.stream for x in s.coordinator.streams] == [P0]
    assert s.coordinator.resolved_ts(P1) == 0


def test_a_new_partition_whose_beginning_expired_while_the_replica_ran_stops():
    s = Scenario().write(P0, resolved(5))
    s.turn()
    s.write(P1, row(3), row(7))
    s.earliest[P1] = 1
    with pytest.raises(NeedsOperator) as stop:
        s.list()
    assert stop.value.facts["missing_offsets"] == "0..0"


def test_the_first_listing_may_begin_late_because_the_starting_point_was_checked():
    s = Scenario().write(P0, row(1), row(2), resolved(2))
    s.earliest[P0] = 1
    assert s.turn() == [("apply", 0, 2, 1)]


def test_s14_a_new_topic_below_the_checkpoint_stops():
    s = Scenario(checkpoint=5, stored=positions(t0=0)).write(P0, resolved(6)).write(OTHER, row(4))
    s.list()
    with pytest.raises(NeedsOperator) as stop:
        s.read()
    assert stop.value.facts == {"kind": "missed_topic", "topic": "other", "partition": 0, "offset": 0, "commit_ts": 4, "checkpoint_ts": 5}


def test_s14_a_new_topic_that_begins_above_the_checkpoint_joins():
    s = Scenario(checkpoint=5, stored=positions(t0=0)).write(P0, resolved(7)).write(OTHER, resolved(2), row(6), resolved(7))
    assert s.turn() == [("apply", 5, 7, 1)]


def test_a_topic_that_a_commit_has_recorded_is_no_longer_new():
    s = Scenario(checkpoint=5, stored=positions(t0=0)).write(P0, resolved(7)).write(OTHER, resolved(7))
    s.turn()
    s.write(OTHER, row(4))
    assert s.turn() == []


def test_a_partition_beyond_the_required_number_is_not_waited_for():
    s = Scenario(P0, P1, OTHER, policy=Policy(required_partitions={"t": 1})).write(P0, resolved(3)).write(OTHER, resolved(3))
    assert s.turn() == [("apply", 0, 3, 0)]


def test_a_record_in_an_excluded_partition_stops():
    s = Scenario(P0, P1, policy=Policy(required_partitions={"t": 1})).write(P0, resolved(3)).write(P1, row(2))
    with pytest.raises(NeedsOperator) as stop:
        s.list()
    assert stop.value.facts == {"kind": "excluded_partition", "topic": "t", "partition": 1, "offset": 0}


def test_a_listing_without_a_known_partition_stops():
    s = Scenario(P0, stored=positions(t0=0, t1=0)).write(P0, resolved(3))
    with pytest.raises(NeedsOperator) as stop:
        s.list()
    assert (stop.value.facts["kind"], stop.value.facts["partition"]) == ("recreated", 1)


def test_an_end_that_steps_back_stops_also_where_it_was_not_read_yet():
    s = Scenario(policy=Policy(first_plan_bytes=2 * GUESS, plan_bytes=32 * GUESS)).write(P0, row(1), row(2), row(3), row(4))
    s.list()
    s.read()
    del s.log[P0][3:]
    with pytest.raises(NeedsOperator) as stop:
        s.list()
    facts = stop.value.facts
    assert (facts["kind"], facts["next_offset"], facts["seen_end"], facts["end_offset"]) == ("recreated", 2, 4, 3)


@pytest.mark.parametrize(
    ("next_offset", "extent", "kind", "missing"),
    [
        (3, PartitionExtent(4, 9), "retention", "3..3"),
        (8, PartitionExtent(0, 7), "recreated", None),
        (0, PartitionExtent(0, 0), "recreated", None),
    ],
)
def test_a_stored_offset_outside_of_the_partition_stops(next_offset, extent, kind, missing):
    s = Scenario(stored=positions(t0=next_offset))
    s.log[P0] = [resolved(1)] * extent.end
    s.earliest[P0] = extent.earliest
    with pytest.raises(NeedsOperator) as stop:
        s.list()
    assert stop.value.facts["kind"] == kind
    assert stop.value.facts.get("missing_offsets") == missing


def test_records_that_expire_before_they_are_read_stop_the_run():
    s = Scenario().write(P0, row(1), resolved(1))
    s.turn()
    s.write(P0, row(2), row(3))
    s.earliest[P0] = 3
    with pytest.raises(NeedsOperator) as stop:
        s.list()
    assert stop.value.facts["missing_offsets"] == "2..2"
