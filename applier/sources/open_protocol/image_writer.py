"""Writes an image as a producer would: for rows that come from elsewhere (upstream itself), so that they go the way of all others.

The counterpart of ``image_codec``: what it writes is read there as the same values.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from applier.model.events import ColumnShape, Shape, Value
from applier.sources.open_protocol.value import VALUE_CLASSES, ValueClass

_encode = msgspec.json.Encoder().encode
_QUOTED: Final = {byte: f"\\x{byte:02x}" for byte in range(256) if not 32 <= byte < 127 or byte in b'"\\'}
"""What Go would escape in a string of bytes, in the one form that fits every byte."""


def encode_image(shape: Shape, values: Sequence[Value]) -> bytes:
    """Return the JSON of a row's image; values in the order of ``shape.columns``."""
    document = {column.name: _column(column, value) for column, value in zip(shape.columns, values, strict=True)}
    try:
        return _encode(document)
    except UnicodeEncodeError:  # bytes that are not UTF-8, as the newer producer copies them
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _column(column: ColumnShape, value: Value) -> dict[str, Any]:
    return {"t": column.mysql_type, "f": column.flags, "v": _written(column, value)}


def _written(column: ColumnShape, value: Value) -> Any:
    match VALUE_CLASSES[column.mysql_type]:
        case ValueClass.QUOTABLE if isinstance(value, bytes):
            return value.decode("latin-1").translate(_QUOTED)
        case ValueClass.BASE64 if isinstance(value, str):
            return b64encode(value.encode("utf-8", "surrogateescape")).decode()
        case ValueClass.BASE64 if isinstance(value, bytes):
            return b64encode(value).decode()
        case _:
            return value
