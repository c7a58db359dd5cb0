"""Values as readers return them (bytes; None for NULL), and what they represent."""

import json
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from applier.ddl.column_type import TypeFamily
from applier.model.events import Value as WireValue
from applier.mysql.float32 import shortest, single_precision
from applier.sinks.table_pair import ColumnPair, Form
from applier.sinks.table_reader import Value, read_float, read_text

_INTEGER_CODES: Final = {"tinyint": 1, "smallint": 2, "mediumint": 9, "int": 3, "bigint": 8}
_CODES: Final = {
    TypeFamily.BIT: 16,
    TypeFamily.YEAR: 13,
    TypeFamily.DECIMAL: 246,
    TypeFamily.FLOAT: 4,
    TypeFamily.DOUBLE: 5,
    TypeFamily.CHARACTER: 15,
    TypeFamily.BINARY: 15,
    TypeFamily.DATE: 10,
    TypeFamily.DATETIME: 12,
    TypeFamily.TIMESTAMP: 7,
    TypeFamily.TIME: 11,
    TypeFamily.ENUM: 247,
    TypeFamily.SET: 248,
    TypeFamily.JSON: 245,
    TypeFamily.VECTOR: 225,
}
_OF_FORM: Final = {Form.JSON: 245, Form.VECTOR: 225}


def wire_type(column: ColumnPair) -> tuple[int, bool]:
    """Return the type with which the protocol would announce upstream's column, and whether its values are bytes."""
    if column.form in _OF_FORM:  # MariaDB's JSON is a LONGTEXT
        return _OF_FORM[column.form], False
    kind = column.upstream.type
    if kind is None:
        return 15, False
    return _INTEGER_CODES.get(kind.base) or _CODES[kind.family], kind.family is TypeFamily.BINARY


def wire_value(column: ColumnPair, value: bytes | None) -> WireValue:  # noqa: PLR0911 - one per form
    """Return the value as the protocol would bring it. ValueError: a label that the sink's column lacks."""
    if value is None:
        return None
    match column.form:
        case Form.BYTES:
            return value
        case Form.INTEGER:
            return int(value)
        case Form.ORDINAL:
            return int(value, 16)
        case Form.DOUBLE:
            return _number(column, value)
        case Form.LABEL:
            return _ordinal(column, read_text(value))
        case Form.TEXT | Form.DECIMAL | Form.MOMENT | Form.JSON | Form.VECTOR:
            return read_text(value)


def _number(column: ColumnPair, value: bytes) -> WireValue:
    kind = column.upstream.type
    number = read_float(value)
    if kind is not None and kind.family is TypeFamily.FLOAT:
        # The wire carries the shortest text of 32 bits, and the file keeps it: a key must be that number.
        return shortest(single_precision(number))
    if kind is None or kind.family is TypeFamily.DOUBLE:
        return number
    return read_text(value) if kind.family is TypeFamily.DECIMAL else int(number)


def _ordinal(column: ColumnPair, label: str) -> int:
    labels = column.sink.description.labels
    if not column.sink.description.is_set:
        return 0 if label == "" and label not in labels else labels.index(label) + 1
    return sum(1 << labels.index(each) for each in label.split(",")) if label else 0


# --- equality --------------------------------------------------------------------------------------------------------


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
    except (ValueError, ArithmeticError, struct.error, RecursionError):
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
