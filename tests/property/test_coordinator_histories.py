"""Whatever order the streams are read in, however they are cut, wherever the run dies: after every commit the sink is upstream at A."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rig.seeds import seeds
from tests.timeline import upstream
from tests.timeline.replica import Simulation

SEEDS = st.integers(0, 2**32)
MODEL = Path(__file__).parents[2].parent / "shared" / "model"
"""The executable model of the rules lies beside the repository, not in it."""


def world_of(seed, most=9):
    return upstream.World(seed, random.Random(seed).randint(1, most))


@settings(max_examples=150)
@given(SEEDS, SEEDS, st.sampled_from((0.0, 0.03, 0.1, 0.25)))
def test_s6_any_interleaving_any_ranges_and_any_crashes_give_upstream_at_every_checkpoint(seed, schedule, crash_rate):
    Simulation(world_of(seed), upstream, schedule, crash_rate=crash_rate).run()


@settings(max_examples=60)
@given(SEEDS, SEEDS, st.data())
def test_a_replica_loaded_from_a_dump_continues_from_there(seed, schedule, data):
    world = world_of(seed)
    start = data.draw(st.integers(1, world.history.max_ts))
    Simulation(world, upstream, schedule, crash_rate=0.05, start_ts=start).run()


@settings(max_examples=60)
@given(SEEDS, SEEDS, st.data())
def test_any_replayed_suffix_of_any_stream_changes_nothing(seed, schedule, data):
    world = world_of(seed)
    plain = Simulation(world_of(seed), upstream, schedule)
    plain.run()
    for stream in sorted(world.streams):
        events = world.streams[stream]
        replayed = events[data.draw(st.integers(0, len(events))) :]
        world.at[stream] += range(len(world.log), len(world.log) + len(replayed))
        world.log += [(stream, event) for event in replayed]
        events += replayed
    again = Simulation(world, upstream, schedule, crash_rate=0.05)
    again.run()
    assert (again.sink.checkpoint_ts, again.sink.tables) == (plain.sink.checkpoint_ts, plain.sink.tables)


@settings(max_examples=60)
@given(SEEDS, SEEDS, st.integers(0, 10))
def test_a_catch_up_to_a_ts_ends_exactly_there_and_the_next_one_continues(seed, schedule, until):
    world = world_of(seed)
    first = Simulation(world, upstream, schedule, until_ts=until)
    first.run()
    assert first.sink.checkpoint_ts == min(until, world.final_w())
    second = Simulation(world, upstream, schedule + 1, crash_rate=0.05)
    second.sink, second.now = first.sink, first.now
    second.run()


@settings(max_examples=60)
@given(SEEDS, SEEDS, SEEDS)
def test_two_schedules_end_with_the_same_tables(seed, one, other):
    ends = []
    for schedule in (one, other):
        simulation = Simulation(world_of(seed), upstream, schedule, crash_rate=0.05)
        simulation.run()
        ends.append((simulation.sink.checkpoint_ts, simulation.sink.tables, {key[:2] for key in simulation.sink.ledger}))
    assert ends[0] == ends[1]


@pytest.mark.skipif(not MODEL.is_dir(), reason="the executable model of the rules does not lie beside the repository")
@pytest.mark.parametrize("block", seeds(range(20), daily=4))
def test_the_histories_of_the_executable_model_hold(block, monkeypatch):
    monkeypatch.syspath_prepend(str(MODEL))
    import check  # noqa: PLC0415
    import upstream_model  # noqa: PLC0415

    for seed in range(block * 100, block * 100 + 100):
        options = check.options(seed, {})
        world = upstream_model.World(seed, options["size"], options)
        start = random.Random(seed + 17).randint(1, world.history.max_ts) if options["start"] and world.history.max_ts else 0
        Simulation(world, upstream_model, seed * 31 + 7, crash_rate=options["crash"], start_ts=start).run()
