"""A daemon in this process over a log that grows: the source, the end that it is asked for, and the comparison with upstream."""

from dataclasses import replace

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.replica.shutdown import Shutdown
from applier.telemetry.observer import SilentObserver
from tests.rig.fake_source import FakeSource
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import in_format


class LiveSource(FakeSource):
    """Grows at each look. ``away`` are looks that find no broker."""

    def __init__(self, log, *, pace=40, away=()):
        super().__init__(log, hidden=True)
        self.advance(1)
        self._pace, self._away, self._looks = pace, set(away), 0

    def listing(self):
        self._looks += 1
        if self._looks in self._away:
            raise SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE)
        self.advance(self._pace)
        return super().listing()


class EndsAt(SilentObserver):
    """Requests the shutdown when a checkpoint is reached."""

    def __init__(self, shutdown, ts):
        self._shutdown, self._ts = shutdown, ts

    def update(self, state):
        if state.checkpoint_ts == self._ts:
            self._shutdown.request()


def follow(replica, producer, **options):
    shutdown = Shutdown()
    replica.observer = EndsAt(shutdown, producer.final_ts)
    replica.follow(shutdown, **options)


def world(seed, transactions=40):
    history = History(seed, HistoryOptions(transactions=transactions, ddl_share=0.2))
    producer = Producer(history, in_format(replace(ProducerOptions.drawn(seed), partitions=1 + seed % 4)))
    return history, producer, list(producer.log())


def assert_identical(replica, history, producer):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, producer.final_ts)
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()
    assert len(replica.done_ddls()) == sum(len(step.ddls) for step in history if step.ts < producer.final_ts)
