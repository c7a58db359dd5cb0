"""How many bytes a column takes in a row image, and what makes values of them. One ``ValueFormat`` per column, chosen once."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import MAX_WBITS, decompressobj
from zlib import error as ZlibError  # noqa: N812 - a class

from applier.model.errors import ProtocolError
from applier.model.events import Value
from applier.mysql import charset_text as text
from applier.mysql.float32 import read_vectors
from applier.sources.binlog.table_map import BLOBS, ColumnCode, TypeCode
from applier.sources.binlog.value import number, temporal
from applier.sources.binlog.value.binary_json import read_json

_ZLIB: Final = 8


# Columns that MariaDB compresses (``VARCHAR(…) COMPRESSED``), by MariaDB's ``field.cc`` (Field_longstr::compress). The first byte is 0 for
# a value that is stored as it is; else its high half is the method (8: zlib), and its low half how many bytes the length has that follows,
# the highest byte first; bit 3: a deflate stream without zlib's header. An empty value has no byte at all.


def decompressing(read: Callable[[Sequence[Any]], Sequence[Any]] | None) -> Callable[[Sequence[bytes]], Sequence[Any]]:
    """Return what reads compressed values; ``read``: what makes values of their bytes. None: they are bytes."""

    def read_compressed(values: Sequence[bytes]) -> Sequence[Any]:
        plain = list(map(_plain, values))
        return plain if read is None else read(plain)

    return read_compressed


def _plain(value: bytes) -> bytes:
    if not value or not value[0]:
        return value[1:]
    method, is_raw, size = value[0] >> 4, value[0] & 8, value[0] & 7
    length = int.from_bytes(value[1 : 1 + size])
    if method != _ZLIB:
        raise ValueError("a value is compressed by an unknown method")
    stream = decompressobj(-MAX_WBITS if is_raw else MAX_WBITS)
    try:
        found = stream.decompress(value[1 + size :], length + 1)
    except ZlibError as cause:
        raise ValueError("a value cannot be decompressed") from cause
    if len(found) != length:
        raise ValueError("a compressed value has another length")
    return found


ColumnRead: TypeAlias = Callable[[Sequence[Any]], Sequence[Value]]
"""What images hold of a column, NULLs skipped -> the values. ValueError if they are invalid."""


class ValueFormat(NamedTuple):
    """A column in a row image. ``code``: of ``struct``, for a value of fixed size; '' for one that ``prefix`` bytes of length precede."""

    code: str
    prefix: int
    read: ColumnRead | None
    """None: what ``struct`` gives is the value."""


_SHORT: Final = 255
"""Up to so many bytes have a length of one byte."""
_UNSIGNED: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_Make: TypeAlias = Callable[[ColumnCode], ValueFormat]


def value_format(code: ColumnCode, *, is_bytes: bool) -> ValueFormat:
    """Return the format of a column. ``is_bytes``: its strings are wanted as bytes. ProtocolError: nothing is known of its type."""
    make = _FIXED.get(code.type)
    try:
        if make is not None:
            return make(code)
        return ValueFormat("", _PREFIXES[code.type](code), _counted(code, is_bytes=is_bytes))
    except KeyError as cause:
        raise ProtocolError.at(None, "column_type", "a column has an unknown type", mysql_type=code.type) from cause
    except (ValueError, IndexError) as cause:
        raise ProtocolError.at(None, "column_type", "the metadata of a column is invalid", mysql_type=code.type) from cause


def _integer(letter: str) -> _Make:
    return lambda code: ValueFormat(letter.upper() if code.is_unsigned else letter, 0, None)


def _decimal(code: ColumnCode) -> ValueFormat:
    precision, scale = code.meta & 0xFF, code.meta >> 8
    return ValueFormat(f"{number.decimal_bytes(precision, scale)}s", 0, number.decimals(precision, scale))


def _bits(code: ColumnCode) -> ValueFormat:
    """BIT: whole bytes, and the bits beyond them."""
    size = (code.meta >> 8) + bool(code.meta & 0xFF)
    if not 1 <= size <= 8:
        raise ValueError("not a BIT")
    return ValueFormat(f"{size}s", 0, number.read_bits)


def _labels(code: ColumnCode) -> ValueFormat:
    size = code.meta >> 8
    if not 1 <= size <= 8:
        raise ValueError("not an ENUM or SET")
    letter = _UNSIGNED.get(size)
    return ValueFormat(f"{size}s", 0, number.integers(is_signed=False)) if letter is None else ValueFormat(letter, 0, None)


def _temporal(size: int, read_of: Callable[[int], ColumnRead]) -> _Make:
    """``size``: of the type without a fraction."""

    def make(code: ColumnCode) -> ValueFormat:
        if code.meta > 6:
            raise ValueError("not the digits of a second")
        return ValueFormat(f"{size + temporal.fraction_bytes(code.meta)}s", 0, read_of(code.meta))

    return make


def _same(form: ValueFormat) -> _Make:
    return lambda _code: form


def _of_length(code: ColumnCode) -> int:
    return 1 if code.meta <= _SHORT else 2


def _length_bytes(code: ColumnCode) -> int:
    if not 1 <= code.meta <= 4:
        raise ValueError("a length has 1 to 4 bytes")
    return code.meta


_FIXED: Final[dict[int, _Make]] = {
    1: _integer("b"),
    2: _integer("h"),
    3: _integer("i"),
    8: _integer("q"),
    9: lambda code: ValueFormat("3s", 0, number.integers(is_signed=not code.is_unsigned)),
    4: _same(ValueFormat("f", 0, number.read_floats)),
    5: _same(ValueFormat("d", 0, None)),
    7: _same(ValueFormat("I", 0, temporal.read_old_timestamps)),
    10: _same(ValueFormat("3s", 0, temporal.read_dates)),
    11: _same(ValueFormat("3s", 0, temporal.read_old_times)),
    12: _same(ValueFormat("Q", 0, temporal.read_old_datetimes)),
    14: _same(ValueFormat("3s", 0, temporal.read_dates)),
    TypeCode.YEAR: _same(ValueFormat("B", 0, temporal.read_years)),
    TypeCode.BIT: _bits,
    TypeCode.TIMESTAMP2: _temporal(4, temporal.timestamps),
    TypeCode.DATETIME2: _temporal(5, temporal.datetimes),
    TypeCode.TIME2: _temporal(3, temporal.times),
    TypeCode.DECIMAL: _decimal,
    TypeCode.ENUM: _labels,
    TypeCode.SET: _labels,
}
"""Types of a fixed size."""

_PREFIXES: Final[dict[int, Callable[[ColumnCode], int]]] = {
    TypeCode.VARCHAR: _of_length,
    TypeCode.VARCHAR_COMPRESSED: _of_length,
    TypeCode.VAR_STRING: lambda code: 1 if code.string_bytes <= _SHORT else 2,
    TypeCode.STRING: lambda code: 1 if code.string_bytes <= _SHORT else 2,
    **dict.fromkeys((*BLOBS, TypeCode.BLOB_COMPRESSED, TypeCode.GEOMETRY, TypeCode.JSON, TypeCode.VECTOR), _length_bytes),
}
"""Types that have their length before them -> the bytes of the length."""


def _counted(code: ColumnCode, *, is_bytes: bool) -> ColumnRead | None:
    """Return what reads values that their length precedes."""
    match code.type:
        case TypeCode.GEOMETRY:
            return None
        case TypeCode.VECTOR:
            return read_vectors
        case TypeCode.JSON:
            return None if is_bytes else read_json
        case TypeCode.BLOB_COMPRESSED | TypeCode.VARCHAR_COMPRESSED:
            return decompressing(None if is_bytes else text.texts(code.charset))
        case TypeCode.STRING | TypeCode.VAR_STRING if code.charset == "binary":
            return text.padded(code.string_bytes)
        case _:
            return None if is_bytes else text.texts(code.charset)
