"""The ranges of one call share their chunks, and each of them has an outcome of its own."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from applier.model.chunk import bucket_of, bucket_seed, unpack
from applier.model.errors import ConfigError, ProtocolError, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.tasks import listen as listening
from applier.tasks.listen import ListenTask, RangeFailure, listen
from applier.tasks.tolerance import Tolerance

ROWS = 5
BUCKETS = 4
LOST = SourceError("the records are gone", kind=FailureKind.RETENTION)


@dataclass(frozen=True)
class Log:
    """Streams with one row a record, in turns. ``fails``: what reading a stream ends with, after its first batch."""

    batch: int = 2
    fails: dict = field(default_factory=dict)

    def read(self, ranges):
        ends = max((range_id.end for range_id in ranges), default=0)
        for first in range(0, ends, self.batch):
            for range_id in ranges:
                error = self.fails.get(range_id.stream.partition)
                if first == 0 or error is None:
                    numbers = range(first, min(first + self.batch, range_id.end))
                    yield range_id, [record(range_id.stream.partition, number) for number in numbers]
                if first == 0 and isinstance(error, SourceError):
                    yield range_id, error
                elif first == 0 and error is not None:
                    raise error


def record(partition, number):
    key = b'{"ts":%d,"scm":"shop","tbl":"table %d","t":1}' % (100 + number, partition % 3)
    value = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":%d}}}' % (partition * 1000 + number)
    return Record(Offset(number), framed((1).to_bytes(8, "big"), key), framed(b"", value))


def framed(front, data):
    return front + len(data).to_bytes(8, "big") + data


def tasks_of(count, rows=ROWS, **more):
    ranges = [RangeId(Stream("feed", partition), Offset(0), Offset(rows)) for partition in range(count)]
    return [ListenTask(range=one, floor_ts=Ts(1), buckets=BUCKETS, **more) for one in ranges]


def heard(tasks, reader):
    elements = list(listen(tasks, reader, OPEN_PROTOCOL))
    chunks, outcomes = elements[: -len(tasks)], elements[-len(tasks) :]
    assert [outcome.range for outcome in outcomes] == [task.range for task in tasks]
    return chunks, outcomes


def rows_in(chunks):
    """(stream, table, offset) of all rows, each of which must lie in its bucket."""
    found = []
    for packed in chunks:
        chunk = unpack(packed.data)
        for at, key, offset in zip(chunk.origin, chunk.key, chunk.offset, strict=True):
            stream, shape = chunk.origins[at]
            assert bucket_of(bucket_seed(shape), key, BUCKETS) == packed.bucket
            found.append((stream, shape.table, offset))
    return found


def test_two_hundred_streams_of_a_few_rows_fill_one_chunk_per_bucket():
    chunks, reports = heard(tasks_of(200), Log())
    assert sorted(chunk.bucket for chunk in chunks) == list(range(BUCKETS))
    rows = rows_in(chunks)
    assert Counter(rows) == {(Stream("feed", p), f"table {p % 3}", offset): 1 for p in range(200) for offset in range(ROWS)}
    assert [(report.rows, report.events, report.max_ts) for report in reports] == [(ROWS, ROWS, 104)] * 200


def test_nothing_is_asked_and_nothing_is_said_of_no_ranges():
    assert list(listen([], Log(), OPEN_PROTOCOL)) == []


def test_a_range_reports_the_same_whatever_it_shares_its_chunks_with(monkeypatch):
    alone = [heard([task], Log())[1][0] for task in tasks_of(6)]
    monkeypatch.setattr(listening, "CHUNK_BYTES", 100)
    assert heard(tasks_of(6), Log(batch=1))[1] == alone


def test_the_rows_of_one_stream_stay_in_the_order_of_their_offsets():
    chunks, _ = heard(tasks_of(6, rows=50), Log())
    for stream in {row[0] for row in rows_in(chunks)}:
        for chunk in chunks:
            offsets = [offset for found, _, offset in rows_in([chunk]) if found == stream]
            assert offsets == sorted(offsets)


def test_a_range_that_fails_half_way_fails_alone():
    tasks = tasks_of(5)
    chunks, outcomes = heard(tasks, Log(fails={3: LOST}))
    assert outcomes[3] == RangeFailure(tasks[3].range, LOST)
    assert all(isinstance(outcome, RangeReport) and outcome.rows == ROWS for outcome in outcomes[:3] + outcomes[4:])
    assert Counter(row[0].partition for row in rows_in(chunks)) == {0: ROWS, 1: ROWS, 2: ROWS, 3: 2, 4: ROWS}


def test_a_record_that_cannot_be_read_ends_its_range_only():
    class Broken(Log):
        def read(self, ranges):
            for range_id, records in super().read(ranges):
                yield range_id, [replaced(range_id.stream.partition, one) for one in records]

    def replaced(partition, one):
        return one._replace(value=b"rubbish") if (partition, one.offset) == (2, 3) else one

    _, outcomes = heard(tasks_of(4), Broken())
    assert isinstance(outcomes[2].error, ProtocolError)
    assert outcomes[2].error.facts["offset"] == 3
    assert [outcome.rows for outcome in outcomes if isinstance(outcome, RangeReport)] == [ROWS] * 3
    _, tolerant = heard(tasks_of(4, tolerance=Tolerance(unreadable=True)), Broken())
    assert [(report.rows, len(report.rejected_events)) for report in tolerant] == [(5, 0), (5, 0), (4, 1), (5, 0)]


@pytest.mark.parametrize("partition", [0, 2])
def test_what_ends_the_whole_reading_is_the_outcome_of_every_range(partition):
    refused = ConfigError("Kafka refuses a setting", remedy=Remedy("test.remedy", "x"), kind=FailureKind.VALUE, key="source.kafka")
    tasks = tasks_of(4)
    _, outcomes = heard(tasks, Log(fails={partition: refused}))
    assert outcomes == [RangeFailure(task.range, refused) for task in tasks]


def test_each_range_has_its_own_floor():
    first, second = tasks_of(2)
    _, reports = heard([replace(first, floor_ts=Ts(103)), second], Log())
    assert [(report.rows, report.replays) for report in reports] == [(2, 3), (ROWS, 0)]
