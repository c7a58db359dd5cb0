"""Values: what a text of the JSON encoding, or a value of the Avro encoding, is for a column (canal_json_and_simple.md 4.3, 4.4).

One table of types for both. The exact way is here, value by value; ``image_code`` reads many at once and leaves to it what is unusual.
"""

import re
from binascii import a2b_base64
from enum import Enum, auto
from math import isfinite
from typing import Any, Final

from applier.model.errors import ProtocolError
from applier.model.events import ColumnShape, Value

BYTES_ON_WIRE: Final = 1
"""Of ``ColumnShape.flags``: the value is base64 in JSON, and bytes in Avro. The planner may take any string as bytes; the wire does not."""

TYPES: Final[dict[str, tuple[int, bool]]] = {
    "tinyint": (1, False),
    "smallint": (2, False),
    "int": (3, False),
    "float": (4, False),
    "double": (5, False),
    "timestamp": (7, False),
    "bigint": (8, False),
    "mediumint": (9, False),
    "date": (10, False),
    "time": (11, False),
    "datetime": (12, False),
    "year": (13, False),
    "varchar": (15, False),
    "varbinary": (15, True),
    "bit": (16, False),
    "vector": (225, False),
    "json": (245, False),
    "decimal": (246, False),
    "enum": (247, False),
    "set": (248, False),
    "tinytext": (249, False),
    "tinyblob": (249, True),
    "mediumtext": (250, False),
    "mediumblob": (250, True),
    "longtext": (251, False),
    "longblob": (251, True),
    "text": (252, False),
    "blob": (252, True),
    "char": (254, False),
    "binary": (254, True),
}
"""``mysqlType`` -> the type code, and whether the values are bytes."""

_BITS: Final = {1: 8, 2: 16, 9: 24, 3: 32, 8: 64}
_RANGES: Final = {13: (0, 2155), 16: (0, 2**64 - 1), 247: (0, 2**16 - 1), 248: (0, 2**64 - 1)}
_BIT, _SET, _TIMESTAMP = 16, 248, 7
IN_TWO_FORMS: Final = frozenset({_BIT, _SET})
"""Types whose values have two forms in Avro: a BIT is a long or a text, by the producer; a long of 64 bits is negative."""
_FLOATS: Final = frozenset({4, 5})

_INTEGER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)


class ValueForm(Enum):
    """How values of a column are written."""

    INTEGER = auto()
    FLOAT = auto()
    TEXT = auto()
    BYTES = auto()
    TIMESTAMP = auto()


def form_of(column: ColumnShape) -> ValueForm:
    """Return how the values of a column are written."""
    code = column.mysql_type
    if code in _BITS or code in _RANGES:
        return ValueForm.INTEGER
    if code in _FLOATS:
        return ValueForm.FLOAT
    if code == _TIMESTAMP:
        return ValueForm.TIMESTAMP
    return ValueForm.BYTES if column.flags & BYTES_ON_WIRE else ValueForm.TEXT


def range_of(column: ColumnShape) -> tuple[int, int]:
    """Return the least and the greatest value of a column of integers."""
    bits = _BITS.get(column.mysql_type)
    if bits is None:
        return _RANGES[column.mysql_type]
    return (0, 2**bits - 1) if column.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def of_json(column: ColumnShape, wire: Any) -> Value:
    """Return the value of a member of an image. ProtocolError (value_type, base64) that names the column."""
    if wire is None:
        return None
    form = form_of(column)
    text = wire.get("value") if form is ValueForm.TIMESTAMP and isinstance(wire, dict) else wire
    if not isinstance(text, str) or (form is ValueForm.TIMESTAMP and text is wire):
        raise _refuse(column)
    match form:
        case ValueForm.INTEGER if _INTEGER.fullmatch(text):
            return _in_range(column, int(text))
        case ValueForm.FLOAT if _NUMBER.fullmatch(text):
            return _finite(column, float(text))
        case ValueForm.BYTES:
            return _base64(column, text)
        case ValueForm.TEXT | ValueForm.TIMESTAMP:
            return as_sent(column, text)
    raise _refuse(column)


def of_avro(column: ColumnShape, value: Any) -> Value:
    """Return the value of an entry of a map, as ``read_avro`` gives it. ProtocolError (value_type) that names the column."""
    if value is None:
        return None
    match form_of(column), value:
        case ValueForm.INTEGER, bool():
            pass
        case ValueForm.INTEGER, int():
            # Two's complement: a long has no other way for 64 bits without a sign.
            is_unsigned = column.mysql_type in {_BIT, _SET} or column.is_unsigned
            return _in_range(column, value + 2**64 if value < 0 and is_unsigned and _width(column) else value)
        case ValueForm.INTEGER, str() if column.mysql_type == _BIT and _INTEGER.fullmatch(value):
            return _in_range(column, int(value))
        case ValueForm.FLOAT, float():
            return _finite(column, value)
        case ValueForm.BYTES, bytes():
            return value
        case ((ValueForm.TEXT | ValueForm.TIMESTAMP), str()):
            return as_sent(column, value)
    raise _refuse(column)


def _width(column: ColumnShape) -> bool:
    """Whether a column has values of 64 bits."""
    return range_of(column)[1] == 2**64 - 1


def as_sent(column: ColumnShape, text: str) -> str | bytes:
    """Return a text, or its bytes where the sink's column holds bytes."""
    return text.encode("utf-8", "surrogateescape") if column.is_bytes else text


def _in_range(column: ColumnShape, number: int) -> int:
    low, high = range_of(column)
    if low <= number <= high:
        return number
    raise _refuse(column)


def _finite(column: ColumnShape, number: float) -> float:
    if isfinite(number):
        return number
    raise _refuse(column)


def _base64(column: ColumnShape, text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        message = "a value is not padded base64 of the standard alphabet"
        raise ProtocolError.at(None, "base64", message, column=column.name, mysql_type=column.mysql_type) from cause


def _refuse(column: ColumnShape) -> ProtocolError:
    message = "a value does not fit the type of its column"
    return ProtocolError.at(None, "value_type", message, column=column.name, mysql_type=column.mysql_type)
