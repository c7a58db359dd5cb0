"""Deaths, refused writes and lost answers at any commit: the sink ends identical, and every DDL ran once (in process, on SQLite)."""

from collections import Counter
from dataclasses import replace

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import Fenced, NeedsOperator
from applier.sinks.ledger_entry import DdlState
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError, Faults, FaultySink, caught_up_after_deaths
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import in_format
from tests.rig.seeds import seeds

pytestmark = pytest.mark.usefixtures("without_waiting")

CREATE_VIEW, DROP_VIEW = 21, 24


def world(seed):
    history = History(seed, HistoryOptions(transactions=40, ddl_share=0.3))
    producer = Producer(history, in_format(replace(ProducerOptions.drawn(seed), partitions=1 + seed % 4)))
    return history, producer, list(producer.log())


def assert_identical_and_each_ddl_once(replica, history, upto_ts):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, upto_ts)
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()
    done = Counter((entry.identity.ts, entry.identity.name, entry.identity.touches) for entry in replica.ledger())
    expected = sum(len(step.ddls) for step in history if step.ts < upto_ts)
    assert set(done.values()) == {1}
    assert len(done) == expected


@pytest.mark.parametrize("seed", seeds(range(200, 215), daily=5))
def test_deaths_at_any_commit_and_restarts_lose_and_repeat_nothing(seed, tmp_path):
    history, producer, log = world(seed)
    source = FakeSource(log)
    faults = Faults(seed, rate=0.0, deaths=0.15)
    replica = sqlite_replica(tmp_path, source, wrap=lambda sink: FaultySink(sink, faults))
    caught_up_after_deaths(replica)
    assert faults.deaths > 0
    assert_identical_and_each_ddl_once(replica, history, producer.final_ts)


@pytest.mark.parametrize("seed", seeds(range(220, 232), daily=4))
def test_refused_writes_and_lost_answers_are_neither_repeated_nor_lost(seed, tmp_path):
    history, producer, log = world(seed)
    faults = Faults(seed, rate=0.25)
    replica = sqlite_replica(tmp_path, FakeSource(log), wrap=lambda sink: FaultySink(sink, faults))
    replica.catch_up()
    assert faults.counts["lost after"] > 0
    assert_identical_and_each_ddl_once(replica, history, producer.final_ts)


@pytest.mark.parametrize("accept_gap", [False, True])
def test_a_beginning_that_expires_before_anything_is_durable_stops_what_is_rebuilt_from_it(accept_gap, tmp_path):
    _, _, log = world(233)
    source = FakeSource(log)
    stream = log[0].stream
    if accept_gap:
        source.expire(stream, 1)

    class FirstAnswerLost(Faults):
        def draw(self):
            if self.counts["lost before"]:
                return None
            source.expire(stream, 12)
            return self._noted("lost before")

    replica = sqlite_replica(tmp_path, source, wrap=lambda sink: FaultySink(sink, faults))
    faults = FirstAnswerLost(233)
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up(accept_gap=accept_gap)
    assert (caught.value.facts["kind"], caught.value.facts["missing_offsets"]) == ("gap", "0..11")


@pytest.mark.parametrize("seed", seeds(range(240, 248), daily=3))
def test_a_log_that_grows_while_it_is_read_with_deaths_between_ends_identical(seed, tmp_path):
    history, producer, log = world(seed)
    source = FakeSource(log, hidden=True)
    faults = Faults(seed, rate=0.05, deaths=0.05)
    replica = sqlite_replica(tmp_path, source, wrap=lambda sink: FaultySink(sink, faults))
    while True:
        exhausted = source.exhausted
        try:
            replica.catch_up()
        except DeathError:
            continue
        except Exception as error:
            if getattr(error, "facts", {}).get("kind") not in {"empty_topic", "no_resolved_event"}:
                raise
        if exhausted:
            break
        source.advance(max(1, len(log) // 9))
    assert_identical_and_each_ddl_once(replica, history, producer.final_ts)


def test_a_second_run_on_the_same_replica_is_fenced_while_the_first_holds_it(tmp_path):
    _, _, log = world(300)
    replica = sqlite_replica(tmp_path, FakeSource(log))
    inner = []

    def start_another(sink):
        class Intruder:
            def __getattr__(self, name):
                return getattr(sink, name)

            def begin(self, *start):
                with pytest.raises(Fenced) as caught:
                    sqlite_replica(tmp_path, FakeSource(log)).catch_up()
                inner.append(caught.value)
                return sink.begin(*start)

        return Intruder()

    replica.wrap = start_another
    replica.catch_up()
    assert inner[0].exit_code == 5


def test_a_ddl_that_policy_stops_is_named_with_its_statement_and_not_in_the_ledger(tmp_path):
    history, _, log = world(31)
    replica = sqlite_replica(tmp_path, FakeSource(log), ddl_policy={"create_schema": "stop"})
    with pytest.raises(NeedsOperator, match="CREATE DATABASE") as caught:
        replica.catch_up()
    assert caught.value.facts["commit_ts"] == next(step.ts for step in history if step.ddls)
    assert replica.ledger() == []


def test_ddls_that_policy_skips_are_in_the_ledger_as_skipped_and_the_rest_continues(tmp_path):
    history, producer, log = world(43)
    replica = sqlite_replica(tmp_path, FakeSource(log), ddl_policy={"create_view": "skip", "drop_view": "skip"})
    replica.catch_up()
    skipped = {entry.ddl.ddl_type for entry in replica.ledger() if entry.state is DdlState.SKIPPED}
    assert skipped <= {CREATE_VIEW, DROP_VIEW}
    assert CREATE_VIEW in skipped
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, producer.final_ts)
        assert {line.split()[0] for line in compare(oracle, replica.url)} <= {"view"}
    finally:
        oracle.close()
