"""The bits by which the Open Protocol describes a column, and what they say in the words of ``Shape``. Only placers and decoders read them.

The binlog's folder describes its columns with the same bits, so that ``applier inspect --json`` shows both sources alike.
"""

from collections.abc import Sequence
from enum import IntFlag
from functools import lru_cache
from typing import TypeAlias

from applier.model.events import STRING_TYPES, ColumnShape, KnownKeys, Shape


class Flag(IntFlag):
    """Bits of a column's ``f`` (open_protocol.md 2.5)."""

    BINARY = 1
    HANDLE_KEY = 2
    GENERATED = 4
    PRIMARY_KEY = 8
    UNIQUE_KEY = 16
    MULTIPLE_KEY = 32
    NULLABLE = 64
    UNSIGNED = 128


# As plain numbers: an operation on a Flag takes a microsecond, and these are asked for each column of each shape.
_BINARY, _HANDLE_KEY, _GENERATED, _UNSIGNED = int(Flag.BINARY), int(Flag.HANDLE_KEY), int(Flag.GENERATED), int(Flag.UNSIGNED)
_PRIMARY_KEY, _UNIQUE_KEY, _NULLABLE = int(Flag.PRIMARY_KEY), int(Flag.UNIQUE_KEY), int(Flag.NULLABLE)

Described: TypeAlias = tuple[str, int, int]
"""A column: its name, type and flags."""

MAX_SHAPES = 4096
"""Shapes that are kept: a row that takes the full parse makes its shape again."""


def column_of(name: str, mysql_type: int, flags: int) -> ColumnShape:
    """Return a column that is described by these flags."""
    is_bytes = bool(flags & _BINARY) and mysql_type in STRING_TYPES
    return ColumnShape(name, mysql_type, flags, is_bytes, bool(flags & _UNSIGNED), bool(flags & _GENERATED))


def flags_of(column: ColumnShape) -> int:
    """Return the flags under which a column's values are read: the planner corrects ``is_bytes``, and rows of upstream have no flags."""
    return column.flags | (_BINARY if column.is_bytes else 0) | (_UNSIGNED if column.is_unsigned else 0)


def is_handle(flags: int) -> bool:
    """Whether a column belongs to the handle key."""
    return bool(flags & _HANDLE_KEY)


def keys_of(columns: Sequence[Described], *, shows_unique: bool = True) -> KnownKeys:
    """Return what the flags say of the table's keys. ``shows_unique``: whether they name the members of unique indexes."""
    unique = [column for column in columns if column[2] & (_HANDLE_KEY | _PRIMARY_KEY | _UNIQUE_KEY)]
    return KnownKeys(
        handle=tuple(sorted((name for name, _, flags in columns if flags & _HANDLE_KEY), key=str.casefold)),
        primary=tuple(name for name, _, flags in columns if flags & _PRIMARY_KEY),
        unique=tuple(name for name, _, flags in columns if flags & _UNIQUE_KEY) if shows_unique else None,
        identifying=tuple(name for name, _, flags in unique if not flags & _NULLABLE),
    )


@lru_cache(maxsize=MAX_SHAPES)
def shape_of(schema: str, table: str, columns: tuple[Described, ...]) -> Shape:
    """Return the shape of rows that are described by these columns."""
    return Shape(schema, table, tuple(column_of(*column) for column in columns), keys_of(columns))
