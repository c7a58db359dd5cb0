"""Conversions of stored values when a column's type changes: exactly what MySQL makes of them, or a stop.

Which pairs of types convert, and of which of their values each server makes the same, says ``applier.ddl.conversion_rule``.

A conversion runs once per existing value (NULL is never passed), inside SQLite, as a function of the connection. ``Inexact`` says that
the result is not certain: rounding that depends on the server, text that is not the plain form of the new type, a value out of range.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date as Date  # noqa: N812 - ``date`` stores one
from decimal import Decimal
from typing import Final, TypeAlias

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily
from applier.ddl.conversion_rule import Certainty, capacity, conversion_rule
from applier.mysql.float32 import single_precision
from applier.sinks.sqlite.stored_value import (
    DdlTime,
    Inexact,
    Stored,
    as_bytes,
    as_number,
    as_text,
    binary,
    character,
    date,
    date_and_time,
    decimal_text,
    floating,
    integer,
    labels,
    parse_decimal,
    parse_integer,
    parse_year,
    rounded_decimal,
    store_integer,
    time_of_day,
)

Conversion: TypeAlias = Callable[[Stored], Stored]

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_CALENDAR: Final = (TypeFamily.DATE, TypeFamily.DATETIME, TypeFamily.TIMESTAMP)
_NUMBERS: Final = (TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.YEAR)


def conversion(old: ColumnType, new: ColumnType) -> Conversion:
    """Return the function that converts a stored value; it raises Inexact. ``same`` if nothing changes."""
    if old == new or _keeps_every_value(old, new):
        return same
    rule = conversion_rule(old, new)
    if rule.certainty is not Certainty.EXACT and rule.plain is None:
        return _refuse(old, new)
    found = _same_family(old, new) if old.family is new.family else _to_other(old, new)
    return found or _refuse(old, new)


def conversion_of_rows(old: ColumnType, new: ColumnType, ddl_time: DdlTime) -> Conversion:
    """As ``conversion``, for values that a table holds. A literal has passed upstream's sql_mode already; text of rows has not.

    A TIMESTAMP becomes another type, and is made of one, in the zone of upstream's session.
    """
    if old.family is not new.family and ddl_time.session_zone:
        if old.family is TypeFamily.TIMESTAMP:
            seen = _of_rows(replace(old, base="datetime"), new)
            return lambda value: seen(ddl_time.in_session_zone(as_text(value)))
        if new.family is TypeFamily.TIMESTAMP:
            made = _of_rows(old, replace(new, base="datetime"))
            return lambda value: ddl_time.in_wire_zone(as_text(made(value)))
    return _of_rows(old, new)


def _of_rows(old: ColumnType, new: ColumnType) -> Conversion:
    convert = conversion(old, new)
    if old.family is TypeFamily.CHARACTER and new.family in _CALENDAR:
        return lambda value: convert(_of_calendar(as_text(value)))
    return convert


def _of_calendar(text: str) -> str:
    """Return the text; Inexact for zeros and 31 February: the sql_mode of upstream's session decides what they become."""
    try:
        Date.fromisoformat(text[:10])
    except ValueError:
        raise Inexact("no date of the calendar") from None
    return text


def _keeps_every_value(old: ColumnType, new: ColumnType) -> bool:
    """Return whether every stored value of ``old`` is one of ``new`` as it is: then no value need be looked at."""
    if old.family is not new.family or old.charset != new.charset:
        return False
    match new.family:
        case TypeFamily.INTEGER | TypeFamily.BIT:
            return new.lowest <= old.lowest and old.highest <= new.highest
        case TypeFamily.CHARACTER | TypeFamily.BINARY:
            return new.base not in ("char", "binary") and capacity(old) <= capacity(new)
        # MySQL converts an ENUM by label, so their order does not matter. A SET's value lists its labels in the order of the definition.
        case TypeFamily.ENUM:
            return set(old.labels) <= set(new.labels)
        case TypeFamily.SET:
            return new.labels[: len(old.labels)] == old.labels
        case _:
            return False


def same(value: Stored) -> Stored:
    """Keep the value."""
    return value


def _refuse(old: ColumnType, new: ColumnType) -> Conversion:
    def refuse(_value: Stored) -> Stored:
        raise Inexact(f"there is no exact conversion from {old} to {new}")

    return refuse


def _same_family(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family in (TypeFamily.DATE, TypeFamily.VECTOR, TypeFamily.JSON):
        return same
    within: dict[TypeFamily, Conversion] = {
        TypeFamily.INTEGER: lambda value: store_integer(integer(value), new),
        TypeFamily.BIT: lambda value: store_integer(integer(value), new),
        TypeFamily.YEAR: same,
        TypeFamily.FLOAT: lambda value: floating(as_number(value), new),
        TypeFamily.DOUBLE: lambda value: floating(as_number(value), new),
        TypeFamily.DECIMAL: lambda value: decimal_text(Decimal(as_text(value)), new),
        TypeFamily.BINARY: lambda value: binary(as_bytes(value), new),
        TypeFamily.DATETIME: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIMESTAMP: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIME: lambda value: time_of_day(as_text(value), new),
        TypeFamily.ENUM: lambda value: labels(as_text(value), new),
        TypeFamily.SET: lambda value: labels(as_text(value), new),
        TypeFamily.CHARACTER: lambda value: character(as_text(value), new),
    }
    return within[old.family]


def _to_other(old: ColumnType, new: ColumnType) -> Conversion | None:
    sources: dict[TypeFamily, Callable[[ColumnType, ColumnType], Conversion | None]] = {
        **dict.fromkeys((TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.YEAR), _from_integer),
        **dict.fromkeys((TypeFamily.FLOAT, TypeFamily.DOUBLE), _from_float),
        **dict.fromkeys((TypeFamily.ENUM, TypeFamily.SET), _from_labels),
        TypeFamily.DECIMAL: _from_decimal,
        TypeFamily.CHARACTER: _from_text,
        TypeFamily.BINARY: _from_binary,
    }
    return sources.get(old.family, _from_temporal)(old, new)


def _from_integer(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family in _NUMBERS and TypeFamily.YEAR not in (old.family, new.family):
        return lambda value: store_integer(integer(value), new)
    if new.family is TypeFamily.DECIMAL and old.family is not TypeFamily.YEAR:
        return lambda value: decimal_text(Decimal(integer(value)), new)
    if new.family in (TypeFamily.FLOAT, TypeFamily.DOUBLE):
        return lambda value: floating(float(integer(value)), new)
    # ZEROFILL pads the text with zeros, and BIT gives bytes: neither is the number's text.
    if new.family is TypeFamily.CHARACTER and old.family is not TypeFamily.BIT and not old.zerofill:
        return lambda value: character(str(integer(value)), new)
    return None


def _from_decimal(_old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is TypeFamily.INTEGER:
        return lambda value: store_integer(int(rounded_decimal(Decimal(as_text(value)), 0)), new)
    if new.family in (TypeFamily.FLOAT, TypeFamily.DOUBLE):
        return lambda value: floating(float(as_text(value)), new)
    if new.family is TypeFamily.CHARACTER:
        return lambda value: character(as_text(value), new)
    return None


def _from_float(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is TypeFamily.FLOAT:
        return lambda value: floating(as_number(value), new)
    if new.family is TypeFamily.DOUBLE and old.family is TypeFamily.FLOAT:
        # The wire carries the shortest text of the 32-bit value; as DOUBLE that very 32-bit value shows all its digits.
        return lambda value: single_precision(as_number(value))
    return None


def _from_text(old: ColumnType, new: ColumnType) -> Conversion | None:
    family = new.family
    if family is TypeFamily.BINARY and old.charset in UTF8_CHARSETS:
        return lambda value: binary(as_text(value).encode("utf-8", "surrogateescape"), new)
    simple: dict[TypeFamily, Conversion] = {
        TypeFamily.INTEGER: lambda value: store_integer(parse_integer(as_text(value)), new),
        TypeFamily.DECIMAL: lambda value: decimal_text(parse_decimal(as_text(value)), new),
        TypeFamily.FLOAT: lambda value: floating(float(parse_decimal(as_text(value))), new),
        TypeFamily.DOUBLE: lambda value: float(parse_decimal(as_text(value))),
        TypeFamily.YEAR: lambda value: store_integer(parse_year(as_text(value)), new),
        TypeFamily.DATE: lambda value: date(as_text(value)),
        TypeFamily.DATETIME: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIMESTAMP: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIME: lambda value: time_of_day(as_text(value), new),
        TypeFamily.ENUM: lambda value: labels(as_text(value), new),
        TypeFamily.SET: lambda value: labels(as_text(value), new),
    }
    return simple.get(family)


def _from_binary(_old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is not TypeFamily.CHARACTER or new.charset not in UTF8_CHARSETS:
        return None

    def convert(value: Stored) -> Stored:
        try:
            return character(as_bytes(value).decode(), new)
        except UnicodeDecodeError as error:
            raise Inexact("the bytes are not UTF-8") from error

    return convert


def _from_labels(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is TypeFamily.CHARACTER:
        return lambda value: character(as_text(value), new)
    if new.family is TypeFamily.INTEGER and old.family is TypeFamily.ENUM:
        return lambda value: store_integer(old.labels.index(as_text(value)) + 1 if value else 0, new)
    if new.family is TypeFamily.INTEGER:
        return lambda value: store_integer(sum(1 << old.labels.index(label) for label in as_text(value).split(",") if label), new)
    return None


def _from_temporal(_old: ColumnType, new: ColumnType) -> Conversion | None:
    """From dates, times, JSON, VECTOR. DATETIME and TIMESTAMP do not convert into one another: that takes the zone of the DDL's session."""
    if new.family is TypeFamily.CHARACTER:
        return lambda value: character(as_text(value), new)
    if new.family is TypeFamily.DATETIME:
        return lambda value: date_and_time(_plain_date(as_text(value)), new)
    if new.family is TypeFamily.DATE:
        return lambda value: date(as_text(value))
    return None


def _plain_date(text: str) -> str:
    if _DATE.fullmatch(text) is None:
        raise Inexact("its time zone or its date is unknown")
    return text
