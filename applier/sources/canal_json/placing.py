"""From a parsed row to what is cached: one row, or two where an update changed its key. Decides about every row that ``row_run`` leaves."""

from collections.abc import Mapping
from typing import cast

from applier.model.events import MARKER_IMAGE, PlacedRow, RowKind, RowOperation, Shape, Value
from applier.sources.canal_json.record import CanalRow, shape_of
from applier.sources.canal_json.value import read_value_of
from applier.sources.compiled import intern_shape
from applier.sources.port import EventHead
from applier.sources.row_key import KEYLESS, canonical_float, encode_key


def place_row(head: EventHead, row: CanalRow) -> list[PlacedRow]:
    """Return the row of an event, or a delete and an upsert. ProtocolError, without a position.

    An update is both where it has changed its key, and where the key is not on the wire: then it may have.
    """
    shape = intern_shape(shape_of(head.name, row))
    key = key_of(shape, row.data)
    if row.operation is RowOperation.DELETE:
        return [PlacedRow(head.ts, int(RowKind.DELETE), shape, key, row.data_json)]
    new = PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, row.data_json)
    if row.operation is RowOperation.INSERT:
        return [new]
    old_key = key_of(shape, row.before)
    if old_key == key and not shape.has_unknown_key:
        return [new]
    return [PlacedRow(head.ts, int(RowKind.DELETE), shape, old_key, row.before_json), new]


def markers_of(head: EventHead, row: CanalRow) -> list[PlacedRow]:
    """Return a marker for each row that the event is about. ProtocolError if a key cannot be read."""
    shape = intern_shape(shape_of(head.name, row).key_alone())
    if not shape.columns:
        return []
    keys = {key_of(shape, image): None for image in ((row.data,) if row.old is None else (row.before, row.data))}
    return [PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, MARKER_IMAGE) for key in keys]


def key_of(shape: Shape, texts: Mapping[str, str | None]) -> bytes:
    """Return the key of a row. ProtocolError (value_type)."""
    if not shape.handle_key:
        return KEYLESS
    values: list[Value] = []
    for column in shape.handle_key:
        text = cast("str", texts[column.name])  # a row whose key has a NULL is refused when it is read
        value = read_value_of(column, is_bytes=column.is_bytes)(text)
        values.append(canonical_float(value) if isinstance(value, float) else value)
    return encode_key(values)
