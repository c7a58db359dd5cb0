"""Upstream's catalogue: the unique keys and collations that a binlog does not show, and the foreign keys whose actions it does not hold.

InnoDB deletes and changes rows for a foreign key's action without writing them to the binlog (MySQL manual, "Replication and Foreign
Keys"). MySQL writes them from 9.6 on, unless ``innodb_native_foreign_keys`` is set.

Of excluded tables (in system schemas, and tables that are not selected) only the name is read, so no type, character set or missing
metadata of such a table stops a replica.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import NeedsOperator, Remedy, SourceError
from applier.model.events import FoldedName, RowOperation, TableName
from applier.model.position import Ts
from applier.mysql.catalogue import ALL_NAMES, NAMES_BUT_VIEWS, NAMES_WITH_ROWS, read_upstream_keys
from applier.mysql.errors import DENIED, NOT_THERE, code_of
from applier.mysql.grants import Grants, shows_all_tables
from applier.mysql.names import SYSTEM_SCHEMAS_OF_MYSQL, quote_table
from applier.mysql.session import ServerSession, execute_text, read_rows
from applier.planner.table_check import ListedTables, UpstreamKeys
from applier.selection import SelectedTable, TableSelection
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.scan import EventFeed
from applier.sources.binlog.server import LogEnd, Server
from applier.sources.binlog.walk import SchemaChanges, changes_until


def is_system_schema(schema: str) -> bool:
    """Return whether a schema is a system schema."""
    return schema.casefold() in SYSTEM_SCHEMAS_OF_MYSQL


def excluded(name: TableName, selection: TableSelection) -> SelectedTable | None:
    """Return the table if the replica does not have its rows, as for a system table; None if it has some."""
    if is_system_schema(name.schema):
        return SelectedTable(name, name, frozenset(RowOperation), is_filtered=False, is_out=True)
    table = selection.table(name)
    return table if table.is_out else None


_FOLDS: Final = "SELECT @@GLOBAL.lower_case_table_names"
_ALIKE_REMEDY: Final = Remedy(
    "binlog.give-distinct-names",
    "Give one of them another name upstream, before the position of the replica. Or exclude both with source.tables",
)
_ACTIONS: Final = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE"
    " FROM information_schema.REFERENTIAL_CONSTRAINTS"
)
_ACTING: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})
MOST_WALKED_BYTES: Final = 64 << 20
"""Bytes of the log that are searched for DDLs after a position: about a second."""
LOCK_WAIT_S: Final = 2
"""A table that a statement holds for longer makes the list worthless for now."""
_LOGGED: Final = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"


@dataclass(frozen=True, slots=True)
class FollowedLog:
    """The log that positions are of. ``boundary_of`` returns a boundary up to which all is applied at a checkpoint; None: not known."""

    server: str
    generation: int = 0
    base_name: str = ""
    boundary_of: Callable[[Ts], int | None] = int


class UpstreamCatalogue:
    """Implements ``UpstreamTables`` on the server. Not thread-safe."""

    def __init__(self, server: Server, selection: TableSelection, open_feed: Callable[[str, int], EventFeed]) -> None:
        """``open_feed`` opens a feed of a log's base name at a position."""
        self._server, self._selection, self._open_feed = server, selection, open_feed
        self._followed: FollowedLog | None = None
        self._names: dict[FoldedName, TableName] | None = None
        self._changes: dict[FoldedName, str] | None = None
        self._folds: bool | None = None

    def forget(self) -> None:
        """Forget what was answered."""
        self._names = self._changes = None

    def follow(self, log: FollowedLog) -> None:
        """Take positions as positions in this log from now on."""
        self._followed = log

    def listed_at(self, ts: Ts, settled: Collection[TableName] = ()) -> ListedTables | None:
        """List the present tables, without tables that a DDL since ``ts`` may be about: the log shows them."""
        log = self._followed or FollowedLog(self._server.identity())
        position = log.boundary_of(ts)
        if position is None or not self._is_in(log, position):
            return None
        tables, end = self._tables_of_now(settled), self._server.end()
        # The end is asked for behind the list: what the list shows is logged before, unless its CREATE still runs.
        changes = None if end is None or log.base_name not in {"", end.base_name} else self._changes_between(position, end)
        # Another server may have replaced it while it was asked.
        if changes is None or self._server.identity() != log.server:
            return None
        # What an event filter concerns may lack its table.
        filters = [one.tables for one in self._selection.event_filters]
        names = [name for name in tables if not (changes.may_name(name) or any(one.has(name) for one in filters))]
        is_exact = not changes.words
        is_whole = is_exact and not filters and shows_all_tables(self._grants())
        return ListedTables({name: self._selection.name(name) for name in names}, is_exact, is_whole)

    def _grants(self) -> Grants:
        return Grants(str(row[0]) for row in self._server.rows("privileges", "SHOW GRANTS"))

    def _tables_of_now(self, settled: Collection[TableName]) -> list[TableName]:
        def work(session: ServerSession) -> list[tuple[object, ...]]:
            # MariaDB's list waits for a CREATE TABLE ... SELECT, which may last for hours.
            execute_text(session, f"SET SESSION lock_wait_timeout = {LOCK_WAIT_S}")
            try:
                for name in settled:
                    _wait_for(session, name)
                return read_rows(session, NAMES_WITH_ROWS)
            finally:
                execute_text(session, "SET SESSION lock_wait_timeout = DEFAULT")

        return _chosen(self._server.ask("listing the tables", work), self._selection)

    def _is_in(self, log: FollowedLog, position: int) -> bool:
        """Whether this server has the log, and the position is not far from its end."""
        at = BinlogPosition.of(position)
        if at.generation != log.generation or self._server.identity() != log.server:
            return False
        sizes = {file.number: file.size for file in self._server.files() if file.number >= at.file}
        return at.file in sizes and sum(sizes.values()) - at.position <= MOST_WALKED_BYTES

    def _changes_between(self, position: int, end: LogEnd) -> SchemaChanges | None:
        upto = BinlogPosition(BinlogPosition.of(position).generation, end.number, end.position).number
        if upto <= position:
            return SchemaChanges() if upto == position else None
        try:
            with closing(self._open_feed(end.base_name, position)) as feed:
                return changes_until(feed, upto, SchemaChanges())
        except SourceError:
            return None  # not known: as when no server id is free

    def definitions(self, tables: Collection[FoldedName]) -> Mapping[FoldedName, UpstreamKeys]:
        """Ask for all tables at once; of a few the server opens no others."""
        sink_names = self._sink_names()
        names = {table: name for table in tables if (name := sink_names.get(table)) is not None}
        keys = self._server.ask("reading the definitions of tables", lambda session: read_upstream_keys(session, names.values()))
        # The rows of a binlog tell which columns are computed.
        return {table: replace(keys[name], plain_columns=frozenset()) for table, name in names.items()}

    def _sink_names(self) -> dict[FoldedName, TableName]:
        if self._names is None:
            names = [TableName(*map(str, row)) for row in self._server.rows("listing the tables", NAMES_BUT_VIEWS)]
            # Of two tables with one name in the sink, the replica has the second one.
            names.sort(key=self._selection.has)
            self._names = {self._selection.name(name).fold(): name for name in names if not is_system_schema(name.schema)}
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
        for row in self._server.rows("listing the names of the tables", ALL_NAMES):
            name = TableName(*map(str, row))
            first = found.setdefault(name.fold(), name)
            if first != name and self._selection.has(name) and self._selection.name(name).fold() in wanted:
                message = "upstream has two tables whose names differ only in case: the applier cannot tell them apart"
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


def chosen_tables(server: Server, selection: TableSelection) -> list[TableName]:
    """Return the tables with rows of their own that the replica has, under upstream's names, that the user may see."""
    return _chosen(server.rows("listing the tables", NAMES_WITH_ROWS), selection)


def _chosen(rows: Iterable[tuple[object, ...]], selection: TableSelection) -> list[TableName]:
    names = [TableName(str(schema), str(table)) for schema, table in rows]
    return sorted(name for name in names if name.schema.casefold() not in SYSTEM_SCHEMAS_OF_MYSQL and selection.has(name))


def _wait_for(session: ServerSession, name: TableName) -> None:
    """Wait until no statement holds the table exclusively: then its CREATE has ended, and is logged if it ever is."""
    try:
        read_rows(session, f"SHOW CREATE TABLE {quote_table(name.schema, name.table)}")
    except SQLAlchemyError as error:
        # Dropped since, or the user may not see more than its name.
        if code_of(error) not in NOT_THERE | DENIED:
            raise
