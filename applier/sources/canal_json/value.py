"""Columns and values: what a type's text means, and what the text of a value means under its type (canal_json_and_simple.md 2.3, 2.4).

Every value is text or null. A type's text is read from its left: with ``content-compatible`` it holds the elements of ENUM and SET, which
are text of users and may contain ``blob``, ``unsigned``, commas and quotes. ``sqlType`` is not read: it depends on the value.

One value (``value_of``) and a column of values (``values_of``) accept the same texts.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import STRING_TYPES, ColumnShape, Shape, Value
from applier.model.failure import RecordFault

ReadValue: TypeAlias = Callable[[str], Value]
ReadValues: TypeAlias = Callable[[Sequence[Any]], Sequence[Value]]

# What stands before the first parenthesis or blank; an argument list with quoted elements; further words.
_TYPE: Final = re.compile(r"([a-z]++)(\((?:[^'()]|'(?:[^']|'')*+')*+\))?((?: [a-z0-9_]+)*+)", re.IGNORECASE)

BIT: Final = 16
ENUM: Final = 247
SET: Final = 248
_FLOATS: Final = frozenset({4, 5})
_CODES: Final = {
    "tinyint": 1, "smallint": 2, "int": 3, "bigint": 8, "mediumint": 9, "year": 13, "bit": BIT, "enum": ENUM, "set": SET,
    "float": 4, "double": 5,
    "decimal": 246, "date": 10, "time": 11, "datetime": 12, "timestamp": 7, "json": 245, "vector": 225,
    "varchar": 15, "char": 254, "tinytext": 249, "mediumtext": 250, "longtext": 251, "text": 252,
}  # fmt: skip
_BINARY_CODES: Final = {"varbinary": 15, "binary": 254, "tinyblob": 249, "mediumblob": 250, "longblob": 251, "blob": 252}
_UNSIGNED_RANGES: Final = {
    13: (0, 2155),
    BIT: (0, 2**64 - 1),
    ENUM: (0, 2**16 - 1),
    SET: (0, 2**64 - 1),
}
_BITS: Final = {1: 8, 2: 16, 9: 24, 3: 32, 8: 64}
MAX_TYPES: Final = 65_536
"""Texts of types that a process remembers."""

NULL_TEXT: Final = "TiCDC's new architecture up to v8.5.4 writes null for the text 'null' (pingcap/ticdc issue 3958)"


def refuse(kind: RecordFault, message: str, **facts: Any) -> ProtocolError:
    """Make an error without a position."""
    return ProtocolError.at(None, kind, message, **facts)


@lru_cache(maxsize=MAX_TYPES)
def column_shape(name: str, type_text: str) -> ColumnShape:
    """Return a column by its type. ProtocolError (column_type)."""
    match = _TYPE.fullmatch(type_text)
    base = "" if match is None else match[1].lower()
    words = () if match is None else match[3].lower().split()
    if base in _CODES:
        return ColumnShape(name, _CODES[base], is_unsigned="unsigned" in words, is_generated=None)
    if base in _BINARY_CODES:
        return ColumnShape(name, _BINARY_CODES[base], is_bytes=True, is_generated=None)
    raise refuse("column_type", "a column has an unknown type", column=name, type=type_text)


def integer_range(column: ColumnShape) -> tuple[int, int] | None:
    """Return the least and the greatest value of a type that is written in digits; None for other types."""
    if column.mysql_type in _UNSIGNED_RANGES:
        return _UNSIGNED_RANGES[column.mysql_type]
    bits = _BITS.get(column.mysql_type)
    if bits is None:
        return None
    return (0, 2**bits - 1) if column.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# --- encoding --------------------------------------------------------------------------------------------------------
# ``Shape.encoding`` names the columns whose text represents bytes, by the type on the wire; b"" if there are none. ``is_bytes`` does not
# say it: the planner sets it where the sink's column holds bytes, and a VARCHAR of upstream may be a VARBINARY there.


def encoding_of(columns: Sequence[ColumnShape]) -> bytes:
    """Return what the shape of these columns remembers of the wire's types."""
    names = [column.name for column in columns if column.is_bytes]
    return msgspec.msgpack.encode(names) if names else b""


def bytes_on_wire(shape: Shape) -> frozenset[str]:
    """Return the columns whose text represents bytes."""
    return frozenset(msgspec.msgpack.decode(shape.encoding)) if shape.encoding else frozenset()


# --- values ----------------------------------------------------------------------------------------------------------


def read_value_of(column: ColumnShape, *, is_bytes: bool) -> ReadValue:
    """Return the reader of one value that is not NULL; ProtocolError (value_type). ``is_bytes``: its text represents bytes."""
    one = _reader(column, is_bytes=is_bytes)

    def read(text: str) -> Value:
        try:
            found: Value = one([text])[0]
        except ValueError as cause:
            raise refuse(
                "value_type", "a value does not fit the type of its column", column=column.name, mysql_type=column.mysql_type
            ) from cause
        return found

    return read


def read_values_of(column: ColumnShape, *, is_bytes: bool) -> ReadValues | None:
    """Return the reader of a column of values and NULLs; ValueError. None: the texts are the values."""
    reader = _reader(column, is_bytes=is_bytes)
    return None if reader is list else _beside_nulls(reader)


def key_values_of(column: ColumnShape, *, is_bytes: bool) -> ReadValues | None:
    """Return the reader of a column of a key; ValueError. Equal values become one: -0.0 is 0.0. None: the texts are the values."""
    reader = _reader(column, is_bytes=is_bytes)
    if column.mysql_type in _FLOATS:
        return lambda texts: [value + 0.0 for value in reader(texts)]
    return None if reader is list else reader


def _reader(column: ColumnShape, *, is_bytes: bool) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function that reads some values; ValueError; TypeError if one of them is NULL."""
    if (limits := integer_range(column)) is not None:
        return _integers(*limits)
    if column.mysql_type in _FLOATS:
        return _floats
    if is_bytes:
        return _bytes
    # A text of upstream for a column of the sink that holds bytes.
    return _encoded if column.mysql_type in STRING_TYPES and column.is_bytes else list


def _integers(low: int, high: int) -> Callable[[Sequence[str]], list[int]]:
    def read(texts: Sequence[str]) -> list[int]:
        # int() reads blanks, underscores and digits of other scripts too. What is left without the plain ones is found in C.
        if ",".join(texts).encode().translate(None, b"0123456789-,"):
            raise ValueError("not digits")
        found = list(map(int, texts))
        if found and not low <= min(found) <= max(found) <= high:
            raise ValueError("out of range")
        return found

    return read


def _floats(texts: Sequence[str]) -> list[float]:
    # Not nan, inf or 1_0, which float() reads. Producers write no exponent; one would be unambiguous.
    if ",".join(texts).encode().translate(None, b"0123456789-+.eE,"):
        raise ValueError("not a number")
    found = list(map(float, texts))
    if not all(map(isfinite, found)):
        raise ValueError("out of range")
    return found


def _bytes(texts: Sequence[str]) -> list[bytes]:
    # UnicodeEncodeError is a ValueError: a character above U+00FF is no byte.
    return [str.encode(text, "latin-1") for text in texts]


def _encoded(texts: Sequence[str]) -> list[bytes]:
    return [str.encode(text, "utf-8", "surrogateescape") for text in texts]


def _beside_nulls(reader: Callable[[Sequence[Any]], list[Any]]) -> ReadValues:
    def read(texts: Sequence[Any]) -> Sequence[Value]:
        try:
            return reader(texts)
        except TypeError:
            present = iter(reader([text for text in texts if text is not None]))
            return [None if text is None else next(present) for text in texts]

    return read


def text_of(column: ColumnShape, value: Value, *, is_bytes: bool) -> str | None:
    """Return the text that the reader of the column reads as ``value``."""
    if value is None or (isinstance(value, str) and not is_bytes):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1") if is_bytes else value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("latin-1")
    return repr(value) if column.mysql_type in _FLOATS else str(value)
