"""The sink's foreign keys, and which tables are therefore written in order (``planner.key_actions``).

They are the keys of the sink's position: all of upstream's DDLs up to there have run, and none behind it. Upstream's catalogue would show
today's. Read once, then again for the tables of a DDL that may have changed them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Protocol

from applier.ddl.stated_keys import StatedKeys
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.range_report import TableRows
from applier.planner.key_actions import KeyGroups, KeyLink
from applier.planner.table_check import Acceptance
from applier.planner.table_check.difference import silent_change

NOT_EXECUTED: Final = "Replicate these tables into MySQL or MariaDB, which execute such actions. Or exclude them with source.tables"


class KeyedSink(Protocol):
    """What is asked of a ``Sink``."""

    def foreign_keys(self, tables: Collection[TableName] | None = None) -> Sequence[KeyLink] | None:
        """Return the foreign keys of these tables, or of all; None: the database does not execute their actions."""
        ...

    def statements(self) -> Sequence[DdlEvent]:
        """Read upstream's statements that are done or skipped, by ts."""
        ...


class SinkKeys:
    """The foreign keys of one sink. Not thread-safe. ``is_left_out``: whether the replica lacks a table of upstream."""

    def __init__(self, sink: KeyedSink, accept: Acceptance, is_left_out: Callable[[FoldedName], bool]) -> None:
        self._sink, self._accept, self._is_left_out = sink, accept, is_left_out
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
                raise silent_change(str(link), remedy=NOT_EXECUTED).as_error(**_place(table))
            if self._is_left_out(link.parent):
                remedy = f"Create a replica that has both tables: include {link.parent} in source.tables, with all of its events"
                raise silent_change(str(link), remedy=remedy).as_error(**_place(table))
        for link in groups.links_of(group):
            # The database would find no parent of the rows.
            if self._is_left_out(link.parent):
                remedy = f"Drop the foreign keys of {link.child} that reference {link.parent} in the sink: the replica lacks that table"
                raise silent_change(str(link), remedy=remedy).as_error(**_place(table))
            # An update of a row without a key is a DELETE and an INSERT: the first would fire ON DELETE.
            if link.parent == table.name.fold() and not table.handle_key and link.parent not in rekeyed:
                remedy = f"Give {link.parent} a primary key upstream, then create the replica again from a dump"
                raise silent_change(str(link), remedy=remedy).as_error(**_place(table))

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
            self._stated = StatedKeys(self._sink.statements())
        return [KeyLink(*key) for key in self._stated.all()]


def _place(table: TableRows) -> dict[str, Any]:
    place: dict[str, Any] = {"table": str(table.name), "commit_ts": table.min_ts, "offset": table.first_offset}
    return place if table.stream is None else place | {"topic": table.stream.topic, "partition": table.stream.partition}
