"""A replica that an operator has paused: the daemon keeps it and reads nothing, and afterwards it ends as upstream."""

import sqlite3
from contextlib import closing
from threading import Thread

import pytest

from applier.model.errors import NeedsOperator
from applier.replica.shutdown import Shutdown
from applier.run import pause
from applier.sinks.registry import open_sink
from applier.telemetry.observer import SilentObserver
from tests.rig.followed_feed import LiveSource, assert_identical, world
from tests.rig.local_replica import sqlite_replica

pytestmark = pytest.mark.usefixtures("without_waiting")

ME = "me@here"


class Pausing(SilentObserver):
    """Pauses the replica at a checkpoint, resumes it after some looks, and ends the run at another checkpoint."""

    def __init__(self, replica, shutdown, end, at=0):
        self._replica, self._shutdown, self._end, self._at = replica, shutdown, end, at
        self.events, self.seen, self._is_said = [], [], False

    def note(self, event, /, **facts):
        self.events.append(str(event))

    def update(self, state):
        if state.paused is not None:
            self.seen.append((state.checkpoint_ts, state.phase, self._replica.source.read_count))
            if len(self.seen) == 4:
                with open_sink(self._replica.sink_settings()) as sink:
                    assert sink.bookkeeping.pauses.end().said_by == ME
        elif self._at and state.checkpoint_ts >= self._at and not self._is_said:
            self._is_said = True
            with open_sink(self._replica.sink_settings()) as sink:
                assert sink.bookkeeping.pauses.begin(ME) is None
                assert sink.bookkeeping.pauses.begin("another").said_by == ME
        if state.checkpoint_ts == self._end:
            self._shutdown.request()


class Counting(LiveSource):
    """Counts how often it is asked what the topics hold."""

    read_count = 0

    def listing(self):
        self.read_count += 1
        return super().listing()


def followed(tmp_path, monkeypatch, *, starts_paused):
    monkeypatch.setattr(pause, "LOOK_S", 0.02)
    history, producer, log = world(541)
    replica, shutdown = sqlite_replica(tmp_path, Counting(log)), Shutdown()
    observer = replica.observer = Pausing(replica, shutdown, producer.final_ts, at=0 if starts_paused else history_middle(history))
    if starts_paused:
        with open_sink(replica.sink_settings()) as sink:
            sink.migrate()
            sink.bookkeeping.pauses.begin(ME)
    thread = Thread(target=replica.follow, args=(shutdown,))
    thread.start()
    thread.join(120)
    assert not thread.is_alive()
    assert_identical(replica, history, producer)
    return observer


def history_middle(history):
    steps = [step.ts for step in history]
    return steps[len(steps) // 2]


@pytest.mark.parametrize("starts_paused", [False, True])
def test_a_paused_daemon_reads_nothing_and_continues_where_it_stopped(starts_paused, tmp_path, monkeypatch):
    observer = followed(tmp_path, monkeypatch, starts_paused=starts_paused)
    assert len(set(observer.seen)) == 1
    assert observer.seen[0][1] == "paused"
    shown = [event for event in observer.events if event in {"paused", "pause_ended", "recovered", "retry"}]
    assert shown == ["paused", "pause_ended"]


def test_a_catch_up_refuses_a_paused_replica_and_names_who_has_paused_it(tmp_path):
    _, _, log = world(541)
    replica = sqlite_replica(tmp_path, LiveSource(log))
    with open_sink(replica.sink_settings()) as sink:
        sink.migrate()
        sink.bookkeeping.pauses.begin(ME)
    with pytest.raises(NeedsOperator, match="paused") as caught:
        replica.catch_up()
    assert (caught.value.facts["paused_by"], caught.value.remedy) == (ME, "Resume it first: `applier resume`")
    with closing(sqlite3.connect(replica.url.removeprefix("sqlite:///"))) as file:
        assert file.execute("SELECT COUNT(*) FROM applier_owner").fetchall() == [(0,)]
