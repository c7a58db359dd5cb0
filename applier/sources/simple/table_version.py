"""What a message says of a table: its columns with their types, and its indexes; and the shapes of rows that follow from it.

Source: canal_json_and_simple.md 4.2. Rows name the table and the version. RENAME keeps the version, so the name is a part of what a
version is found by; TiDB compares names without case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, Self

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import ColumnShape, KnownKeys, Shape, TableName
from applier.sources.compiled import intern_shape
from applier.sources.simple.value import BYTES_ON_WIRE, TYPES

MAX_SHAPES: Final = 64
"""Shapes of one version that are kept: a table has one, and a second for rows that were too large."""


class WireType(msgspec.Struct, gc=False, frozen=True):
    """The type of a column: ``mysqlType`` is the bare name."""

    mysqlType: str  # noqa: N815 - names of the wire, here and below
    unsigned: bool | None = None


class WireColumnSchema(msgspec.Struct, gc=False, frozen=True):
    """A column of a schema message."""

    name: str
    dataType: WireType  # noqa: N815
    nullable: bool = False


class WireIndex(msgspec.Struct, gc=False, frozen=True):
    """An index of a schema message; ``columns`` in the order of the key. Prefix lengths and expressions are not on the wire."""

    name: str
    unique: bool = False
    primary: bool = False
    nullable: bool = False
    columns: list[str] | None = None


class WireTable(msgspec.Struct, gc=False, frozen=True):
    """A schema message. ``tableID``: the logical one."""

    schema: str
    table: str
    tableID: int = 0  # noqa: N815
    version: int = 0
    columns: list[WireColumnSchema] | None = None
    indexes: list[WireIndex] | None = None


class VersionKey(NamedTuple):
    """What the schema of a row is found by: casefolded names, and the version."""

    schema: str
    table: str
    version: int

    @classmethod
    def of(cls, name: TableName, version: int) -> Self:
        """Return the key of a version of a table."""
        return cls(name.schema.casefold(), name.table.casefold(), version)


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The schema of one version of a table. ``primary``: the columns of the primary key; ``unique``: of each other unique index.

    ``timestamps``: the columns whose values name a zone.
    """

    key: VersionKey
    table_id: int
    columns: dict[str, ColumnShape]
    nullable: frozenset[str]
    primary: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    timestamps: tuple[str, ...] = ()
    _shapes: dict[tuple[object, ...], Shape] = field(default_factory=dict)

    def shape(self, name: TableName, names: tuple[str, ...], encoding: bytes, *, is_partitioned: bool = False) -> Shape:
        """Return the shape of images that have these columns. ProtocolError (schema): the table has no such column.

        ``is_partitioned``: the rows are of a partitioned table; it counts only where they have no key.
        """
        asked = (name, names, encoding, is_partitioned)
        found = self._shapes.get(asked)
        if found is None:
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            found = self._shapes[asked] = self._made(name, names, encoding, is_partitioned=is_partitioned)
        # Interned each time: the process may have forgotten shapes of earlier ranges.
        return intern_shape(found)

    def _made(self, name: TableName, names: tuple[str, ...], encoding: bytes, *, is_partitioned: bool) -> Shape:
        for column in names:
            if column not in self.columns:
                raise ProtocolError.at(None, "schema", "a row has a column that the schema of its version lacks", column=column)
        keys = self._keys(names)
        columns = tuple(self.columns[column] for column in names)
        return Shape(name.schema, name.table, columns, keys, encoding=encoding, partitioned=is_partitioned and keys.handle == ())

    def _keys(self, names: Sequence[str]) -> KnownKeys:
        sent = frozenset(names)
        usable = [index for index in (self.primary, *self.unique) if index and self.nullable.isdisjoint(index)]
        # TiCDC's choice: the primary key, else the NOT NULL unique one with the fewest columns, then the first. What a column selector
        # has taken out cannot be a key of what is left.
        ranked = sorted((index for index in usable if sent.issuperset(index)), key=lambda index: (index != self.primary, len(index)))
        handle: tuple[str, ...] | None = ranked[0] if ranked else None if usable else ()
        identifying = {column for index in (self.primary, *self.unique) for column in index} - self.nullable
        return KnownKeys(
            handle=None if handle is None else tuple(sorted(handle, key=str.casefold)),
            primary=self.primary,
            unique=tuple(sorted({column for index in self.unique for column in index})),
            identifying=tuple(sorted(identifying & sent)),
        )


def table_version(wire: WireTable) -> TableVersion:
    """Return what a schema message says. ProtocolError (column_type)."""
    columns = wire.columns or []
    shapes = list(map(_column, columns))
    indexes = wire.indexes or []
    return TableVersion(
        key=VersionKey.of(TableName(wire.schema, wire.table), wire.version),
        table_id=wire.tableID,
        columns={shape.name: shape for shape in shapes},
        nullable=frozenset(shape.name for shape, column in zip(shapes, columns, strict=True) if column.nullable),
        primary=next((tuple(index.columns or ()) for index in indexes if index.primary), ()),
        unique=tuple(tuple(index.columns or ()) for index in indexes if index.unique and not index.primary),
        timestamps=tuple(column.name for column in columns if column.dataType.mysqlType == "timestamp"),
    )


def _column(column: WireColumnSchema) -> ColumnShape:
    return _shared_column(column.name, column.dataType.mysqlType, bool(column.dataType.unsigned))


@lru_cache(maxsize=65_536)
def _shared_column(name: str, kind: str, is_unsigned: bool) -> ColumnShape:  # noqa: FBT001 - of a cache
    """Return the column: one object for all versions that have it, which are most of what a process keeps."""
    if kind not in TYPES:
        raise ProtocolError.at(None, "column_type", "a column has an unknown type", column=name, mysql_type=kind)
    code, is_bytes = TYPES[kind]
    return ColumnShape(name, code, BYTES_ON_WIRE if is_bytes else 0, is_bytes=is_bytes, is_unsigned=is_unsigned, is_generated=None)
