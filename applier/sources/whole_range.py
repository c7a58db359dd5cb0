"""Reads ranges for a caller that needs all of them whole: the first one that cannot be read so is an exception."""

from collections.abc import Iterator, Sequence

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.port import RangeReader, Record


def read_whole(reader: RangeReader, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record]]]:
    """Yield batches of records, each with its range. SourceError of the first range that cannot be read whole."""
    for range_id, found in reader.read(ranges):
        if isinstance(found, SourceError):
            raise found
        yield range_id, found


def single_record(reader: RangeReader, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
    """Implement ``RangeReader.records_at`` where an offset is one record."""
    # Compaction may have removed it although the range can be read: then no record has this offset.
    for _, records in read_whole(reader, [RangeId(stream, offset, Offset(offset + 1))]):
        yield from ((0, record) for record in records if record.offset == offset)
