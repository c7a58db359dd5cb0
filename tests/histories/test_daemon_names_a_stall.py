"""A stream that shows no resolved event is named while it holds everything up, and the daemon continues when it resumes."""

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.position import Ts
from applier.replica.shutdown import Shutdown
from applier.telemetry.monitor import MonitorSettings
from applier.telemetry.observer import SilentObserver
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import in_format

STALLED = "watermark_stalled"
RELEASED = "watermark_resumed"
PACE = 40


class HeldSource(FakeSource):
    """All streams grow at each look, but for one that stands still in its middle until ``is_released``."""

    def __init__(self, log):
        super().__init__(log, hidden=True)
        self.is_released = False
        self.held = sorted(self._records)[1]
        self.advance_stream(self.held, len(self._records[self.held]) // 2)

    def listing(self):
        for stream in self._records:
            if stream != self.held or self.is_released:
                self.advance_stream(stream, PACE)
        return super().listing()


class Operator(SilentObserver):
    """Releases the stream when it is named, and ends the run when that is over and everything is applied."""

    def __init__(self, source, shutdown, final_ts):
        self._source, self._shutdown, self._final_ts = source, shutdown, final_ts
        self.notes = []

    def note(self, message, /, **facts):
        if message in {STALLED, RELEASED}:
            self.notes.append((message, facts["stream"]))
        self._source.is_released |= message == STALLED

    def update(self, state):
        if state.checkpoint_ts == self._final_ts and RELEASED in dict(self.notes):
            self._shutdown.request()


def test_s13_a_silent_stream_is_named_once_and_the_run_continues_when_it_resumes(tmp_path):
    history = History(540, HistoryOptions(transactions=40))
    producer = Producer(history, in_format(ProducerOptions(seed=540, partitions=3)))
    source, shutdown = HeldSource(producer.log()), Shutdown()
    operator = Operator(source, shutdown, producer.final_ts)
    replica = sqlite_replica(tmp_path, source, observer=operator, monitored=MonitorSettings(stall_after_s=0.3))
    replica.follow(shutdown)

    # What follows may be the stalls of streams whose log has come to its end.
    assert operator.notes[:2] == [(STALLED, str(source.held)), (RELEASED, str(source.held))]
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, Ts(producer.final_ts))
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()
