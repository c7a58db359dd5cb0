"""The engine dies at one named point of every DDL of a history in turn: right afterwards the file is upstream at one moment.

A file runs a DDL and writes it down in one transaction, so there is no intent to settle (a server: tests/integration).
"""

from contextlib import closing

import pytest

from applier.ddl.policy import DDL_TYPE_NAMES
from applier.demo.comparison import durable_state
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.operation import ActionType, UpstreamStep, action_type
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.sinks.ledger_entry import DdlState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite import sink as sqlite_sink
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import chosen_form

WITHIN, AFTERWARDS = "ddl.after_statement", "ddl.after_done"
ALIKE = [
    pytest.param(point, marks=pytest.mark.soak(reason="the transaction has not begun, or it is lost as after the statement"))
    for point in ("ddl.before_intent", "ddl.before_done")
]
HISTORY = History(98, HistoryOptions(transactions=100, ddl_share=0.7))


class Deaths:
    """Dies at ``point`` of each DDL, the first time that it is run."""

    def __init__(self, point):
        self._point, self._ddl = point, None
        self.died = {}

    def reach(self, point):
        if point == self._point and self._ddl is not None and self._ddl not in self.died:
            self.died[self._ddl] = True
            raise DeathError

    def watch(self, sink):
        watched = self

        class Watched:
            def __getattr__(self, name):
                return getattr(sink, name)

            def run_ddl(self, fence, identity, ddl, *, before, after):
                watched._ddl = identity
                return sink.run_ddl(fence, identity, ddl, before=before, after=after)

        return Watched()


class Oracle:
    """Upstream at one moment after the other; each step is executed once."""

    def __init__(self):
        self._oracle = open_oracle("sqlite:///:memory:")
        self._left = [part for step in HISTORY for part in parts(step)]

    def differences(self, url):
        with open_sink(SinkSettings(url=url, name="replica")) as sink:
            moment = durable_state(sink)
        while self._left and self._left[0][:2] <= (moment.checkpoint_ts, moment.ddls_at_checkpoint):
            self._oracle.execute(self._left.pop(0)[2])
        return compare(self._oracle, url)

    def close(self):
        self._oracle.close()


def parts(step):
    """Part a step into its rows and its single DDLs: (ts, DDLs of that ts so far, step)."""
    yield step.ts, 0, step._replace(ddls=())
    for number, ddl in enumerate(step.ddls, 1):
        yield step.ts, number, UpstreamStep(step.ts, (), (ddl,))


@pytest.fixture
def oracle():
    with closing(Oracle()) as opened:
        yield opened


@pytest.mark.parametrize("point", [WITHIN, AFTERWARDS, *ALIKE])
def test_a_file_is_upstream_at_one_moment_after_a_death_at_each_ddl(point, tmp_path, monkeypatch, oracle):
    producer = Producer(HISTORY, ProducerOptions(seed=17, partitions=3).written_as(chosen_form()))
    deaths = Deaths(point)
    monkeypatch.setattr(sqlite_sink, "reach", deaths.reach)
    replica = sqlite_replica(tmp_path, FakeSource(producer.log()), wrap=deaths.watch)
    while True:
        try:
            replica.catch_up()
            break
        except DeathError:
            assert oracle.differences(replica.url) == []
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert oracle.differences(replica.url) == []
    ledger = replica.ledger()
    assert {entry.state for entry in ledger} == {DdlState.DONE}
    assert deaths.died.keys() == {entry.identity for entry in ledger}
    assert sorted(entry.ddl.commit_ts for entry in ledger) == sorted(step.ts for step in HISTORY for _ in step.ddls)


def test_the_history_has_ddls_of_every_type():
    made = {action_type(ddl) for step in HISTORY for ddl in step.ddls}
    assert {DDL_TYPE_NAMES[kind] for kind in ActionType} - {DDL_TYPE_NAMES[kind] for kind in made} == set()
