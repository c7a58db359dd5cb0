"""Upstream's catalogue: the unique keys and collations that a binlog does not show, and the foreign keys whose actions it does not hold.

InnoDB deletes and changes rows for a foreign key's action without writing them to the binlog (MySQL manual, "Replication and Foreign
Keys"). MySQL writes them from 9.6 on, unless ``innodb_native_foreign_keys`` is set.

Of excluded tables (the server's own schemas, and tables that are not selected) only the name is read, so no type, character set or missing
metadata of such a table stops a replica.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName, RowOperation, TableName
from applier.model.remedy import Remedy
from applier.mysql.catalogue import COLUMNS, INDEX_PARTS, CatalogueView, Row, read_view
from applier.planner.table_check import UpstreamKeys
from applier.selection import SelectedTable, TableSelection
from applier.sources.binlog.server import Server

SYSTEM_SCHEMAS: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
"""Folded names."""


def is_system_schema(schema: str) -> bool:
    """Return whether a schema is the server's own."""
    return schema.casefold() in SYSTEM_SCHEMAS


def excluded(name: TableName, selection: TableSelection) -> SelectedTable | None:
    """Return the table if the replica has none of its rows, as of a table of the server's own; None if it has some."""
    if is_system_schema(name.schema):
        return SelectedTable(name, name, frozenset(RowOperation), is_filtered=False, is_out=True)
    table = selection.table(name)
    return table if table.is_out else None


_TABLES: Final = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE <> 'VIEW'"
_ALL_NAMES: Final = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
_FOLDS: Final = "SELECT @@GLOBAL.lower_case_table_names"
_ALIKE_REMEDY: Final = Remedy(
    "binlog.give-distinct-names",
    "Give one of them another name upstream, before the place of the replica. Or leave both out with source.tables",
)
_INDEXES: Final = INDEX_PARTS._replace(columns="TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME", condition="NON_UNIQUE = 0")
_COLLATIONS: Final = COLUMNS._replace(
    columns="TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLLATION_NAME", condition="COLLATION_NAME IS NOT NULL"
)
_ACTIONS: Final = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE"
    " FROM information_schema.REFERENTIAL_CONSTRAINTS"
)
_ACTING: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})
_LOGGED: Final = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"


class UpstreamCatalogue:
    """Implements ``UpstreamTables`` on the server. Not thread-safe."""

    def __init__(self, server: Server, selection: TableSelection) -> None:
        self._server, self._selection = server, selection
        self._names: dict[FoldedName, TableName] | None = None
        self._changes: dict[FoldedName, str] | None = None
        self._folds: bool | None = None

    def forget(self) -> None:
        """Forget what was answered."""
        self._names = self._changes = None

    def definitions(self, tables: Collection[FoldedName]) -> Mapping[FoldedName, UpstreamKeys]:
        """Ask for all tables at once; of a few the server opens no others."""
        sink_names = self._sink_names()
        names = {table: name for table in tables if (name := sink_names.get(table)) is not None}
        parts, columns = self._read(_INDEXES, names.values()), self._read(_COLLATIONS, names.values())
        return {table: _keys(parts[name], columns[name]) for table, name in names.items()}

    def _read(self, view: CatalogueView, names: Collection[TableName]) -> Mapping[TableName, list[Row]]:
        return self._server.ask("reading the definitions of tables", lambda session: read_view(session, view, names))

    def _sink_names(self) -> dict[FoldedName, TableName]:
        if self._names is None:
            names = [TableName(*map(str, row)) for row in self._server.rows("listing the tables", _TABLES)]
            # Of two tables with one name in the sink, the replica has the second one.
            names.sort(key=self._selection.has)
            self._names = {self._selection.name(name).fold(): name for name in names if name.schema.casefold() not in SYSTEM_SCHEMAS}
        return self._names

    def is_left_out(self, table: FoldedName) -> bool:
        """Ask the selection, by upstream's name; a table that was dropped since is taken to have the same one in the sink.

        A table whose rows an event filter skips is excluded too: its rows change nothing in other tables.
        """
        if self._selection.is_everything:
            return False
        name = self._sink_names().get(table, TableName(*table))
        return not self._selection.has(name) or bool(self._selection.ignored_rows(name))

    def check_names(self, tables: Collection[FoldedName]) -> None:
        """Raise NeedsOperator if upstream has two of these tables, whose names differ only in case."""
        if self._folds is None:
            self._folds = bool(int(self._server.rows("reading a variable", _FOLDS)[0][0]))
        if self._folds:
            return
        wanted, found = set(tables), dict[FoldedName, TableName]()
        # Names alone: for these no server opens a table.
        for row in self._server.rows("listing the names of the tables", _ALL_NAMES):
            name = TableName(*map(str, row))
            first = found.setdefault(name.fold(), name)
            if first != name and self._selection.has(name) and self._selection.name(name).fold() in wanted:
                message = "upstream has two tables whose names differ only in case: the applier takes them for one"
                raise NeedsOperator(message, remedy=_ALIKE_REMEDY, table=str(first), other=str(name))

    def silent_changes(self) -> Mapping[FoldedName, str]:
        """Return both tables of each foreign key with an action, if the server does not write what the action changes."""
        if self._changes is None:
            self._changes = {} if self._writes_actions() else self._actions()
        return self._changes

    def _writes_actions(self) -> bool:
        shown = self._server.rows("reading a variable", _LOGGED)
        return bool(shown) and str(shown[0][1]).upper() in {"OFF", "0"}

    def _actions(self) -> dict[FoldedName, str]:
        found: dict[FoldedName, str] = {}
        for schema, table, key, parent_schema, parent, on_delete, on_update in self._server.rows("reading foreign keys", _ACTIONS):
            child = TableName(schema, table)
            # What happens to a table that the replica does not have is of no concern.
            if _ACTING.isdisjoint({on_delete, on_update}) or not self._selection.has(child):
                continue
            what = f"foreign key {key} of {child} (ON DELETE {on_delete}, ON UPDATE {on_update})"
            for name in (child, TableName(parent_schema, parent)):
                found.setdefault(self._selection.name(name).fold(), what)
        return found


def _keys(parts: Iterable[Row], columns: Iterable[Row]) -> UpstreamKeys:
    keys: dict[str, set[str]] = {}
    for part in parts:
        keys.setdefault(part["INDEX_NAME"].casefold(), set()).update([part["COLUMN_NAME"].casefold()] if part["COLUMN_NAME"] else [])
    return UpstreamKeys(
        {index: frozenset(names) for index, names in keys.items()},
        {column["COLUMN_NAME"].casefold(): column["COLLATION_NAME"].casefold() for column in columns},
    )
