"""Reads the record of a bad event from Kafka once more, for the transaction that stores it in the quarantine."""

from dataclasses import replace

from applier.bad_event import BadEvent, KeptRecord
from applier.coordinator.messages import RangeId
from applier.errors import SourceError
from applier.kafka.port import RangeReader
from applier.position import Offset, Stream
from applier.protocol import Placer, Unplaced


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


def complete_event(reader: RangeReader, event: BadEvent) -> tuple[BadEvent, KeptRecord]:
    """Return an event that a listener has passed by, with its record."""
    return event, fetch(reader, event.place.stream, event.place.offset)


def complete_row(reader: RangeReader, row: BadEvent) -> tuple[BadEvent, KeptRecord]:
    """Return a bad row with its record. Rows are numbered as they were placed, and an event may have placed two: the record tells."""
    stream, offset, number = row.place
    record = fetch(reader, stream, offset)
    index, placed = Placer(stream).place_each(offset, record.key, record.value)[number]
    if isinstance(placed, Unplaced):
        raise placed.error
    return replace(row, place=row.place._replace(event=index)), record
