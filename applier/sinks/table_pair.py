"""A table of both sides: which columns are compared, by which key, and along which columns ranges are cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.model.events import FoldedName, TableName
from applier.planner.port import ColumnDescription, TableDescription

# --- side ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """How a database writes values, and what it can do. Two sides of one kind write the same value alike."""

    name: str
    has_history: bool = False
    """It can be read as it was at a timestamp."""
    is_wide: bool = False
    """It shows the digits of a DOUBLE differently from upstream's servers: they are compared as numbers."""
    has_own_types: bool = False
    """Its columns are not upstream's: without lengths and labels, they cut nothing; only numbers, bytes and dates have upstream's order."""
    begins: tuple[str, ...] = ("BEGIN",)
    """The statements that begin a file of repairs."""
    lenient: tuple[str, str] = ("", "")
    """The statements around rows that only a session which is not strict takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideColumn:
    """A column. ``type`` is None if it is not a type that is replicated."""

    description: ColumnDescription
    type: ColumnType | None
    charset: str = ""
    collation: str = ""

    @property
    def name(self) -> str:
        """The name as this side spells it."""
        return self.description.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTable:
    """A table. ``rows`` is an estimate of the server."""

    description: TableDescription
    columns: tuple[SideColumn, ...]
    rows: int = 0

    @property
    def name(self) -> TableName:
        """The name as this side spells it."""
        return TableName(self.description.schema, self.description.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a side has: its tables and its views. ``known``: the tables that the replica has written, on the sink."""

    tables: tuple[TableName, ...]
    views: tuple[TableName, ...] = ()
    known: frozenset[FoldedName] = frozenset()


# --- column pair -----------------------------------------------------------------------------------------------------
# A column of both sides, and the form in which its values are compared.
#
# Equal values must have equal text on both sides, and different ones different text. Servers print FLOAT, DOUBLE and JSON in their own
# ways, so the form depends on both. Where no expression of SQL gives one text (``is_loose``), values with different texts are compared by
# ``value.is_equal``.

INTEGERS: Final = frozenset({TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.YEAR})
FLOATS: Final = frozenset({TypeFamily.FLOAT, TypeFamily.DOUBLE})
NUMBERS: Final = INTEGERS | FLOATS | {TypeFamily.DECIMAL}
MOMENTS: Final = frozenset({TypeFamily.DATE, TypeFamily.DATETIME, TypeFamily.TIMESTAMP})
LARGE: Final = frozenset({"text", "mediumtext", "longtext", "blob", "mediumblob", "longblob", "json", "vector"})
"""Values that may not fit into one packet with others (CONCAT_WS would return NULL): their digests are compared."""
MAX_PRECISION: Final = 65


class Form(StrEnum):
    """How values are written down to be compared."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    BYTES = "bytes"
    ORDINAL = "ordinal"
    LABEL = "label"
    MOMENT = "moment"
    JSON = "json"
    VECTOR = "vector"


VARIABLE: Final = frozenset({Form.TEXT, Form.BYTES, Form.LABEL, Form.JSON, Form.VECTOR})
"""Forms whose texts may hold any character, the separator among them: their length goes before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPair:
    """A column of upstream and the sink's of the same name. ``scale``: digits of DECIMAL, or of a second, on both sides."""

    upstream: SideColumn
    sink: SideColumn
    form: Form
    scale: int = 0
    is_wide: bool = False
    """DOUBLE as digits and exponent: the sides do not print numbers alike."""
    has_signed_zero: bool = True
    """Whether -0 and 0 are different: MariaDB stores 0 for both."""
    is_loose: bool = False
    """Equal values may have different texts."""

    @property
    def name(self) -> str:
        """The name, as upstream spells it."""
        return self.upstream.name

    @property
    def is_nullable(self) -> bool:
        """Whether one of the sides allows NULL."""
        return self.upstream.description.nullable or self.sink.description.nullable

    @property
    def is_large(self) -> bool:
        """Whether the values' digests are compared instead of the values."""
        types = (self.upstream.type, self.sink.type)
        return self.form in VARIABLE and any(each is not None and each.base in LARGE for each in types)

    @property
    def is_generated(self) -> bool:
        """Whether the sink computes the value itself."""
        return self.sink.description.generated


def pair_columns(upstream: SideColumn, sink: SideColumn, kinds: tuple[ServerKind, ServerKind]) -> ColumnPair | None:
    """Return the pair; None if values of these types cannot be compared."""
    one = upstream.type
    # A table that the applier did not make does not say there what its values are.
    other = one if sink.type is None and kinds[1].has_own_types else sink.type
    if one is None or other is None:
        return None
    form = _form(one, other, kinds)
    if form is None:
        return None
    loose = form in {Form.JSON, Form.VECTOR} or (form is Form.DOUBLE and one.family is not other.family)
    return ColumnPair(
        upstream=upstream,
        sink=sink,
        form=form,
        scale=max(one.scale, other.scale) if form in {Form.DECIMAL, Form.MOMENT} else 0,
        is_wide=form is Form.DOUBLE and any(kind.is_wide for kind in kinds),
        has_signed_zero=kinds[0] == kinds[1],
        is_loose=loose,
    )


def _form(one: ColumnType, other: ColumnType, kinds: tuple[ServerKind, ServerKind]) -> Form | None:  # noqa: PLR0911 - one per kind of form
    families = {one.family, other.family}
    if families <= NUMBERS:
        return _number_form(one, other)
    if families <= MOMENTS or families == {TypeFamily.TIME}:
        # The time of day of a TIMESTAMP depends on the session's zone, that of a DATE is midnight.
        return None if families == {TypeFamily.DATE, TypeFamily.TIMESTAMP} else Form.MOMENT
    if len(families) == 1 and families <= {TypeFamily.ENUM, TypeFamily.SET}:
        return Form.ORDINAL if one.labels == other.labels and not any(kind.has_own_types for kind in kinds) else Form.LABEL
    if families == {TypeFamily.CHARACTER}:
        return Form.TEXT
    if families == {TypeFamily.BINARY}:
        return Form.BYTES
    for family, form in ((TypeFamily.JSON, Form.JSON), (TypeFamily.VECTOR, Form.VECTOR)):
        if family in families and families <= {family, TypeFamily.CHARACTER}:
            return form
    return None


def _number_form(one: ColumnType, other: ColumnType) -> Form | None:
    families = {one.family, other.family}
    if families <= INTEGERS:
        return Form.INTEGER
    if families & FLOATS:
        return Form.DOUBLE
    digits = max(each.precision - each.scale if each.family is TypeFamily.DECIMAL else 20 for each in (one, other))
    return Form.DECIMAL if digits + max(one.scale, other.scale) <= MAX_PRECISION else None


# --- table pair ------------------------------------------------------------------------------------------------------


EXACT_ORDER: Final = frozenset({Form.INTEGER, Form.DECIMAL, Form.DOUBLE, Form.BYTES, Form.MOMENT})
"""All servers order these alike."""
_OWN_ORDER: Final = frozenset({TypeFamily.INTEGER, TypeFamily.YEAR, TypeFamily.BINARY, TypeFamily.DATE, TypeFamily.DATETIME})
"""What the file stores in the order of upstream: a DECIMAL is text there, and a TIME with its sign too."""
_GREATEST_SIGNED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePair:
    """A table of upstream and the sink's. ``key`` is empty if the table does not have one: then only whole tables are compared."""

    upstream: SideTable
    sink: SideTable
    columns: tuple[ColumnPair, ...]
    key: tuple[ColumnPair, ...]
    ranged: tuple[ColumnPair, ...]
    """The first columns of the key whose order is the same on both sides: ranges are cut along them."""

    @property
    def name(self) -> TableName:
        """The name, as the sink spells it: reports and statements are about the sink."""
        return self.sink.name

    @property
    def must_check_order(self) -> bool:
        """Whether both sides are asked for the order of bounds: servers differ in rare characters."""
        return any(column.form is Form.TEXT for column in self.ranged)

    def key_positions(self) -> tuple[int, ...]:
        """Return where the key's columns are among all."""
        return tuple(self.columns.index(column) for column in self.key)


def pair_tables(upstream: SideTable, sink: SideTable, kinds: tuple[ServerKind, ServerKind]) -> TablePair | str:
    """Return the pair, or what is wrong with it: columns that are missing, too many or of another type."""
    others = {column.name.casefold(): column for column in sink.columns}
    problems = _missing(upstream.columns, sink.columns)
    columns: list[ColumnPair] = []
    for column in upstream.columns:
        other = others.get(column.name.casefold())
        pair = None if other is None else pair_columns(column, other, kinds)
        if pair is not None:
            columns.append(pair)
        elif other is not None:
            types = f"{column.description.sql_type} upstream, {other.description.sql_type} in the sink"
            problems.append(f"column {column.name} has types that cannot be compared: {types}")
    if problems:
        return "; ".join(problems)
    by_name = {column.name: column for column in columns}
    keys = upstream.description.unique_keys
    key = tuple(by_name[name] for name in keys[0]) if keys else ()
    return TablePair(upstream=upstream, sink=sink, columns=tuple(columns), key=key, ranged=_ranged(key, kinds))


def _missing(upstream: Sequence[SideColumn], sink: Sequence[SideColumn]) -> list[str]:
    wanted, found = ({column.name.casefold() for column in columns} for columns in (upstream, sink))
    missing = [f"column {column.name} is missing" for column in upstream if column.name.casefold() not in found]
    return missing + [f"column {column.name} is too many" for column in sink if column.name.casefold() not in wanted]


def _ranged(key: Sequence[ColumnPair], kinds: tuple[ServerKind, ServerKind]) -> tuple[ColumnPair, ...]:
    for at, column in enumerate(key):
        if not _is_ordered(column, kinds):
            return tuple(key[:at])
    return tuple(key)


def _is_ordered(column: ColumnPair, kinds: tuple[ServerKind, ServerKind]) -> bool:
    if any(each.has_own_types for each in kinds):
        kind = column.upstream.type
        return kind is not None and kind.family in _OWN_ORDER and _is_stored_as_number(column)
    if column.form is Form.TEXT:
        collations = (column.upstream.collation, column.sink.collation)
        return collations[0] == collations[1] or all(name.endswith("_bin") for name in collations)
    return column.form in EXACT_ORDER and not column.is_loose


def _is_stored_as_number(column: ColumnPair) -> bool:
    kind = column.upstream.type
    return kind is None or kind.family is not TypeFamily.INTEGER or kind.highest <= _GREATEST_SIGNED
