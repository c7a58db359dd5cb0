"""Reads the record of a rejected event from the source once more, for the transaction that stores it in the quarantine.

Reports and statements carry the place of such an event only: its record may have megabytes, and few events are rejected.
"""

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.model.rejected_event import KeptRecord, RejectedEvent
from applier.sources.port import RangeReader
from applier.sources.whole_range import read_whole


def record_of(reader: RangeReader, event: RejectedEvent) -> KeptRecord:
    """Return the record of a rejected event. SourceError if it is gone, or the source does not answer."""
    return _fetch(reader, event.place.stream, event.place.offset)


def _fetch(reader: RangeReader, stream: Stream, offset: Offset) -> KeptRecord:
    # Compaction may have removed it although the range can be read: then no record has this offset.
    for _, records in read_whole(reader, [RangeId(stream, offset, Offset(offset + 1))]):
        for record in records:
            if record.offset == offset:
                return KeptRecord(record.key, record.value)
    raise SourceError(
        "a record for the quarantine is gone from the source",
        remedy="Retention or compaction has removed it: lengthen the topic's retention",
        kind="retention",
        topic=stream.topic,
        partition=stream.partition,
        offset=offset,
    )
