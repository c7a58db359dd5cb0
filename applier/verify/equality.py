"""Whether two values with different texts are equal: JSON documents, vectors, numbers of different types."""

import json
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from applier.ddl.column_type import TypeFamily
from applier.sinks.sqlite.stored_value import Inexact, single_precision
from applier.verify.column_pair import ColumnPair, Form
from applier.verify.scope import Value
from applier.verify.value import read_float

_GREATEST_INTEGER: Final = 2**64
"""MySQL keeps greater integers in JSON as DOUBLE."""


def is_equal(column: ColumnPair, upstream: Value, sink: Value) -> bool:
    """Return whether upstream's and the sink's value are the same."""
    if upstream == sink:
        return True
    if upstream is None or sink is None or not column.is_loose:
        return False
    comparisons: dict[Form, Callable[[ColumnPair, bytes, bytes], bool]] = {
        Form.JSON: _equal_json,
        Form.VECTOR: _equal_vectors,
        Form.DOUBLE: _equal_numbers,
    }
    try:
        return comparisons[column.form](column, upstream, sink)
    except (ValueError, InvalidOperation, struct.error, RecursionError, Inexact):
        # What cannot be read is not equal to anything but itself.
        return False


def _equal_json(_column: ColumnPair, upstream: bytes, sink: bytes) -> bool:
    return bool(_canonical(_read_json(upstream)) == _canonical(_read_json(sink)))


def _read_json(text: bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def _canonical(document: Any) -> Any:
    """Return a value that equals another one's if the documents are equal. Python takes True for 1, JSON does not."""
    match document:
        case dict():
            return ("object", {name: _canonical(value) for name, value in document.items()})
        case list():
            return ("array", [_canonical(value) for value in document])
        case bool() | None | str():
            return (type(document).__name__, document)
        case int() if abs(document) < _GREATEST_INTEGER:
            return ("number", document)
        case _:
            # A double, whose digits servers print differently; with an integral value it equals the integer.
            number = float(document)
            return ("number", int(number) if number.is_integer() and abs(number) < _GREATEST_INTEGER else number)


def _equal_vectors(_column: ColumnPair, upstream: bytes, sink: bytes) -> bool:
    return _vector(upstream) == _vector(sink)


def _vector(value: bytes) -> tuple[float, ...]:
    if value.startswith(b"["):
        return tuple(single_precision(float(number)) for number in json.loads(value))
    data = bytes.fromhex(value.decode())
    return struct.unpack(f"<{len(data) // 4}f", data)


def _equal_numbers(column: ColumnPair, upstream: bytes, sink: bytes) -> bool:
    one, other = _exact(upstream), _exact(sink)
    if any(side.type is not None and side.type.family is TypeFamily.FLOAT for side in (column.upstream, column.sink)):
        return single_precision(float(one)) == single_precision(float(other))
    return one == other


def _exact(value: bytes) -> Decimal:
    # A number that is printed without an exponent may have more digits than a float holds.
    return Decimal(value.decode()) if value.translate(None, b"-.0123456789") == b"" else Decimal(read_float(value))
