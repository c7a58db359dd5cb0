"""Where the sink has each table of upstream: under which name, or nowhere, because the filter excludes it. Kept with the progress.

Two dangers that no database reports: two tables of upstream become one in the sink, and a table joins the selection (or gets another name)
after some of its history was skipped (or written elsewhere). Both stop the replica, also if the configuration has changed in between.

A replica that has never had a filter or a route stores no locations: each table has its own name.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableMove
from applier.model.failure import FailureKind
from applier.model.range_report import TableRows
from applier.selection.selection import EVERYTHING, TableSelection

LEFT_OUT: Final = FoldedName("", "")
"""The location of a table with skipped events."""

BEGUN: Final = FoldedName("", "")
"""Stored as a table that is skipped, with the first locations: without it, the locations of the known tables are not stored yet."""

Changes: TypeAlias = Mapping[FoldedName, FoldedName | None]
"""New locations; None: the table does not have one any more."""

_NEW_REPLICA: Final = Remedy(
    "selection.restore-route", "Restore the earlier setting. To have the table so, create a new replica from a dump, with another `name`"
)
_OTHER_NAME: Final = Remedy(
    "selection.route-each-table-once", 'Give each table a name of its own: use {schema} and {table} in the "to" of source.route'
)


class Locations:
    """The locations of one replica. ``known``: the sink's tables that it has touched. Not thread-safe."""

    def __init__(self, stored: Mapping[FoldedName, FoldedName], known: Iterable[FoldedName], *, selects: bool) -> None:
        """``selects``: whether a filter or a route is configured now. ``is_used``: whether there are locations at all."""
        self._places = dict(stored)
        self._owners = {sink: table for table, sink in stored.items() if sink != LEFT_OUT}
        self._waiting: dict[FoldedName, FoldedName | None] = {}
        self._selects, self.is_used = selects, selects or bool(stored)
        # What was applied before there was a filter or a route has its own name.
        if selects and BEGUN not in stored:
            for table in known:
                self._change(table, table)
            self._change(BEGUN, LEFT_OUT)

    def leave_out(self, tables: Iterable[FoldedName]) -> None:
        """Note tables whose rows were skipped. ``waiting`` holds them until they are stored."""
        for table in tables:
            if self._places.get(table) != LEFT_OUT:
                self._change(table, LEFT_OUT)

    @property
    def waiting(self) -> Changes:
        """What the next transaction must store."""
        return dict(self._waiting)

    def stored(self, changes: Changes) -> None:
        """Record changes as durable."""
        for table, place in changes.items():
            if table in self._waiting and self._waiting[table] == place:
                del self._waiting[table]

    def place_rows(self, tables: Iterable[TableRows]) -> None:
        """Note tables whose rows are written. NeedsOperator: they must not be."""
        for table in tables if self.is_used else ():
            facts = {"table": str(table.name), "commit_ts": table.min_ts}
            self._keep(table.upstream_name.fold(), table.name.fold(), facts)

    def move(self, ddl: DdlEvent, *, is_applied: bool) -> None:
        """Note what a DDL does to tables, as it runs or is skipped. NeedsOperator, if it is applied: it must not be."""
        moves, facts = ddl.moves, {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        # A filter that was removed: the locations are still as it left them.
        if self.is_used and not self._selects and (statement := parse_ddl(ddl)) is not None:
            moves = moves_of(statement, EVERYTHING)
        for before, after, sink in moves if self.is_used else ():
            if after is None and before is not None:
                self._drop(before)
            elif after is not None:
                self._move(before, after, sink or LEFT_OUT, facts if is_applied else None)

    def _move(self, before: FoldedName | None, after: FoldedName, sink: FoldedName, facts: Mapping[str, Any] | None) -> None:
        if before == after:
            if sink == LEFT_OUT:
                self.leave_out([after])
            elif facts is not None:
                self._keep(after, sink, facts)
            return
        if before is not None:
            self._change(before, None)
        if sink != LEFT_OUT and facts is not None:
            self._check_free(after, sink, facts)
        self._change(after, sink)

    def _drop(self, name: FoldedName) -> None:
        for table in [name] if name.table else [table for table in self._places if table.schema == name.schema]:
            if table in self._places:
                self._change(table, None)

    def _keep(self, table: FoldedName, sink: FoldedName, facts: Mapping[str, Any]) -> None:
        """Refuse rows and DDLs of a table that is elsewhere, or was skipped."""
        place = self._places.get(table)
        if place == sink:
            return
        if place == LEFT_OUT:
            raise NeedsOperator(
                f"{table} was excluded until now, so a part of its history is missing",
                remedy=_NEW_REPLICA,
                kind=FailureKind.SELECTION,
                **facts,
            )
        if place is not None:
            message = f"{table} had another name in the sink until now: {place}"
            raise NeedsOperator(message, remedy=_NEW_REPLICA, kind=FailureKind.SELECTION, **facts)
        self._check_free(table, sink, facts)
        self._change(table, sink)

    def _check_free(self, table: FoldedName, sink: FoldedName, facts: Mapping[str, Any]) -> None:
        owner = self._owners.get(sink)
        if owner not in {None, table}:
            message = f"two tables would be one in the sink: {owner} and {table} are both {sink}"
            raise NeedsOperator(message, remedy=_OTHER_NAME, kind=FailureKind.SELECTION, **facts)

    def _change(self, table: FoldedName, place: FoldedName | None) -> None:
        old = self._places.pop(table, None)
        if old is not None and self._owners.get(old) == table:
            del self._owners[old]
        if place is not None:
            self._places[table] = place
            if place != LEFT_OUT:
                self._owners[place] = table
        self._waiting[table] = place


def moves_of(statement: DdlStatement, selection: TableSelection) -> tuple[TableMove, ...]:
    """Return what a statement does to upstream's tables. Views have no rows, so they have no location."""
    if statement.kind in {DdlKind.CREATE_VIEW, DdlKind.DROP_VIEW, DdlKind.RECOVER_TABLE}:
        return ()
    if statement.kind is DdlKind.DROP_SCHEMA:
        return (TableMove(FoldedName(statement.schema.casefold(), ""), None, None),)
    needs = () if statement.kind is DdlKind.CREATE_TABLE_LIKE else statement.needs
    steps = [
        *((table, table) for table in needs),
        *((None, table) for table in statement.creates),
        *((table, None) for table in statement.drops),
        *statement.renames,
    ]
    # ALTER TABLE … RENAME: the table keeps its position until it is renamed.
    return tuple(
        TableMove(
            None if before is None else before.fold(),
            None if after is None else after.fold(),
            selection.name(after).fold() if after is not None and selection.has(after) else None,
        )
        for before, after in steps
    )
