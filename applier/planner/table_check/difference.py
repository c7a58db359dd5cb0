"""What a table of the sink can have that upstream's table lacks, and how it is found.

Upstream is TiDB, so no statement of it makes a trigger, and its tables always have transactions: these need no comparison. Unique indexes
are compared with the flags of the wire (open_protocol.md 2.5): every member of a unique index carries the bit ``unique key``, every member
of the primary key the bit ``primary key``. Collations are not on the wire: a column of a unique index must tell every two texts apart,
except by PAD SPACE, which is what TiDB's own ``utf8mb4_bin`` does; everything else needs upstream's own statement (``evidence``).

Foreign keys are not looked at. Writers switch ``foreign_key_checks`` off (SQLite: ``PRAGMA foreign_keys``), and then neither DELETE nor
REPLACE fires an action, of this table's keys or of those that reference it (tested on each server); upstream sends the rows of its own
cascades as events.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from applier.model.errors import NeedsOperator
from applier.model.events import Flag, Shape, TableName

BASE_TABLES: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
"""The kinds that hold rows of their own. MariaDB's system-versioned table shows the same rows as a plain one."""


class DifferenceKind(StrEnum):
    """The names by which ``[sink.accept]`` accepts a difference."""

    UNIQUE_INDEX = "unique_index"
    COLLATION = "collation"
    TRIGGER = "trigger"
    VIEW = "view"
    ENGINE = "engine"


class UniqueIndex(NamedTuple):
    """A unique index of the sink. ``columns`` are its columns; expressions are left out."""

    name: str
    columns: tuple[str, ...]


class FoldingColumn(NamedTuple):
    """A column of a unique index whose collation takes different texts for equal (beyond trailing spaces)."""

    name: str
    collation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTable:
    """A table of the sink as the check sees it. ``kind`` is that of information_schema.TABLES.

    ``shows_triggers``: whether the applier's user may see triggers; a user without the privilege sees none.
    """

    name: TableName
    kind: str = "BASE TABLE"
    engine: str = ""
    has_transactions: bool = True
    triggers: tuple[str, ...] = ()
    shows_triggers: bool = True
    folding: tuple[FoldingColumn, ...] = ()
    padding: tuple[FoldingColumn, ...] = ()
    """Columns of unique indexes whose collation takes texts for equal that differ in spaces at the end only (PAD SPACE)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: ``what`` names it, ``harm`` says what it does, ``mend`` how it is removed."""

    kind: DifferenceKind
    what: str
    harm: str
    mend: str
    collation: str = ""
    """The collation in question, which a statement of upstream may explain."""

    def stop(self, **facts: Any) -> NeedsOperator:
        """Make the error that stops the replica. ``facts`` name the place, the table among them."""
        return NeedsOperator(
            f"the sink's table has what upstream's table lacks: {self.what}, {self.harm}",
            remedy=f'{self.mend}. Or accept it: "{facts.get("table", "")}" = ["{self.kind}"] under [sink.accept]',
            difference=str(self.kind),
            **facts,
        )


def differences_of(table: SinkTable, *, new_collations: bool = True) -> tuple[Difference, ...]:
    """List what the table has that upstream's lacks, as far as it shows without rows. ``new_collations``: see ``Acceptance``."""
    if table.kind not in BASE_TABLES:
        return (_not_a_table(table),)
    found = [] if table.has_transactions else [_engine(table)]
    found += [_trigger(name) for name in table.triggers]
    if not table.shows_triggers:
        found.append(_hidden_triggers(table))
    found += [_collation(column) for column in table.folding]
    found += [] if new_collations else [_padding(column) for column in table.padding]
    return tuple(found)


def _not_a_table(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.VIEW,
        table.kind.casefold(),
        "rows would be written through it into other tables",
        "Drop it, and create the table as upstream has it, with its rows",
    )


def _engine(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.ENGINE,
        f"engine {table.engine or 'unknown'}",
        "it has no transactions: a failed segment leaves its rows",
        "Run ALTER TABLE … ENGINE = InnoDB",
    )


def _trigger(name: str) -> Difference:
    return Difference(
        DifferenceKind.TRIGGER, f"trigger {name}", "it changes rows that upstream does not change", f"Run DROP TRIGGER {name}"
    )


def _hidden_triggers(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.TRIGGER,
        "triggers cannot be seen",
        "a trigger changes rows that upstream does not change",
        f"Run GRANT TRIGGER ON {table.name.schema}.* for the applier's user (sql/grants.sql)",
    )


def _collation(column: FoldingColumn) -> Difference:
    return Difference(
        DifferenceKind.COLLATION,
        f"collation {column.collation} of key column {column.name}",
        "it takes texts for equal that upstream may tell apart: one row would replace another",
        f"Give the column {column.name} the collation that it has upstream (TiDB's default is utf8mb4_bin)",
        column.collation,
    )


def _padding(column: FoldingColumn) -> Difference:
    return Difference(
        DifferenceKind.COLLATION,
        f"collation {column.collation} of key column {column.name}",
        "it ignores spaces at the end, upstream does not (source.new_collations = false): one row would replace another",
        f"Give the column {column.name} a collation with NO PAD: utf8mb4_0900_bin (MySQL), utf8mb4_nopad_bin (MariaDB)",
    )


def unique_index_difference(index: str) -> Difference:
    """Describe a unique index that upstream lacks."""
    return Difference(
        DifferenceKind.UNIQUE_INDEX,
        f"unique index {index}",
        "upstream holds rows that it does not allow: one row would replace another",
        f"Drop the index {index}, or make it not unique",
    )


def extra_unique_index(shape: Shape, indexes: Iterable[UniqueIndex]) -> UniqueIndex | None:
    """Return the first unique index that upstream lacks by the flags of a whole row, None if there is none.

    An index is upstream's if all its columns are flagged as members of unique indexes. One that holds a whole key of upstream (the handle
    key or the primary key) cannot refuse what upstream allows. What flags cannot show: ``UNIQUE (a)`` where upstream has
    ``UNIQUE (a, b)``. Columns of an index that the wire does not show at all prove nothing for it.
    """
    flags = {column.name.casefold(): column.flags for column in shape.columns}
    keys = [{name for name, bits in flags.items() if bits & bit} for bit in (Flag.HANDLE_KEY, Flag.PRIMARY_KEY)]
    members = {name for name, bits in flags.items() if bits & Flag.UNIQUE_KEY}
    for index in indexes:
        columns = {column.casefold() for column in index.columns}
        if any(key and key <= columns for key in keys):
            continue
        if not columns & flags.keys() <= members:
            return index
    return None
