"""How a table of the sink can differ from upstream's table in a way that loses or alters rows, and how the applier finds out.

Upstream is TiDB. It has no triggers, and its tables always have transactions: these need no comparison. Unique indexes are compared with
the flags of the wire (open_protocol.md 2.5): every member of a unique index carries the bit ``unique key``, every member of the primary key
the bit ``primary key``. Collations are not on the wire. So a column of a unique index must keep every two texts apart. One exception is PAD
SPACE, which TiDB's own ``utf8mb4_bin`` has too; every other one needs upstream's own statement (``evidence``).

Foreign keys are not compared. Writers switch ``foreign_key_checks`` off (SQLite: ``PRAGMA foreign_keys``). Then neither DELETE nor REPLACE
fires an action, of this table's keys or of those that reference it (tested on each server). Upstream sends the rows of its own cascades as
events, or its tables are written in order, with their actions (``planner.key_actions``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from applier.ddl.generated import Unportable
from applier.model.errors import NeedsOperator
from applier.model.events import Flag, Shape, TableName

BASE_TABLES: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
"""Kinds of tables that hold their own rows. MariaDB's system-versioned table shows the same rows as a plain one."""

# As plain numbers: an operation on a Flag takes a microsecond, and these are asked for each column of each shape.
_HANDLE_KEY, _PRIMARY_KEY, _UNIQUE_KEY = int(Flag.HANDLE_KEY), int(Flag.PRIMARY_KEY), int(Flag.UNIQUE_KEY)


class DifferenceKind(StrEnum):
    """The names by which ``[sink.accept]`` accepts a difference."""

    UNIQUE_INDEX = "unique_index"
    COLLATION = "collation"
    TRIGGER = "trigger"
    VIEW = "view"
    ENGINE = "engine"
    FOREIGN_KEY = "foreign_key"
    GENERATED = "generated"


class UniqueIndex(NamedTuple):
    """A unique index of the sink. ``columns`` are its columns; expressions are left out."""

    name: str
    columns: tuple[str, ...]


class FoldingColumn(NamedTuple):
    """A column of a unique index whose collation treats different texts as equal."""

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
    """Columns whose collation treats texts as equal that differ in more than trailing spaces."""
    padding: tuple[FoldingColumn, ...] = ()
    """Columns whose collation treats texts as equal that differ in trailing spaces only (PAD SPACE)."""
    unportable: tuple[Unportable, ...] = ()
    """Generated columns of which the sink computes other values than upstream."""
    unportable_indexes: tuple[str, ...] = ()
    """Unique indexes of expressions of which it computes other values."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: ``what`` names it, ``harm`` says what it does to rows, ``remedy`` how to remove it."""

    kind: DifferenceKind
    what: str
    harm: str
    remedy: str
    collation: str = ""
    """The collation, if a statement of upstream may explain it."""
    column: str = ""
    """The column that has it."""

    def as_error(self, **facts: Any) -> NeedsOperator:
        """Return the error that stops the replica. ``facts`` name the place, the table among them."""
        return NeedsOperator(
            f"the sink's table differs from upstream's: {self.what} ({self.harm})",
            remedy=f'{self.remedy}. Or accept the difference: "{facts.get("table", "")}" = ["{self.kind}"] under [sink.accept]',
            difference=str(self.kind),
            **facts,
        )


def differences_of(table: SinkTable, *, new_collations: bool = True) -> tuple[Difference, ...]:
    """List the differences that show without a row of upstream. ``new_collations``: see ``Acceptance``."""
    # A view has no engine, trigger or index of its own to compare.
    if table.kind not in BASE_TABLES:
        return (_not_a_table(table),)
    found = [] if table.has_transactions else [_engine(table)]
    found += [_trigger(name) for name in table.triggers]
    if not table.shows_triggers:
        found.append(_hidden_triggers(table))
    found += [_collation(column) for column in table.folding]
    found += [_generated(column) for column in table.unportable]
    found += [_of_expression(index) for index in table.unportable_indexes]
    found += [] if new_collations else [_padding(column) for column in table.padding]
    return tuple(found)


def _not_a_table(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.VIEW,
        table.kind.casefold(),
        "writing to it would change other tables",
        "Rename the view, and create the table as upstream has it, with its rows",
    )


def _engine(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.ENGINE,
        f"engine {table.engine or 'unknown'}",
        "it has no transactions, so a failed write would leave some of its rows",
        "Run ALTER TABLE … ENGINE = InnoDB",
    )


def _trigger(name: str) -> Difference:
    return Difference(
        DifferenceKind.TRIGGER, f"trigger {name}", "it changes rows that upstream does not change", f"Run DROP TRIGGER {name}"
    )


def _hidden_triggers(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.TRIGGER,
        "unknown triggers",
        "the applier's user may not see triggers, and a trigger can change rows",
        f"Run GRANT TRIGGER ON {table.name.schema}.* for the applier's user (`applier grants sink` prints all)",
    )


def _collation(column: FoldingColumn) -> Difference:
    return Difference(
        DifferenceKind.COLLATION,
        f"collation {column.collation} of key column {column.name}",
        "it treats texts as equal that upstream may distinguish, so one row would replace another",
        f"Give the column {column.name} the collation that it has upstream, in its own character set {_charset(column)}."
        " If the applier has mapped it, see [ddl.collations] in docs/ddls.md",
        column.collation,
        column.name,
    )


def _padding(column: FoldingColumn) -> Difference:
    return Difference(
        DifferenceKind.COLLATION,
        f"collation {column.collation} of key column {column.name}",
        "it ignores trailing spaces and upstream does not (source.new_collations = false), so one row would replace another",
        f"Give the column {column.name} a NO PAD collation of its character set: {_no_pad(_charset(column))}",
    )


def _charset(column: FoldingColumn) -> str:
    return column.collation.partition("_")[0]


def _no_pad(charset: str) -> str:
    mysql = "utf8mb4_0900_bin (MySQL), " if charset == "utf8mb4" else ""
    return f"{mysql}{charset}_nopad_bin (MariaDB)"


def generated_difference(column: str) -> Difference:
    """Describe a column that is STORED upstream, and that the sink computes itself."""
    return Difference(
        DifferenceKind.GENERATED,
        f"generated column {column}",
        "the sink computes its values, and its expression may give others than upstream's, which come with the rows",
        f"Make {column} a plain column of its type, with upstream's expression in its comment, as /*: GENERATED ALWAYS AS (…) STORED */, "
        "by which later DDLs know it (ALTER TABLE … MODIFY COLUMN; in SQLite, build the table again with all of its comments, this one "
        "in place of the column's: /*: type GENERATED ALWAYS AS (…) STORED */; a VIRTUAL column: give it another name, and add the plain "
        "one). Then give the rows upstream's values: `applier verify --fix-sql`",
    )


def _generated(column: Unportable) -> Difference:
    if column.is_stored:
        return generated_difference(column.name)
    return Difference(
        DifferenceKind.GENERATED,
        f"index or key of the virtual column {column.name}",
        "the sink computes its values, and its expression may give others than upstream's, so one row would replace another",
        f"Drop the indexes of {column.name}, or make it a plain column if it is STORED upstream",
    )


def _of_expression(index: str) -> Difference:
    return Difference(
        DifferenceKind.GENERATED,
        f"unique index {index} of an expression",
        "the sink computes the expression, which may give other values than upstream's, so one row would replace another",
        f"Make it an index of the same name and parts without UNIQUE: ALTER TABLE … DROP INDEX {index}, ADD INDEX {index} (…). "
        "Then give back the rows that it has removed: `applier verify --fix-sql`",
    )


def silent_change(what: str, *, remedy: str) -> Difference:
    """Describe a foreign key whose actions upstream executes without an event, and the sink cannot."""
    harm = "upstream's server does not write to the binlog what its actions delete or change"
    return Difference(DifferenceKind.FOREIGN_KEY, what, harm, remedy)


def unique_index_difference(index: str) -> Difference:
    """Describe a unique index that upstream lacks."""
    return Difference(
        DifferenceKind.UNIQUE_INDEX,
        f"unique index {index}",
        "it refuses rows that upstream allows, so one row would replace another",
        f"Drop the index {index}, or make it non-unique",
    )


def extra_unique_index(shape: Shape, indexes: Iterable[UniqueIndex]) -> UniqueIndex | None:
    """Return the first unique index that upstream lacks by the flags of a whole row, None if there is none.

    An index is upstream's if all its columns are flagged as members of unique indexes. An index that contains a whole key of upstream (the
    handle key or the primary key) cannot refuse what upstream allows. Flags do not show that the sink has ``UNIQUE (a)`` where upstream has
    ``UNIQUE (a, b)``. A column that the wire does not show at all (a virtual one) does not count.
    """
    flags = {column.name.casefold(): column.flags for column in shape.columns}
    keys = [{name for name, bits in flags.items() if bits & bit} for bit in (_HANDLE_KEY, _PRIMARY_KEY)]
    members = {name for name, bits in flags.items() if bits & _UNIQUE_KEY}
    for index in indexes:
        columns = {column.casefold() for column in index.columns}
        # Two rows that differ in upstream's key differ in this index too.
        if any(key and key <= columns for key in keys):
            continue
        # The wire does not carry virtual columns, so their flags are not known.
        if not columns & flags.keys() <= members:
            return index
    return None
