"""Offsets with gaps (compaction, transaction markers, aborted transactions), at the end of a partition too: read to the end, and done."""

from dataclasses import dataclass, replace

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.position import Listing, Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId
from applier.sources.peek import read_whole
from applier.sources.port import Record
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import in_format


@dataclass(frozen=True)
class SparseReader:
    """Record n of each stream lies at offset n * step; nothing lies between."""

    dense: object
    step: int

    def read(self, ranges):
        dense = {self.dense_range(range_id): range_id for range_id in ranges}
        for range_id, batch in read_whole(self.dense, [one for one in dense if one.start < one.end]):
            yield dense[range_id], [Record(Offset(record.offset * self.step), record.key, record.value) for record in batch]

    def dense_range(self, range_id):
        first, last = -(-range_id.start // self.step), -(-range_id.end // self.step)
        return RangeId(range_id.stream, first, min(last, len(self.dense.records.get(range_id.stream, ()))))


class SparseSource:
    """A fake source whose offsets have gaps, and whose partitions end ``tail`` offsets behind their last record."""

    def __init__(self, dense, step, tail):
        self._dense, self._step, self._tail = dense, step, tail

    def __getattr__(self, name):
        return getattr(self._dense, name)

    @property
    def reader(self):
        return SparseReader(self._dense.reader, self._step)

    def listing(self):
        extents = self._dense.listing().extents
        return Listing({stream: PartitionExtent(Offset(0), self._end(extent.end)) for stream, extent in extents.items()})

    def _end(self, records):
        return Offset((records - 1) * self._step + 1 + self._tail if records else 0)


@pytest.mark.parametrize(("seed", "step", "tail"), [(400, 3, 0), (401, 2, 1), (402, 50, 7), (403, 1, 200), (404, 41, 100)])
def test_a_catch_up_over_gaps_ends_identical_and_a_second_one_finds_nothing(seed, step, tail, tmp_path):
    history = History(seed, HistoryOptions(transactions=30))
    producer = Producer(history, in_format(replace(ProducerOptions.drawn(seed), topic_per_schema=False)))
    dense = FakeSource(producer.log())
    source = SparseSource(dense, step, tail)
    replica = sqlite_replica(tmp_path, source)
    first = replica.catch_up()
    records = {stream: extent.end for stream, extent in dense.listing().extents.items()}
    expected = {stream: extent.end - records[stream] for stream, extent in source.listing().extents.items()}
    assert {Stream.parse(name): facts["offsets_without_record"] for name, facts in first.streams.items()} == expected
    second = replica.catch_up()
    assert (second.rows, second.ddls, second.checkpoint_ts) == (0, 0, producer.final_ts)
    assert {Stream.parse(name): facts["end_offset"] for name, facts in second.streams.items()} == {
        stream: extent.end for stream, extent in source.listing().extents.items()
    }
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, producer.final_ts)
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()
