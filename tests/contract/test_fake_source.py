"""The source in memory behaves as Kafka does: what is seen, what is gone, what the times are."""

import pickle

import pytest

from applier.demo.simulator.producer import LogRecord
from applier.model.errors import SourceError
from applier.model.listing import PartitionExtent
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from tests.rig.fake_source import FakeSource

A, B = Stream("feed", 0), Stream("feed", 2)
LOG = [LogRecord(A, b"k0", b"v0", 10), LogRecord(B, b"k1", b"v1", 20), LogRecord(A, b"k2", b"v2", 30), LogRecord(A, b"k3", b"v3", 30)]


def offsets(source, stream, start, end):
    return [record.offset for batch in source.reader.read(RangeId(stream, Offset(start), Offset(end))) for record in batch]


def test_everything_can_be_seen_at_once():
    source = FakeSource(LOG, partitions={"feed": 2})
    assert source.listing().extents == {
        A: PartitionExtent(Offset(0), Offset(3)),
        Stream("feed", 1): PartitionExtent(Offset(0), Offset(0)),
        B: PartitionExtent(Offset(0), Offset(1)),
    }
    assert offsets(source, A, 1, 3) == [1, 2]
    assert source.exhausted


def test_a_hidden_log_grows_by_records_and_partitions_appear_with_their_first_record():
    source = FakeSource(LOG, partitions={"feed": 1}, hidden=True)
    assert set(source.listing().extents) == {A}
    source.advance(1)
    assert source.listing().extents[A].end == 1
    source.advance(1)
    assert len(source.listing().extents) == 3
    assert not source.exhausted


def test_streams_grow_at_their_own_pace():
    source = FakeSource(LOG, hidden=True)
    source.advance_stream(A, 2)
    assert source.listing().extents == {A: PartitionExtent(Offset(0), Offset(2))}
    source.advance_stream(A, 9)
    source.advance_stream(B, 9)
    assert source.exhausted


def test_expired_records_are_an_error_of_retention():
    source = FakeSource(LOG)
    source.expire(A, Offset(2))
    assert source.listing().extents[A] == PartitionExtent(Offset(2), Offset(3))
    assert offsets(source, A, 2, 3) == [2]
    with pytest.raises(SourceError) as caught:
        offsets(source, A, 1, 3)
    assert caught.value.facts["kind"] == "retention"


def test_a_range_beyond_the_log_is_never_read_short():
    with pytest.raises(SourceError) as caught:
        offsets(FakeSource(LOG), A, 0, 4)
    assert caught.value.facts["kind"] == "unreachable"


def test_times_find_offsets_and_offsets_find_times():
    source = FakeSource(LOG)
    assert source.offsets_at_time([A, B], 30) == {A: 1, B: 1}
    assert source.offsets_at_time([A], 0) == {A: 0}
    assert source.record_time_ms(A, Offset(1)) == 30
    assert source.record_time_ms(A, Offset(3)) is None
    assert source.record_time_ms(Stream("feed", 1), Offset(0)) is None
    source.expire(A, Offset(1))
    assert source.record_time_ms(A, Offset(0)) == 30


def test_the_reader_crosses_to_other_processes():
    reader = pickle.loads(pickle.dumps(FakeSource(LOG).reader))  # noqa: S301 - our own bytes
    assert [record.value for batch in reader.read(RangeId(B, Offset(0), Offset(1))) for record in batch] == [b"v1"]
