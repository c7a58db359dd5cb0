"""Placing by the full parse: decides about every row that the fast path (``row_run``) does not take."""

import msgspec

from applier.model.events import ColumnShape, Image, PlacedRow, RowKind, RowOperation, Shape
from applier.sources.open_protocol.body import RowImages, read_row
from applier.sources.open_protocol.head import Head
from applier.sources.open_protocol.matcher import intern_shape
from applier.sources.row_key import canonical_float, encode_key

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_json = msgspec.json.Encoder().encode


def place_parsed(head: Head, body: bytes) -> list[PlacedRow]:
    """Return the row of a body, or two where an update changed its handle key. ProtocolError, without a place, as ``read_row``."""
    return place_images(head, read_row(body))


def place_images(head: Head, images: RowImages) -> list[PlacedRow]:
    """Return the row of a body that was read, or two where an update changed its handle key."""
    if images.operation is RowOperation.DELETE:
        return [_parsed_row(head, RowKind.DELETE, images.before or {}, images.before_json)]
    new = _parsed_row(head, RowKind.UPSERT, images.after or {}, images.after_json)
    return [*_replaced_row(head, images, new), new]


def _replaced_row(head: Head, images: RowImages, new: PlacedRow) -> list[PlacedRow]:
    """Return the delete of the row that an update replaces under another key: ``p`` laid over ``u``, which may hold changed columns only.

    Rows without a handle key are their whole image, so each of their updates replaces one, even by itself.
    """
    is_replaced_by_itself = bool(images.before_json) and not new.key
    if images.operation is not RowOperation.UPDATE and not is_replaced_by_itself:
        return []
    old_json = _encode_json({**_members(images.after_json), **_members(images.before_json)})
    old = _parsed_row(head, RowKind.DELETE, {**(images.after or {}), **(images.before or {})}, old_json)
    if old.key and old.key == new.key and _handle_names(old) == _handle_names(new):
        return []
    return [old]


def _handle_names(row: PlacedRow) -> list[str]:
    return [column.name for column in row.shape.handle_key]


def _parsed_row(head: Head, kind: RowKind, image: Image, image_json: bytes) -> PlacedRow:
    columns = tuple(ColumnShape(name, column.mysql_type, column.flags) for name, column in image.items())
    shape = Shape(head.scm, head.tbl, columns)
    # Only there: of rows with a key nobody needs to know, and the partitions' rows stay of one shape.
    shape = intern_shape(shape if head.ptn is None or shape.handle_key else shape._replace(partitioned=True))
    values = (image[column.name].value for column in shape.handle_key)
    key = encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])
    return PlacedRow(head.ts, int(kind), shape, key, image_json)
