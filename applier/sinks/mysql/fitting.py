"""Which columns of the sink hold which values of the wire without altering them: by type, and where the type does not decide, by value.

Servers convert much without a warning: an ordinal of ENUM becomes digits in a VARCHAR, 1.7 becomes 2 in an INT, fractions of a second are
cut (MariaDB) or rounded (MySQL), spaces at the end of a CHAR go, a short BINARY is filled up, and 5 is the year 2005 (each seen on MariaDB
10.11 and MySQL 9.7). What they do warn of (out of range, too long, digits of a DECIMAL, characters that a character set lacks) is left to
them: the writer stops at warnings. So wider columns are taken (``_HOLDS``), and narrower ones up to the first value that does not fit.
"""

from typing import Any, Final

from applier.model.errors import NeedsOperator, Remedy, RowRefused
from applier.model.events import STRING_TYPES
from applier.mysql.literals import FLOATS, literal_of, vector
from applier.planner.port import ColumnDescription, Literal

_INTEGER: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXT: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_NAMED_BYTES: Final = frozenset({"uuid", "inet4", "inet6"})
"""MariaDB's types that a binlog has as BINARY, in their own order of bytes."""
_SPATIAL: Final = frozenset({"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"})
_WIRE: Final[dict[int, tuple[str, frozenset[str]]]] = {
    1: ("TINYINT", _INTEGER | {"decimal", "float", "double"}),
    2: ("SMALLINT", _INTEGER | {"decimal", "float", "double"}),
    9: ("MEDIUMINT", _INTEGER | {"decimal", "double"}),
    3: ("INT", _INTEGER | {"decimal", "double"}),
    8: ("BIGINT", _INTEGER | {"decimal"}),
    13: ("YEAR", _INTEGER | {"year"}),
    16: ("BIT", _INTEGER | {"bit", "decimal"}),
    4: ("FLOAT", frozenset({"float", "double"})),
    5: ("DOUBLE", frozenset({"double"})),
    246: ("DECIMAL", frozenset({"decimal"})),
    7: ("TIMESTAMP", frozenset({"timestamp", "datetime"})),
    12: ("DATETIME", frozenset({"datetime"})),
    10: ("DATE", frozenset({"date", "datetime"})),
    14: ("DATE", frozenset({"date", "datetime"})),
    11: ("TIME", frozenset({"time"})),
    225: ("VECTOR", _TEXT | {"vector"}),
    245: ("JSON", _TEXT | {"json"}),
    247: ("ENUM", frozenset({"enum"})),
    248: ("SET", frozenset({"set"})),
    255: ("GEOMETRY", _SPATIAL | {"geometry", "geometrycollection", "geomcollection"}),
}
"""Type of the wire -> its name, and the types of the sink that hold all its values that they take without a warning."""

TIMES: Final = frozenset({"time", "datetime", "timestamp"})
MOST_DIGITS: Final = 6
"""Digits of a second that any server keeps."""


def fitting_literal_of(column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Literal:
    """Return ``literal_of`` for a column that holds such values; its function raises RowRefused for one that would be altered.

    NeedsOperator, with the column and both types, if the column does not hold values of this type.
    """
    literal = literal_of(column, mysql_type, is_bytes=is_bytes)
    _check_kind(column, mysql_type, is_bytes=is_bytes)
    data_type = data_type_of(column)
    if data_type == "vector":
        literal = vector
    if data_type in TIMES:
        literal = _whole_fractions(column, fraction_digits(column), literal)
    if data_type == "char" and mysql_type in STRING_TYPES:
        literal = _without_end_spaces(column, literal)
    if length := binary_length(column):
        literal = _full_length(column, length, literal)
    if mysql_type in FLOATS and len(_arguments(column)) > 1:
        literal = _few_digits(column, _arguments(column)[1], literal)
    if data_type == "timestamp" and not column.nullable:
        literal = _not_null(column, literal)
    return literal


def data_type_of(column: ColumnDescription) -> str:
    """Return the name of the sink's type alone: ``varchar``."""
    return column.sql_type.casefold().partition("(")[0].partition(" ")[0]


def fraction_digits(column: ColumnDescription) -> int:
    """Return how many digits of a second a column of ``TIMES`` keeps."""
    return (_arguments(column) or (0,))[0]


def needs_every_value(column: ColumnDescription, mysql_type: int) -> bool:
    """Return whether each value must be checked alone: what only ``fitting_literal_of`` does."""
    return data_type_of(column) == "vector" or (mysql_type in FLOATS and len(_arguments(column)) > 1)


def binary_length(column: ColumnDescription) -> int:
    """Return the length to which a column of BINARY fills up its values; 0 for other types."""
    return (_arguments(column) or (1,))[0] if data_type_of(column) == "binary" else 0


def _arguments(column: ColumnDescription) -> tuple[int, ...]:
    """Return the numbers in the parentheses of the sink's type."""
    inside = column.sql_type.partition("(")[2].partition(")")[0]
    return tuple(int(number) for number in inside.split(",") if number.strip().isdecimal())


def _check_kind(column: ColumnDescription, mysql_type: int, *, is_bytes: bool) -> None:
    if mysql_type in STRING_TYPES:
        wire, held = ("binary string", _BYTES | _NAMED_BYTES) if is_bytes else ("text", _TEXT)
        is_held = data_type_of(column) in held or (column.binary and is_bytes)
    elif mysql_type in _WIRE:
        wire, held = _WIRE[mysql_type]
        is_held = data_type_of(column) in held
    else:
        return
    if not is_held:
        raise NeedsOperator(
            "the sink's column cannot store upstream's values unchanged",
            remedy=Remedy(
                "mysql.widen-column", "Give the sink's column the type that it has upstream, and compare its values with upstream's"
            ),
            column=column.name,
            sink_type=column.sql_type,
            upstream_type=wire,
        )


def _refused(column: ColumnDescription, why: str) -> RowRefused:
    return RowRefused(
        f"the sink's column would change a value: {why}",
        remedy=Remedy("mysql.define-column-like-upstream", "Give the sink's column the definition that it has upstream"),
        column=column.name,
        sink_type=column.sql_type,
    )


def _whole_fractions(column: ColumnDescription, digits: int, literal: Literal) -> Literal:
    if digits >= MOST_DIGITS:
        return literal

    def whole(value: Any) -> str:
        if value is not None and value.partition(".")[2][digits:].strip("0"):
            raise _refused(column, f"it stores {digits} fractional digits of a second")
        return literal(value)

    return whole


def _without_end_spaces(column: ColumnDescription, literal: Literal) -> Literal:
    def ended(value: Any) -> str:
        if value is not None and value.endswith(" "):
            raise _refused(column, "it removes trailing spaces")
        return literal(value)

    return ended


def _full_length(column: ColumnDescription, length: int, literal: Literal) -> Literal:
    def full(value: Any) -> str:
        if value is not None and len(value) < length:
            raise _refused(column, f"it pads values to {length} bytes")
        return literal(value)

    return full


def _few_digits(column: ColumnDescription, digits: int, literal: Literal) -> Literal:
    def few(value: Any) -> str:
        if value is not None and value != round(value, digits):
            raise _refused(column, f"it stores {digits} digits after the decimal point")
        return literal(value)

    return few


def _not_null(column: ColumnDescription, literal: Literal) -> Literal:
    def present(value: Any) -> str:
        if value is None:
            raise _refused(column, "it is NOT NULL, and servers write the current time instead of NULL")
        return literal(value)

    return present
