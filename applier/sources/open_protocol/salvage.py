"""What is still known of an unreadable event: which rows it is about.

A row event whose key can be read, although something else in it cannot, leaves a marker for each key (``MARKER_IMAGE``).
"""

from typing import Any

from applier.model.errors import ProtocolError
from applier.model.events import MARKER_IMAGE, ColumnShape, PlacedRow, RowKind, Shape, TableName
from applier.model.position import Ts
from applier.sources.open_protocol.body import split_row
from applier.sources.open_protocol.document import is_valid_text, parse
from applier.sources.open_protocol.head import DDL, ROW, Head
from applier.sources.open_protocol.matcher import intern_shape
from applier.sources.open_protocol.value import is_handle, read_column
from applier.sources.port import EventHead
from applier.sources.row_key import canonical_float, encode_key


def event_head(head: Head | None) -> EventHead | None:
    """Return what the event key says; None if it cannot be read."""
    return None if head is None else EventHead(Ts(head.ts), TableName(head.scm, head.tbl), head.t == DDL)


def markers_of(head: Head | None, body: bytes | None) -> list[PlacedRow]:
    """Return a marker for each row that the event is about, as far as its keys can be read; [] for what is no row event."""
    if head is None or head.t != ROW or body is None:
        return []
    try:
        row = split_row(body)
        after, old, deleted = (_columns(bytes(raw)) for raw in (row.u, row.p, row.d))
    except ProtocolError:
        return []
    images = [image for image in ({**after, **old} if old else {}, after, deleted) if image]
    markers = [marker for image in images if (marker := _marker(head, image)) is not None]
    return list({marker.key: marker for marker in markers}.values())


def _columns(data: bytes) -> dict[str, Any]:
    document = parse(data)
    return document if isinstance(document, dict) and all(map(is_valid_text, document)) else {}


def _marker(head: Head, image: dict[str, Any]) -> PlacedRow | None:
    try:
        handle = {name: read_column(name, members) for name, members in image.items() if is_handle(name, members)}
    except ProtocolError:
        return None
    if not handle:
        return None
    columns = tuple(ColumnShape(name, column.mysql_type, column.flags) for name, column in handle.items())
    shape = intern_shape(Shape(head.scm, head.tbl, columns))
    values = (handle[column.name].value for column in shape.handle_key)
    key = encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])
    return PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, MARKER_IMAGE)
