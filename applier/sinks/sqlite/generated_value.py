"""What a generated column makes of the value of its expression: its type converts it, in MySQL always, in SQLite only as written here.

``expression.py`` knows what SQLite computes exactly; this module, what the column's type then stores. What is not here stops.
"""

from typing import Final, TypeAlias

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily
from applier.sinks.sqlite.affinity import MAX_SIGNED, affinity

Rendered: TypeAlias = tuple[str, str] | None

NUMBER: Final = "number"
TEXT: Final = "text"


def stored(value: tuple[str, str], sources: frozenset[ColumnType], column: ColumnType) -> Rendered:
    """Return the value as ``column`` stores it; None if SQLite cannot express that.

    ``value`` is SQL and its kind; ``sources`` are the types of the columns that the value may come from as it is.
    """
    text, kind = value
    # The value is a column's own, of the same type: nothing converts it.
    if sources == frozenset({column}):
        return value
    if column.family is TypeFamily.CHARACTER:
        return _characters(text, column) if kind == TEXT or _is_plain(sources) else None
    if kind == NUMBER:
        return _number(text, sources, column)
    return _date_and_time(text, sources, column)


def _number(text: str, sources: frozenset[ColumnType], column: ColumnType) -> Rendered:
    """A value out of range was cut to the range upstream, or refused there. Of 64 bits, a STRICT table refuses what is too great."""
    if column.family in (TypeFamily.INTEGER, TypeFamily.BIT) and affinity(column) == "INTEGER":
        is_narrow = column.highest < MAX_SIGNED
        return (f"max({column.lowest},min({column.highest},{text}))" if is_narrow else text), NUMBER
    if column.family is TypeFamily.DOUBLE and _is_plain(sources):
        return text, NUMBER
    if column.family is TypeFamily.DECIMAL and _is_plain(sources):
        digits = f"CAST({text} AS TEXT)"
        return (f"({digits} || '.{'0' * column.scale}')" if column.scale else digits), TEXT
    return None


def _is_plain(sources: frozenset[ColumnType]) -> bool:
    """Return whether the number is a column's own, and no result of arithmetic."""
    return bool(sources) and all(source.family is TypeFamily.INTEGER for source in sources)


def _characters(text: str, column: ColumnType) -> Rendered:
    """CHAR loses trailing spaces; what is too long was cut off upstream, or refused there."""
    if column.charset not in UTF8_CHARSETS:
        return None
    if column.max_characters is not None:
        text = f"substr({text},1,{column.max_characters})"
    return (f"rtrim({text},' ')" if column.base == "char" else text), TEXT


def _date_and_time(text: str, sources: frozenset[ColumnType], column: ColumnType) -> Rendered:
    """A DATETIME from a DATE begins with the day."""
    if column.family is TypeFamily.DATETIME and {source.family for source in sources} == {TypeFamily.DATE}:
        fraction = "." + "0" * column.scale if column.scale else ""
        return f"({text} || ' 00:00:00{fraction}')", TEXT
    return None
