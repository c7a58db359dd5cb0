"""How a backlog of many streams is worked off: in which steps, what is cached ahead of W, how often each byte is prepared."""

from dataclasses import replace

import pytest

from applier.coordinator import Policy
from applier.coordinator.pace import BYTES_PER_DDL
from applier.model.position import Stream
from tests.timeline.paced import Backlog, PacedStream, streams_of
from tests.timeline.scenario import Scenario, ddl, resolved

KB = 1024
PLAN = 4096 * KB
POLICY = Policy(first_plan_bytes=256 * KB, plan_bytes=PLAN, cached_bytes=32 * PLAN, segment_rows=6_000)
ROWS_A_SECOND, SECONDS = 2_400, 80
EVEN = {number: [ROWS_A_SECOND // number] * number for number in (1, 4, 16, 64)}
UNEVEN = {
    "few heavy": [1_150] * 2 + [1] * 62,
    "some heavy": [700] * 2 + [250] * 2 + [8] * 60,
    "all different": [int(ROWS_A_SECOND / (place + 1) / 4.74) for place in range(64)],
}


def worked_off(rates, **changes):
    return Backlog(streams_of(rates, SECONDS), POLICY, together=18_000, **changes).work_off()


@pytest.mark.parametrize("rates", [*EVEN.values(), *UNEVEN.values()], ids=[*map(str, EVEN), *UNEVEN])
def test_streams_advance_together_whatever_each_of_them_holds(rates):
    done, balanced = worked_off(rates), SECONDS * ROWS_A_SECOND * 200 / PLAN
    assert max(done.planned) <= PLAN * 1.01
    assert max(done.beyond) <= 1.1 * PLAN, "what lies ahead of W is less than what one job reads"
    assert done.cycles <= 1.2 * balanced + 4, "in as many jobs as the bytes need, and a few small ones at the beginning"


@pytest.mark.parametrize("rates", [EVEN[4], EVEN[16], EVEN[64], *UNEVEN.values()], ids=["4", "16", "64", *UNEVEN])
def test_each_cached_byte_is_prepared_about_twice(rates):
    done = worked_off(rates)
    assert done.passed <= 2.1 * done.bytes


def test_the_first_window_is_closed_by_small_plans():
    done = worked_off(EVEN[64])
    before = next(at for at, checkpoint in enumerate(done.checkpoints) if checkpoint)
    assert sum(done.planned[: before + 1]) <= 1.5 * PLAN


def test_a_transaction_without_a_promise_is_read_in_growing_plans_and_the_others_wait():
    streams = streams_of([100] * 8, SECONDS)
    streams[Stream("t", 0)] = PacedStream([100] * 40 + [100_000] + [100] * 39, frozenset(range(40, 50)))
    done = Backlog(streams, POLICY).work_off()
    assert done.cycles <= done.bytes / PLAN + 30
    assert max(done.cached) <= done.bytes - 40 * 800 * 200 + 6 * PLAN, "the transaction, and what the others may lead by"


@pytest.mark.parametrize("budget", [4 * PLAN, 8 * PLAN])
def test_the_memory_holds_from_the_first_plan_on_with_200_partitions_of_backlog(budget):
    streams = streams_of([ROWS_A_SECOND // 200] * 200, SECONDS // 2)
    done = Backlog(streams, replace(POLICY, cached_bytes=budget, segment_rows=1_000), together=1_000).work_off()
    assert max(done.cached) <= budget


def test_a_stream_that_holds_little_is_not_read_days_ahead_of_the_others():
    done = Backlog(streams_of([2_000, 2_000, 1], SECONDS), POLICY)
    done.list()
    for _ in range(6):
        done.cycle()
    ahead = {status.stream: status.resolved_ts for status in done.coordinator.streams}
    assert (ahead[Stream("t", 2)] - done.coordinator.watermark >> 18) / 1000 <= 8
    assert done.coordinator.watermark > 0


def test_a_plan_holds_few_ddls_although_they_leave_nothing_in_the_cache():
    """What a report says of a DDL comes to the driver."""
    streams, number = [Stream("t", partition) for partition in range(16)], 200
    s, most = Scenario(*streams, policy=Policy(first_plan_bytes=6 * BYTES_PER_DDL, plan_bytes=100 * BYTES_PER_DDL)), []
    for stream in streams:
        s.write(stream, *[ddl(ts, f"CREATE TABLE `t{ts}` (`id` INT PRIMARY KEY)", f"t{ts}") for ts in range(1, number)], resolved(number))
    s.list()
    while ranges := s.coordinator.plan():
        s.read(*ranges)
        s.list()
        most.append(sum(name.end - name.start for name in ranges))
    assert sum(most) == len(streams) * number
    # What the first ones weigh is not known yet.
    assert max(most[4:]) <= 100
