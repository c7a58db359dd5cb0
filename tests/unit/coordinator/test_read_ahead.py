"""Ranges, back-pressure, release of what is spent, and when a catch-up is done."""

from applier.coordinator import Policy, read_ahead
from applier.coordinator.pace import GUESS
from applier.coordinator.read_ahead import LEAD
from applier.coordinator.step import Evict, SaveProgress
from applier.ddl import identity
from applier.model.position import Stream
from applier.model.range_report import RangeId
from tests.timeline.report import report_of
from tests.timeline.scenario import P0, P1, P2, Scenario, ddl, positions, resolved, row


def test_a_backlog_is_split_into_several_ranges():
    s = Scenario(policy=Policy(range_records=2, first_plan_bytes=4 * GUESS, plan_bytes=64 * GUESS))
    s.write(P0, *[row(i) for i in range(1, 6)])
    s.list()
    assert s.coordinator.plan() == (RangeId(P0, 0, 2), RangeId(P0, 2, 4))
    assert [s.coordinator.expected_bytes(RangeId(P0, at, at + 2)) for at in (0, 2)] == [2 * GUESS, 2 * GUESS]
    s.read(RangeId(P0, 2, 4))
    assert s.coordinator.plan() == (RangeId(P0, 4, 5),)


def test_reading_begins_at_the_stored_offset_and_ends_at_the_listed_end():
    s = Scenario(stored=positions(t0=1)).write(P0, row(1), row(2), row(3))
    s.list()
    s.write(P0, row(4))
    assert s.coordinator.plan() == (RangeId(P0, 1, 3),)


def test_streams_ahead_wait_while_too_much_is_cached_beyond_the_watermark_and_the_stream_that_holds_it_does_not():
    s = Scenario(P0, P1, policy=Policy(first_plan_bytes=1, plan_bytes=34 // LEAD))
    s.write(P0, resolved(1), row(3), row(4), row(5)).write(P1, row(2), row(3), row(4), row(5))
    planned = []
    for _ in range(4):
        s.list()
        ranges = s.coordinator.plan()
        planned.append(sorted(r.stream for r in ranges))
        s.read(*ranges) if ranges else None
    assert planned == [[P0, P1], [P0, P1], [P0, P1], [P1]]
    s.list()
    assert s.coordinator.is_caught_up({P0: 4, P1: 4})
    assert not s.coordinator.is_caught_up({P0: 4, P1: 5})


def test_streams_ahead_of_one_that_does_not_promise_are_read_less_and_less_often_and_are_never_read_again():
    s, read = Scenario(P0, P1, policy=Policy(merge_ranges=8)).write(P1, resolved(1)), 0
    for ts in range(2, 2_000):
        s.write(P0, row(ts), resolved(ts))
        s.list()
        planned = s.coordinator.plan()
        read += sum(name.end - name.start for name in planned if name.stream == P0)
        s.read(*planned) if planned else None
    ahead, _ = s.coordinator.streams
    assert ahead.cached_ranges <= 40
    assert read == ahead.read_offset >= 0.7 * len(s.log[P0])
    s.list()
    s.steps()
    assert s.coordinator.is_caught_up({P0: len(s.log[P0]), P1: 1}), "W cannot grow"
    s.write(P1, resolved(2_000))
    assert s.turn()[0][:3] == ("apply", 1, ahead.resolved_ts)
    s.turn()
    assert s.coordinator.checkpoint_ts == 1_999


def test_the_first_plan_is_small_however_many_streams_there_are_and_plans_grow_to_what_a_job_reads_in_seconds():
    policy = Policy(first_plan_bytes=64 * GUESS, plan_bytes=1024 * GUESS)
    for number, most in ((1, 64), (8, 64), (64, 64), (200, 200)):
        streams = [Stream("t", partition) for partition in range(number)]
        s = Scenario(*streams, policy=policy)
        for stream in streams:
            s.write(stream, *[row(ts) for ts in range(1, 200)])
        s.list()
        assert records(s.coordinator.plan()) == most
    sizes = []
    s = Scenario(policy=policy).write(P0, *[row(ts) for ts in range(1, 99_000)])
    for _ in range(4):
        s.list()
        planned = s.coordinator.plan()
        sizes.append(sum(s.coordinator.expected_bytes(name) for name in planned) / GUESS)
        s.read(*planned)
    assert [round(size) for size in sizes[:3]] == [64, 256, 1024]
    assert sizes[3] <= 1024


def records(ranges):
    return sum(name.end - name.start for name in ranges)


def test_what_is_being_read_counts_in_what_may_be_read_at_a_time_and_in_the_memory():
    s = Scenario(policy=Policy(first_plan_bytes=4 * GUESS, plan_bytes=64 * GUESS)).write(P0, *[row(ts) for ts in range(1, 99)])
    s.list()
    assert records(s.coordinator.plan()) == 4
    assert s.coordinator.plan() == ()
    s = Scenario(policy=Policy(cached_bytes=4 * GUESS)).write(P0, *[row(ts) for ts in range(1, 99)])
    s.list()
    assert records(s.coordinator.plan()) == 4, "nothing is known of the records, so each counts with the guess"


def test_a_stream_that_is_read_alone_has_several_ranges_in_a_plan_and_many_streams_have_one_each():
    policy = Policy(range_records=8, first_plan_bytes=64 * GUESS, plan_bytes=1024 * GUESS)
    s = Scenario(policy=policy).write(P0, *[row(ts) for ts in range(1, 999)])
    s.list()
    assert [name.end - name.start for name in s.coordinator.plan()] == [8] * 8
    streams = [Stream("t", partition) for partition in range(16)]
    s = Scenario(*streams, policy=policy)
    for stream in streams:
        s.write(stream, *[row(ts) for ts in range(1, 999)])
    s.list()
    assert sorted(name.stream for name in s.coordinator.plan()) == streams


def test_nothing_is_read_while_enough_closed_rows_wait_to_be_written(monkeypatch):
    monkeypatch.setattr(read_ahead, "WAITING", 20 / Policy().plan_bytes)
    s = Scenario(policy=Policy(segment_rows=1)).write(P0, row(1), row(2), row(3), resolved(3))
    s.list()
    s.read()
    s.write(P0, row(4))
    s.list()
    assert s.coordinator.plan() == ()
    assert not s.coordinator.is_caught_up({P0: 5})
    s.steps()
    assert s.coordinator.plan() == (RangeId(P0, 4, 5),)


def test_a_batch_counts_until_its_last_range_is_released():
    s = Scenario(P0, P1).write(P0, row(1), resolved(3)).write(P1, row(9), resolved(3))
    s.turn()
    s.write(P0, resolved(5)).write(P1, resolved(5))
    s.turn()
    assert {x.stream: x.cached_bytes for x in s.coordinator.streams} == {P0: 0, P1: 10}
    assert s.coordinator.cached_bytes == 20, "one job has read both"
    s.write(P0, resolved(12)).write(P1, resolved(12))
    s.turn()
    s.steps()
    assert s.coordinator.cached_bytes == 0


def test_a_full_cache_stops_the_streams_ahead_and_no_others():
    s = Scenario(P0, P1, policy=Policy(cached_bytes=10, range_records=2))
    s.write(P0, resolved(2), row(4)).write(P1, row(2), row(3))
    s.list()
    s.read()
    assert s.coordinator.cached_bytes == 10
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


def test_a_stream_that_must_wait_for_one_that_has_ended_does_not_keep_a_catch_up_going(monkeypatch):
    monkeypatch.setattr(read_ahead, "LEAD", 5 / Policy().plan_bytes)
    s = Scenario(P0, P1, policy=Policy(range_records=2)).write(P0, resolved(2))
    s.write(P1, row(3), resolved(5), row(6), row(7))
    s.list()
    s.read(*[r for r in s.coordinator.plan() if r.start == 0])
    s.coordinator.forget(RangeId(P1, 2, 4))
    s.list()
    assert s.steps() == [("apply", 0, 2, 0)]
    assert s.coordinator.plan() == ()
    assert s.coordinator.is_caught_up({P0: 1, P1: 4})


def test_a_catch_up_to_a_ts_ends_there_and_reads_no_further():
    s = Scenario(P0, P1, until=4, policy=Policy(first_plan_bytes=6 * GUESS, plan_bytes=96 * GUESS))
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
    s = Scenario(policy=Policy(cached_bytes=10)).write(P0, *[row(ts) for ts in range(1, 9)])
    s.list()
    s.read()
    assert s.coordinator.cached_bytes == 10
    assert s.coordinator.plan() == (RangeId(P0, 1, 8),)
    s.write(P0, row(9))
    s.list()
    assert s.coordinator.plan() == ()


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
