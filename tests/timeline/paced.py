"""A backlog that no test could hold in memory: streams of given rates, reported by arithmetic and worked off by a coordinator."""

from bisect import bisect_right
from dataclasses import dataclass

from applier.coordinator import Coordinator, Policy
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import ApplySegment, Evict
from applier.model.events import TableName
from applier.model.position import Listing, PartitionExtent, Stream
from applier.model.range_report import RangeReport, ResumePoint, RowCount, TableRows
from applier.sources.ticdc.tso import LOGICAL_BITS

START_MS = 1_764_000_000_000
ROW_BYTES = 200


@dataclass
class PacedStream:
    """``rows[k]`` rows in second k, evenly, and a resolved event at its end (none in the ``silent`` seconds)."""

    rows: list
    silent: frozenset = frozenset()

    def __post_init__(self):
        self.begins, self.records, self.end = [], [], 0
        for second, rows in enumerate(self.rows):
            self.begins.append(self.end)
            self.records.append(rows + (second not in self.silent))
            self.end += self.records[-1]

    def second_of(self, offset):
        return bisect_right(self.begins, offset) - 1

    def ts_of(self, offset):
        second = self.second_of(offset)
        return (START_MS + 1000 * second << LOGICAL_BITS) + (offset - self.begins[second]) * (1000 << LOGICAL_BITS) // (
            self.rows[second] + 1
        )

    def report(self, name):
        first, last = self.second_of(name.start), self.second_of(name.end - 1)
        ends = [
            second for second in range(first, last + 1) if second not in self.silent and self.begins[second] + self.rows[second] < name.end
        ]
        resolved = START_MS + 1000 * (ends[-1] + 1) << LOGICAL_BITS if ends else 0
        points = sorted({min(name.end, offset) - 1 for second in range(first, last + 1) for offset in self.pieces_of(second, name)})
        rows = [
            (self.ts_of(offset), self.rows_before(offset + 1) - self.rows_before(name.start)) for offset in points if self.is_row(offset)
        ]
        number = self.rows_before(name.end) - self.rows_before(name.start)
        low = self.ts_of(name.start)
        high = rows[-1][0] if rows else 0
        if rows:
            rows[-1] = (high, number)
        top = max(high, resolved - 1)
        return RangeReport(
            range=name,
            resolved_ts=resolved,
            resume_points=(ResumePoint(name.start, low), *([ResumePoint(name.end - 1, top)] if top > low else [])),
            tables=(TableRows(TableName("s", "t"), ("id",), number, low, high, name.start),) if rows else (),
            rows=number if rows else 0,
            bytes=ROW_BYTES * number if rows else 0,
            min_ts=low if rows else 0,
            max_ts=high,
            row_counts=tuple(RowCount(ts, count) for ts, count in rows[:: max(1, len(rows) // 32)] + rows[-1:] if rows) if rows else (),
        )

    def pieces_of(self, second, name):
        begin, rows = self.begins[second], self.rows[second]
        return [offset for offset in (begin + rows * part // 4 for part in range(1, 5)) if name.start < offset] or [name.end]

    def is_row(self, offset):
        second = self.second_of(offset)
        return offset - self.begins[second] < self.rows[second]

    def rows_before(self, offset):
        if offset >= self.end:
            return sum(self.rows)
        second = self.second_of(offset)
        return offset - sum(1 for s in range(second) if s not in self.silent) - max(0, offset - self.begins[second] - self.rows[second])


@dataclass
class Backlog:
    """Works the streams off, and measures."""

    streams: dict
    policy: Policy
    together: int = 300_000
    """Rows of segments that are prepared at once."""
    cycles = 0
    passed = 0

    def __post_init__(self):
        self.coordinator = Coordinator(StartingPoint(checkpoint_ts=0, start_ts=0), policy=self.policy)
        self.planned, self.beyond, self.cached, self.checkpoints, self.bytes_of = [], [], [], [], {}

    @property
    def bytes(self):
        return sum(sum(stream.rows) for stream in self.streams.values()) * ROW_BYTES

    def list(self):
        self.coordinator.list(Listing({stream: PartitionExtent(0, feed.end) for stream, feed in self.streams.items()}))

    def work_off(self):
        self.list()
        while not self.coordinator.is_caught_up({stream: feed.end for stream, feed in self.streams.items()}):
            assert self.cycles < 5000
            self.cycle()
        return self

    def cycle(self):
        self.cycles += 1
        ranges = self.coordinator.plan()
        self.planned.append(sum(self.coordinator.expected_bytes(name) for name in ranges))
        for name in ranges:
            report = self.streams[name.stream].report(name)
            self.bytes_of[name] = report.bytes
            self.coordinator.report(report)
        self.cached.append(self.coordinator.cached_bytes)
        self.list()
        self.beyond.append(self.coordinator._cache.closed.beyond)
        self.perform()
        self.checkpoints.append(self.coordinator.checkpoint_ts)

    def perform(self):
        while True:
            group = {name for segment in self.coordinator.segments_ahead(self.together) for name in segment.ranges}
            self.passed += sum(self.bytes_of[name] for name in group)
            step = self.coordinator.next_step()
            match step:
                case None:
                    return
                case ApplySegment():
                    self.coordinator.applied(step)
                case Evict():
                    self.coordinator.evicted(step)


def streams_of(rates, seconds):
    return {Stream("t", number): PacedStream([rate] * seconds) for number, rate in enumerate(rates)}
