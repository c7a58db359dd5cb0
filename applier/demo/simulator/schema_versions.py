"""What TiDB's catalogue knows of a table besides its definition: its id, the version of its schema, and the ids of its columns.

The simple protocol sends them: rows name the version of the schema that they need. RENAME keeps id and version; TRUNCATE gives another id.
"""

from dataclasses import dataclass, replace

from applier.demo.simulator.alteration import altered
from applier.demo.simulator.operation import (
    AlterTable,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Ddl,
    DropSchema,
    DropTable,
    DropView,
    RenameTable,
    Row,
    TruncateTable,
)
from applier.demo.simulator.schema import Table
from applier.model.events import TableName
from applier.model.position import Ts

_FIRST_ID = 100


@dataclass(frozen=True, slots=True)
class VersionedTable:
    """A definition at one version. ``column_ids`` grow in the order of creation, whatever the position of a column.

    ``partition_ids``: of the partitions in their order; () of a table that is not partitioned.
    """

    table: Table
    table_id: int
    version: int
    column_ids: tuple[int, ...]
    partition_ids: tuple[int, ...] = ()
    is_view: bool = False

    def physical_id(self, row: Row) -> int:
        """Return the id of the partition that holds a row, or that of the table."""
        return self.partition_ids[self.table.partition_of(row)] if self.partition_ids else self.table_id


class VersionedSchemas:
    """All tables and views, by name. ``execute`` follows the DDLs in their order."""

    def __init__(self) -> None:
        self._tables: dict[TableName, VersionedTable] = {}
        self._last_id = _FIRST_ID
        self._shown: tuple[VersionedTable, ...] | None = None

    def tables(self) -> tuple[VersionedTable, ...]:
        """Return all tables as they are now, without views; the same tuple until a DDL changes something."""
        if self._shown is None:
            self._shown = tuple(found for found in self._tables.values() if found.table.columns and not found.is_view)
        return self._shown

    def of(self, table: Table, ts: Ts) -> VersionedTable:
        """Return the table as it is now; one whose definition never came in a DDL gets a version below ``ts``."""
        found = self._tables.get(table.name)
        if found is None or (found.table is not table and found.table != table):
            found = self._put(self._created(table, ts))
        return found

    def execute(self, ddl: Ddl, ts: Ts) -> tuple[VersionedTable | None, VersionedTable | None]:
        """Carry out a DDL and return its table as it was before and as it is after; of a dropped one, as it last was."""
        self._shown = None
        match ddl:
            case CreateSchema():
                return None, None
            case DropSchema(schema):
                self._tables = {name: found for name, found in self._tables.items() if name.schema != schema}
                return None, None
            case DropTable(name) | DropView(name):
                dropped = self._named(name, ts)
                del self._tables[name]
                return dropped, dropped
            case CreateTable() | CreateTableLike() | CreateView():
                made = self._created(self._definition(ddl, ts), ts)
                return None, self._put(replace(made, is_view=isinstance(ddl, CreateView)))
            case _:
                return self._changed(ddl, ts)

    def _named(self, name: TableName, ts: Ts) -> VersionedTable:
        """Return a table; one that was there before the first DDL has no columns that are known here."""
        found = self._tables.get(name)
        return self._put(self._created(Table(name=name, columns=(), indexes=()), ts)) if found is None else found

    def _definition(self, ddl: CreateTable | CreateTableLike | CreateView, ts: Ts) -> Table:
        match ddl:
            case CreateTable(table):
                return table
            case CreateTableLike(name, model):
                return self._named(model, ts).table.renamed(name)
            case CreateView(name, source, columns):
                shown = self._named(source, ts).table
                known = [column for column in columns if column in shown.position]
                return Table(name=name, columns=tuple(map(shown.column, known)), indexes=())

    def _changed(self, ddl: TruncateTable | RenameTable | AlterTable, ts: Ts) -> tuple[VersionedTable, VersionedTable]:
        match ddl:
            case TruncateTable(name):
                before = self._named(name, ts)
                emptied = replace(before, table_id=self._next_id(), partition_ids=self._partition_ids(before.table))
                return before, self._put(replace(emptied, version=_version(before, ts)))
            case RenameTable(old, new):
                before = self._named(old, ts)
                del self._tables[old]
                return before, self._put(replace(before, table=before.table.renamed(new)))
            case AlterTable(table, clauses):
                before = self.of(table, ts)
                after, origins = altered(table, clauses)
                ids = _column_ids(before, origins)
                return before, self._put(replace(before, table=after, version=_version(before, ts), column_ids=ids))

    def _put(self, made: VersionedTable) -> VersionedTable:
        self._tables[made.table.name] = made
        self._shown = None
        return made

    def _created(self, table: Table, ts: Ts) -> VersionedTable:
        ids = tuple(range(1, len(table.columns) + 1))
        return VersionedTable(table, self._next_id(), ts - 1, ids, self._partition_ids(table))

    def _partition_ids(self, table: Table) -> tuple[int, ...]:
        return tuple(self._next_id() for _ in range(table.partitions))

    def _next_id(self) -> int:
        self._last_id += 2
        return self._last_id


def _version(before: VersionedTable, ts: Ts) -> int:
    # The job of a DDL begins before it commits.
    return max(before.version + 1, ts - 1)


def _column_ids(before: VersionedTable, origins: list[str | None]) -> tuple[int, ...]:
    known = dict(zip((column.name for column in before.table.columns), before.column_ids, strict=True))
    last = max(before.column_ids, default=0)
    ids = []
    for origin in origins:
        last += origin is None
        ids.append(last if origin is None else known[origin])
    return tuple(ids)
