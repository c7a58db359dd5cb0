"""The events of the wire, and the shape that rows of one table have in common.

A ``Value`` is what a column holds: ``None`` for NULL; ``int`` for integer types, YEAR, BIT, ENUM (ordinal) and SET (bit mask);
``float`` for FLOAT and DOUBLE; ``str`` for text, DECIMAL, dates, times, JSON and VECTOR (bytes that are not UTF-8 as lone
surrogates U+DC00 + byte); ``bytes`` for CHAR, VARCHAR and BLOB types with the binary flag. Source: open_protocol.md 2.6.
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from typing import NamedTuple, TypeAlias

from applier.model.position import Ts

Value: TypeAlias = int | float | str | bytes | None


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


class RowKind(IntEnum):
    """What a cached row does to its key; the order is that of one commit_ts: deletes first."""

    DELETE = 0
    UPSERT = 1


class RowOperation(StrEnum):
    """What a row event says that happened upstream."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class FoldedName(NamedTuple):
    """Identity of a table: casefolded schema and table. A schema-level object has table ''."""

    schema: str
    table: str

    def __str__(self) -> str:
        """Spell the name as ``schema.table``."""
        return f"{self.schema}.{self.table}" if self.table else self.schema


class TableName(NamedTuple):
    """A table as upstream spells it."""

    schema: str
    table: str

    def __str__(self) -> str:
        """Spell the name as ``schema.table``."""
        return f"{self.schema}.{self.table}" if self.table else self.schema

    def fold(self) -> FoldedName:
        """Return the identity of the table (TiDB looks names up without regard to case)."""
        return FoldedName(self.schema.casefold(), self.table.casefold())


STRING_TYPES = frozenset({15, 249, 250, 251, 252, 253, 254})
"""CHAR, VARCHAR and the BLOB family: what the binary flag says how to read."""


class ColumnShape(NamedTuple):
    """What every row of one shape says about a column."""

    name: str
    mysql_type: int
    flags: int

    @property
    def is_bytes(self) -> bool:
        """Whether its values are read as bytes where they could be text."""
        return self.mysql_type in STRING_TYPES and bool(self.flags & Flag.BINARY)


class Shape(NamedTuple):
    """What rows of one table have in common: looked at once, not per row. Columns are in the order of the wire."""

    schema: str
    table: str
    columns: tuple[ColumnShape, ...]

    @property
    def name(self) -> TableName:
        """The table as upstream spells it."""
        return TableName(self.schema, self.table)

    @property
    def handle_key(self) -> tuple[ColumnShape, ...]:
        """The handle-key columns, sorted by casefolded name: the order of the values in a row's key. Empty: no key."""
        return tuple(sorted((c for c in self.columns if c.flags & Flag.HANDLE_KEY), key=lambda c: c.name.casefold()))


class Column(NamedTuple):
    """One column of one image."""

    mysql_type: int
    flags: int
    value: Value


Image: TypeAlias = dict[str, Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvent:
    """A row change, whole. ``after`` is the ``u`` image, ``before`` the ``p`` or ``d`` image."""

    commit_ts: Ts
    schema: str
    table: str
    partition_id: int | None
    operation: RowOperation
    only_handle_key: bool
    claim_check: str | None
    after: Image | None
    before: Image | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlEvent:
    """A DDL. ``schema`` and ``table`` are the event's own (RENAME: the new name); ``ddl_type`` is TiDB's ActionType."""

    commit_ts: Ts
    schema: str
    table: str
    query: str
    ddl_type: int

    @property
    def name(self) -> TableName:
        """The event's own table."""
        return TableName(self.schema, self.table)


class DdlIdentity(NamedTuple):
    """Two DDLs are the same if these are equal (or, where one was not parsed, ts, schema and table). ``touches`` None: not parsed."""

    ts: Ts
    name: FoldedName
    touches: frozenset[FoldedName] | None


@dataclass(frozen=True, slots=True)
class ResolvedEvent:
    """The promise of one stream: no new row or DDL with a smaller ts follows in it."""

    ts: Ts


@dataclass(frozen=True, slots=True)
class AdminEvent:
    """The partition-resize event of the founding design (``t`` 4): ``partition`` is the new number."""

    ts: Ts
    partition: int


Event: TypeAlias = RowEvent | DdlEvent | ResolvedEvent | AdminEvent


MARKER_IMAGE = b""
"""The image of a row that stands for an event which cannot be read: it holds the event's place among the versions of its row, so that
no older one becomes the final one, and it is never written. No image of a producer is empty."""


class PlacedRow(NamedTuple):
    """A row's place, found without decoding its image.

    ``key`` is the msgpack list of the handle-key values in the order of ``shape.handle_key`` (b"" without a handle key);
    ``image`` is the JSON object of the image that the row carries, as the bytes that came (``u`` for an upsert; for a delete
    ``d``, or ``p`` laid over ``u`` where a raw update changed its key).
    """

    commit_ts: int
    kind: int
    shape: Shape
    key: bytes
    image: bytes
