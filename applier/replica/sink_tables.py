"""The sink's tables as the engine sees them: their columns, which ones the replica knows already, and the keys of their rows.

Asks the sink and remembers; writes nothing. The engine records new tables in the transaction of their first rows or DDL.
A table is checked (``TableGuard``) whenever the sink is asked what it looks like: before its first row, and before its first row after
each of its DDLs. ``check_known`` does it for all tables of the replica at each start.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from applier.coordinator.starting_point import refuse_rows_of_others, unknown_tables
from applier.ddl import parse_ddl, touches
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.range_report import TableRows
from applier.planner import NO_KEY, NO_KEY_REMEDY, sink_key_of
from applier.planner.catalogue import TableDescription
from applier.planner.table_check import Acceptance
from applier.planner.table_check.upstream import UpstreamTables
from applier.replica.sink_keys import SinkKeys
from applier.replica.table_guard import TableGuard
from applier.sinks.port import Sink
from applier.sinks.progress import Progress


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
        self._guard = TableGuard(sink, accept or Acceptance(), note, upstream)
        self._keys = SinkKeys(sink, accept or Acceptance(), (lambda _: False) if upstream is None else upstream.is_left_out)
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
        """Return a DDL without its refusal, if that holds only where the sink lacks a table that is left out, and the sink has it."""
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
        """Describe the tables that exist; the planner names a missing one with a row's place. NeedsOperator from the table check."""
        names = {table.name.fold(): table for table in tables}
        # A segment describes only the tables that it writes, and each once until a DDL touches it: a catalogue may hold ten
        # thousand.
        missing = [table for folded, table in names.items() if folded not in self._catalogue]
        if missing:
            self._guard.check(
                [table.name for table in missing], {table.name.fold(): {"table": str(table.name), **_place(table)} for table in missing}
            )
            described = self._sink.describe([table.name for table in missing])
            self._catalogue |= {folded: self._expected(folded, self._compared(folded, table)) for folded, table in described.items()}
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
                    rest = replace(table, unique_indexes=tuple(other for other in table.unique_indexes if other != index))
                    self._catalogue[folded] = rest
                    return {**tables, folded: rest}
        return None

    def _compared(self, folded: FoldedName, table: TableDescription) -> TableDescription:
        if self._guard.accepts_unique_indexes(folded):
            table = replace(table, unique_indexes=())
        if self._guard.accepts_generated(folded):
            table = replace(table, columns=tuple(replace(column, computes_otherwise=False) for column in table.columns))
        return table

    def new_with_rows(self, tables: Sequence[TableRows], progress: Progress) -> frozenset[FoldedName]:
        """Check the tables of a segment, and return those that the replica has not touched before, to be recorded.

        NeedsOperator if one is reserved, or holds rows that are not the replica's.
        """
        for table in tables:
            if self._reserved.holds(table.name):
                self._reserved.refuse_rows(table.name, **_place(table))
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


def rekeyed_tables(tables: Sequence[TableRows], described: dict[FoldedName, TableDescription]) -> dict[FoldedName, tuple[str, ...]]:
    """Return the keys of the tables whose events cannot be trusted about theirs."""
    reported: dict[FoldedName, list[TableRows]] = defaultdict(list)
    for table in tables:
        reported[table.name.fold()].append(table)
    keys = {folded: sink_key_of(reported[folded], description) for folded, description in described.items()}
    return {folded: key for folded, key in keys.items() if key is not None}


def refuse_keyless(tables: Iterable[TableRows], rekeyed: Mapping[FoldedName, Sequence[str]]) -> None:
    """Stop at rows that have no handle key, and no other unique key that the sink has too. NeedsOperator with the place of one of them."""
    for table in tables:
        key = {name.casefold() for name in rekeyed.get(table.name.fold(), ())}
        if not table.handle_key and not (key and key <= table.identifying):
            raise NeedsOperator(
                NO_KEY,
                remedy=NO_KEY_REMEDY,
                table=str(table.name),
                **_place(table),
            )


def _place(table: TableRows) -> dict[str, Any]:
    """Name the first of the rows."""
    place = {} if table.stream is None else {"topic": table.stream.topic, "partition": table.stream.partition}
    return place | {"offset": table.first_offset, "commit_ts": table.min_ts}
