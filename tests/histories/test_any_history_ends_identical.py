"""Whatever the changefeed does within the protocol, the sink ends identical to the oracle: every dispatcher, replays, growth."""

from dataclasses import replace

import pytest

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.replica import segment_writer as segment
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import families_of, in_format
from tests.rig.seeds import seeds

DISPATCHERS = list(Dispatcher)


def world(seed, **changes):
    """A history and what a producer makes of it: the seeds go through all dispatchers and 1 to 8 partitions."""
    history = History(seed, HistoryOptions(transactions=60, families=families_of(seed)))
    options = replace(ProducerOptions.drawn(seed), dispatcher=DISPATCHERS[seed % len(DISPATCHERS)], partitions=1 + seed % 8, **changes)
    producer = Producer(history, in_format(options))
    return history, producer, list(producer.log())


def assert_identical(history, upto_ts, url):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, upto_ts)
        assert compare(oracle, url) == []
    finally:
        oracle.close()


@pytest.mark.parametrize("seed", seeds(range(50), daily=16))
def test_the_sink_equals_the_oracle_at_the_last_common_resolved_ts(seed, tmp_path):
    history, producer, log = world(seed)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    result = replica.catch_up()
    assert result.checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)


@pytest.mark.parametrize("seed", seeds(range(50, 56), daily=3))
def test_segments_too_large_for_their_buckets_are_divided_and_the_sink_is_the_same(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(segment, "ROWS_PER_TASK", 1)
    history, producer, log = world(seed)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)
