"""Whether a column of the sink holds a value exactly: what a server would refuse, cut or round is not a repair.

The statements of a repair run in a strict session, which refuses most of it, and with it the whole file. So it is checked before.
A strict server still rounds a DECIMAL with a note only. ``fitting`` checks what it refuses (fractions of a second, spaces at the end).
"""

from decimal import Decimal
from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.model.errors import Remedy, RowRefused
from applier.model.events import Value
from applier.mysql.literals import GREATEST_FLOAT
from applier.sinks.table_pair import ColumnPair

EXACT: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"})
"""Character sets whose characters are exactly known."""
CODECS: Final = {**dict.fromkeys(EXACT, "utf-8"), "ascii": "ascii", "latin1": "cp1252", "gbk": "gbk", "gb18030": "gb18030"}
"""Python's names of character sets that TiDB has. Of others, the strict session decides."""
_LATIN1_CONTROLS: Final = str.maketrans(dict.fromkeys((0x81, 0x8D, 0x8F, 0x90, 0x9D), "?"))
"""MySQL's latin1 is cp1252, and has these characters, which cp1252 lacks."""
YEARS: Final = range(1901, 2156)
BASIC_PLANE: Final = "\uffff"
SLACK: Final = 1 + 2**-24
"""The greatest FLOAT is announced by its shortest text, which is a greater number."""


def require_held(column: ColumnPair, value: Value) -> None:
    """Raise RowRefused, with the column and why, if the sink's column does not hold the value as it is on the wire."""
    kind = column.sink.type
    if value is None:
        reason = "" if column.sink.description.nullable else "it is NOT NULL"
    else:
        reason = "" if kind is None else _reason(column, kind, value)
    if reason:
        raise RowRefused(
            f"the sink's column cannot hold a value: {reason}",
            remedy=Remedy("verify.define-column-like-upstream", "Give the sink's column the definition that it has upstream"),
            column=column.sink.name,
            sink_type=column.sink.description.sql_type,
        )


def is_empty_enum(column: ColumnPair, value: Value) -> bool:
    """Return whether the value is ordinal 0 of an ENUM, which upstream may hold, and which no strict session writes."""
    kind = column.sink.type
    return kind is not None and kind.family is TypeFamily.ENUM and value == 0


def require_certainty(column: ColumnPair, value: Value) -> None:
    """Raise RowRefused if only a strict session knows whether the sink's column holds a value that passed ``require_held``."""
    if isinstance(value, str) and not value.isascii() and column.sink.charset.casefold() not in EXACT | {""}:
        raise RowRefused(
            "a row with an ENUM of ordinal 0 cannot be written by a strict session, and only one would refuse a character that is missing",
            remedy=Remedy("verify.write-row-by-hand", "Write the row by hand"),
            column=column.sink.name,
            charset=column.sink.charset,
        )


def _reason(column: ColumnPair, kind: ColumnType, value: Value) -> str:
    match kind.family:
        case TypeFamily.INTEGER | TypeFamily.BIT | TypeFamily.YEAR:
            return _of_integer(kind, Decimal(str(value)))
        case TypeFamily.DECIMAL:
            return _of_decimal(kind, str(value))
        case TypeFamily.FLOAT | TypeFamily.DOUBLE:
            return _of_float(kind, float(str(value)))
        case TypeFamily.CHARACTER:
            return _of_text(column, kind, str(value))
        case TypeFamily.BINARY if isinstance(value, bytes):
            most = kind.max_characters or kind.max_bytes
            return f"it stores {most} bytes" if most is not None and len(value) > most else ""
        case _:
            return ""


def _of_integer(kind: ColumnType, number: Decimal) -> str:
    if kind.family is TypeFamily.YEAR:
        return "" if number == 0 or number in YEARS else "it stores the years 1901 to 2155"
    return "" if kind.lowest <= number <= kind.highest and number == int(number) else f"it stores {kind.lowest} to {kind.highest}"


def _of_decimal(kind: ColumnType, value: str) -> str:
    number, behind = Decimal(value), value.partition(".")[2].rstrip("0")
    if len(behind) > kind.scale or number.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
        return f"it stores {kind.precision} digits, {kind.scale} of them after the decimal point"
    return "it is UNSIGNED" if kind.unsigned and number < 0 else ""


def _of_float(kind: ColumnType, number: float) -> str:
    if kind.unsigned and number < 0:
        return "it is UNSIGNED"
    return "it stores 32 bits" if kind.family is TypeFamily.FLOAT and abs(number) > GREATEST_FLOAT * SLACK else ""


def _of_text(column: ColumnPair, kind: ColumnType, value: str) -> str:
    charset = column.sink.charset.casefold()
    if kind.max_characters is not None and len(value) > kind.max_characters:
        return f"it stores {kind.max_characters} characters"
    codec = CODECS.get(charset)
    if codec is None:
        return ""
    try:
        size = len((value.translate(_LATIN1_CONTROLS) if charset == "latin1" else value).encode(codec))
    except UnicodeEncodeError:
        return f"its character set {charset} lacks a character"
    if charset in {"utf8", "utf8mb3"} and max(value, default="") > BASIC_PLANE:
        return f"its character set {charset} lacks a character"
    return f"it stores {kind.max_bytes} bytes" if kind.max_bytes is not None and size > kind.max_bytes else ""
