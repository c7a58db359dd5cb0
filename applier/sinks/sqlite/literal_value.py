"""Literals of SQLite, which store exactly a value; and MySQL's literals and implicit defaults as the file stores them.

A literal DEFAULT that MySQL reads as a number, a year, a time or a date is brought to the plain form of the type. Only spellings that
MariaDB 10.11 and MySQL 9.7 read alike and without a warning are taken; others raise ``Inexact``.
"""

import math
import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from math import frexp, isinf, isnan
from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.parser import BY_HAND, CONVERTED
from applier.ddl.table_draft import ColumnDefinition, DefaultKind, DraftColumn, TableDefinition
from applier.ddl.tokens import Cursor
from applier.model.errors import NeedsOperator, Remedy, RowRefused
from applier.model.events import Value
from applier.sinks.sqlite.stored_value import (
    DdlTime,
    Inexact,
    Stored,
    conversion,
    date,
    date_and_time,
    decimal_text,
    floating,
    rounded_decimal,
    store_integer,
    time_of_day,
)

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
    """Render a value for a binary column: text as the bytes that it represents."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return f"x'{value.hex()}'" if isinstance(value, bytes) else plain(value)


_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_CLOCK: Final = re.compile(r"(-?)(?:(\d{1,2}) )?(\d{1,3}):(\d{1,2})(?::(\d{1,2}))?(\.\d{1,6})?")
_DIGITS: Final = re.compile(r"(-?)(\d{1,7})(\.\d{1,6})?")
_MAX_HOURS: Final = 838
_NEXT_CENTURY: Final = 70
"""Years of two digits from here on mean 1970 to 1999."""


def parse_number(text: str) -> Decimal:
    """Read a number, perhaps with an exponent."""
    if _NUMBER.fullmatch(text) is None:
        raise Inexact("not a plain number")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise Inexact("not a plain number") from error


def whole(number: Decimal) -> int:
    """Return a number without a fraction."""
    if number != number.to_integral_value():
        raise Inexact("a number with a fraction is not a date")
    return int(number)


def default_year(text: str) -> int:
    """Read a YEAR of one, two or four digits. The number 0 is the year 0, the text '0' is 2000."""
    if not (text.isdecimal() and text.isascii() and len(text) in (1, 2, 4)):
        raise Inexact("not a plain year")
    year = int(text)
    if len(text) < len("2000"):
        return year + (1900 if year >= _NEXT_CENTURY else 2000)
    if year and not 1901 <= year <= 2155:
        raise Inexact("out of range for year")
    return year


def plain_time(text: str) -> str:
    """Read ``10:00``, ``1:2:3.5``, ``1 10:00`` or digits such as ``101010`` as hours, minutes and seconds."""
    if found := _CLOCK.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = found.groups(default="")
        parts = (int(days or 0) * 24 + int(hours), int(minutes), int(seconds or 0))
        if fraction and not seconds:
            raise Inexact("not a plain time")
    elif found := _DIGITS.fullmatch(text):
        sign, digits, fraction = found.groups(default="")
        number = int(digits)
        parts = (number // 10000, number // 100 % 100, number % 100)
    else:
        raise Inexact("not a plain time")
    hours_of_all, minute, second = parts
    if hours_of_all > _MAX_HOURS or minute > 59 or second > 59:
        raise Inexact("out of range for time")
    # MySQL has no -00:00:00.
    sign = sign if any(parts) or fraction.strip(".0") else ""
    return f"{sign}{hours_of_all:02}:{minute:02}:{second:02}{fraction}"


def plain_datetime(number: int) -> str:
    """Read 0, ``20240102`` or ``20240102030405`` as a date and time."""
    if number == 0:
        return "0000-00-00 00:00:00"
    digits = str(number)
    if len(digits) not in (8, 14):
        raise Inexact("not a plain date")
    digits = digits.ljust(14, "0")
    month, day, hour, minute, second = (int(digits[at : at + 2]) for at in range(4, 14, 2))
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        raise Inexact("not a plain date")
    return f"{digits[:4]}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"


_TEXT = ColumnType(base="longtext")
_BYTES = ColumnType(base="longblob")
_UNSIGNED = ColumnType(base="bigint", unsigned=True)


def fill_value(column: ColumnDefinition, ddl_time: DdlTime) -> Stored:
    """Return what existing rows hold in a column that was added then: its default, or MySQL's implicit one if it is NOT NULL.

    NeedsOperator if the default is an expression (its values for the existing rows are not on the wire), or if MySQL's value of
    the literal is not certain.
    """
    if column.default is None:
        return None if column.nullable else implicit_default(column.type)
    match column.default.kind:
        case DefaultKind.LITERAL:
            try:
                return literal_default(column.type, column.default.text)
            except Inexact as error:
                raise _not_exact(column, error) from error
        case DefaultKind.NOW:
            return _now(column.type, ddl_time)
        case DefaultKind.EXPRESSION:
            raise NeedsOperator(
                "existing rows take the value of a default expression, which only upstream knows",
                remedy=BY_HAND,
                column=column.name,
                default=column.default.text,
            )


def _not_exact(column: ColumnDefinition, error: Inexact) -> NeedsOperator:
    return NeedsOperator(
        "the default of a new column cannot be converted exactly",
        remedy=BY_HAND,
        column=column.name,
        default="" if column.default is None else column.default.text,
        reason=str(error),
    )


def table_of_wire(table: TableDefinition, ddl_time: DdlTime) -> TableDefinition:
    """Return a table that a statement creates, as the file keeps it."""
    return replace(table, columns=tuple(_of_wire(column, ddl_time) for column in table.columns))


def bring_to_wire(old: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime) -> None:
    """Make the columns of an ALTER what the file keeps. A default that the statement does not mention is stored so already."""
    kept = {id(column.default) for column in old.columns}
    for column in columns:
        if id(column.definition.default) not in kept:
            column.definition = _of_wire(column.definition, ddl_time)


def _of_wire(column: ColumnDefinition, ddl_time: DdlTime) -> ColumnDefinition:
    """Return a column with the literal default of a TIMESTAMP in the zone of the wire, as rows have it.

    NeedsOperator: it is not one certain time in the session's zone.
    """
    if column.type.family is not TypeFamily.TIMESTAMP or column.default is None or column.default.kind is not DefaultKind.LITERAL:
        return column
    try:
        value = literal_default(column.type, column.default.text)
        text = ddl_time.in_wire_zone(value) if isinstance(value, str) else ""
    except Inexact as error:
        raise _not_exact(column, error) from error
    return column if text in {value, ""} else replace(column, default=replace(column.default, text=f"'{text}'"))


def literal_default(column: ColumnType, text: str) -> Stored:
    """Convert a literal DEFAULT to the column's type, as MySQL stores it; Inexact where that is not certain."""
    literal = Cursor(text).literal_ahead()
    if literal is not None and literal.kind == "string":
        return _from_text(column, literal.text)
    if literal is not None and literal.kind == "bytes":
        return _from_bytes(column, bytes.fromhex(literal.text))
    return _from_number(column, text)


def _from_text(column: ColumnType, text: str) -> Stored:
    match column.family:
        case TypeFamily.INTEGER | TypeFamily.DECIMAL | TypeFamily.FLOAT | TypeFamily.DOUBLE:
            return _from_decimal(column, parse_number(text))
        case TypeFamily.YEAR:
            return default_year(text)
        case TypeFamily.TIME:
            return time_of_day(plain_time(text), column)
        case TypeFamily.DATE | TypeFamily.DATETIME | TypeFamily.TIMESTAMP if text.isdecimal():
            return _from_date(column, plain_datetime(int(text)))
        case _:
            return conversion(_TEXT, column)(text)


def _from_bytes(column: ColumnType, data: bytes) -> Stored:
    if column.family in (TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.DECIMAL, TypeFamily.YEAR):
        return conversion(_UNSIGNED, column)(_stored_integer(int.from_bytes(data)))
    return conversion(_BYTES, column)(data)


def _from_number(column: ColumnType, text: str) -> Stored:
    number = parse_number(text)
    match column.family:
        case TypeFamily.ENUM:
            # MySQL takes a bare number for a label of that name, MariaDB for an ordinal.
            raise Inexact("servers do not agree on a number as the default of an ENUM")
        case TypeFamily.YEAR:
            return default_year(text) if number else 0
        case TypeFamily.TIME:
            return time_of_day(plain_time(text), column)
        case TypeFamily.DATE | TypeFamily.DATETIME | TypeFamily.TIMESTAMP:
            return _from_date(column, plain_datetime(whole(number)))
        case TypeFamily.CHARACTER | TypeFamily.BINARY if "e" in text.casefold():
            raise Inexact("a number with an exponent has no certain spelling")
        case TypeFamily.CHARACTER:
            return conversion(_TEXT, column)(text)
        case TypeFamily.BINARY:
            return conversion(_BYTES, column)(text.encode())
        case _:
            return _from_decimal(column, number)


def _from_decimal(column: ColumnType, number: Decimal) -> Stored:
    """Store a number; types without a fraction round half away from zero."""
    if column.family in (TypeFamily.FLOAT, TypeFamily.DOUBLE):
        if math.isinf(float(number)):
            raise Inexact(f"out of range for {column}")
        return floating(float(number), column)
    if column.family is TypeFamily.DECIMAL:
        return decimal_text(number, column)
    if column.family in (TypeFamily.INTEGER, TypeFamily.BIT):
        return store_integer(int(rounded_decimal(number, 0)), column)
    raise Inexact(f"a number is not a value of {column}")


def _from_date(column: ColumnType, text: str) -> Stored:
    return date(text) if column.family is TypeFamily.DATE else date_and_time(text, column)


def _stored_integer(number: int) -> Stored:
    return number if number <= 2**63 - 1 else str(number)


_ZEROS: Final[dict[TypeFamily, Stored]] = {
    TypeFamily.INTEGER: 0,
    TypeFamily.BIT: 0,
    TypeFamily.YEAR: 0,
    TypeFamily.FLOAT: 0.0,
    TypeFamily.DOUBLE: 0.0,
    TypeFamily.DECIMAL: "0",
    TypeFamily.DATE: "0000-00-00",
    TypeFamily.DATETIME: "0000-00-00 00:00:00",
    TypeFamily.TIMESTAMP: "0000-00-00 00:00:00",
    TypeFamily.TIME: "00:00:00",
    TypeFamily.JSON: "null",
    TypeFamily.CHARACTER: "",
    TypeFamily.SET: "",
    TypeFamily.BINARY: b"",
}
_FRACTIONAL: Final = (TypeFamily.DECIMAL, TypeFamily.DATETIME, TypeFamily.TIMESTAMP, TypeFamily.TIME)


def implicit_default(column: ColumnType) -> Stored:
    """Return what MySQL gives existing rows in a NOT NULL column without a default (manual, "Data Type Default Values")."""
    if column.family is TypeFamily.ENUM:
        return column.labels[0]
    if column.base == "binary":
        return bytes(column.max_characters or 0)
    if column.family not in _ZEROS:
        raise NeedsOperator("a VECTOR column has no implicit default", remedy=BY_HAND, type=str(column))
    zero = _ZEROS[column.family]
    return f"{zero}.{'0' * column.scale}" if isinstance(zero, str) and column.family in _FRACTIONAL and column.scale else zero


def _now(column: ColumnType, ddl_time: DdlTime) -> Stored:
    if column.scale and not ddl_time.keeps_fraction:
        # TiDB's versions differ in whether they keep the fraction, and it is not in the stream.
        message = "a new column gets the fraction of a second in which upstream began the DDL"
        raise NeedsOperator(message, remedy=CONVERTED, type=str(column))
    text = ddl_time.now(column.scale, is_timestamp=column.family is TypeFamily.TIMESTAMP)
    # A DATE keeps the day in the wire's zone.
    return text[:10] if column.family is TypeFamily.DATE else text
