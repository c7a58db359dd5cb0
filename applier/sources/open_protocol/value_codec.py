"""How msgspec reads the values of a column, and what it cannot do is done afterwards: for one value, and for a column of many.

The second way gives what the first gives for each value. It works on all values in C, and takes them one by one where that is not sure.
"""

from codecs import escape_decode
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from applier.model.events import ColumnShape, Flag, Value
from applier.sources.open_protocol.escape import is_shared_by_python, unquote
from applier.sources.open_protocol.value import INTEGER_RANGES, VALUE_CLASSES, ValueClass, read_text

MAX_INT64 = 2**63 - 1
MAX_UINT64 = 2**64 - 1

Fix: TypeAlias = Callable[[Any], Value]
"""The value that msgspec has read, not NULL -> the value. ValueError or ProtocolError if it is out of order."""
ColumnFix: TypeAlias = Callable[[Sequence[Any]], Sequence[Value]]
"""The same for many values, NULLs among them."""


def value_type(mysql_type: int, flags: int) -> Any:
    """Return the type as which msgspec reads a value: a string for text, and where a fix converts it afterwards."""
    match VALUE_CLASSES[mysql_type]:
        case ValueClass.INTEGER:
            low, high = INTEGER_RANGES[mysql_type]
            # msgspec's bounds are signed 64 bit. A greater maximum is checked afterwards, and for signed columns left to the full parse.
            limit = msgspec.Meta(ge=low) if _exceeds_int64(mysql_type, flags) else msgspec.Meta(ge=low, le=min(high, MAX_INT64))
            return Annotated[int, limit] | None
        case ValueClass.FLOAT:
            return float | None
        case ValueClass.BASE64:
            return bytes | None
        case ValueClass.NULL:
            return NoneType
        case _:
            return str | None


def _exceeds_int64(mysql_type: int, flags: int) -> bool:
    return mysql_type in (16, 248) or (mysql_type == 8 and bool(flags & Flag.UNSIGNED))


def fix_of(column: ColumnShape) -> Fix | None:
    """Return the conversion of a column that msgspec cannot do, or None."""
    is_binary = column.flags & Flag.BINARY
    match VALUE_CLASSES[column.mysql_type]:
        case ValueClass.INTEGER if _exceeds_int64(column.mysql_type, column.flags):
            return _check_uint64
        case ValueClass.QUOTABLE if is_binary:
            return unquote
        case ValueClass.BASE64 if not is_binary:
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
