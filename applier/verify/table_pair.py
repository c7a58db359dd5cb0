"""A table of both sides: which columns are compared, by which key, and along which columns ranges are cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from applier.ddl.column_type import TypeFamily
from applier.model.events import TableName
from applier.verify.column_pair import ColumnPair, Form, pair_columns
from applier.verify.side import ServerKind, SideColumn, SideTable

EXACT_ORDER: Final = frozenset({Form.INTEGER, Form.DECIMAL, Form.DOUBLE, Form.BYTES, Form.MOMENT})
"""All servers order these alike."""
_SQLITE_ORDER: Final = frozenset({TypeFamily.INTEGER, TypeFamily.YEAR, TypeFamily.BINARY, TypeFamily.DATE, TypeFamily.DATETIME})
"""What the file stores in the order of upstream: a DECIMAL is text there, and a TIME with its sign too."""
_GREATEST_SIGNED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePair:
    """A table of upstream and the sink's. ``key`` is empty if the table has none: then only whole tables are compared."""

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
    if ServerKind.SQLITE in kinds:
        kind = column.upstream.type
        return kind is not None and kind.family in _SQLITE_ORDER and _is_stored_as_number(column)
    if column.form is Form.TEXT:
        collations = (column.upstream.collation, column.sink.collation)
        return collations[0] == collations[1] or all(name.endswith("_bin") for name in collations)
    return column.form in EXACT_ORDER and not column.is_loose


def _is_stored_as_number(column: ColumnPair) -> bool:
    kind = column.upstream.type
    return kind is None or kind.family is not TypeFamily.INTEGER or kind.highest <= _GREATEST_SIGNED
