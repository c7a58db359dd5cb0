"""Literals of SQLite: text that makes it store exactly a value. Pure."""

from math import frexp, isinf, isnan
from typing import Final

from applier.model.errors import RowRefused
from applier.model.events import Value
from applier.model.remedy import Remedy

MAX_SIGNED: Final = 2**63 - 1
_MIN_SIGNED: Final = -(2**63)


def plain(value: Value) -> str:
    """Render a value for a column that is not binary."""
    match value:
        case str():
            return text(value)
        case None:
            return "NULL"
        case int():
            # Beyond 63 bits SQLite reads a number as a float: the column keeps decimal text (`column_type.py`).
            return str(value) if _MIN_SIGNED <= value <= MAX_SIGNED else f"'{value}'"
        case float():
            return number(value)
        case bytes():
            return f"CAST(x'{value.hex()}' AS TEXT)"


def text(value: str) -> str:
    """Render text; through its bytes where SQL text cannot carry it."""
    if "\0" in value:
        return f"CAST(x'{value.encode('utf-8', 'surrogateescape').hex()}' AS TEXT)"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"CAST(x'{value.encode('utf-8', 'surrogateescape').hex()}' AS TEXT)"
    return "'" + value.replace("'", "''") + "'"


EXACT_INTEGERS: Final = 2**53
"""Below it every integer is a float."""
MAX_SHIFT: Final = 62
"""The greatest power of two that is an integer of SQLite."""


def number(value: float) -> str:
    """Render a float so that it reads back as the same one; RowRefused for NaN, which SQLite would make NULL.

    SQLite's reading of a decimal fraction may miss the last bit, so it gets an integer scaled by powers of two: both are exact.
    """
    if isnan(value):
        raise RowRefused("NaN cannot be stored", remedy=Remedy("sqlite.look-for-producer-defect", "Look for a defect in the producer"))
    # SQLite has no literal for infinity: a number beyond its range reads as one.
    if isinf(value):
        return "9e999" if value > 0 else "-9e999"
    if value.is_integer() and abs(value) < EXACT_INTEGERS:
        return repr(value)
    fraction, exponent = frexp(value)
    return f"({fraction * EXACT_INTEGERS:.1f}{_scaled(exponent - 53)})"


def _scaled(exponent: int) -> str:
    operator, text, left = ("*", "", exponent) if exponent > 0 else ("/", "", -exponent)
    while left > 0:
        step = min(left, MAX_SHIFT)
        text += f"{operator}{1 << step}"
        left -= step
    return text


def blob(value: Value) -> str:
    """Render a value for a binary column: text as the bytes that it stands for."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return f"x'{value.hex()}'" if isinstance(value, bytes) else plain(value)
