"""Rows as lines of a bulk load (``LOAD DATA``): many rows at a time, and only values that are proven to be stored as by REPLACE.

A load and a REPLACE must store the same bytes. tests/integration/test_mysql_bulk_values.py compares them for each type of ``_PROVEN`` with
hostile values, on each server. What is not proven is not loaded: a table with another type, and a batch of rows with a value that needs
care (refused by the sink's column, not UTF-8, not of its type), are left to REPLACE, which also finds the words for what is wrong.

Fields and lines end with control characters, which texts hardly hold: backslashes, quotes and line feeds of JSON need no escape. One
``%`` formats a whole batch, and searches over the joined text find what it must not hold. Measured with five columns (CPython 3.11): 0.5
microseconds a row, where a row of REPLACE takes 0.85.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from typing import Any, Final, TypeAlias

from applier.model.errors import ApplierError
from applier.model.events import Flag
from applier.planner.catalogue import ColumnDescription
from applier.planner.port import RowsLines, WireColumn
from applier.sinks.mysql.fitting import (
    MOST_DIGITS,
    TIMES,
    data_type_of,
    fitting_literal_of,
    fraction_digits,
    needs_every_value,
)
from applier.sinks.mysql.literals import DECIMAL, ENUM, FLOATS, INTEGERS, SET, STRINGS, TEXTS, is_float32
from applier.sinks.mysql.row import GREATEST_FLOAT

FIELD_END: Final = "\x1f"
LINE_END: Final = "\x1e"
ESCAPE: Final = "\x1b"
NULL: Final = f"{ESCAPE}N"
# A server reads any character after the escape as itself, except 0, b, n, r, t, Z and N.
_ESCAPES: Final = str.maketrans({end: ESCAPE + end for end in (FIELD_END, LINE_END, ESCAPE)})
_NULL_VALUE: Final = "None"
"""How ``%`` formats a NULL: a text that holds it may hold a NULL, or the word."""

_PROVEN: Final = (
    frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year", "decimal", "float", "double"})
    | {"date", "time", "datetime", "timestamp", "enum", "set", "json"}
    | {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
    | {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
)
_UNPROVEN_WIRE: Final = frozenset({225})
"""VECTOR."""
_FIRST_ROWS: Final = 4
_FLOAT32: Final = Struct("<f")

Texts: TypeAlias = Sequence[Any]
Check: TypeAlias = Callable[[Sequence[Any]], bool]
"""Values of one column, NULLs among them -> whether all of them are stored as they are."""


@dataclass(frozen=True, slots=True)
class _Column:
    """How one column is written. ``template``: its part of a line; ``texts``: values that are not NULL as they are formatted."""

    nullable: bool
    template: str
    texts: Callable[[Texts], Texts] | None = None
    """Only where values need more than the template: where a row has NULLs, an end or the escape. None: they never do."""
    is_bytes: bool = False
    checks: tuple[Check, ...] = ()


def lines_of(columns: Sequence[WireColumn]) -> RowsLines | None:
    """Return the function that renders rows as lines of a bulk load; None if a column's type is not proven."""
    if not all(map(_is_proven, columns)):
        return None
    return _Lines.of(tuple(map(_column, columns))).render


def _is_proven(column: WireColumn) -> bool:
    description, mysql_type, flags = column
    if data_type_of(description) not in _PROVEN or mysql_type in _UNPROVEN_WIRE or needs_every_value(description, mysql_type):
        return False
    if mysql_type in STRINGS and description.binary != bool(flags & Flag.BINARY):
        return False
    try:
        fitting_literal_of(*column)
    except (ApplierError, ValueError):  # REPLACE says what is wrong
        return False
    return mysql_type in INTEGERS | FLOATS | STRINGS | TEXTS | {DECIMAL, ENUM, SET}


def _column(column: WireColumn) -> _Column:
    description, mysql_type, _ = column
    checks = tuple(_checks(description, mysql_type))
    nullable = description.nullable
    if mysql_type in FLOATS:
        return _Column(nullable, "%r", _floats32 if is_float32(description) else None, checks=checks)
    if data_type_of(description) == "year":
        return _Column(nullable, "%04d", _years, checks=checks)
    if mysql_type in INTEGERS | {ENUM, SET}:
        return _Column(nullable, "%d", checks=checks)
    if description.binary:
        return _Column(nullable, "%s", _hexadecimals, is_bytes=True, checks=checks)
    return _Column(nullable, "%s", _escaped, checks=checks)


def _escaped(values: Texts) -> Texts:
    joined = "".join(values)
    if FIELD_END in joined or LINE_END in joined or ESCAPE in joined:
        return [value.translate(_ESCAPES) for value in values]
    return values


def _hexadecimals(values: Texts) -> Texts:
    return list(map(bytes.hex, values))


def _years(values: Texts) -> Texts:
    # The text 0 is the year 2000, 0000 is the year 0.
    return list(map("{:04d}".format, values))


def _floats32(values: Texts) -> Texts:
    # The greatest FLOAT's shortest text is a number above it: see `row.GREATEST_FLOAT`.
    return [_FLOAT32.unpack(_FLOAT32.pack(value))[0] for value in values]


def _checks(column: ColumnDescription, mysql_type: int) -> Iterable[Check]:
    """Yield what ``fitting`` checks value by value, over many values."""
    data_type = data_type_of(column)
    if data_type in TIMES and fraction_digits(column) < MOST_DIGITS:
        yield _no_fraction if not fraction_digits(column) else _few_digits(fraction_digits(column))
    if data_type == "char" and mysql_type in STRINGS:
        yield _no_end_space
    if data_type == "binary":
        yield _full_length(_length(column))
    if mysql_type in {ENUM, SET}:
        yield _within(len(column.labels) if mysql_type == ENUM else 2 ** len(column.labels) - 1)


def _length(column: ColumnDescription) -> int:
    inside = column.sql_type.partition("(")[2].partition(")")[0]
    return int(inside or 1)


def _no_fraction(values: Sequence[Any]) -> bool:
    return "." not in "".join(filter(None, values))


def _few_digits(digits: int) -> Check:
    return lambda values: not any("." in value[: -digits - 1] for value in values if value is not None)


def _no_end_space(values: Sequence[Any]) -> bool:
    return not any(value.endswith(" ") for value in values if value is not None)


def _full_length(length: int) -> Check:
    return lambda values: all(len(value) >= length for value in values if value is not None)


def _within(most: int) -> Check:
    return lambda values: all(0 <= value <= most for value in values if value is not None)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Renders batches of rows. All rows of a batch go one way: as one formatted text, or column by column."""

    columns: tuple[_Column, ...]
    template: str
    bytes_at: tuple[int, ...]
    checked_at: tuple[int, ...]
    signs: tuple[str, ...]
    """What a formatted text must not hold, beside the ends of a value."""

    @classmethod
    def of(cls, columns: tuple[_Column, ...]) -> "_Lines":
        """Prepare what is the same for every batch."""
        # Whether the sink's column takes NULL does not count: upstream's may. %d takes none.
        nulls = [_NULL_VALUE] if any(not column.template.endswith("d") for column in columns) else []
        floats = [GREATEST_FLOAT] if any(column.texts is _floats32 for column in columns) else []
        return cls(
            columns,
            FIELD_END.join(column.template for column in columns) + LINE_END,
            tuple(at for at, column in enumerate(columns) if column.is_bytes),
            tuple(at for at, column in enumerate(columns) if column.checks),
            (ESCAPE, *nulls, *floats),
        )

    def render(self, rows: Sequence[tuple[Any, ...]]) -> bytes | None:
        """Return the lines of some rows; None if one of them is left to REPLACE."""
        try:
            # Where the first rows have NULLs, most batches have.
            has_nulls = any(None in row for row in rows[:_FIRST_ROWS])
            text = (None if has_nulls else self._formatted(rows)) or self._rendered(rows)
            return None if text is None else text.encode()
        except (TypeError, ValueError, AttributeError, OverflowError):  # a value that is not of its type, or not UTF-8
            return None

    def _formatted(self, rows: Sequence[tuple[Any, ...]]) -> str | None:
        """Render all rows at once; None if a value needs more than formatting."""
        if self.bytes_at or self.checked_at:
            by_column = list(zip(*rows, strict=True))
            if not all(check(by_column[at]) for at in self.checked_at for check in self.columns[at].checks):
                return None
            if any(None in by_column[at] for at in self.bytes_at):
                return None
            for at in self.bytes_at:
                by_column[at] = tuple(map(bytes.hex, by_column[at]))
            rows = list(zip(*by_column, strict=True)) if self.bytes_at else rows
        try:
            text = self.template * len(rows) % tuple(chain.from_iterable(rows))
        except TypeError:  # a NULL among numbers
            return None
        if any(sign in text for sign in self.signs):
            return None
        fields, lines = (len(self.columns) - 1) * len(rows), len(rows)
        return text if text.count(FIELD_END) == fields and text.count(LINE_END) == lines else None

    def _rendered(self, rows: Sequence[tuple[Any, ...]]) -> str | None:
        """Render column by column: with NULLs, and with values that hold an end or the escape."""
        rendered: list[Texts] = []
        templates: list[str] = []
        for column, values in zip(self.columns, zip(*rows, strict=True), strict=True):
            has_null = None in values
            # What servers make of a NULL here depends on type and statement.
            if (has_null and not column.nullable) or not all(check(values) for check in column.checks):
                return None
            present: Texts = [value for value in values if value is not None] if has_null else values
            texts = present if column.texts is None else column.texts(present)
            if has_null:
                following = iter(texts)
                texts = [NULL if value is None else next(following) for value in values]
            rendered.append(texts)
            # A number that is formatted already, or may be NULL.
            templates.append("%s" if has_null or column.texts is _years else column.template)
        template = FIELD_END.join(templates) + LINE_END
        return template * len(rows) % tuple(chain.from_iterable(zip(*rendered, strict=True)))
