"""What a generated column makes of the value of its expression: its type converts it, in MySQL always, in SQLite only as written here.

``applier.ddl.portable_expression`` knows which conversions are exact; this module writes them.
"""

from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.portable_expression import Kind, PortableExpression
from applier.sinks.sqlite.affinity import MAX_SIGNED

_INTEGERS: Final = (TypeFamily.INTEGER, TypeFamily.BIT)


def stored(text: str, value: PortableExpression, column: ColumnType) -> str:
    """Return the value as ``column`` stores it. ``text`` is the SQL of ``value``."""
    # The value is a column's own, of the same type: nothing converts it.
    if value.sources == frozenset({column}):
        return text
    if column.family is TypeFamily.CHARACTER:
        return _characters(text, column)
    if value.kind is Kind.NUMBER:
        return _number(text, column)
    # A DATETIME from a DATE begins with the day.
    fraction = "." + "0" * column.scale if column.scale else ""
    return f"({text} || ' 00:00:00{fraction}')"


def _number(text: str, column: ColumnType) -> str:
    """A value out of range was cut to the range upstream, or refused there. Of 64 bits, a STRICT table refuses what is too great."""
    if column.family in _INTEGERS:
        return f"max({column.lowest},min({column.highest},{text}))" if column.highest < MAX_SIGNED else text
    if column.family is TypeFamily.DOUBLE:
        return text
    digits = f"CAST({text} AS TEXT)"
    return f"({digits} || '.{'0' * column.scale}')" if column.scale else digits


def _characters(text: str, column: ColumnType) -> str:
    """CHAR loses trailing spaces; what is too long was cut off upstream, or refused there."""
    if column.max_characters is not None:
        text = f"substr({text},1,{column.max_characters})"
    return f"rtrim({text},' ')" if column.base == "char" else text
