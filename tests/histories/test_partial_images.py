"""Changefeeds that send partial images, in process, on SQLite: the sink is what the projection of the history says."""

from dataclasses import replace
from itertools import product

import pytest

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import ColumnSelector, ImageOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.projection import seen_by_sink
from tests.rig.seeds import seeds

DISPATCHERS = list(Dispatcher)
OPTIONS = [
    ImageOptions(
        raw_updates=raw,
        old_value=old_value or raw,
        only_updated_columns=only_updated and (old_value or raw),
        delete_only_handle_key=handle_only,
        stale_flags=stale,
    )
    for raw, old_value, only_updated, handle_only, stale in product((False, True), repeat=5)
]
"""Without the old value a raw change of a key cannot be seen: see docs/changefeed.md."""


def world(seed, images):
    history = History(seed, HistoryOptions(transactions=60))
    drawn = ProducerOptions.drawn(seed)
    options = replace(drawn, dispatcher=DISPATCHERS[seed % len(DISPATCHERS)], partitions=1 + seed % 4, images=images)
    producer = Producer(history, options)
    return history, producer, list(producer.log())


def assert_shown(history, images, upto_ts, url):
    with open_oracle("sqlite:///:memory:") as oracle:
        oracle.apply(seen_by_sink(history, images), upto_ts)
        assert compare(oracle, url) == []


@pytest.mark.parametrize("seed", seeds(range(32), daily=8))
def test_s20_s21_a_sink_of_partial_images_is_what_the_projection_says(seed, tmp_path):
    images = replace(OPTIONS[seed % len(OPTIONS)], selector=ColumnSelector(seed=seed))
    history, producer, log = world(seed, images)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_shown(history, images, producer.final_ts, replica.url)


@pytest.mark.parametrize("seed", seeds(range(200, 216), daily=4))
def test_s20_whole_images_with_every_reduction_of_old_ones_end_identical(seed, tmp_path):
    images = OPTIONS[(seed * 5) % len(OPTIONS)]
    history, producer, log = world(seed, images)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_shown(history, images, producer.final_ts, replica.url)


@pytest.mark.parametrize("seed", seeds(range(300, 312), daily=3))
def test_producers_without_flags_end_identical(seed, tmp_path):
    images = ImageOptions(flags=False, raw_updates=bool(seed % 2))
    history, producer, log = world(seed, images)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert_shown(history, images, producer.final_ts, replica.url)
