"""One partition does not resolve for an hour of feed: what is kept stays bounded, and the replica continues when it does.

All partitions continue to write rows. Those of the others wait in Kafka; those of the silent one must be read, since each record may be the
resolved event that all wait for, and so they must be kept (in Spark: spilled), but in few ranges.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from applier.coordinator import Policy, read_ahead
from applier.demo.simulator.live_log import LiveLog
from applier.model.position import Stream, Ts
from applier.replica.context import Components, EngineSettings
from applier.replica.engine import Engine
from applier.replica.shutdown import Shutdown
from applier.run.assembly import StartOptions, begin
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.ticdc.tso import LOGICAL_BITS
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver
from tests.rig.bulk_history import BulkHistory
from tests.rig.fake_source import FakeSource, MemoryReader
from tests.rig.local_runner import LocalRunner
from tests.rig.upstream import differences

HOUR_S, BEFORE_S = 3600, 5
START_MS = 1_764_000_000_000
PARTITIONS = 4
SILENT = Stream("feed", 3)
RESOLVED = b'"t":3}'
POLICY, LEAD_BYTES = Policy(), 20_000
LEAD = 24
"""About so many ranges of each of the others make what all may lead by: a second of the feed leaves some 300 bytes in each."""
MOST_OF_SILENT = 2 * POLICY.merge_ranges
"""Ranges of the silent stream: their number grows with the logarithm of what they hold (applier/coordinator/read_ahead.py)."""
MOST_IN_ALL = (PARTITIONS - 1) * LEAD + MOST_OF_SILENT + PARTITIONS
"""What the others may lead by, what the silent one keeps, and what is being read."""

pytestmark = pytest.mark.slow


@dataclass
class Feed:
    """Seconds of a feed: a transaction and a resolved event in each. ``ends`` says how many records there are after each second."""

    steps: list = field(default_factory=list)
    records: list = field(default_factory=list)
    ends: list = field(default_factory=list)

    def write(self):
        log = LiveLog("feed", PARTITIONS)
        history = iter(BulkHistory(rows=HOUR_S * 10, per_transaction=6))
        for second in range(HOUR_S + 2 * BEFORE_S):
            ts = Ts(START_MS + second * 1000 << LOGICAL_BITS)
            step = next(history)._replace(ts=ts)
            self.steps.append(step)
            is_silent = BEFORE_S < second < HOUR_S + BEFORE_S
            written = [*log.step(step), *log.resolve(Ts(ts + 1))]
            self.records += [one for one in written if not (is_silent and one.stream == SILENT and one.key.endswith(RESOLVED))]
            self.ends.append(len(self.records))
        return self


@dataclass(frozen=True)
class SharedReader:
    """Reads a log of this process: it is long, and need not cross to a task with each range."""

    log: ClassVar[MemoryReader]
    records: ClassVar[Counter] = Counter()

    def read(self, ranges):
        ranges = list(ranges)
        for name in ranges:
            self.records[name.stream] += name.end - name.start
        return self.log.read(ranges)


class Source(FakeSource):
    @property
    def reader(self):
        SharedReader.log = super().reader
        return SharedReader()


def watch(engine, source, runner, ends):
    """Let one second of the feed after the other be seen; return the most ranges in all and of one of the others, and the checkpoints."""
    most = of_others = shown = 0
    checkpoints = []
    for end in ends:
        source.advance(end - shown)
        shown = end
        engine.cycle()
        most = max(most, len(runner.cached_ranges))
        of_others = max(of_others, *(status.cached_ranges for status in engine.coordinator.streams if status.stream != SILENT))
        checkpoints.append(engine.progress.checkpoint_ts)
    return most, of_others, checkpoints


def test_s13_an_hour_without_a_resolved_event_on_one_partition_keeps_few_ranges_and_then_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(read_ahead, "LEAD", LEAD_BYTES / POLICY.plan_bytes)
    feed, url = Feed().write(), f"sqlite:///{tmp_path}/replica.db"
    source = Source(feed.records, hidden=True, partitions={"feed": PARTITIONS})
    runner, monitor = LocalRunner(lambda: source.reader, source.decoder), Monitor(SilentObserver())
    with open_sink(SinkSettings(url=url)) as sink:
        components = Components(source, sink, runner)
        engine = Engine(components, EngineSettings(policy=POLICY, buckets=2), monitor, Shutdown())
        begin(components, engine, monitor, StartOptions())
        most, of_others, checkpoints = watch(engine, source, runner, feed.ends)
        while engine.cycle():
            pass
        engine.close()
        assert engine.progress.checkpoint_ts == feed.steps[-1].ts + 1
    # What the last resolved event before the silence has closed is applied in the next cycles; then nothing is.
    assert len(set(checkpoints[BEFORE_S + 20 : HOUR_S + BEFORE_S])) == 1
    assert LEAD // 3 <= of_others <= LEAD
    assert most <= MOST_IN_ALL
    held = Counter(record.stream for record in feed.records)
    assert {stream for stream in held if SharedReader.records[stream] == held[stream]} == {*held} - {SILENT}, "each record once"
    assert SharedReader.records[SILENT] <= 7 * held[SILENT], "the silent one's as often as the logarithm of its ranges says"
    assert runner.cached_ranges == frozenset()
    assert differences(feed.steps, url) == []
