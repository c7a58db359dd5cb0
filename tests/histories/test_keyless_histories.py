"""Random histories with tables without a key, and equal rows in one transaction: the sink ends as the oracle, whatever is sent again."""

from dataclasses import replace

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.oracle import compare, open_oracle
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.table_family import USUAL_FAMILIES, TableFamily
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.seeds import seeds

FAMILIES = frozenset({TableFamily.KEYLESS, *sorted(USUAL_FAMILIES)[:2]})


def world(seed, **changes):
    history = History(seed, HistoryOptions(transactions=80, families=FAMILIES, keyless_twins=True, live_rows=12))
    drawn = ProducerOptions.drawn(seed)
    images = replace(drawn.images, old_value=True, delete_only_handle_key=False)
    options = replace(drawn, images=images, partitions=1 + seed % 4, growth=0, announced_restarts=True, **changes)
    producer = Producer(history, options)
    return history, producer, list(producer.log())


@pytest.mark.parametrize("seed", seeds(range(3000, 3030), daily=10))
def test_s22_the_sink_equals_the_oracle(seed, tmp_path):
    history, producer, log = world(seed, replays=seed % 5)
    replica = sqlite_replica(tmp_path, FakeSource(log), writes_keyless=True)
    # Killed and begun again half-way: what follows is a replay to the sink.
    if seed % 2:
        replica.catch_up(until_ts=producer.final_ts // 2 + history.options.start_ms * 2**17)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, producer.final_ts)
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()
