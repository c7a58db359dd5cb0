"""A range that is read again gives the same rows and report, however the broker's answers are cut: apply compares them."""

from dataclasses import dataclass, replace

import pytest

from applier.model.chunk import unpack
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sources.open_protocol import OPEN_PROTOCOL, row_run
from applier.sources.port import Record
from applier.tasks import listen as listening
from applier.tasks.listen import ListenTask, listen
from applier.tasks.range_summary import ROW_BYTES

ROWS = 600


@dataclass(frozen=True)
class InBatches:
    """A reader that yields ``size`` records at a time."""

    size: int

    def read(self, ranges):
        for range_id in ranges:
            for first in range(range_id.start, range_id.end, self.size):
                yield range_id, [record(number) for number in range(first, min(first + self.size, range_id.end))]


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


def test_every_row_is_in_one_chunk(monkeypatch):
    monkeypatch.setattr(listening, "CHUNK_BYTES", 2_000)
    chunks, report = heard(100)
    offsets = [offset for chunk in chunks for offset in unpack(chunk.data).offset]
    assert sorted(offsets) == list(range(ROWS))
    assert report.rows == ROWS
    rows = [row for chunk in chunks for row in zip(unpack(chunk.data).key, unpack(chunk.data).image, strict=True)]
    assert report.bytes == sum(len(key) + len(image) + ROW_BYTES for key, image in rows)


def changing(number):
    """The columns of every other row have another order, and every fifth row has one more."""
    columns = [b'"id":{"t":8,"f":11,"v":%d}' % number, b'"name":{"t":15,"f":64,"v":"x"}']
    more = [b'"more":{"t":15,"f":64,"v":"x"}'] if number % 5 == 0 else []
    old = b',"p":{"id":{"t":8,"f":11,"v":%d}}' % (number + 100) if number % 7 == 0 else b""
    value = b'{"u":{%s}%s}' % (b",".join((columns if number % 2 else columns[::-1]) + more), old)
    key = record(number).key
    return Record(Offset(number), key, len(value).to_bytes(8, "big") + value)


class Changing:
    """A reader of such rows."""

    def read(self, ranges):
        for range_id in ranges:
            yield range_id, [changing(number) for number in range(range_id.start, range_id.end)]


def test_the_report_is_the_same_whatever_the_process_has_read_before():
    task = ListenTask(range=RangeId(Stream("feed", 0), Offset(10), Offset(40)), floor_ts=Ts(1), buckets=3)
    reports = []
    for before in (None, 0, 1, 5, 7):
        row_run._seen.clear()
        if before is not None:
            earlier = replace(task, range=RangeId(Stream("feed", 0), Offset(before), Offset(before + 1)))
            list(listen([earlier], Changing(), OPEN_PROTOCOL))
        *_, report = listen([task], Changing(), OPEN_PROTOCOL)
        reports.append(report)
    assert reports == reports[:1] * len(reports)
    (table,) = reports[0].tables
    assert (table.rows, table.min_ts, table.max_ts, table.first_offset) == (reports[0].rows, 1010, 1039, 10)
