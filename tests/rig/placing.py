"""What must hold between the two ways of reading a record, written once for vectors, examples and properties."""

import pytest

from applier.model.errors import ProtocolError
from applier.model.events import Column, PlacedRow, RowEvent, RowKind, RowOperation
from applier.sources.open_protocol import decode_key, decode_record, image_decoder
from applier.sources.port import PlacedRows, Record


def place_record(placer, offset, key, value):
    """The events of one record one by one, a row as a PlacedRow: what columns say, row by row."""
    return [event for _, event in place_records(placer, [Record(offset, key, value)])]


def place_records(placer, records):
    """((offset, index), event) of some records."""
    found = []
    for placed in placer.place_all(records):
        if isinstance(placed, PlacedRows):
            shapes = [placed.shapes[number] for number in placed.shape]
            assert len({id(shape) for shape in shapes}) == len(placed.shapes) == len({id(shape) for shape in placed.shapes})
            rows = map(PlacedRow, placed.commit_ts, placed.kind, shapes, placed.key, placed.image)
            found += zip(zip(placed.offset, placed.index, strict=True), rows, strict=True)
        else:
            found.append(((placed.offset, placed.index), placed.event))
    return found


REDUCED = ("claim_check", "handle_key_only")


def expected_rows(event):
    """What a whole row event must be placed as: (kind, image) in order."""
    if event.operation is RowOperation.DELETE:
        return [(RowKind.DELETE, event.before)]
    rows = [(RowKind.UPSERT, event.after)]
    if event.before:
        old = {**event.after, **event.before}
        if not handle_of(old) or handle_of(old) != handle_of(event.after):
            rows.insert(0, (RowKind.DELETE, old))
    return rows


def handle_of(image):
    return {name: column.value for name, column in image.items() if column.is_key}


def sort_image(image):
    """Order the columns by name: a known shape stands for rows of every column order."""
    return dict(sorted(image.items()))


def expected_placing(events):
    placing = []
    for event in events:
        if isinstance(event, RowEvent):
            placing += [(event.commit_ts, kind, event.schema, event.table, sort_image(image)) for kind, image in expected_rows(event)]
        else:
            placing.append(event)
    return placing


def decode_placed(placed):
    """The placed events with their images decoded; each row's key is checked on the way."""
    decoded = []
    for event in placed:
        if not isinstance(event, PlacedRow):
            decoded.append(event)
            continue
        shape = event.shape
        values = image_decoder(shape)(event.image)
        columns = zip(shape.columns, values, strict=True)
        image = {column.name: Column(column.mysql_type, column.flags, value, column in shape.handle_key) for column, value in columns}
        assert decode_key(event.key) == [image[column.name].value for column in shape.handle_key]
        decoded.append((event.commit_ts, RowKind(event.kind), shape.schema, shape.table, sort_image(image)))
    return decoded


def without_own_replacements(placing):
    """Leave out a row that is replaced by itself: an empty old image of a row without a key, which a decoded event does not show."""
    kept = []
    for event in placing:
        if kept and isinstance(event, tuple) and kept[-1] == (event[0], RowKind.DELETE, *event[2:]) and not handle_of(event[4]):
            kept.pop()
        kept.append(event)
    return kept


def assert_faces_agree(placer, key, value):
    """Both faces give the same rows and values; the hot one may refuse reduced rows. Any other exception than ProtocolError passes."""
    try:
        events = decode_record(key, value)
    except ProtocolError:
        events = None
    try:
        decoded = decode_placed(place_record(placer, 77, key, value))
    except ProtocolError as error:
        if events is not None and error.facts["kind"] not in REDUCED:
            pytest.fail(f"the hot path alone refused: {error}")
    else:
        assert events is not None, "the hot path alone accepted"
        expected = without_own_replacements(expected_placing(events))
        decoded = without_own_replacements(decoded)
        assert decoded == expected
        assert repr(decoded) == repr(expected), "equal values of different types"
