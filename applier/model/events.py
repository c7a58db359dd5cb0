"""Events: rows, DDLs, promises, and the shape that rows of one table have in common.

A ``Value`` is what a column holds: ``None`` for NULL; ``int`` for integer types, YEAR, BIT, ENUM (ordinal) and SET (bit mask);
``float`` for FLOAT and DOUBLE; ``str`` for text, DECIMAL, dates, times, JSON and VECTOR (bytes that are not UTF-8 as lone
surrogates U+DC00 + byte); ``bytes`` for CHAR, VARCHAR and BLOB types with the binary flag. Source: open_protocol.md 2.6.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from applier.model.errors import Remedy
from applier.model.position import Ts

Value: TypeAlias = int | float | str | bytes | None


class RowKind(IntEnum):
    """What a cached row does to its key; the order is that of one commit_ts: deletes first."""

    # Compaction compares these numbers. By (commit_ts, offset) alone, without the kind, 650 of 3,000 simulated histories end
    # wrong: one transaction may delete a key and write it again.
    DELETE = 0
    UPSERT = 1


class RowOperation(StrEnum):
    """What happened to the row upstream."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class FoldedName(NamedTuple):
    """Identity of a table: casefolded schema and table. A schema has table ''."""

    schema: str
    table: str

    def __str__(self) -> str:
        """Spell the name as ``schema.table``."""
        return f"{self.schema}.{self.table}" if self.table else self.schema

    @property
    def schema_name(self) -> "FoldedName":
        """The name that represents all tables of the schema."""
        return FoldedName(self.schema, "")

    def is_covered(self, touched: frozenset["FoldedName"]) -> bool:
        """Whether the table is among some names that a DDL touched, itself or through its schema."""
        return self in touched or self.schema_name in touched


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
"""CHAR, VARCHAR and the BLOB family: the types whose values are bytes or text, by the binary flag."""


class ColumnShape(NamedTuple):
    """A column as every row of one shape describes it.

    ``flags``: a number by which the row's format describes it; only that format's decoder reads it. ``is_bytes``: its values are bytes, of
    a type that can also hold text (``STRING_TYPES``). ``is_generated``: upstream computes and stores it; None: the format does not tell.
    A format that does not tell must not send virtual columns.
    """

    name: str
    mysql_type: int
    flags: int = 0
    is_bytes: bool = False
    is_unsigned: bool = False
    is_generated: bool | None = False


class KnownKeys(NamedTuple):
    """What a format knows of the keys of a table, from its rows alone. Names are spelled as in the columns; None: the format does not tell.

    ``handle``: the columns whose values are the key of the rows (``PlacedRow.key``), sorted by casefolded name. () says that upstream's
    table has no key. None says that it may have one: then each row has the key ``b""``, an update is a delete of the old row and an upsert
    of the new one, all rows of the table are placed together, and the sink's catalogue gives the key when they are written.
    ``primary``: the members of the primary key. ``unique``: of the other unique indexes, together. None: upstream's statements, or
    upstream itself, must explain a unique index of the sink.
    ``identifying``: the members of any of these that are NOT NULL, if the format tells: the sink's key must be among them where the
    rows do not have all of the handle key.
    """

    handle: tuple[str, ...] | None = None
    primary: tuple[str, ...] | None = None
    unique: tuple[str, ...] | None = None
    identifying: tuple[str, ...] = ()


UNKNOWN_KEYS = KnownKeys()
"""Of a format that tells no key of the table."""


class Shape(NamedTuple):
    """What rows of one table have in common, so that it is examined once and not per row. Columns are in the order of the wire.

    ``keys``: what the format knows of the table's keys.
    ``placeholder``: the rows hold their handle key alone; the whole rows are read from upstream before they are written.
    ``routed_from``: upstream's name of the table, where a route gives it another one in the sink; None: it has one name.
    ``partitioned``: the rows have no handle key, and are of a partitioned table, whose partitions keep no order among one another.
    ``encoding``: what else the source's decoder must know to read an image of this shape; only the decoder reads it.
    ``hides_actions``: upstream has executed the actions of foreign keys for these rows, and no event says what they changed.
    """

    schema: str
    table: str
    columns: tuple[ColumnShape, ...]
    keys: KnownKeys = UNKNOWN_KEYS
    placeholder: bool = False
    routed_from: TableName | None = None
    encoding: bytes = b""
    hides_actions: bool = False
    partitioned: bool = False

    @property
    def name(self) -> TableName:
        """The table in the sink, as upstream spells it."""
        return TableName(self.schema, self.table)

    @property
    def upstream_name(self) -> TableName:
        """The table in upstream."""
        return self.routed_from or self.name

    @property
    def handle_key(self) -> tuple[ColumnShape, ...]:
        """The handle-key columns, sorted by casefolded name: the order of the values in a row's key. Empty: no key, or an unknown one."""
        return _handle_key(self)

    @property
    def has_unknown_key(self) -> bool:
        """Whether the format does not tell the key's columns, or whether there is a key."""
        return self.keys.handle is None

    @property
    def tells_generated(self) -> bool:
        """Whether the format tells which columns upstream computes."""
        return not self.columns or self.columns[0].is_generated is not None

    def key_alone(self) -> "Shape":
        """Return the shape of images that hold the handle key alone."""
        return self._replace(columns=self.handle_key)


@lru_cache(maxsize=4096)
def _handle_key(shape: Shape) -> tuple[ColumnShape, ...]:
    # Asked several times per range and shape: of 40 columns it takes 30 us to find, and 1 us to look up.
    names = frozenset(shape.keys.handle or ())
    return tuple(sorted((c for c in shape.columns if c.name in names), key=lambda c: c.name.casefold()))


class Column(NamedTuple):
    """One column of one image. ``flags``: as in ``ColumnShape``. ``is_key``: the format tells that it belongs to the handle key."""

    mysql_type: int
    flags: int
    value: Value
    is_key: bool = False


Image: TypeAlias = dict[str, Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvent:
    """A decoded row change. ``after`` is the ``u`` image, ``before`` the ``p`` or ``d`` image."""

    commit_ts: Ts
    schema: str
    table: str
    partition_id: int | None
    operation: RowOperation
    only_handle_key: bool
    claim_check: str | None
    after: Image | None
    before: Image | None


class TableMove(NamedTuple):
    """What a DDL does to one table, by upstream's names: None before it makes the table, and after it drops it.

    ``sink``: the name that ``after`` has in the sink; None: it is skipped. A schema that is dropped has table ''.
    """

    before: FoldedName | None
    after: FoldedName | None
    sink: FoldedName | None


class ExcludedTable(NamedTuple):
    """A table whose rows the filter excludes, or some of them. ``ts``: of one of them."""

    ts: int
    name: TableName


class DdlRefusal(NamedTuple):
    """Why a DDL cannot be applied with the configured filter and routes, and what an operator does about it.

    ``kept``: upstream's name of the table that is skipped; if the sink has it unchanged, the DDL, with the sink's names, is applied.
    """

    why: str
    remedy: Remedy
    kept: TableName | None = None


class CutOver(NamedTuple):
    """A RENAME by which a copy of a table replaces it: ``table`` and ``copy`` by upstream's names.

    ``is_routed``: whether the table has another name in the sink.
    """

    table: TableName
    copy: TableName
    is_routed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlEvent:
    """A DDL. ``schema`` and ``table`` are the event's own (RENAME: the new name); ``ddl_type`` is TiDB's ActionType.

    ``left_out``: why the filter excludes it, '' if it does not; it is recorded as skipped, with upstream's names. ``refusal``: why it
    stops the run at its turn. Else its names are the sink's.
    """

    commit_ts: Ts
    schema: str
    table: str
    query: str
    ddl_type: int
    left_out: str = ""
    refusal: DdlRefusal | None = None
    moves: tuple[TableMove, ...] = ()
    """What it does to upstream's tables; () without a filter and routes."""
    time_ms: int | None = None
    """When it ran upstream, in milliseconds since the epoch; None: not known."""
    session: tuple[tuple[str, str | int], ...] = ()
    """Variables of the session that it needs where it runs again, where the source says which."""
    cut_over: CutOver | None = None
    """Set for a RENAME that represents an ALTER TABLE of its table: the ledger has the statements of that ALTER TABLE."""

    @property
    def is_of_log(self) -> bool:
        """Whether it is in a log of statements, with all that its session had: also if it changed nothing (IF EXISTS)."""
        return any(name == "sql_mode" for name, _ in self.session)

    @property
    def name(self) -> TableName:
        """The event's own table."""
        return TableName(self.schema, self.table)


class DdlIdentity(NamedTuple):
    """Two DDLs are the same if these are equal; if one of them cannot be parsed, ts, schema and table decide. ``touches`` None: not parsed.

    So broadcast copies, replays and the other text of an upgraded producer are the same DDL, and the pieces of a RENAME chain, which share
    ts and table, are several.
    """

    ts: Ts
    name: FoldedName
    touches: frozenset[FoldedName] | None


@dataclass(frozen=True, slots=True)
class ResolvedEvent:
    """The promise of one stream: no new row or DDL with a smaller ts follows in it. Replays may."""

    ts: Ts


@dataclass(frozen=True, slots=True)
class AdminEvent:
    """The partition-resize event of the founding design (``t`` 4): ``partition`` is the new number."""

    ts: Ts
    partition: int


Event: TypeAlias = RowEvent | DdlEvent | ResolvedEvent | AdminEvent


MARKER_IMAGE = b""
"""The image of a row whose event cannot be read. It keeps the event's position among the versions of its row, so that no older version is
written as the final one; it is never written itself. No image of a producer is empty."""


class PlacedRow(NamedTuple):
    """A row as listeners cache it: its table, time and key, and its image undecoded.

    ``key`` is the msgpack list of the handle-key values in the order of ``shape.handle_key`` (b"" without a handle key, or with an unknown
    one: see ``KnownKeys``);
    ``image`` is the JSON object of the image that the row carries, as the bytes that came (``u`` for an upsert; for a delete
    ``d``, or ``p`` laid over ``u`` where a raw update changed its key).
    """

    commit_ts: int
    kind: int
    shape: Shape
    key: bytes
    image: bytes


# --- skipped statement -----------------------------------------------------------------------------------------------


class SkippedStatement(NamedTuple):
    """A statement of upstream that is not applied, because it changes no table of a replica: one about accounts, a routine, or FLUSH.

    ``kind`` is a label of the metric; ``schema`` that of the session.
    """

    ts: int
    kind: str
    schema: str
