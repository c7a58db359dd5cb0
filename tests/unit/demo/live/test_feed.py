"""Upstream while it lives: its pace, what it promises, and when it waits."""

from contextlib import closing

import pytest

from applier.demo.live import feed as live_feed
from applier.demo.live.endless_history import endless_steps
from applier.demo.live.feed import Backlog, LiveFeed, LiveTopic
from applier.demo.simulator.broker import MockBroker
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import LogProducer
from applier.demo.simulator.sqlite_oracle import SqliteOracle
from applier.model.errors import SourceError
from applier.model.position import Ts

HISTORY = History(5, HistoryOptions(transactions=40, ddl_share=0.1))
FAR = Ts(2**62)


@pytest.fixture(scope="module")
def broker():
    with MockBroker() as running:
        yield running.bootstrap_servers


@pytest.fixture
def oracle(tmp_path):
    with closing(SqliteOracle(tmp_path / "oracle.db")) as oracle:
        yield oracle


def a_feed(broker, oracle, rate, after_ts=Ts(1)):
    return LiveFeed(endless_steps(HISTORY), oracle, LiveTopic(broker), after_ts=after_ts, rows_per_s=rate)


def test_it_writes_as_many_rows_a_second_as_was_asked(broker, oracle):
    feed = a_feed(broker, oracle, 50.0)
    for tick in range(51):
        feed.tick(100.0 + tick * 0.2)
    # Ten seconds; a transaction is not cut, and a DDL counts as a row.
    assert 350 < feed.written.rows + feed.written.ddls < 550
    assert sum(len(table.rows) for table in oracle.facts().tables.values()) > 50


def test_after_a_silence_it_does_not_make_up_for_all_of_it(broker, oracle):
    feed = a_feed(broker, oracle, 20.0)
    feed.tick(0.0)
    feed.tick(3600.0)
    # The funding is one transaction of 20 rows.
    assert feed.written.rows + feed.written.ddls < 60


def test_a_replica_has_everything_above_the_last_commit(broker, oracle):
    feed = a_feed(broker, oracle, 20.0, after_ts=FAR)
    feed.tick(0.0)
    feed.tick(1.0)
    committed = feed._committed_ts
    assert committed > FAR
    assert not feed.is_in(committed)
    feed.promise()
    assert feed._ts > committed
    assert feed.is_in(feed._ts)


def test_it_waits_for_a_replica_that_does_not_apply(broker, oracle):
    feed = a_feed(broker, oracle, 100.0)
    feed.backlog = Backlog(rows_limit=20_000, limit=21_000)
    for tick in range(100):
        feed.tick(tick * 1.0)
    waiting, promised = feed.written.rows, feed._ts
    feed.tick(200.0)
    assert (feed.written.rows, feed._ts) == (waiting, promised)
    feed.backlog.applied(promised)
    feed.tick(201.0)
    assert feed.written.rows > waiting
    assert feed._ts > promised


def test_the_log_forgets_definitions_before_its_caches_are_large(broker, oracle, monkeypatch):
    monkeypatch.setattr(live_feed, "LOG_STEPS", 30)
    feed = a_feed(broker, oracle, 100.0)
    wires = []
    for tick in range(20):
        feed.tick(tick * 1.0)
        wires += [feed._log._wire] if feed._log._wire not in wires else []
    assert len(wires) > 2


def test_a_broker_that_has_ended_ends_it(oracle, monkeypatch):
    monkeypatch.setitem(live_feed.DELIVERY, "message.timeout.ms", 200)
    with MockBroker() as ending:
        servers = ending.bootstrap_servers
    feed = a_feed(servers, oracle, 20.0)
    assert isinstance(feed._producer, LogProducer)
    with pytest.raises(SourceError, match="not delivered"):
        feed.promise()
