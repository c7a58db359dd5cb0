"""Ranges, back-pressure, release of what is spent, and when a catch-up is done."""

from applier.coordinator import Policy
from applier.coordinator.step import Evict, SaveProgress
from applier.ddl import identity
from applier.model.range_report import RangeId
from tests.timeline.report import report_of
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


def test_a_stream_that_leads_by_too_many_ranges_waits_and_the_stream_that_holds_back_the_watermark_does_not():
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


def test_the_ledger_is_asked_before_a_ddl_below_the_checkpoint_is_taken_for_a_replay():
    s = Scenario(checkpoint=5, stored=positions(t0=0)).write(P0, ddl(4, "DROP TABLE `a`"), resolved(6))
    s.list()
    (range_id,) = s.coordinator.plan()
    report, _ = report_of(range_id, s.log[P0], 5)
    assert s.coordinator.ddls_to_ask([report]) == (4,)
    s.coordinator.add_settled([identity(s.log[P0][0])])
    assert s.coordinator.ddls_to_ask([report]) == ()
    s.coordinator.report(report)
    assert s.coordinator.pending_ddls == ()
