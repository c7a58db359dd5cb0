"""The sink's tables as the engine sees them: their columns, which ones the replica knows already, and the keys of their rows.

Asks the sink and remembers; writes nothing. The engine records new tables in the transaction of their first rows or DDL.
A table is checked (``TableGuard``) whenever the sink is asked what it looks like: before its first row, and before its first row after
each of its DDLs. ``check_known`` does it for all tables of the replica at each start.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from applier.coordinator.starting_point import refuse_rows_of_others, unknown_tables
from applier.coordinator.step import KeyAnswer
from applier.ddl import parse_ddl, touches
from applier.ddl.stated_keys import StatedKeys
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.range_report import TableRows
from applier.planner import NO_KEY, NO_KEY_REMEDY, sink_key_of
from applier.planner.ordered_rows import KeyGroups, KeyLink
from applier.planner.port import TableDescription
from applier.planner.table_check import (
    Acceptance,
    Difference,
    DifferenceKind,
    Evidence,
    SinkTable,
    UniqueIndex,
    UpstreamKeys,
    UpstreamTables,
    differences_of,
    silent_change,
)
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.telemetry.log_event import LogEvent

# --- sink keys -------------------------------------------------------------------------------------------------------
# The sink's foreign keys, and which tables are therefore written in order (``planner.ordered_rows``).
#
# They are the keys of the sink's position: all of upstream's DDLs up to there have run, and none after it. Upstream's catalogue would show
# today's. Read once, then again for the tables of a DDL that may have changed them.

NOT_EXECUTED: Final = Remedy(
    "replica.use-database-with-foreign-keys",
    "Replicate these tables into MySQL or MariaDB, which execute such actions. Or exclude them with source.tables",
)


ReadStatements = Callable[[], Sequence[DdlEvent]]
"""Reads upstream's statements that are done or skipped, by ts."""


class KeyedSink(Protocol):
    """What is asked of a ``Sink``."""

    def foreign_keys(self, tables: Collection[TableName] | None = None) -> Sequence[KeyLink] | None:
        """Return the foreign keys of these tables, or of all; None: the database does not execute their actions."""
        ...


class SinkKeys:
    """The foreign keys of one sink. Not thread-safe. ``is_left_out``: whether the replica lacks a table of upstream."""

    def __init__(self, sink: KeyedSink, statements: ReadStatements, accept: Acceptance, is_left_out: Callable[[FoldedName], bool]) -> None:
        self._sink, self._statements, self._accept, self._is_left_out = sink, statements, accept, is_left_out
        self.forget()

    def forget(self) -> None:
        """Forget all keys: state is reloaded from the sink."""
        self._groups: KeyGroups | None = None
        self._stated: StatedKeys | None = None
        self._stale: set[FoldedName] = set()
        self._passed: set[FoldedName] = set()

    def executed(self, ddl: DdlEvent, touched: frozenset[FoldedName] | None) -> None:
        """Take in a DDL. ``touched``: the names in it; None: it is not understood."""
        if self._groups is None:
            return
        if self._stated is not None:
            if self._stated.add(ddl):
                self._groups = None
        elif touched is None or any(link.child.is_covered(touched) for link in self._links_of_schemas(touched)):
            self._groups = None
        else:
            links = self._groups.links_of(touched)
            if links or "references" in ddl.query.casefold():
                # A RENAME of a table changes what the keys of its children reference.
                self._stale |= touched | {link.child for link in links}

    def _links_of_schemas(self, touched: frozenset[FoldedName]) -> Sequence[KeyLink]:
        return () if self._groups is None or all(name.table for name in touched) else self._groups.links

    def ordered(self, tables: Iterable[TableRows], rekeyed: Collection[FoldedName] = ()) -> frozenset[FoldedName]:
        """Return the tables whose rows are written in order, with some rows. NeedsOperator: they cannot be."""
        hiding = {table.name.fold(): table for table in tables if table.hides_actions}
        if not hiding:
            return frozenset()
        groups = self._current()
        found = frozenset[FoldedName]().union(*map(groups.group, hiding))
        for name in sorted(found & hiding.keys() - self._passed):
            self._check(groups, hiding[name], rekeyed)
            self._passed.add(name)
        return found

    def _check(self, groups: KeyGroups, table: TableRows, rekeyed: Collection[FoldedName]) -> None:
        group = groups.group(table.name.fold())
        for link in groups.acting(group):
            if self._stated is not None:
                raise silent_change(str(link), remedy=NOT_EXECUTED).as_error(**_facts_with_table(table))
            if self._is_left_out(link.parent):
                remedy = Remedy(
                    "replica.include-referenced-tables",
                    f"Create a replica that has both tables: include {link.parent} in source.tables, with all of its events",
                )
                raise silent_change(str(link), remedy=remedy).as_error(**_facts_with_table(table))
        for link in groups.links_of(group):
            # The database would find no parent of the rows.
            if self._is_left_out(link.parent):
                remedy = Remedy(
                    "replica.drop-foreign-keys",
                    f"Drop the foreign keys of {link.child} that reference {link.parent} in the sink: the replica lacks that table",
                )
                raise silent_change(str(link), remedy=remedy).as_error(**_facts_with_table(table))
            # An update of a row without a key is a DELETE and an INSERT: the first would fire ON DELETE.
            if link.parent == table.name.fold() and not table.handle_key and link.parent not in rekeyed:
                remedy = Remedy(
                    "replica.give-primary-key", f"Give {link.parent} a primary key upstream, then create the replica again from a dump"
                )
                raise silent_change(str(link), remedy=remedy).as_error(**_facts_with_table(table))

    def _current(self) -> KeyGroups:
        """Return the keys as they are now."""
        groups = self._groups
        if groups is None:
            groups = self._groups = KeyGroups(self._all(), self._accept)
            self._passed.clear()
        elif self._stale:
            kept = [link for link in groups.links if link.child not in self._stale]
            read = self._sink.foreign_keys([TableName(*name) for name in sorted(self._stale)]) or ()
            if set(groups.links) != {*kept, *read}:
                groups = self._groups = KeyGroups([*kept, *read], self._accept)
                self._passed.clear()
        self._stale.clear()
        return groups

    def _all(self) -> Iterable[KeyLink]:
        links = self._sink.foreign_keys()
        if links is not None:
            return links
        if self._stated is None:
            self._stated = StatedKeys(self._statements())
        return [KeyLink(*key) for key in self._stated.all()]


def _facts_with_table(table: TableRows) -> dict[str, Any]:
    facts: dict[str, Any] = {"table": str(table.name), "commit_ts": table.min_ts, "offset": table.first_offset}
    return facts if table.stream is None else facts | {"topic": table.stream.topic, "partition": table.stream.partition}


# --- table guard -----------------------------------------------------------------------------------------------------
# Runs the table check: examines the sink's tables, and stops the replica before a difference loses rows.
#
# Asks the sink, writes nothing. ``applier.planner.table_check`` defines what a difference is, and what explains one.

Note = Callable[..., None]
MAX_NAMED = 10
"""Differences that one message names at most."""


class ExaminedSink(Protocol):
    """What the check asks of a ``Sink``."""

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        """Examine the tables; missing ones are skipped."""
        ...


class TableGuard:
    """Checks tables of one sink. Not thread-safe. ``note`` logs each accepted difference once per run."""

    def __init__(
        self, sink: ExaminedSink, statements: ReadStatements, accept: Acceptance, note: Note, upstream: UpstreamTables | None = None
    ) -> None:
        """``upstream``: where the source can be asked for upstream's tables."""
        self._sink, self._accept, self._note, self._upstream, self._read_statements = sink, accept, note, upstream, statements
        self._noted: set[tuple[FoldedName, str]] = set()
        self._evidence: Evidence | None = None

    def check(self, tables: Collection[TableName], places: Mapping[FoldedName, Mapping[str, Any]]) -> None:
        """Raise NeedsOperator if a table differs from upstream's. It names the first one, with its position in ``places`` if it has one."""
        if not tables:
            return
        if self._upstream is not None:
            self._upstream.check_names([table.fold() for table in tables])
        # All tables are looked at before the first error: an operator corrects them together, not one per start.
        open_differences = [
            (folded, difference)
            for folded, table in sorted(self._sink.examine(tables).items())
            for difference in differences_of(table, new_collations=self._accept.new_collations)
            if not self._is_accepted(folded, difference) and not self._is_explained(folded, difference)
        ]
        if not open_differences:
            return
        (folded, first), *others = open_differences
        also = {"also": _named(others)} if others else {}
        raise first.as_error(**({"table": str(folded)} | dict(places.get(folded, {})) | also))

    def allows_unique_index(self, table: FoldedName, index: UniqueIndex) -> bool:
        """Return whether upstream's statements made a unique index that the wire's flags do not show."""
        return self._statements().explains_unique_index(table, index) or self._has_unique_index(table, index)

    def accepts_unique_indexes(self, table: FoldedName) -> bool:
        """Return whether the operator accepts unique indexes that upstream lacks on this table."""
        if not self._accept.accepts(table, DifferenceKind.UNIQUE_INDEX):
            return False
        self._note_accepted(table, str(DifferenceKind.UNIQUE_INDEX))
        return True

    def accepts_generated(self, table: FoldedName) -> bool:
        """Return whether the operator accepts that the sink computes columns of this table itself."""
        return self._accept.accepts(table, DifferenceKind.GENERATED)

    def plain_upstream(self, table: FoldedName) -> frozenset[str]:
        """Return the columns that upstream does not compute, unless upstream's statements made the generated columns of the sink."""
        if self._upstream is None or self._statements().explains_generated(table):
            return frozenset()
        return self._upstream_table(table).plain_columns

    def has_left(self, table: FoldedName, there: FoldedName) -> bool:
        """Return whether the sink's table ``there`` has still the definition of upstream's ``table``, which is skipped."""
        return self._statements().has_left(table, there)

    def forget(self) -> None:
        """Forget upstream's statements: a reload may have settled one whose outcome was not known, and which was not learned."""
        self._evidence = None
        self._forget_upstream()

    def learn(self, ddl: DdlEvent) -> None:
        """Remember a statement that has run: it explains what it has made."""
        if self._evidence is not None:
            self._evidence.add(ddl)

    def _is_accepted(self, table: FoldedName, difference: Difference) -> bool:
        if not self._accept.accepts(table, difference.kind):
            return False
        self._note_accepted(table, difference.what)
        return True

    def _note_accepted(self, table: FoldedName, what: str) -> None:
        if (table, what) not in self._noted:
            self._noted.add((table, what))
            self._note(LogEvent.DIFFERENCE_ACCEPTED, table=str(table), difference=what)

    def _is_explained(self, table: FoldedName, difference: Difference) -> bool:
        # Upstream's own view is among the replica's tables: without this, each start after a CREATE VIEW would stop.
        if difference.kind is DifferenceKind.VIEW:
            return self._statements().explains_view(table)
        # Without new collations TiDB ignores what its statements name, so they explain nothing.
        if not difference.collation or not self._accept.new_collations:
            return False
        names = self._accept.upstream_names(difference.collation)
        if self._has_collation(table, difference.column, names):
            return True
        return any(self._statements().explains_collation(table, name) for name in names)

    def _forget_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream.forget()

    def _upstream_table(self, table: FoldedName) -> UpstreamKeys:
        found = {} if self._upstream is None else self._upstream.definitions([table])
        return found.get(table, UpstreamKeys())

    def _has_unique_index(self, table: FoldedName, index: UniqueIndex) -> bool:
        keys, wanted = self._upstream_table(table).unique_keys, {column.casefold() for column in index.columns}
        return wanted in keys.values() if wanted else index.name.casefold() in keys

    def _has_collation(self, table: FoldedName, column: str, names: Collection[str]) -> bool:
        own = self._upstream_table(table).collations.get(column.casefold()) if column else None
        return own is not None and own in {name.casefold() for name in names}

    def _statements(self) -> Evidence:
        """Read upstream's statements at their first use: most replicas never need them, and there may be many."""
        if self._evidence is None:
            self._evidence = Evidence(self._read_statements())
        return self._evidence


def _named(differences: Collection[tuple[FoldedName, Difference]]) -> str:
    shown = [f"{table}: {difference.what}" for table, difference in list(differences)[:MAX_NAMED]]
    more = len(differences) - len(shown)
    return "; ".join(shown) + (f"; {more} more" if more else "")


# --- sink tables -----------------------------------------------------------------------------------------------------


def _silent(_message: str, /, **_facts: Any) -> None:
    pass


class SinkTables:
    """The tables of one sink. Not thread-safe. ``note`` logs accepted differences."""

    def __init__(
        self,
        sink: Sink,
        accept: Acceptance | None = None,
        note: Callable[..., None] = _silent,
        upstream: UpstreamTables | None = None,
    ) -> None:
        self._sink, self._reserved = sink, sink.reserved
        self._guard = TableGuard(sink, sink.bookkeeping.statements, accept or Acceptance(), note, upstream)
        is_left_out = (lambda _: False) if upstream is None else upstream.is_left_out
        self._keys = SinkKeys(sink, sink.bookkeeping.statements, accept or Acceptance(), is_left_out)
        self._catalogue: dict[FoldedName, TableDescription] = {}
        self._early: dict[FoldedName, frozenset[str]] = {}
        """The columns that rows carry before the DDLs that add them."""
        self.changes = 0
        """How many DDLs have run: what was described before may be another table since."""

    def expect(self, folded: FoldedName, column: str) -> None:
        """Let the rows of a table carry a column that a later DDL adds."""
        self._early[folded] = self._early.get(folded, frozenset()) | {column}
        self._catalogue = {name: self._expected(name, found) for name, found in self._catalogue.items()}

    def with_early_columns(self, tables: Mapping[FoldedName, TableDescription]) -> Mapping[FoldedName, TableDescription] | None:
        """Return ``tables`` with the columns that are expected by now; None if they know them all."""
        expected = {folded: self._expected(folded, table) for folded, table in tables.items()}
        return None if expected == tables else expected

    def _expected(self, folded: FoldedName, table: TableDescription) -> TableDescription:
        early = self._early.get(folded)
        return table if early is None else replace(table, early_columns=early)

    def forget(self) -> None:
        """Forget all tables: state is reloaded from the sink."""
        self._catalogue.clear()
        self._guard.forget()
        self._keys.forget()

    def unless_kept(self, ddl: DdlEvent) -> DdlEvent:
        """Return a DDL without its refusal, if that holds only where the sink lacks a table that is skipped, and the sink has it."""
        kept = None if ddl.refusal is None else ddl.refusal.kept
        statement = None if kept is None else parse_ddl(ddl)
        if kept is None or statement is None:
            return ddl
        has_left = all(self._guard.has_left(kept.fold(), source.fold()) for source in statement.sources)
        return replace(ddl, refusal=None) if has_left else ddl

    def executed(self, ddl: DdlEvent) -> None:
        """Forget the tables that a DDL has changed; they are described again when they are needed. ``left_out``: it was skipped."""
        self._guard.learn(ddl)
        self.changes += 1
        # Every name that the statement touches, not only the event's: a RENAME event carries the new name alone (DESIGN.md 3).
        touched = touches(ddl)
        self._keys.executed(ddl, touched)
        if touched is None:
            self._catalogue.clear()
            return
        for folded in touched:
            self._catalogue.pop(folded, None)
            self._early.pop(folded, None)
        if schemas := {name.schema for name in touched if not name.table}:
            self._catalogue = {folded: found for folded, found in self._catalogue.items() if folded.schema not in schemas}

    def check_known(self, known: Collection[FoldedName]) -> None:
        """Check all tables that the replica has touched, at a start. NeedsOperator."""
        self._guard.check([TableName(*folded) for folded in known], {})

    def describe(self, tables: Iterable[TableRows]) -> dict[FoldedName, TableDescription]:
        """Describe the tables that exist; the planner names a missing one with a row's position. NeedsOperator from the table check."""
        names = {table.name.fold(): table for table in tables}
        # A segment describes only the tables that it writes, and each once until a DDL touches it: a catalogue may hold ten
        # thousand.
        missing = [table for folded, table in names.items() if folded not in self._catalogue]
        if missing:
            self._guard.check(
                [table.name for table in missing], {table.name.fold(): {"table": str(table.name), **_facts_of(table)} for table in missing}
            )
            described = self._sink.describe([table.name for table in missing])
            self._catalogue |= {folded: self._expected(folded, self._compared(names[folded], table)) for folded, table in described.items()}
        return {folded: self._catalogue[folded] for folded in names if folded in self._catalogue}

    def ordered(self, tables: Iterable[TableRows], rekeyed: Collection[FoldedName]) -> frozenset[FoldedName]:
        """Return the tables whose rows are written in order, with these rows. NeedsOperator: they cannot be."""
        return self._keys.ordered(tables, rekeyed)

    def explained(
        self, error: NeedsOperator, tables: Mapping[FoldedName, TableDescription]
    ) -> Mapping[FoldedName, TableDescription] | None:
        """Return ``tables`` without the unique index that ``error`` is about if upstream has made it after all; else None.

        The wire's flags may be stale (open_protocol.md 2.5). Upstream's statements are asked only now: they may be many.
        """
        for folded, table in tables.items():
            for index in table.unique_indexes if str(folded) == str(error.facts.get("table", "")).casefold() else ():
                if index.name == error.facts.get("index") and self._guard.allows_unique_index(folded, index):
                    rest = _explained(table, [index])
                    self._catalogue[folded] = rest
                    return {**tables, folded: rest}
        return None

    def _compared(self, rows: TableRows, table: TableDescription) -> TableDescription:
        folded = table.folded
        if self._guard.accepts_unique_indexes(folded):
            table = replace(table, unique_indexes=())
        if self._guard.accepts_generated(folded):
            table = replace(table, columns=tuple(replace(column, computes_otherwise=False) for column in table.columns))
        elif not rows.tells_generated and any(column.generated for column in table.columns):
            # The sink would compute a value of its own instead of each that comes.
            plain = self._guard.plain_upstream(folded)
            lost = [column.generated and column.name.casefold() in plain for column in table.columns]
            columns = zip(table.columns, lost, strict=True)
            table = replace(
                table, columns=tuple(replace(column, computes_otherwise=True) if is_lost else column for column, is_lost in columns)
            )
        if not rows.tells_indexes:
            # At once, for all of its indexes: otherwise each index of each table would cost one more preparation of a segment.
            key = frozenset(rows.handle_key or ())
            table = _explained(table, [index for index in table.unique_indexes if self._is_of_upstream(folded, index, key)])
        return table

    def _is_of_upstream(self, folded: FoldedName, index: UniqueIndex, key: frozenset[str]) -> bool:
        # Two rows that differ in upstream's key differ in an index that holds it.
        return bool(key and key <= set(map(str.casefold, index.columns))) or self._guard.allows_unique_index(folded, index)

    def new_with_rows(self, tables: Sequence[TableRows], progress: Progress) -> frozenset[FoldedName]:
        """Check the tables of a segment, and return the ones that the replica has not touched before, to be recorded.

        NeedsOperator if one is reserved, or holds rows that are not the replica's.
        """
        for table in tables:
            if self._reserved.holds(table.name):
                self._reserved.refuse_rows(table.name, **_facts_of(table))
        return self._new([table.name for table in tables], progress)

    def new_with_ddl(self, ddl: DdlEvent, progress: Progress) -> frozenset[FoldedName]:
        """Check the tables that a DDL makes, changes or takes over; return those to record, names that a RENAME gives included.

        NeedsOperator if one is reserved, or holds rows that are not the replica's. Tables that it merely mentions (a view's, the target
        of a foreign key) are checked when their own row or DDL comes.
        """
        self._reserved.refuse_ddl(ddl)
        statement = parse_ddl(ddl)
        if statement is None:
            return self._new([ddl.name], progress)
        # Recorded, not checked: a RENAME fails anyway if its new name is taken.
        renamed = frozenset(name.fold() for _, name in statement.renames)
        return self._new([ddl.name, *statement.sources, *statement.creates], progress) | renamed

    def _new(self, names: Sequence[TableName], progress: Progress) -> frozenset[FoldedName]:
        """Check, once per table, that the tables of a replica without start_ts are absent or empty. NeedsOperator if one holds rows."""
        new = unknown_tables(names, progress.known_tables)
        # With start_ts the sink was loaded from a dump: its tables hold rows that are right.
        if new and not progress.start_ts:
            filled = self._sink.tables_with_rows(new)
            for table in new:
                if table.fold() in filled:
                    raise refuse_rows_of_others(table)
        return frozenset(table.fold() for table in new)


def _explained(table: TableDescription, indexes: Sequence[UniqueIndex]) -> TableDescription:
    """Return the table with some of its unique indexes known as upstream's."""
    rest = tuple(index for index in table.unique_indexes if index not in indexes)
    return replace(table, unique_indexes=rest, explained_indexes=(*table.explained_indexes, *indexes))


def rekeyed_tables(tables: Sequence[TableRows], described: dict[FoldedName, TableDescription]) -> dict[FoldedName, tuple[str, ...]]:
    """Return the keys of the tables whose events cannot be trusted about theirs."""
    reported: dict[FoldedName, list[TableRows]] = defaultdict(list)
    for table in tables:
        reported[table.name.fold()].append(table)
    keys = {folded: sink_key_of(reported[folded], description) for folded, description in described.items()}
    return {folded: key for folded, key in keys.items() if key is not None}


def refuse_keyless(tables: Iterable[TableRows], rekeyed: Mapping[FoldedName, Sequence[str]]) -> None:
    """Stop at rows that have no handle key, and no other unique key that the sink has too. NeedsOperator with the position of one."""
    for table in tables:
        key = {name.casefold() for name in rekeyed.get(table.name.fold(), ())}
        if not table.handle_key and not (key and key <= table.identifying):
            raise NeedsOperator(
                NO_KEY,
                remedy=NO_KEY_REMEDY,
                table=str(table.name),
                **_facts_of(table),
            )


def _facts_of(table: TableRows) -> dict[str, Any]:
    """Name the first of the rows."""
    facts = {} if table.stream is None else {"topic": table.stream.topic, "partition": table.stream.partition}
    return facts | {"offset": table.first_offset, "commit_ts": table.min_ts}


# --- row keys --------------------------------------------------------------------------------------------------------
# Whose rows can be written ahead of W (``consistency = "row"``), by the sink's catalogue: rows of one key must touch no row of another.
#
# So the sink's table has one unique key, by whole columns that are never NULL, and two values of it are equal if their bytes are. Not so
# floating-point numbers (0 and -0), texts under a collation that folds, and texts under one that ignores trailing spaces (TiDB's own
# ``utf8mb4_bin`` does): two spellings of one key. The last is right where a table comes in one stream: what one spelling deletes is then
# written together with what the other inserts, deletes first.

_INEXACT: Final = re.compile(r"(\w+ )?(float|double|real)\b", re.IGNORECASE)


def row_keys(sink: Sink, tables: SinkTables, asked: Iterable[TableRows], *, by_table: bool) -> dict[FoldedName, KeyAnswer]:
    """Return the key of each table whose rows can be written one by one. ``by_table``: each comes in one stream."""
    asked = list(asked)
    examined = sink.examine([table.name for table in asked])
    return {
        name: _key_of(description, examined[name], by_table=by_table)
        for name, description in tables.describe(asked).items()
        if name in examined
    }


def _key_of(table: TableDescription, examined: SinkTable, *, by_table: bool) -> KeyAnswer:
    # All unique indexes, not only indexes that make a key: one with NULLs, a prefix or an expression lets a row replace another one, too.
    if (
        len(table.unique_indexes) + len(table.explained_indexes) != 1
        or len(table.unique_keys) != 1
        or examined.folding
        or (examined.padding and not by_table)
    ):
        return None
    key = {name.casefold() for name in table.unique_keys[0]}
    types = [column.sql_type for column in table.columns if column.name.casefold() in key]
    return None if any(_INEXACT.match(sql_type) for sql_type in types) else tuple(sorted(key))
