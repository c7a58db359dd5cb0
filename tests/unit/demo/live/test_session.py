"""The session's ticks: one question to the sink for each, also while it ends."""

from types import SimpleNamespace

from applier.demo.live.session import TICK_S, LiveSession
from applier.model.position import Ts

LAST_TS = Ts(30)


class Feed:
    """Everything is in the replica above ``LAST_TS``."""

    def __init__(self):
        self.written = 7
        self.applied = []
        self.backlog = SimpleNamespace(applied=self.applied.append, takes_rows=True)

    def promise(self):
        pass

    def is_in(self, checkpoint_ts):
        return checkpoint_ts > LAST_TS


class Daemon:
    def __init__(self):
        self.stopped = False

    def restart_if_ended(self):
        return None

    def ask(self):
        return None

    def stop(self):
        self.stopped = True


class Report:
    def stopping(self, written):
        pass

    def state(self, answer, written, *, waits):
        pass


def test_the_end_asks_the_sink_once_for_each_tick(monkeypatch):
    checkpoints = [None, *(SimpleNamespace(checkpoint_ts=Ts(ts)) for ts in (10, 20, 31))]
    ticks = []
    monkeypatch.setattr("applier.demo.live.session.time.sleep", ticks.append)
    sink, feed, daemon = SimpleNamespace(load=lambda: checkpoints.pop(0)), Feed(), Daemon()
    LiveSession(sink, feed, daemon, Report()).end()
    assert ticks == [TICK_S] * 3
    assert feed.applied == [10, 20, 31]
    assert daemon.stopped
