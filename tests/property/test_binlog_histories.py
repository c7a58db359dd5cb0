"""However a binlog is cut, whenever the run dies, whichever server takes over: after every commit the sink is upstream at A."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.timeline.binlog_replica import BinlogSimulation, BinlogWorld

SEEDS = st.integers(0, 2**32)


def world_of(seed):
    rng = random.Random(seed)
    return BinlogWorld(rng, rng.randint(1, 20))


@settings(max_examples=120)
@given(SEEDS, SEEDS, st.sampled_from((0.0, 0.03, 0.1)), st.sampled_from((0.0, 0.5)))
def test_any_cuts_any_crashes_and_any_takeover_give_upstream_at_every_checkpoint(seed, schedule, crash_rate, failover_rate):
    BinlogSimulation(world_of(seed), schedule, crash_rate=crash_rate, failover_rate=failover_rate).run()


@settings(max_examples=40)
@given(SEEDS, SEEDS, st.data())
def test_a_catch_up_to_a_place_ends_exactly_there_and_the_next_one_continues(seed, schedule, data):
    world = world_of(seed)
    first = BinlogSimulation(world, schedule, until_ts=data.draw(st.sampled_from([world.start, *world.ends])))
    first.run()
    second = BinlogSimulation(world, schedule + 1, crash_rate=0.05, failover_rate=0.5)
    second.sink, second.now, second.effects = first.sink, first.now, first.effects
    second.run()
