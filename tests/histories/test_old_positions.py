"""Positions are stored later than the checkpoint, as those of thousands of partitions, and runs die between: nothing is lost."""

import math

import pytest

from applier.replica import state as stored_positions
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.histories.test_faults_change_nothing import assert_identical_and_each_ddl_once, world
from tests.histories.test_rows_ahead import world as world_of_rows
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import Faults, FaultySink, caught_up_after_deaths
from tests.rig.local_replica import sqlite_replica
from tests.rig.seeds import seeds

pytestmark = pytest.mark.usefixtures("without_waiting")


@pytest.fixture(autouse=True)
def _positions_are_never_old_enough(monkeypatch):
    """Of few streams too, only positions that must be stored are; the others only at the end of a run."""
    monkeypatch.setattr(stored_positions, "FEW", 0)
    monkeypatch.setattr(stored_positions, "EVERY_S", math.inf)


@pytest.mark.parametrize("seed", seeds(range(6200, 6240), daily=6))
def test_a_run_that_dies_leaves_places_from_which_the_next_one_continues(seed, tmp_path):
    history, producer, log = world(seed)
    faults = Faults(seed, rate=0.05, deaths=0.15)
    replica = sqlite_replica(tmp_path, FakeSource(log), wrap=lambda sink: FaultySink(sink, faults))
    caught_up_after_deaths(replica)
    assert faults.deaths > 0
    assert_identical_and_each_ddl_once(replica, history, producer.final_ts)


@pytest.mark.parametrize("seed", seeds(range(6300, 6330), daily=4))
def test_rows_ahead_of_the_watermark_are_where_the_next_run_takes_them_to_be(seed, tmp_path):
    history, producer, log, rows = world_of_rows(seed, growth=0)
    faults = Faults(seed, rate=0.05, deaths=0.15)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows, wrap=lambda sink: FaultySink(sink, faults))
    caught_up_after_deaths(replica)
    assert faults.deaths > 0
    assert_identical(history, producer.final_ts, replica.url)
