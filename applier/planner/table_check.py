"""The table check: finds differences between the sink's tables and upstream's that would lose or alter rows silently (DESIGN.md 7).

Pure. The sinks describe their tables (``SinkTable``). What the rows' format knows of keys (``KnownKeys``) and upstream's own statements
(``Evidence``) show what upstream has. The configuration says which differences the operator accepts (``Acceptance``).

Upstream is TiDB. It has no triggers, and its tables always have transactions: these need no comparison. Unique indexes are compared with
the keys that the format tells (``KnownKeys``). Open Protocol names the members of unique indexes, without their grouping. Other formats
name none: then upstream's statements, or upstream itself, must explain each unique index of the sink. Collations are not on the wire. So a
column of a unique index must keep every two texts apart. One exception is PAD SPACE, which TiDB's own ``utf8mb4_bin`` has too; every other
exception needs upstream's own statement (``Evidence``).

Foreign keys are not compared. Writers switch ``foreign_key_checks`` off (SQLite: ``PRAGMA foreign_keys``). Then neither DELETE nor REPLACE
fires an action, of keys of this table or of keys that reference it (tested on each server). Upstream sends the rows of its own cascades as
events, or its tables are written in order, with their actions (``planner.ordered_rows``).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from applier.ddl import DdlKind, DdlStatement, parse_ddl, touches
from applier.ddl.charset import with_tidb_collations
from applier.ddl.generated import Unportable, defines_generated
from applier.ddl.parser import parse_or_none
from applier.ddl.stated_keys import unique_keys_of
from applier.ddl.table_draft import defined_columns
from applier.ddl.tree import CreateTableStatement
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, Shape, TableName
from applier.model.position import Ts
from applier.model.segment import may_follow

# --- difference ------------------------------------------------------------------------------------------------------


BASE_TABLES: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
"""Kinds of tables that hold their own rows. MariaDB's system-versioned table shows the same rows as a plain one."""


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
    """A unique index of the sink. ``columns`` are its columns; expressions are skipped."""

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
    """Generated columns for which the sink computes other values than upstream."""
    unportable_indexes: tuple[str, ...] = ()
    """Unique indexes of expressions for which it computes other values."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: ``what`` names it, ``harm`` says what it does to rows, ``remedy`` how to remove it."""

    kind: DifferenceKind
    what: str
    harm: str
    remedy: Remedy
    collation: str = ""
    """The collation, if a statement of upstream may explain it."""
    column: str = ""
    """The column that has it."""

    def as_error(self, **facts: Any) -> NeedsOperator:
        """Return the error that stops the replica. ``facts`` name the position, the table among them."""
        return NeedsOperator(
            f"the sink's table differs from upstream's: {self.what} ({self.harm})",
            remedy=Remedy(
                "planner.accept-difference",
                f'{self.remedy}. Or accept the difference: "{facts.get("table", "")}" = ["{self.kind}"] under [sink.accept]',
            ),
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
        Remedy("planner.replace-view-by-table", "Rename the view, and create the table as upstream has it, with its rows"),
    )


def _engine(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.ENGINE,
        f"engine {table.engine or 'unknown'}",
        "it has no transactions, so a failed write would leave some of its rows",
        Remedy("planner.alter-engine", "Run ALTER TABLE … ENGINE = InnoDB"),
    )


def _trigger(name: str) -> Difference:
    return Difference(
        DifferenceKind.TRIGGER,
        f"trigger {name}",
        "it changes rows that upstream does not change",
        Remedy("planner.drop-trigger", f"Run DROP TRIGGER {name}"),
    )


def _hidden_triggers(table: SinkTable) -> Difference:
    return Difference(
        DifferenceKind.TRIGGER,
        "unknown triggers",
        "the applier's user may not see triggers, and a trigger can change rows",
        Remedy(
            "planner.grant-trigger", f"Run GRANT TRIGGER ON {table.name.schema}.* for the applier's user (`applier grants sink` prints all)"
        ),
    )


def _collation(column: FoldingColumn) -> Difference:
    return Difference(
        DifferenceKind.COLLATION,
        f"collation {column.collation} of key column {column.name}",
        "it treats texts as equal that upstream may distinguish, so one row would replace another",
        Remedy(
            "planner.give-upstream-collation",
            f"Give the column {column.name} the collation that it has upstream, in its own character set {_charset(column)}."
            " If the applier has mapped it, see [ddl.collations] in `applier docs ddls`",
        ),
        column.collation,
        column.name,
    )


def _padding(column: FoldingColumn) -> Difference:
    return Difference(
        DifferenceKind.COLLATION,
        f"collation {column.collation} of key column {column.name}",
        "it ignores trailing spaces and upstream does not (source.new_collations = false), so one row would replace another",
        Remedy(
            "planner.give-no-pad-collation",
            f"Give the column {column.name} a NO PAD collation of its character set: {_no_pad(_charset(column))}",
        ),
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
        Remedy(
            "planner.make-plain-column",
            f"Make {column} a plain column of its type, with upstream's expression in its comment, as /*: GENERATED ALWAYS AS (…) "
            "STORED */, by which later DDLs know it (ALTER TABLE … MODIFY COLUMN; in SQLite, build the table again with all of its "
            "comments, this one instead of the column's: /*: type GENERATED ALWAYS AS (…) STORED */; a VIRTUAL column: give it "
            "another name, and add the plain one). Then give the rows upstream's values: `applier verify --fix-sql`",
        ),
    )


def _generated(column: Unportable) -> Difference:
    if column.is_stored:
        return generated_difference(column.name)
    return Difference(
        DifferenceKind.GENERATED,
        f"index or key of the virtual column {column.name}",
        "the sink computes its values, and its expression may give others than upstream's, so one row would replace another",
        Remedy(
            "planner.drop-indexes-of-expression", f"Drop the indexes of {column.name}, or make it a plain column if it is STORED upstream"
        ),
    )


def _of_expression(index: str) -> Difference:
    return Difference(
        DifferenceKind.GENERATED,
        f"unique index {index} of an expression",
        "the sink computes the expression, which may give other values than upstream's, so one row would replace another",
        Remedy(
            "planner.make-index-non-unique",
            f"Make it an index of the same name and parts without UNIQUE: ALTER TABLE … DROP INDEX {index}, ADD INDEX {index} (…). "
            "Then give back the rows that it has removed: `applier verify --fix-sql`",
        ),
    )


def silent_change(what: str, *, remedy: Remedy) -> Difference:
    """Describe a foreign key whose actions upstream executes without an event, and the sink cannot."""
    harm = "upstream does not write to the binlog what its actions delete or change"
    return Difference(DifferenceKind.FOREIGN_KEY, what, harm, remedy)


def unique_index_difference(index: str, *, is_told: bool = True) -> Difference:
    """Describe a unique index that upstream lacks; or may lack, if its rows do not tell (``is_told``) and nothing else explains it."""
    remedy = Remedy("planner.drop-unique-index", f"Drop the index {index}, or make it non-unique")
    if not is_told:
        remedy = remedy.then(
            Remedy("planner.ask-upstream-for-index", "If upstream's table has it, set source.upstream of the changefeed: it is asked then")
        )
    return Difference(
        DifferenceKind.UNIQUE_INDEX,
        f"unique index {index}",
        "it refuses rows that upstream allows, so one row would replace another",
        remedy,
    )


def extra_unique_index(shape: Shape, indexes: Iterable[UniqueIndex]) -> UniqueIndex | None:
    """Return the first unique index that upstream lacks, by what whole rows tell; None if there is none.

    An index is upstream's if all its columns are members of unique indexes there (``KnownKeys``). An index that contains a whole key of
    upstream (the handle key or the primary key) cannot refuse what upstream allows. Nothing shows that the sink has ``UNIQUE (a)`` where
    upstream has ``UNIQUE (a, b)``. A column that the wire does not show at all (a virtual one) does not count.
    """
    sent = {column.name.casefold() for column in shape.columns}
    known = shape.keys
    keys = [set(map(str.casefold, key or ())) & sent for key in (known.handle, known.primary)]
    members = set(map(str.casefold, known.unique or ()))
    for index in indexes:
        columns = {column.casefold() for column in index.columns}
        # Two rows that differ in upstream's key differ in this index too.
        if any(key and key <= columns for key in keys):
            continue
        # The wire does not carry virtual columns, so nothing is known of them.
        if not columns & sent <= members:
            return index
    return None


# --- evidence --------------------------------------------------------------------------------------------------------
# What upstream's own statements say about a table: they explain what the wire does not show.
#
# A flag of the wire may be stale (open_protocol.md 2.5), and collations are not on the wire at all. So before a difference stops the
# replica, the statements that the sink has run for upstream are asked: what one of them names is upstream's own.


class Evidence:
    """Upstream's statements in their order. Not thread-safe."""

    def __init__(self, ddls: Iterable[DdlEvent]) -> None:
        self._by_name: dict[FoldedName, list[DdlEvent]] = {}
        self._numbers: dict[int, int] = {}
        """Of each statement, by its object: in which order they ran."""
        for ddl in ddls:
            self.add(ddl)

    def add(self, ddl: DdlEvent) -> None:
        """Take a statement that upstream has run; ``left_out``: the sink has not."""
        self._numbers[id(ddl)] = len(self._numbers)
        for name in {ddl.name.fold(), *(touches(ddl) or ())}:
            self._by_name.setdefault(name, []).append(ddl)

    def explains_collation(self, table: FoldedName, collation: str) -> bool:
        """Return whether a statement about the table or its schema names this collation, or a charset whose default in TiDB it is."""
        word = collation.casefold()
        return any(word in _with_defaults(ddl).casefold() for ddl in self._about(table, with_schema=True))

    def explains_unique_index(self, table: FoldedName, index: UniqueIndex) -> bool:
        """Return whether a statement about the table makes a unique index with these columns (or, without columns, with this name)."""
        wanted = {column.casefold() for column in index.columns}
        return any(
            columns == wanted if wanted else name == index.name.casefold()
            for ddl in self._about(table, with_schema=False)
            for name, columns in unique_keys_of(ddl.query)
        )

    def has_column(self, table: FoldedName, column: str, before_ts: Ts) -> bool | None:
        """Return whether an earlier statement gave the table this column; None: the statement that made the table is not known."""
        earlier = [ddl for ddl in self._about(table, with_schema=False) if not may_follow(ddl.commit_ts, before_ts)]
        trees = [tree for ddl in earlier if (tree := parse_or_none(ddl.query)) is not None]
        if any(defined.name.casefold() == column.casefold() for tree in trees for defined in defined_columns(tree)):
            return True
        # CREATE TABLE … LIKE and … SELECT do not show their columns.
        return False if any(isinstance(tree.node, CreateTableStatement) and tree.node.elements for tree in trees) else None

    def explains_generated(self, table: FoldedName) -> bool:
        """Return whether a statement about the table makes a generated column."""
        return any(defines_generated(ddl.query) for ddl in self._about(table, with_schema=False))

    def explains_view(self, table: FoldedName) -> bool:
        """Return whether the last statement that gave something this name made a view."""
        made = [statement.kind for ddl in self._by_name.get(table, ()) if (statement := parse_ddl(ddl)) and table in _given(statement)]
        return made[-1:] == [DdlKind.CREATE_VIEW]

    def has_left(self, table: FoldedName, there: FoldedName) -> bool:
        """Return whether the sink's table ``there`` still has the definition of upstream's ``table``, which is skipped.

        That holds after a RENAME out of the selection, until a statement about either name.
        """
        names = {table, there}
        about = {id(ddl): ddl for name in names for one in (name, name.schema_name) for ddl in self._by_name.get(one, ())}
        changing = [ddl for ddl in about.values() if _may_change(ddl, names)]
        last = max(changing, key=lambda ddl: self._numbers[id(ddl)], default=None)
        return last is not None and not last.left_out and _is_renamed_to(last, there)

    def _about(self, table: FoldedName, *, with_schema: bool) -> Iterator[DdlEvent]:
        """Yield the statements about the table, under the names that it had before too."""
        names, waiting = {table}, [table]
        while waiting:
            name = waiting.pop()
            for ddl in self._by_name.get(name, ()):
                yield ddl
                earlier = _earlier_names(ddl, name) - names
                names |= earlier
                waiting += earlier
            if with_schema:
                yield from self._by_name.get(name.schema_name, ())


def _with_defaults(ddl: DdlEvent) -> str:
    """Return the statement with the collations that its charsets represent; a source that sends its session has written them out."""
    return ddl.query if ddl.is_of_log else with_tidb_collations(ddl.query)


def _given(statement: DdlStatement) -> set[FoldedName]:
    """Return the names that mean another object after the statement."""
    return {name.fold() for name in (*statement.creates, *(new for _, new in statement.renames))}


def _earlier_names(ddl: DdlEvent, name: FoldedName) -> set[FoldedName]:
    """Return the tables whose definition the statement gave to ``name``."""
    statement = parse_ddl(ddl)
    if statement is None:
        return set()
    taken = {old.fold() for old, new in statement.renames if new.fold() == name}
    if statement.kind in {DdlKind.CREATE_TABLE_LIKE, DdlKind.EXCHANGE_PARTITION}:
        taken |= {source.fold() for source in statement.sources}
    return taken


def _may_change(ddl: DdlEvent, names: Collection[FoldedName]) -> bool:
    """Return whether the statement may change the definition of one of these tables."""
    statement = parse_ddl(ddl)
    if statement is None:
        return ddl.name.fold() in names
    if statement.kind is DdlKind.DROP_SCHEMA:
        return statement.schema.casefold() in {name.schema for name in names}
    needs = () if statement.kind is DdlKind.CREATE_TABLE_LIKE else statement.needs
    changed = (*needs, *statement.creates, *statement.drops, *(name for pair in statement.renames for name in pair))
    return any(table.fold() in names for table in changed)


def _is_renamed_to(ddl: DdlEvent, name: FoldedName) -> bool:
    """Return whether a table has this name by the statement, and keeps it."""
    statement = parse_ddl(ddl)
    steps = () if statement is None else statement.renames
    return [old.fold() != name for old, new in steps if name in {old.fold(), new.fold()}][-1:] == [True]


# --- acceptance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Patterns of ``schema.table`` (``*`` any characters, ``?`` one, without regard to case), and the differences accepted of such tables.

    ``new_collations``: whether upstream has TiDB's new collations (the default since 6.0). Without them it compares all texts byte by
    byte, trailing spaces included, whatever collation its statements name. ``collations``: pairs of an upstream collation and what the
    operator calls it in the sink.
    """

    patterns: Mapping[str, tuple[DifferenceKind, ...]] = field(default_factory=dict)
    new_collations: bool = True
    collations: tuple[tuple[str, str], ...] = ()

    def accepts(self, table: FoldedName, kind: DifferenceKind) -> bool:
        """Return whether the operator accepts differences of this kind on this table."""
        return any(kind in kinds and fits(pattern, table) for pattern, kinds in self.patterns.items())

    def upstream_names(self, collation: str) -> list[str]:
        """Return what a collation of the sink may be called upstream: its own name, and the names that the operator has mapped to it."""
        # MariaDB takes uca1400_ai_ci, and shows it with the character set before it.
        own = {collation.casefold(), collation.casefold().removeprefix("utf8mb4_")}
        return [collation, *(upstream for upstream, mapped in self.collations if mapped in own)]


def check_pattern(pattern: str) -> str:
    """Return what is wrong with a pattern, '' if nothing is."""
    schema, dot, table = pattern.partition(".")
    return "" if schema and dot and table else 'is not a table pattern: write "schema.table", with * for any characters'


def fits(pattern: str, table: FoldedName) -> bool:
    """Return whether a table is one that a pattern matches."""
    return _compiled(pattern).fullmatch(str(table)) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # fnmatch would take [ and ] for a set of characters, and they may be in a name.
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(sign) or re.escape(sign) for sign in pattern.casefold()), re.DOTALL)


# --- upstream --------------------------------------------------------------------------------------------------------
# Upstream's own tables, where the source can ask for them: what its events do not show. Statements that are older than the replica, too.
#
# They are asked as they are now, which is later than the rows that are applied. So they explain a difference. They make one only where the
# rows do not tell which columns upstream computes, and no statement of upstream has made the sink's generated column.


@dataclass(frozen=True, slots=True)
class UpstreamKeys:
    """The keys of a table of upstream, and the collations of its columns. All names are casefolded."""

    unique_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Columns of each unique index, by its name; expressions are skipped."""
    collations: Mapping[str, str] = field(default_factory=dict)
    """By column."""
    plain_columns: frozenset[str] = frozenset()
    """Columns that upstream does not compute; none where the rows of the source tell it."""


class ListedTables(NamedTuple):
    """Upstream's chosen tables at one position, each with its name in the sink. There may be others."""

    names: Mapping[TableName, TableName]
    is_exact: bool = True
    """Whether no later DDL may have changed the list."""
    is_whole: bool = True
    """Whether it is exact, and upstream shows every table to the user."""


class TableLister(Protocol):
    """Lists upstream's tables. Driver side."""

    def listed_at(self, ts: Ts, settled: Collection[TableName] = ()) -> ListedTables | None:
        """Return tables that upstream has at a position; None: it cannot tell. ApplierError: it does not answer, or refuses.

        ``settled``: tables whose running statements are waited for first, so that a CREATE that runs has its event in the log.
        """
        ...


class UpstreamTables(TableLister, Protocol):
    """Answers for upstream's tables under the names that they have in the sink. Driver side; SourceError: upstream does not answer."""

    def definitions(self, tables: Collection[FoldedName]) -> Mapping[FoldedName, UpstreamKeys]:
        """Return what upstream has of these tables; missing ones are skipped. Asked where the check would stop the replica."""
        ...

    def check_names(self, tables: Collection[FoldedName]) -> None:
        """Raise NeedsOperator if upstream has two tables of one of these names, apart from case. Asked before a table's first row."""
        ...

    def is_left_out(self, table: FoldedName) -> bool:
        """Return whether upstream's table of this name is not a part of the replica."""
        ...

    def forget(self) -> None:
        """Drop the cached answers: a DDL may have changed them."""
        ...
