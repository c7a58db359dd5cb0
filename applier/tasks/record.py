"""Reads the record of a bad event from Kafka once more, for the transaction that stores it in the quarantine."""

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.model.rejected_event import KeptRecord, RejectedEvent
from applier.sources.port import RangeReader


def fetch(reader: RangeReader, stream: Stream, offset: Offset) -> KeptRecord:
    """Return a record as it is in Kafka. SourceError if it is gone, or Kafka does not answer."""
    for records in reader.read(RangeId(stream, offset, Offset(offset + 1))):
        for record in records:
            if record.offset == offset:
                return KeptRecord(record.key, record.value)
    raise SourceError(
        "a record that is to be set aside is gone from kafka",
        remedy="Retention or compaction has removed it: lengthen the topic's retention",
        kind="retention",
        topic=stream.topic,
        partition=stream.partition,
        offset=offset,
    )


def record_of(reader: RangeReader, event: RejectedEvent) -> KeptRecord:
    """Return the record of a bad event."""
    return fetch(reader, event.place.stream, event.place.offset)
