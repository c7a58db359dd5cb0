"""Ten thousand tables and ten thousand DDLs: microseconds of one core per row, per DDL, per table. Each should not depend on how many."""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from applier.coordinator import Coordinator, Policy
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Listing, Offset, PartitionExtent, Stream, StreamPosition, Ts
from applier.model.range_report import DdlArrival, RangeId, RangeReport, ResumePoint, RowCount, TableRows
from applier.planner.port import TableDescription
from applier.replica.sink_tables import rekeyed_tables
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.tasks.listen import ListenTask, listen

ROWS = 50_000
PARTITIONS = 16
NUMBERS = (2_500, 5_000, 10_000)
STREAM = Stream("bench", 0)


class Records:
    """A reader over messages that were made before."""

    def __init__(self, messages):
        self.messages = messages

    def read(self, ranges):
        for range_id in ranges:
            for first in range(range_id.start, range_id.end, 1000):
                yield (
                    range_id,
                    [Record(Offset(first + i), key, value) for i, (key, value) in enumerate(self.messages[first : first + 1000])],
                )


def message(number, tables):
    table = number % tables
    key = b'{"ts":%d,"scm":"shop","tbl":"orders%d","t":1}' % (458_173_202_432_000_000 + number // 10, table)
    value = (
        b'{"u":{"id":{"t":8,"h":true,"f":11,"v":%d},"customer%d":{"t":15,"f":64,"v":"customer number %08d of the shop"},'
        b'"note":{"t":15,"f":64,"v":"words %06d"},"amount":{"t":246,"f":65,"v":"%d.25"}}}'
        % (number, table, number % 100_000, number % 1000, number % 10_000)
    )
    return (1).to_bytes(8, "big") + len(key).to_bytes(8, "big") + key, len(value).to_bytes(8, "big") + value


def listening(tables):
    messages = [message(number, tables) for number in range(ROWS)]
    task = ListenTask(range=RangeId(STREAM, Offset(0), Offset(ROWS)), floor_ts=Ts(1), buckets=4)
    began = time.process_time()
    *_, report = listen([task], Records(messages), OPEN_PROTOCOL)
    spent = time.process_time() - began
    print(f"listen: {tables:6} tables in turn: {spent / ROWS * 1e6:6.1f} us/row, {len(report.tables)} tables reported", flush=True)


def report_of(stream, number):
    """All that one partition holds: each table's broadcast CREATE TABLE, with a row behind it."""
    arrivals, tables = [], []
    for n in range(number):
        create = DdlEvent(
            commit_ts=Ts(10 * n + 1), schema="shop", table=f"t{n}", query=f"CREATE TABLE `t{n}` (`id` INT PRIMARY KEY)", ddl_type=3
        )
        arrivals.append(DdlArrival(Offset(2 * n), 0, create))
        ts = Ts(10 * n + 2)
        tables.append(TableRows(TableName("shop", f"t{n}"), ("id",), 1, ts, ts, Offset(2 * n + 1)))
    end, width = 2 * number + 1, max(1, number // 64)
    return RangeReport(
        range=RangeId(stream, Offset(0), Offset(end)),
        resolved_ts=Ts(10 * number + 9),
        resume_points=tuple(ResumePoint(Offset(2 * n + 1), Ts(10 * n + 2)) for n in range(0, number, max(1, number // 256))),
        ddls=tuple(arrivals),
        tables=tuple(tables),
        rows=number,
        min_ts=tables[0].min_ts,
        max_ts=tables[-1].max_ts,
        row_counts=tuple(RowCount(tables[n - 1].max_ts, n) for n in [*range(width, number, width), number]),
    )


def aligning(number):
    streams = [Stream("bench", partition) for partition in range(PARTITIONS)]
    reports = [report_of(stream, number) for stream in streams]
    listing = Listing({report.range.stream: PartitionExtent(Offset(0), report.range.end) for report in reports})
    boundless = Policy(range_records=10**9, first_plan_bytes=10**15, plan_bytes=10**15, cached_bytes=10**16, segment_rows=10**9)
    coordinator = Coordinator(StartingPoint(checkpoint_ts=Ts(0), start_ts=Ts(0)), policy=boundless)
    coordinator.list(listing)
    coordinator.plan()
    began = time.process_time()
    for report in reports:
        coordinator.report(report)
    coordinator.list(listing)
    steps = 0
    while (step := coordinator.next_step()) is not None:
        steps += 1
        match step:
            case ApplySegment():
                coordinator.applied(step)
            case ExecuteDdl():
                coordinator.executed(step)
            case Evict():
                coordinator.evicted(step)
            case _:
                sys.exit(f"unexpected: {step}")
    spent = time.process_time() - began
    print(
        f"align: {number:6} tables, as many DDLs on {PARTITIONS} partitions: {spent / number * 1e6:6.0f} us per DDL, {steps} steps",
        flush=True,
    )


def comparing_keys(number):
    tables = [TableRows(TableName("shop", f"T{n}"), ("id",), 1, Ts(1), Ts(1), Offset(0)) for n in range(number)]
    described = {
        table.name.fold(): TableDescription(schema="shop", table=table.name.table, columns=(), unique_keys=(("id",),), primary_key=("id",))
        for table in tables
    }
    began = time.process_time()
    rekeyed_tables(tables, described)
    print(f"keys of a segment's tables: {number:6}: {(time.process_time() - began) / number * 1e6:6.2f} us per table", flush=True)


def committing(number):
    """Commits of progress in a replica that knows that many tables."""
    with TemporaryDirectory() as directory, open_sink(SinkSettings(url=f"sqlite:///{Path(directory)}/replica.db")) as sink:
        sink.migrate()
        sink.acquire()
        fence = sink.begin(Ts(0)).fence
        known = frozenset(FoldedName("shop", f"t{n}") for n in range(number))
        positions = {Stream("bench", n): StreamPosition(next_offset=Offset(1), resolved_ts=Ts(1)) for n in range(PARTITIONS)}
        began = time.process_time()
        sink.save(fence, ProgressCommit(checkpoint_ts=Ts(1), positions=positions, known_tables=known))
        recorded_s = time.process_time() - began
        progress = sink.load()
        began = time.process_time()
        for ts in range(2, 52):
            sink.save(progress.fence, ProgressCommit(checkpoint_ts=Ts(ts), positions=positions))
            progress = sink.load(known=progress)
        spent = time.process_time() - began
    print(
        f"progress: {number:6} known tables: {recorded_s / number * 1e6:6.1f} us to record one, {spent / 50 * 1e3:5.2f} ms a later commit",
        flush=True,
    )


def main():
    for tables in (1, 4_000, 5_000, 10_000, 20_000):
        listening(tables)
    for work in (aligning, comparing_keys, committing):
        for number in NUMBERS:
            work(number)


if __name__ == "__main__":
    main()
