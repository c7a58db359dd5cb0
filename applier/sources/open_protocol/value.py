r"""Column values: what a JSON value means under its type code and flags (open_protocol.md 2.5, 2.6).

One table of types for both ways of reading: the full parse here, and the compiled decoders of ``value_codec``.

Binary strings: Go's strconv.Quote without the outer quotes (open_protocol.md 2.7).

Python's ``unicode_escape`` is not equivalent: it maps ``\x89`` to U+0089 and misreads printable text outside of ASCII.

How msgspec reads the values of a column, and what it cannot do is done afterwards: for one value, and for a column of many.

The second way gives what the first gives for each value. It works on all values in C, and takes them one by one where that is not sure.
"""

import re
from binascii import a2b_base64
from codecs import escape_decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from applier.model.errors import SKIP_RECORD, ProtocolError, Remedy
from applier.model.events import Column, ColumnShape, Value
from applier.model.failure import RecordFault
from applier.sources.column_flags import Flag, is_handle

is_shared_by_python: Final = re.compile(rb'(?:[^\\"\n]+|\\(?:x[0-9a-fA-F]{2}|[abfnrtv\\"]))*+').fullmatch
"""Texts whose escapes mean the same in Go and in Python's bytes literals: everything that Quote writes for bytes that are no runes."""

_TOKEN = re.compile(rb'\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|[abfnrtv\\"]|)|["\n]')


def unquote(text: str) -> bytes:
    """Return the bytes that Go quoted as ``text``. ProtocolError (escape) where Go's Unquote refuses."""
    data = text.encode("utf-8", "surrogateescape")
    if is_shared_by_python(data) is not None:
        # The reader of bytes literals, in C: 0.8 us for a 16-byte key, against 2.6 us escape by escape.
        return escape_decode(data)[0]
    return _TOKEN.sub(_unquote_token, data)


def _unquote_token(match: re.Match[bytes]) -> bytes:
    token = match[0]
    kind = token[1:2]
    if kind in (b"u", b"U"):
        rune = int(token[2:].decode(), 16)
        if rune < 0xD800 or 0xDFFF < rune < 0x110000:
            return chr(rune).encode()
    elif kind.isdigit():
        if int(token[1:], 8) < 256:
            return bytes([int(token[1:], 8)])
    elif kind:
        return escape_decode(token)[0]
    raise ProtocolError.at(None, "escape", "a binary string holds something that Go's Quote does not write")


GEOMETRY: Final = 255
GEOMETRY_REMEDY: Final = Remedy(
    "open-protocol.exclude-geometry-column",
    f"Exclude the column from the changefeed (column-selectors), or the table (filter). Then skip the record: `{SKIP_RECORD}`",
)
_SIGNED_ZERO: Final = re.compile(rb'("t":[45],(?:"h":true,)?(?:"f":\d+,)?"v":-0)(?=[},])')
MAX_FLAGS = 2**63 - 1

_BINARY, _HANDLE_KEY = int(Flag.BINARY), int(Flag.HANDLE_KEY)
"""Plain numbers, since they are tested once per value: with a Flag, ``&`` runs code of ``enum``, 1 us each time."""


class ValueClass(Enum):
    """How values of a type are written in JSON."""

    INTEGER = auto()
    FLOAT = auto()
    TEXT = auto()
    QUOTABLE = auto()
    """A string that is Go-quoted where the column is binary."""
    BASE64 = auto()
    """A string in base64, of text or of bytes."""
    NULL = auto()


INTEGER_RANGES: dict[int, tuple[int, int]] = {
    1: (-(2**7), 2**8 - 1),  # TINYINT; unsigned and signed share a range here, since flags may be stale
    2: (-(2**15), 2**16 - 1),  # SMALLINT
    3: (-(2**31), 2**32 - 1),  # INT
    8: (-(2**63), 2**64 - 1),  # BIGINT
    9: (-(2**23), 2**24 - 1),  # MEDIUMINT
    13: (0, 2155),  # YEAR
    16: (0, 2**64 - 1),  # BIT
    247: (0, 2**16 - 1),  # ENUM: ordinal
    248: (0, 2**64 - 1),  # SET: bit mask
}

VALUE_CLASSES: dict[int, ValueClass] = {
    **dict.fromkeys(INTEGER_RANGES, ValueClass.INTEGER),
    **dict.fromkeys((4, 5), ValueClass.FLOAT),
    # TIMESTAMP, DATE, TIME, DATETIME, NEWDATE, VECTOR, JSON, DECIMAL
    **dict.fromkeys((7, 10, 11, 12, 14, 225, 245, 246), ValueClass.TEXT),
    **dict.fromkeys((15, 253, 254), ValueClass.QUOTABLE),
    **dict.fromkeys((249, 250, 251, 252), ValueClass.BASE64),
    6: ValueClass.NULL,
}
"""Every type code that a producer writes; GEOMETRY is not supported by TiDB."""


def read_column(name: str, members: Any, known_flags: int | None = None) -> Column:
    """Read a column object, under ``known_flags`` where its own may be stale.

    ProtocolError (field_type, column_type, flags, value_type, base64, escape) that names the column.
    """
    if not isinstance(members, dict):
        raise _refuse("field_type", name, "a column is not an object")
    mysql_type = members.get("t")
    if mysql_type == GEOMETRY:
        error = _refuse("column_type", name, "a column is of the type GEOMETRY, which TiDB does not have", mysql_type=mysql_type)
        error.remedy = GEOMETRY_REMEDY
        raise error
    if type(mysql_type) is not int or mysql_type not in VALUE_CLASSES:
        raise _refuse("column_type", name, "a column has no type or an unknown one", mysql_type=mysql_type)
    flags = _read_flags(name, members) if known_flags is None else known_flags
    if "v" not in members:
        raise _refuse("value_type", name, "a column has no value", mysql_type=mysql_type)
    return Column(mysql_type, flags, _read_value(name, mysql_type, flags, members["v"]), is_handle(flags))


def is_of_handle(name: str, members: Any) -> bool:
    """Whether a column object belongs to the handle key. ProtocolError (field_type, flags)."""
    if not isinstance(members, dict):
        raise _refuse("field_type", name, "a column is not an object")
    return is_handle(_read_flags(name, members))


def _read_flags(name: str, members: dict[str, Any]) -> int:
    """Return the effective flags: ``f``, or without it (oldest producers) what ``h`` says about the handle key."""
    is_handle = members.get("h")
    if is_handle is not None and type(is_handle) is not bool:
        raise _refuse("flags", name, "a column's h is not a boolean")
    if "f" not in members:
        return _HANDLE_KEY if is_handle else 0
    flags = members["f"]
    if type(flags) is int and 0 <= flags <= MAX_FLAGS:
        return flags
    raise _refuse("flags", name, "a column's flags are not a number")


def _read_value(name: str, mysql_type: int, flags: int, wire: Any) -> Value:
    if wire is None:
        return None
    try:
        return _convert(mysql_type, flags, wire)
    except ProtocolError as cause:
        raise _refuse(cause.fault or "value_type", name, cause.message, mysql_type=mysql_type) from cause


def _convert(mysql_type: int, flags: int, wire: Any) -> Value:
    match VALUE_CLASSES[mysql_type]:
        case ValueClass.INTEGER if type(wire) is int:
            low, high = INTEGER_RANGES[mysql_type]
            if low <= wire <= high:
                return wire
        case ValueClass.FLOAT if type(wire) in (int, float):
            with suppress(OverflowError):  # an integer beyond the largest double
                return float(wire)
        case ValueClass.TEXT if type(wire) is str:
            return wire
        case ValueClass.QUOTABLE if type(wire) is str:
            return unquote(wire) if flags & _BINARY else wire
        case ValueClass.BASE64 if type(wire) is str:
            data = _read_base64(wire)
            return data if flags & _BINARY else read_text(data)
    raise ProtocolError.at(None, "value_type", "a value does not fit the type of its column")


def may_hold_signed_zeros(data: bytes) -> bool:
    """Whether a number of some images may be -0, as Go writes the floating point number -0.0."""
    return b":-0}" in data or b":-0," in data


def with_signed_zeros(image: bytes) -> bytes:
    """Return an image in which each -0 of FLOAT and DOUBLE is -0.0: JSON readers read -0 as the integer 0."""
    return _SIGNED_ZERO.sub(rb"\1.0", image) if may_hold_signed_zeros(image) else image


def _read_base64(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        raise ProtocolError.at(None, "base64", "a value is not padded base64 of the standard alphabet") from cause


def read_text(data: bytes) -> str:
    """Return the text of a TEXT column; a byte that is not part of valid UTF-8 becomes U+DC00 + byte."""
    return data.decode("utf-8", "surrogateescape")


def _refuse(kind: RecordFault, name: str, message: str, **facts: Any) -> ProtocolError:
    return ProtocolError.at(None, kind, message, column=name, **facts)


MAX_INT64 = 2**63 - 1
MAX_UINT64 = 2**64 - 1

Fix: TypeAlias = Callable[[Any], Value]
"""The value that msgspec has read, not NULL -> the value. ValueError or ProtocolError if it is invalid."""
ColumnFix: TypeAlias = Callable[[Sequence[Any]], Sequence[Value]]
"""The same for many values, NULLs among them."""


def value_type(mysql_type: int, *, is_unsigned: bool) -> Any:
    """Return the type as which msgspec reads a value: a string for text, and where a fix converts it afterwards."""
    match VALUE_CLASSES[mysql_type]:
        case ValueClass.INTEGER:
            low, high = INTEGER_RANGES[mysql_type]
            # msgspec's bounds are signed 64 bit. A greater maximum is checked afterwards, and for signed columns left to the full parse.
            limit = (
                msgspec.Meta(ge=low)
                if _exceeds_int64(mysql_type, is_unsigned=is_unsigned)
                else msgspec.Meta(ge=low, le=min(high, MAX_INT64))
            )
            return Annotated[int, limit] | None
        case ValueClass.FLOAT:
            return float | None
        case ValueClass.BASE64:
            return bytes | None
        case ValueClass.NULL:
            return NoneType
        case _:
            return str | None


def _exceeds_int64(mysql_type: int, *, is_unsigned: bool) -> bool:
    return mysql_type in (16, 248) or (mysql_type == 8 and is_unsigned)


def fix_of(column: ColumnShape) -> Fix | None:
    """Return the conversion of a column that msgspec cannot do, or None."""
    match VALUE_CLASSES[column.mysql_type]:
        case ValueClass.INTEGER if _exceeds_int64(column.mysql_type, is_unsigned=column.is_unsigned):
            return _check_uint64
        case ValueClass.QUOTABLE if column.is_bytes:
            return unquote
        case ValueClass.BASE64 if not column.is_bytes:
            return read_text
        case _:
            return None


def column_fix_of(column: ColumnShape) -> ColumnFix | None:
    """Return what does ``fix_of`` for many values."""
    fix = fix_of(column)
    return None if fix is None else _COLUMN_FIXES[fix]


def values_of(fields: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a getter of the columns' values as a tuple (``attrgetter`` gives a bare value for one)."""
    if not fields:
        return lambda _row: ()
    getter = attrgetter(*(f"{field}.v" for field in fields))
    return getter if len(fields) > 1 else lambda row: (getter(row),)


def _check_uint64(value: int) -> int:
    if value > MAX_UINT64:
        message = "integer out of range"
        raise ValueError(message)
    return value


def _beside_nulls(fix: ColumnFix) -> ColumnFix:
    """Return the fix for values with NULLs, of one that raises TypeError where there is one."""

    def fix_present(values: Sequence[Any]) -> Sequence[Value]:
        try:
            return fix(values)
        except TypeError:
            fixed = iter(fix([value for value in values if value is not None]))
            return [None if value is None else next(fixed) for value in values]

    return fix_present


def _check_uint64s(values: Sequence[int]) -> Sequence[int]:
    if values:
        _check_uint64(max(values))
    return values


def _read_texts(values: Sequence[bytes]) -> Sequence[str]:
    # NUL is a character of its own in UTF-8, and no part of another: to decode all at once is to decode each.
    texts = read_text(b"\0".join(values)).split("\0")
    return texts if len(texts) == len(values) else list(map(read_text, values))


def _unquote_all(values: Sequence[str]) -> Sequence[bytes]:
    # No escape goes over a NUL, so one look at all of them shows that each may be read as a bytes literal (see `unquote`).
    joined = "\0".join(values).encode("utf-8", "surrogateescape")
    parts = joined.split(b"\0")
    if len(parts) == len(values) and is_shared_by_python(joined):
        return parts if b"\\" not in joined else [escape_decode(part)[0] for part in parts]
    return list(map(unquote, values))


_COLUMN_FIXES: Final[dict[Fix, ColumnFix]] = {
    _check_uint64: _beside_nulls(_check_uint64s),
    unquote: _beside_nulls(_unquote_all),
    read_text: _beside_nulls(_read_texts),
}
