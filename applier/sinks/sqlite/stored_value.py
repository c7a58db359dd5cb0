"""How SQLite stores MySQL's column types, and what a value becomes when a column of another type stores it.

Tables are STRICT, so SQLite refuses what does not fit instead of converting it. Affinity decides what stays exact: INTEGER holds signed
64 bits; BIGINT UNSIGNED and BIT(64) are ANY, which converts nothing, and their values above 2^63-1 are decimal text (as a number SQLite
would make them floating point); DECIMAL, dates and times are TEXT; FLOAT and DOUBLE are REAL; ENUM and SET are the TEXT of their labels.

Each conversion raises ``Inexact`` where the result is not certain.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final, TypeAlias

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.mysql.float32 import shortest, single_precision

MAX_SIGNED: Final = 2**63 - 1


def affinity(column: ColumnType) -> str:
    """Return the type of the SQLite column."""
    match column.family:
        case TypeFamily.INTEGER | TypeFamily.BIT | TypeFamily.YEAR:
            return "ANY" if column.highest > MAX_SIGNED else "INTEGER"
        case TypeFamily.FLOAT | TypeFamily.DOUBLE:
            return "REAL"
        case TypeFamily.BINARY:
            return "BLOB"
        case _:
            return "TEXT"


Stored: TypeAlias = int | float | str | bytes | None

_CONTEXT: Final = Context(prec=200, rounding=ROUND_HALF_UP)
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_DATETIME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?")
_TIME: Final = re.compile(r"(-?\d{2,3}:\d{2}:\d{2})(?:\.(\d{1,6}))?")


class Inexact(ValueError):
    """The value cannot be converted so that it is certainly MySQL's."""


def integer(value: Stored) -> int:
    """Read a stored integer: text above 2^63-1."""
    return int(as_text(value)) if isinstance(value, str) else int(as_number(value))


def store_integer(number: int, new: ColumnType) -> Stored:
    """Store an integer; Inexact if it is out of the range of the type."""
    if not new.lowest <= number <= new.highest:
        raise Inexact(f"out of range for {new}")
    return number if number <= MAX_SIGNED else str(number)


def decimal_text(number: Decimal, new: ColumnType) -> str:
    """Write a DECIMAL with its scale, rounded half away from zero as MySQL does."""
    rounded = rounded_decimal(number, new.scale)
    if rounded.is_signed() and (new.unsigned and rounded):
        raise Inexact(f"out of range for {new}")
    # ``abs()`` would round to the 28 digits of the context.
    if rounded.copy_abs() >= Decimal(10) ** (new.precision - new.scale):
        raise Inexact(f"out of range for {new}")
    return f"{rounded or abs(rounded):f}"


def rounded_decimal(number: Decimal, scale: int) -> Decimal:
    """Round half away from zero; Inexact for a number that no DECIMAL can hold."""
    try:
        return number.quantize(Decimal(1).scaleb(-scale), context=_CONTEXT)
    except InvalidOperation as error:
        raise Inexact("out of range for decimal") from error


def floating(number: float, new: ColumnType) -> float:
    """Store a FLOAT as the double of its shortest 32-bit text, which is what the wire carries."""
    if new.unsigned and number < 0:
        raise Inexact(f"out of range for {new}")
    if new.family is TypeFamily.DOUBLE:
        return number
    try:
        return shortest(single_precision(number))
    except OverflowError as error:
        raise Inexact("out of range for float") from error


def character(text: str, new: ColumnType) -> str:
    """Store text: CHAR loses trailing spaces; Inexact if it is too long."""
    if new.base == "char":
        text = text.rstrip(" ")
    if new.max_characters is not None and len(text) > new.max_characters:
        raise Inexact(f"too long for {new}")
    if new.max_bytes is not None and len(text.encode("utf-8", "surrogateescape")) > new.max_bytes:
        raise Inexact(f"too long for {new}")
    return text


def binary(data: bytes, new: ColumnType) -> bytes:
    """Store bytes: BINARY is filled up with zero bytes; Inexact if they are too long."""
    longest = new.max_characters if new.max_characters is not None else new.max_bytes
    if longest is not None and len(data) > longest:
        raise Inexact(f"too long for {new}")
    # MySQL fills BINARY(n) with zero bytes, and shows them (manual, "The BINARY and VARBINARY Types").
    return data.ljust(new.max_characters or 0, b"\0") if new.base == "binary" else data


def labels(text: str, new: ColumnType) -> str:
    """Store the label of an ENUM, or the labels of a SET in the order of their definition."""
    if new.family is TypeFamily.ENUM:
        if text and text not in new.labels:
            raise Inexact(f"the label is not one of {new}")
        return text
    wanted = set(text.split(",")) if text else set()
    if not wanted <= set(new.labels):
        raise Inexact(f"a label is not one of {new}")
    return ",".join(label for label in new.labels if label in wanted)


def date(text: str) -> str:
    """Store a DATE; Inexact if a time of day would be cut off."""
    found = _DATETIME.fullmatch(text)
    if found is None or (found[2] not in (None, "00:00:00")) or int(found[3] or 0):
        raise Inexact("not a plain date")
    return found[1]


def date_and_time(text: str, new: ColumnType) -> str:
    """Store a DATETIME or TIMESTAMP with the fraction of its type."""
    found = _DATETIME.fullmatch(text)
    if found is None:
        raise Inexact("not a plain date and time")
    return f"{found[1]} {found[2] or '00:00:00'}" + _fraction(found[3] or "", new.scale)


def time_of_day(text: str, new: ColumnType) -> str:
    """Store a TIME with the fraction of its type."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Inexact("not a plain time")
    return found[1] + _fraction(found[2] or "", new.scale)


def _fraction(digits: str, scale: int) -> str:
    """Lengthen or shorten a fraction; what is cut off must be zeros, because rounding may carry into the date."""
    if int(digits[scale:] or 0):
        raise Inexact("fractional digits would be rounded")
    return "." + digits[:scale].ljust(scale, "0") if scale else ""


def parse_integer(text: str) -> int:
    """Read plain digits; Inexact for what MySQL would cut or round."""
    if _INTEGER.fullmatch(text.strip(" ")) is None:
        raise Inexact("not a plain integer")
    return int(text)


def parse_decimal(text: str) -> Decimal:
    """Read a plain number without exponent."""
    if _DECIMAL.fullmatch(text.strip(" ")) is None:
        raise Inexact("not a plain number")
    return Decimal(text.strip(" "))


def parse_year(text: str) -> int:
    """Read a year of four digits."""
    if not (len(text) == 4 and text.isdecimal()):
        raise Inexact("not a year of four digits")
    return int(text)


def as_text(value: Stored) -> str:
    """Return text as it is; Inexact for anything else."""
    if not isinstance(value, str):
        raise Inexact("the stored value is not text")
    return value


def as_bytes(value: Stored) -> bytes:
    """Return bytes as they are; Inexact for anything else."""
    if not isinstance(value, bytes):
        raise Inexact("the stored value is not bytes")
    return value


def as_number(value: Stored) -> float:
    """Return a number as it is; Inexact for anything else."""
    if not isinstance(value, int | float):
        raise Inexact("the stored value is not a number")
    return value
