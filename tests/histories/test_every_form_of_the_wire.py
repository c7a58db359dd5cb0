"""Whatever form a changefeed writes its rows in, the sink ends as the oracle says: two hundred histories, forms alone and in pairs."""

from contextlib import closing

import pytest

from applier.demo.simulator.oracle import compare, load_dump, open_oracle
from applier.demo.simulator.projection import seen_by_sink
from tests.rig.local_replica import sqlite_replica
from tests.rig.wire_forms import FORMS, Form, forms_of, world_of

SEEDS = range(2000, 2040)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_ends_identical(seed, tmp_path):
    world = world_of(seed, tmp_path / "objects")
    replica = sqlite_replica(tmp_path, world.source(), **world.settings)
    assert replica.catch_up().checkpoint_ts == world.final_ts
    assert world.differences(replica.url) == []


@pytest.mark.parametrize("seed", range(2300, 2308))
def test_what_a_selector_leaves_out_stays_as_it_was_loaded_from_a_dump(seed, tmp_path):
    world = world_of(seed, tmp_path / "objects", transactions=60, forms=frozenset({Form.SELECTED}), growth=0, replays=0)
    steps = list(world.history)
    start_ts = steps[len(steps) * 2 // 3].ts
    replica = sqlite_replica(tmp_path, world.source())
    load_dump(world.history, start_ts, replica.url)
    assert replica.catch_up(start_ts=start_ts, accept_gap=True).checkpoint_ts == world.final_ts
    with closing(open_oracle("sqlite:///:memory:")) as oracle:
        oracle.apply(seen_by_sink(world.history, world.options.images, start_ts=start_ts), world.final_ts)
        assert compare(oracle, replica.url) == []


def test_every_form_and_every_pair_of_forms_is_among_them():
    drawn = {forms_of(seed) for seed in SEEDS}
    assert {frozenset({form}) for form in FORMS} <= drawn
