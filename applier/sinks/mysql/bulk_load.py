"""Bulk loads: the statement (``LOAD DATA LOCAL INFILE … REPLACE INTO TABLE``) and rows as lines, with the meaning of a REPLACE.

Everything that a server could take from its own settings is written out: the character set, the ends, the columns. Whatever is not
read from text as REPLACE reads it from a literal goes through a variable: bytes as hexadecimal digits, and BIT, ENUM and SET as numbers
(as text, ``1`` in a BIT column is the character, and in an ENUM the label).

A load and a REPLACE must store the same bytes. tests/integration/test_mysql_bulk_values.py compares them for each type of ``_PROVEN`` with
hostile values, on each server. What is not proven is not loaded: a table with another type, and a batch of rows with a value that needs
care (refused by the sink's column, not UTF-8, not of its type), are left to REPLACE, which also finds the words for what is wrong.

Fields and lines end with control characters, which texts hardly hold: backslashes, quotes and line feeds of JSON need no escape. All work
on a value is done in C: its column is proven by what it is added up or joined to (a NULL, or a value of another type, is no part of
either), and one ``%`` formats a whole batch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import Any, Final, TypeAlias

from applier.model.errors import ApplierError
from applier.mysql.literals import DECIMAL, ENUM, FLOATS, GREATEST_FLOAT, INTEGERS, SET, STRINGS, TEXTS, greatest_ordinal, is_float32
from applier.mysql.names import quote_identifier, quote_table
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.port import RowsLines, WireColumn
from applier.sinks.mysql.fitting import (
    MOST_DIGITS,
    TIMES,
    binary_length,
    data_type_of,
    fitting_literal_of,
    fraction_digits,
    needs_every_value,
)

FILE_NAME: Final = "applier-rows"
"""The name that the statement asks for. There is no such file: the rows are sent from memory, and no other name is answered."""
LOAD_BYTES: Final = 4 * 1024 * 1024
"""Where a load is cut: larger ones gain nothing and hold memory."""


def loads(table: TableDescription, columns: Sequence[str], lines: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (statement, content, rows) from lines of some rows and their number, in order, cut by bytes."""
    text = _statement(table, columns)
    batch: list[bytes] = []
    used = rows = 0
    for content, number in lines:
        if batch and used + len(content) > LOAD_BYTES:
            yield text, b"".join(batch), rows
            batch, used, rows = [], 0, 0
        batch.append(content)
        used += len(content)
        rows += number
    if batch:
        yield text, b"".join(batch), rows


def _statement(table: TableDescription, columns: Sequence[str]) -> bytes:
    by_name = {column.name: column for column in table.columns}
    targets, assignments = [], []
    for number, name in enumerate(columns):
        expression = _expression(by_name[name], f"@applier_{number}")
        targets.append(f"@applier_{number}" if expression else quote_identifier(name))
        if expression:
            assignments.append(f"{quote_identifier(name)}={expression}")
    text = (
        f"LOAD DATA LOCAL INFILE '{FILE_NAME}' REPLACE INTO TABLE {quote_table(table.schema, table.table)} CHARACTER SET utf8mb4"
        f" FIELDS TERMINATED BY {_hexadecimal(FIELD_END)} ENCLOSED BY '' ESCAPED BY {_hexadecimal(ESCAPE)}"
        f" LINES STARTING BY '' TERMINATED BY {_hexadecimal(LINE_END)} ({','.join(targets)})"
    )
    return (f"{text} SET {','.join(assignments)}" if assignments else text).encode()


def _expression(column: ColumnDescription, variable: str) -> str:
    """Return what the column is set to; empty if it takes the text as it is."""
    if column.binary:
        return f"UNHEX({variable})"
    return f"CAST({variable} AS UNSIGNED)" if column.labels or data_type_of(column) == "bit" else ""


def _hexadecimal(sign: str) -> str:
    return f"X'{sign.encode().hex()}'"


FIELD_END: Final = "\x1f"
LINE_END: Final = "\x1e"
ESCAPE: Final = "\x1b"
NULL: Final = f"{ESCAPE}N"
# A server reads any character after the escape as itself, except 0, b, n, r, t, Z and N.
_ESCAPES: Final = str.maketrans({end: ESCAPE + end for end in (FIELD_END, LINE_END, ESCAPE)})
_END_SPACE: Final = f" {FIELD_END}"

_PROVEN: Final = (
    frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year", "decimal", "float", "double"})
    | {"date", "time", "datetime", "timestamp", "enum", "set", "json"}
    | {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
    | {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
)
_UNPROVEN_WIRE: Final = frozenset({225})
"""VECTOR."""
_FLOAT32: Final = Struct("<f")

Values: TypeAlias = Sequence[Any]
Fields: TypeAlias = Callable[[Values], Values | None]
"""Values of one column -> what ``%s`` formats as their fields. None: left to REPLACE. TypeError: a NULL, or a value of another type."""


def lines_of(columns: Sequence[WireColumn]) -> RowsLines | None:
    """Return the function that renders rows as lines of a bulk load; None if a column's type is not proven."""
    if not all(map(_is_proven, columns)):
        return None
    fields_of = [_or_nulls(_fields(column), nullable=column.column.nullable) for column in columns]
    line = FIELD_END.join("%s" for _ in columns) + LINE_END

    def render(columns: Sequence[Values]) -> bytes | None:
        rendered: list[Values] = []
        try:
            for fields, values in zip(fields_of, columns, strict=True):
                if (texts := fields(values)) is None:
                    return None
                rendered.append(texts)
            return (line * len(rendered[0]) % tuple(chain.from_iterable(zip(*rendered, strict=True)))).encode()
        except (TypeError, ValueError, AttributeError, OverflowError):  # a value that is not of its type, or not UTF-8
            return None

    return render


def _is_proven(column: WireColumn) -> bool:
    description, mysql_type, is_bytes = column
    if data_type_of(description) not in _PROVEN or mysql_type in _UNPROVEN_WIRE or needs_every_value(description, mysql_type):
        return False
    if mysql_type in STRINGS and description.binary != is_bytes:
        return False
    try:
        fitting_literal_of(column.column, column.mysql_type, is_bytes=column.is_bytes)
    except (ApplierError, ValueError):  # REPLACE says what is wrong
        return False
    return mysql_type in INTEGERS | FLOATS | STRINGS | TEXTS | {DECIMAL, ENUM, SET}


def _or_nulls(fields: Fields, *, nullable: bool) -> Fields:
    """Return the fields of values among which there may be NULLs."""

    def with_nulls(values: Values) -> Values | None:
        try:
            return fields(values)
        except TypeError:
            # What servers make of a NULL in a column that takes none depends on its type and on the statement.
            if not nullable:
                return None
        present = [value for value in values if value is not None]
        texts = fields(present)
        if texts is present:
            return [NULL if value is None else value for value in values]
        following = iter(texts or ())
        return None if texts is None else [NULL if value is None else next(following) for value in values]

    return with_nulls


def _fields(column: WireColumn) -> Fields:
    description, mysql_type, _ = column
    data_type = data_type_of(description)
    if mysql_type in {ENUM, SET}:
        return _within(greatest_ordinal(description, mysql_type) or 0)
    if mysql_type in INTEGERS:
        return _years if data_type == "year" else _integers
    if mysql_type in FLOATS:
        return _floats32 if is_float32(description) else _floats
    if description.binary:
        return _hexadecimals(binary_length(description))
    if data_type in TIMES and fraction_digits(description) < MOST_DIGITS:
        return _times(fraction_digits(description))
    return _unpadded_texts if data_type == "char" and mysql_type in STRINGS else _texts


def _integers(values: Values) -> Values | None:
    return values if type(sum(values)) is int else None


def _floats(values: Values) -> Values:
    sum(values)
    return values


def _floats32(values: Values) -> Values:
    if values and (max(values) > GREATEST_FLOAT or min(values) < -GREATEST_FLOAT):
        return [_FLOAT32.unpack(_FLOAT32.pack(value))[0] for value in values]
    return values


def _years(values: Values) -> Values:
    # The text 0 is the year 2000, 0000 is the year 0.
    return list(map("{:04d}".format, values))


def _within(most: int) -> Fields:
    def ordinals(values: Values) -> Values | None:
        return values if not values or (min(values) >= 0 and max(values) <= most) else None

    return ordinals


def _hexadecimals(least: int) -> Fields:
    def digits(values: Values) -> Values | None:
        return None if least and any(len(value) < least for value in values) else list(map(bytes.hex, values))

    return digits


def _texts(values: Values) -> Values:
    joined = "".join(values)
    if FIELD_END in joined or LINE_END in joined or ESCAPE in joined:
        return [value.translate(_ESCAPES) for value in values]
    return values


def _unpadded_texts(values: Values) -> Values | None:
    # The second search is for the last value.
    joined = FIELD_END.join(values)
    if (_END_SPACE in joined or joined.endswith(" ")) and any(value.endswith(" ") for value in values):
        return None
    return _texts(values)


def _times(digits: int) -> Fields:
    def times(values: Values) -> Values | None:
        if "." in "".join(values) and (not digits or any("." in value[: -digits - 1] for value in values)):
            return None
        return _texts(values)

    return times
