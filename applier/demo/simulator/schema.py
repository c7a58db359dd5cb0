"""Tables of the simulated upstream: columns, indexes, the handle key, and the flags that rows carry on the wire."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from applier.demo.simulator.column_type import Generation, UpstreamType
from applier.model.events import TableName, Value
from applier.sources.column_flags import Flag

PRIMARY = "PRIMARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamColumn:
    """A column. ``default`` fills existing rows when the column is added; ``has_default`` tells None from no default."""

    name: str
    type: UpstreamType
    nullable: bool = True
    default: Value = None
    has_default: bool = False
    generation: Generation | None = None

    @property
    def is_sent(self) -> bool:
        """Whether rows carry it on the wire: VIRTUAL columns never do."""
        return self.generation is None or self.generation.stored


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamIndex:
    """An index; the primary key is unique and named PRIMARY. ``named`` False: the statement gives no name, and upstream chose this one."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    named: bool = True
    expression: str = ""
    """Of an index of an expression over ``columns``; "" for one of the columns themselves."""

    @property
    def primary(self) -> bool:
        """Whether it is the primary key."""
        return self.name == PRIMARY


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table definition. Immutable: a DDL makes another one. ``clustered`` tables keep rows in the order of their key."""

    name: TableName
    columns: tuple[UpstreamColumn, ...]
    indexes: tuple[UpstreamIndex, ...]
    auto_increment: str = ""
    foreign_keys: tuple[str, ...] = ()
    last_foreign_key: int = 0
    """Number in the name that an unnamed foreign key got last: TiDB uses none twice."""
    comment: str = field(default="", compare=False)
    partition_by: str = ""
    """The integer column whose hash gives the partition; "" for a table that is not partitioned."""
    partitions: int = 0

    def __hash__(self) -> int:
        """Hash once: a table is a key of caches on the path of each row."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.columns, self.indexes))

    @cached_property
    def position(self) -> dict[str, int]:
        """Column name -> position in the row."""
        return {column.name: place for place, column in enumerate(self.columns)}

    @cached_property
    def unique_indexes(self) -> tuple[UpstreamIndex, ...]:
        """All unique indexes, the primary key included."""
        return tuple(index for index in self.indexes if index.unique)

    @cached_property
    def handle(self) -> UpstreamIndex | None:
        """The handle key: the primary key, else the unique NOT NULL index with the fewest columns, the oldest one first."""
        candidates = [index for index in self.unique_indexes if index.primary]
        if not candidates:
            nullable = {column.name for column in self.columns if column.nullable}
            candidates = sorted((i for i in self.unique_indexes if not nullable & set(i.columns)), key=lambda index: len(index.columns))
        return candidates[0] if candidates else None

    @cached_property
    def handle_places(self) -> tuple[int, ...]:
        """Positions of the handle-key columns in the row, in index order; empty without a handle key."""
        return tuple(self.position[name] for name in self.handle.columns) if self.handle else ()

    @cached_property
    def sent_places(self) -> tuple[int, ...]:
        """Positions of the columns that rows carry on the wire."""
        return tuple(place for place, column in enumerate(self.columns) if column.is_sent)

    @cached_property
    def _generated(self) -> tuple[tuple[int, int, Generation], ...]:
        found = [(place, column.generation) for place, column in enumerate(self.columns)]
        return tuple((place, self.position[made.source], made) for place, made in found if made is not None)

    def completed(self, row: tuple[Value, ...], *, virtual_only: bool = False) -> tuple[Value, ...]:
        """Return ``row`` with the values that its generated columns have."""
        made = {place: rule.value(row[source]) for place, source, rule in self._generated if not (virtual_only and rule.stored)}
        return tuple(made.get(place, value) for place, value in enumerate(row)) if made else row

    def partition_of(self, row: tuple[Value, ...]) -> int:
        """Return the number of the partition that holds a row, as PARTITION BY HASH counts: NULL is in the first one."""
        value = row[self.position[self.partition_by]]
        return abs(value) % self.partitions if isinstance(value, int) else 0

    @cached_property
    def flags(self) -> tuple[int, ...]:
        """The wire's flags of each column (open_protocol.md 2.5)."""
        return tuple(self._flags(column) for column in self.columns)

    def _flags(self, column: UpstreamColumn) -> int:
        bits = column.type.flags | (Flag.NULLABLE if column.nullable else 0) | (Flag.GENERATED if column.generation else 0)
        if self.handle and column.name in self.handle.columns:
            bits |= Flag.HANDLE_KEY
        for index in self.indexes:
            if column.name in index.columns and not index.expression:
                bits |= Flag.PRIMARY_KEY if index.primary else Flag.UNIQUE_KEY if index.unique else Flag.MULTIPLE_KEY
        return int(bits)

    def is_generated(self, index: UpstreamIndex) -> bool:
        """Return whether the values of an index are upstream's to compute, and no statement can choose them."""
        return any(self.column(name).generation for name in index.columns)

    def column(self, name: str) -> UpstreamColumn:
        """Return the column ``name``; KeyError if there is none."""
        return self.columns[self.position[name]]

    def renamed(self, name: TableName) -> "Table":
        """Return the same definition under another name."""
        return replace(self, name=name)

    def indexed_columns(self) -> frozenset[str]:
        """Names of all columns that some index uses."""
        return frozenset(name for index in self.indexes for name in index.columns)


def primary(*columns: str) -> UpstreamIndex:
    """A primary key over ``columns``."""
    return UpstreamIndex(name=PRIMARY, columns=columns, unique=True)


def unique(name: str, *columns: str) -> UpstreamIndex:
    """A unique index."""
    return UpstreamIndex(name=name, columns=columns, unique=True)


def index(name: str, *columns: str) -> UpstreamIndex:
    """A plain index."""
    return UpstreamIndex(name=name, columns=columns)


def column(name: str, kind: UpstreamType, *, null: bool = True) -> UpstreamColumn:
    """A column without a default."""
    return UpstreamColumn(name=name, type=kind, nullable=null)


def generated(name: str, kind: UpstreamType, generation: Generation, *, null: bool = True) -> UpstreamColumn:
    """A generated column."""
    return UpstreamColumn(name=name, type=kind, generation=generation, nullable=null)


def column_with_default(name: str, kind: UpstreamType, default: Value, *, null: bool = True) -> UpstreamColumn:
    """A column with a declared default."""
    return UpstreamColumn(name=name, type=kind, nullable=null, default=default, has_default=True)
