"""A range that is read again gives the same rows and report, however the broker's answers are cut: apply compares them."""

from dataclasses import dataclass

import pytest

from applier.model.chunk import unpack
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.tasks import listen as listening
from applier.tasks.listen import ListenTask, listen
from applier.tasks.range_summary import ROW_BYTES
from applier.tasks.tolerance import Tolerance

ROWS = 600


@dataclass(frozen=True)
class InBatches:
    """A reader that yields ``size`` records at a time."""

    size: int

    def read(self, ranges):
        for range_id in ranges:
            for first in range(range_id.start, range_id.end, self.size):
                yield range_id, [record(number) for number in range(first, min(first + self.size, range_id.end))]


@dataclass(frozen=True)
class OneRecord:
    """A reader of one record."""

    record: Record

    def read(self, ranges):
        yield ranges[0], [self.record]


def record(number):
    key = b'{"ts":%d,"scm":"s","tbl":"t","t":1}' % (1000 + number)
    value = b'{"u":{"id":{"t":8,"f":11,"v":%d},"name":{"t":15,"f":64,"v":"%d"}}}' % (number, 10**60)
    return Record(Offset(number), (1).to_bytes(8, "big") + len(key).to_bytes(8, "big") + key, len(value).to_bytes(8, "big") + value)


def heard(size):
    task = ListenTask(range=RangeId(Stream("feed", 0), Offset(0), Offset(ROWS)), floor_ts=Ts(1), buckets=3)
    *chunks, report = listen([task], InBatches(size), OPEN_PROTOCOL)
    return chunks, report


def rows_by_bucket(chunks):
    rows = {}
    for packed in chunks:
        chunk = unpack(packed.data)
        origins = [chunk.origins[origin] for origin in chunk.origin]
        rows.setdefault(packed.bucket, []).extend(
            zip(origins, chunk.commit_ts, chunk.kind, chunk.offset, chunk.index, chunk.key, chunk.image, strict=True)
        )
    return rows


@pytest.mark.parametrize("size", [1, 7, 599, 1000])
def test_each_bucket_holds_the_same_rows_in_the_same_order_whatever_the_size_of_the_brokers_answers(size, monkeypatch):
    monkeypatch.setattr(listening, "CHUNK_BYTES", 2_000)
    chunks, report = heard(100)
    others, other_report = heard(size)
    assert len(chunks) > 3
    assert rows_by_bucket(others) == rows_by_bucket(chunks)
    assert len(rows_by_bucket(chunks)) == 3
    assert isinstance(report, RangeReport)
    assert other_report == report


@pytest.mark.parametrize(
    "other",
    [
        record(5)._replace(value=record(5).value.replace(b"0000", b"0100", 1)),
        record(5)._replace(value=record(5).value.replace(b'"v":5', b'"v":6')),
        record(5)._replace(key=record(5).key.replace(b"1005", b"1006")),
        record(5)._replace(key=record(5).key.replace(b'"tbl":"t"', b'"tbl":"u"')),
    ],
    ids=["image", "key", "commit_ts", "table"],
)
def test_a_range_with_as_many_rows_and_bytes_but_another_row_has_another_checksum(other):
    task = ListenTask(range=RangeId(Stream("feed", 0), Offset(5), Offset(6)), floor_ts=Ts(1), buckets=3)
    (_, report), (_, changed) = (list(listen([task], OneRecord(held), OPEN_PROTOCOL)) for held in (record(5), other))
    assert (changed.rows, changed.bytes) == (report.rows, report.bytes)
    assert changed.checksum != report.checksum


def test_every_row_is_in_one_chunk(monkeypatch):
    monkeypatch.setattr(listening, "CHUNK_BYTES", 2_000)
    chunks, report = heard(100)
    offsets = [offset for chunk in chunks for offset in unpack(chunk.data).offset]
    assert sorted(offsets) == list(range(ROWS))
    assert report.rows == ROWS
    rows = [row for chunk in chunks for row in zip(unpack(chunk.data).key, unpack(chunk.data).image, strict=True)]
    assert report.bytes == sum(len(key) + len(image) + ROW_BYTES for key, image in rows)


def bad_value(number):
    one = record(number)
    body = one.value[8:].replace(b'"v":"%d"' % 10**60, b'"v":7')
    return one._replace(value=len(body).to_bytes(8, "big") + body)


@dataclass(frozen=True)
class Unreadable:
    """A reader of rows of which some have a bad value outside of their key."""

    bad: tuple
    size: int = 100

    def read(self, ranges):
        for range_id in ranges:
            for first in range(range_id.start, range_id.end, self.size):
                numbers = range(first, min(first + self.size, range_id.end))
                yield range_id, [bad_value(number) if number in self.bad else record(number) for number in numbers]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("bad", [(), (0,), (0, 1, 2, 5), (5,), tuple(range(20))])
def test_what_a_process_has_read_before_does_not_change_what_is_unreadable(bad, size):
    task = ListenTask(
        range=RangeId(Stream("feed", 0), Offset(0), Offset(20)), floor_ts=Ts(1), buckets=3, tolerance=Tolerance(unreadable=True)
    )
    *chunks, report = listen([task], Unreadable(bad), OPEN_PROTOCOL)
    heard(100)
    *others, other_report = listen([task], Unreadable(bad, size), OPEN_PROTOCOL)
    assert other_report == report
    assert rows_by_bucket(others) == rows_by_bucket(chunks)
    assert bool(report.rejected_events) == (0 in bad)
