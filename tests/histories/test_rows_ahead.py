"""``consistency = "row"``: whatever the changefeed does within its conditions, the sink ends identical to the oracle."""

from dataclasses import replace

import pytest

from applier.coordinator.policy import RowPolicy
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.seeds import seeds


def world(seed, **changes):
    """A history, and what a producer with one of the two dispatchers that row consistency allows makes of it."""
    history = History(seed, HistoryOptions(transactions=60))
    dispatcher = (Dispatcher.TABLE, Dispatcher.INDEX_VALUE)[seed % 2]
    drawn = ProducerOptions.drawn(seed)
    # Raw updates that change a key are ordered where a table has one stream.
    images = drawn.images if dispatcher is Dispatcher.TABLE else replace(drawn.images, raw_updates=False)
    options = replace(drawn, dispatcher=dispatcher, partitions=1 + seed % 5, images=images, **changes)
    producer = Producer(history, options)
    rows = RowPolicy(by_table=dispatcher is Dispatcher.TABLE, most_rows=50, settle_ms=0)
    return history, producer, list(producer.log()), rows


@pytest.mark.parametrize("seed", seeds(range(60), daily=16))
def test_the_sink_equals_the_oracle_at_the_last_common_resolved_ts(seed, tmp_path):
    history, producer, log, rows = world(seed)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_identical(history, producer.final_ts, replica.url)
