"""What the source in memory adds to the contract of every source: its log can be shown piece by piece."""

from applier.demo.simulator.producer import LogRecord
from applier.model.position import Offset, PartitionExtent, Stream
from tests.rig.fake_source import FakeSource

A, B = Stream("feed", 0), Stream("feed", 2)
LOG = [LogRecord(A, b"k0", b"v0", 10), LogRecord(B, b"k1", b"v1", 20), LogRecord(A, b"k2", b"v2", 30), LogRecord(A, b"k3", b"v3", 30)]


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
