"""Runs the table check: examines the sink's tables, and stops the replica before a difference loses rows.

Asks the sink, writes nothing. ``applier.planner.table_check`` defines what a difference is, and what explains one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from applier.model.events import DdlEvent, FoldedName, TableName
from applier.planner.table_check import Acceptance, Difference, DifferenceKind, Evidence, SinkTable, UniqueIndex, differences_of
from applier.planner.table_check.upstream import UpstreamKeys, UpstreamTables
from applier.telemetry.log_event import LogEvent

Note = Callable[..., None]
MAX_NAMED = 10
"""Differences that one message names at most."""


class ExaminedSink(Protocol):
    """What the check asks of a ``Sink``."""

    def examine(self, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
        """Examine the tables; missing ones are left out."""
        ...

    def statements(self) -> Sequence[DdlEvent]:
        """Read upstream's statements that are done or skipped, by ts."""
        ...


class TableGuard:
    """Checks tables of one sink. Not thread-safe. ``note`` logs each accepted difference once per run."""

    def __init__(self, sink: ExaminedSink, accept: Acceptance, note: Note, upstream: UpstreamTables | None = None) -> None:
        """``upstream``: where the source can be asked for upstream's tables."""
        self._sink, self._accept, self._note, self._upstream = sink, accept, note, upstream
        self._noted: set[tuple[FoldedName, str]] = set()
        self._evidence: Evidence | None = None

    def check(self, tables: Collection[TableName], places: Mapping[FoldedName, Mapping[str, Any]]) -> None:
        """Raise NeedsOperator if a table differs from upstream's. It names the first one, with its place in ``places`` if it has one."""
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

    def has_left(self, table: FoldedName, there: FoldedName) -> bool:
        """Return whether the sink's table ``there`` has still the definition of upstream's ``table``, which is left out."""
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
            self._evidence = Evidence(self._sink.statements())
        return self._evidence


def _named(differences: Collection[tuple[FoldedName, Difference]]) -> str:
    shown = [f"{table}: {difference.what}" for table, difference in list(differences)[:MAX_NAMED]]
    more = len(differences) - len(shown)
    return "; ".join(shown) + (f"; {more} more" if more else "")
