"""``consistency = "row"``: whatever is written ahead of W, and whatever is read, killed or switched when, each key is as upstream had it.

``RowsSimulation`` says what is compared after every commit, and refuses a row that overtakes a DDL or is written again.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.timeline import upstream
from tests.timeline.rows_replica import RowsSimulation

SEEDS = st.integers(0, 2**32)
DISPATCHERS = st.sampled_from(("table", "key"))


def simulation_of(seed, schedule, dispatcher, *, grows_at_beginning=False, **options):
    world = upstream.World(seed, random.Random(seed).randint(5, 14), dispatcher, grows_at_beginning=grows_at_beginning)
    return RowsSimulation(world, upstream, schedule, **options)


@settings(max_examples=100)
@given(SEEDS, SEEDS, DISPATCHERS, st.sampled_from((0.0, 0.03, 0.1, 0.25)))
def test_any_interleaving_ranges_and_crashes_leave_each_key_as_upstream_had_it(seed, schedule, dispatcher, crash_rate):
    simulation_of(seed, schedule, dispatcher, crash_rate=crash_rate).run()


@settings(max_examples=60)
@given(SEEDS, SEEDS, DISPATCHERS)
def test_a_replica_may_change_its_consistency_at_any_crash(seed, schedule, dispatcher):
    simulation_of(seed, schedule, dispatcher, crash_rate=0.1, switch_rate=0.4).run()


@settings(max_examples=60)
@given(SEEDS, SEEDS, DISPATCHERS)
def test_rows_ahead_end_with_the_same_tables_as_whole_transactions(seed, schedule, dispatcher):
    ahead, whole = (simulation_of(seed, schedule, dispatcher, switch_rate=rate) for rate in (0.0, 1.0))
    for simulation in (ahead, whole):
        simulation.run()
    assert (ahead.sink.checkpoint_ts, ahead.sink.tables) == (whole.sink.checkpoint_ts, whole.sink.tables)


@pytest.mark.parametrize(
    ("seed", "size", "schedule", "dispatcher", "crash_rate"),
    [
        pytest.param(3, 8, 100, "key", 0.0, id="rows from before a growth come again with the group at the checkpoint"),
        pytest.param(529, 7, 16406, "key", 0.03, id="rows beyond the checkpoint come again with the group at the checkpoint"),
        pytest.param(5006669, 21, 5006669, "key", 0.03, id="after a growth half of a replaced row comes again, in another partition"),
        pytest.param(5003648, 35, 5003648, "key", 0.03, id="a topic grows at its first promise"),
        pytest.param(5007032, 14, 0, "table", 0.0, id="a producer goes back to its first promise, and grows"),
    ],
)
def test_a_history_that_was_wrong_once_stays_right(seed, size, schedule, dispatcher, crash_rate):
    RowsSimulation(upstream.World(seed, size, dispatcher), upstream, schedule, crash_rate=crash_rate).run()


@settings(max_examples=60)
@given(SEEDS, SEEDS, DISPATCHERS, st.sampled_from((0.0, 0.03, 0.1)))
def test_partitions_that_are_added_at_the_very_first_promise_are_noticed(seed, schedule, dispatcher, crash_rate):
    simulation_of(seed, schedule, dispatcher, grows_at_beginning=True, crash_rate=crash_rate).run()


def test_a_quarter_of_the_histories_write_rows_ahead_of_the_watermark():
    simulations = [simulation_of(seed, seed, ("table", "key")[seed % 2], crash_rate=0.03 * (seed % 4 > 1)) for seed in range(100)]
    for simulation in simulations:
        simulation.run()
    assert sum(simulation.written_ahead > 0 for simulation in simulations) >= 25
    assert sum(simulation.world.producer.has_grown and simulation.written_ahead > 0 for simulation in simulations) >= 3
