"""Whatever form a changefeed writes its rows in, the sink ends as the oracle says: forms alone and in pairs.

With the histories of whole rows, and those that the tests of single forms draw, these are more than two hundred in the fast tier.
"""

from contextlib import closing

import pytest

from applier.demo.simulator.wire_format import WireFormat
from applier.planner.table_check import DifferenceKind
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, load_dump, open_oracle
from tests.rig.projection import seen_by_sink
from tests.rig.wire_forms import FORMS, Form, forms_of, rows_world_of, upstream_of, world_of

SEEDS = range(2000, 2120)
ROW_SEEDS = range(2200, 2260)

pytestmark = pytest.mark.usefixtures("without_waiting")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_ends_identical(seed, tmp_path):
    world = world_of(seed, tmp_path / "objects")
    with upstream_of(world) as upstream_url:
        replica = sqlite_replica(tmp_path, world.source(upstream_url), **world.settings)
        assert replica.catch_up().checkpoint_ts == world.final_ts
    assert world.differences(replica.url) == []


@pytest.mark.parametrize("seed", ROW_SEEDS)
def test_a_history_ends_identical_under_row_consistency(seed, tmp_path):
    world = rows_world_of(seed, tmp_path / "objects")
    with upstream_of(world) as upstream_url:
        replica = sqlite_replica(tmp_path, world.source(upstream_url), **world.settings)
        assert replica.catch_up().checkpoint_ts == world.final_ts
    assert world.differences(replica.url) == []


@pytest.mark.parametrize("seed", range(2300, 2308))
def test_what_a_selector_leaves_out_stays_as_it_was_loaded_from_a_dump(seed, tmp_path):
    world = world_of(seed, tmp_path / "objects", transactions=60, forms=frozenset({Form.SELECTED}), growth=0, replays=0)
    steps = list(world.history)
    start_ts = steps[len(steps) // 2].ts
    # canal-json does not show unique indexes, and no statement of a dump has run here that could explain those of the sink.
    accept = {"*.*": (DifferenceKind.UNIQUE_INDEX,)} if world.options.form is WireFormat.CANAL_JSON else {}
    replica = sqlite_replica(tmp_path, world.source(), accept=accept)
    load_dump(world.history, start_ts, replica.url)
    assert replica.catch_up(start_ts=start_ts, accept_gap=True).checkpoint_ts == world.final_ts
    with closing(open_oracle("sqlite:///:memory:")) as oracle:
        oracle.apply(seen_by_sink(world.history, world.options.sent_images, start_ts=start_ts), world.final_ts)
        assert compare(oracle, replica.url) == []


def test_each_form_is_among_them_alone_and_with_most_others():
    drawn = {forms_of(seed) for seed in SEEDS}
    assert {frozenset({form}) for form in FORMS} <= drawn
    assert len(drawn) > 3 * len(FORMS)
