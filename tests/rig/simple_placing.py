"""A log of the simple protocol in memory, and what the two ways of reading it must agree on."""

from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import Column, PlacedRow, RowEvent, RowKind, RowOperation
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, PartitionExtent, RecordPosition, Stream
from applier.sources.port import Record
from applier.sources.row_key import decode_key
from applier.sources.simple import SimpleDecoder
from tests.rig.placing import place_records

STREAM = Stream("changefeed", 2)


@dataclass(frozen=True)
class KnownLog:
    """Implements ``LogReader``: values by stream. ``read_offsets`` notes what was read."""

    values: dict
    earliest: dict = field(default_factory=dict)
    log_name: str = field(default_factory=lambda: uuid4().hex)
    read_offsets: list = field(default_factory=list)

    def listing(self):
        return Listing({s: PartitionExtent(Offset(self.earliest.get(s, 0)), Offset(len(v))) for s, v in self.values.items()})

    def read(self, ranges):
        for range_id in ranges:
            stream, start, end = range_id
            if start < self.earliest.get(stream, 0):
                yield range_id, SourceError("gone", kind=FailureKind.RETENTION)
                continue
            self.read_offsets.append((stream, start, end))
            yield range_id, [Record(Offset(offset), None, self.values[stream][offset]) for offset in range(start, end)]

    def records_at(self, stream, offset):
        yield 0, Record(offset, None, self.values[stream][offset])


def decoder_of(*values, stream=STREAM, **more):
    return SimpleDecoder(**more).in_log(KnownLog({stream: list(values)}))


def placed(*values, first=0, placer=None, **more):
    """The events of a log from an offset on; earlier records are there, and are not read with the range."""
    placer = placer or decoder_of(*values, **more).placer(STREAM)
    records = [Record(Offset(offset), None, value) for offset, value in enumerate(values)][first:]
    return [event for _, event in place_records(placer, records)]


def decoded(decoder, row):
    """A placed row with its image decoded, one alone and among several; its key is checked on the way."""
    shape = row.shape
    values = list(decoder.image_decoder(shape)(row.image))
    together = [list(column) for column in decoder.images_decoder(shape)([row.image] * 3)]
    assert together == [[value] * 3 for value in values]
    assert repr(together) == repr([[value] * 3 for value in values])
    image = {column.name: value for column, value in zip(shape.columns, values, strict=True)}
    key = [image[column.name] for column in shape.handle_key]
    assert decode_key(row.key) == key
    return RowKind(row.kind), row.commit_ts, tuple(shape.upstream_name), image


def expected(event):
    """What a whole row event must be placed as."""
    name = event.schema, event.table

    def image(columns):
        return {column: member.value for column, member in sorted(columns.items())}

    def key(columns):
        return {column: member.value for column, member in columns.items() if member.is_key}

    if event.operation is RowOperation.DELETE:
        return [(RowKind.DELETE, event.commit_ts, name, image(event.before))]
    rows = [(RowKind.UPSERT, event.commit_ts, name, image(event.after))]
    if event.before:
        old: dict[str, Column] = {**event.after, **event.before}
        if not key(old) or key(old) != key(event.after):
            rows.insert(0, (RowKind.DELETE, event.commit_ts, name, image(old)))
    return rows


REDUCED = ("claim_check", "handle_key_only", "checksum")


def assert_ways_agree(*values, times=3):
    """``placer`` with ``image_decoder``, and ``events``, say the same of the last value; and again once its shape is known."""
    decoder = decoder_of(*values)
    placer = decoder.placer(STREAM)
    *before, last = values
    record = Record(Offset(len(before)), None, last)
    for offset, value in enumerate(before):
        place_records(placer, [Record(Offset(offset), None, value)])
    try:
        events = list(decoder.events(record, RecordPosition(STREAM, record.offset)))
    except ProtocolError:
        events = None
    for _ in range(times):
        try:
            found = [event for _, event in place_records(placer, [record])]
            found = [decoded(decoder, event) if isinstance(event, PlacedRow) else event for event in found]
        except ProtocolError as error:
            if events is not None and error.facts["kind"] not in REDUCED:
                pytest.fail(f"the placer alone refused: {error}")
            continue
        assert events is not None, "the placer alone accepted"
        wanted = [row for event in events for row in (expected(event) if isinstance(event, RowEvent) else [event])]
        assert found == wanted
        assert repr(found) == repr(wanted)
    each = placer.place_each(*record)
    assert each is not None
    return events
