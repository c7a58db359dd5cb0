"""What a backlog costs does not grow with its streams: a cached byte passes through Python at most twice, whatever their number.

Once is what cannot be avoided: a row is compacted and rendered. More is what a segment reads because its rows lie in batches with rows of
other segments. Counted in a catch-up of some dozens of segments, with the bytes of the usual policy divided by eight.
"""

from threading import Lock

import pytest

from applier.coordinator import Policy
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer import ProducerOptions
from applier.model.position import NO_TS
from applier.replica.context import Components
from applier.run.catchup import Catchup, CatchupOptions
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver
from tests.rig.bulk_history import BulkHistory, bulk_log
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.local_runner import LocalRunner

ROWS = 240_000
SCALE = 8
USUAL = Policy()
POLICY = Policy(
    segment_rows=USUAL.segment_rows // SCALE,
    first_plan_bytes=USUAL.first_plan_bytes // SCALE,
    plan_bytes=USUAL.plan_bytes // SCALE,
    cached_bytes=USUAL.cached_bytes // SCALE,
)
MOST = 2.0

pytestmark = pytest.mark.slow


class CountingRunner(LocalRunner):
    """Counts the bytes that listeners have cached, and those that are read from the cache. Two lanes call it at once."""

    def __init__(self, reader, decoder):
        super().__init__(reader, decoder)
        self.cached = self.read = self.jobs = 0
        self._counting = Lock()

    def listen(self, tasks):
        outcomes = super().listen(tasks)
        if outcomes:
            self.cached += self._size(self._cached[outcomes[0].range])
        return outcomes

    def prepare(self, plan):
        self._count(plan)
        return super().prepare(plan)

    def apply(self, plan, write_plan):
        if plan.is_small:
            self._count(plan)
        return super().apply(plan, write_plan)

    def _count(self, plan):
        # A task reads the whole bucket of each batch, also chunks that it has no use for.
        size = sum(map(self._size, self._batches(plan)))
        with self._counting:
            self.read, self.jobs = self.read + size, self.jobs + 1

    @staticmethod
    def _size(batch):
        return sum(len(data) for elements in batch.values() for data in elements)


@pytest.mark.parametrize("streams", [4, pytest.param(16, marks=pytest.mark.soak(reason="between the two others")), 64])
def test_a_cached_byte_passes_through_python_at_most_twice(streams, tmp_path):
    options = ProducerOptions(partitions=streams, dispatcher=Dispatcher.INDEX_VALUE, flavour=Flavour.TICDC)
    source = FakeSource(bulk_log(BulkHistory(rows=ROWS, update_share=0, delete_share=0), options, resolved_every=100))
    settings = sqlite_replica(tmp_path, source, policy=POLICY).settings()
    with open_sink(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")) as sink:
        runner = CountingRunner(lambda: source.reader, source.decoder)
        result = Catchup(Components(source, sink, runner), settings, Monitor(SilentObserver())).run(
            start_ts=NO_TS, options=CatchupOptions()
        )
    assert result.rows == ROWS
    assert runner.read <= MOST * runner.cached, f"{runner.read / runner.cached:.2f} times in {runner.jobs} jobs"
