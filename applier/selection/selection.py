"""What the replica has of upstream: the table filter, the event filters, and the routes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from applier.model.events import DdlEvent, RowOperation, TableName
from applier.selection.event_filter import EventFilter
from applier.selection.online_ddl import NO_ONLINE_DDL, OnlineDdl, OnlineDdlMode
from applier.selection.route import Route
from applier.selection.table_filter import ALL_TABLES, SchemaPart, TableFilter


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Frozen and picklable: it crosses to executors as a part of the decoder."""

    tables: TableFilter = ALL_TABLES
    routes: tuple[Route, ...] = ()
    event_filters: tuple[EventFilter, ...] = ()
    online: OnlineDdl = NO_ONLINE_DDL

    @property
    def is_everything(self) -> bool:
        """Whether all events of all tables pass as they are."""
        return not (self.tables.rules or self.routes or self.event_filters or self.online.mode is OnlineDdlMode.ALWAYS)

    def has(self, table: TableName) -> bool:
        """Return whether the replica has a table of upstream."""
        return self.tables.has(table) and not self.online.leaves_out(table)

    def name(self, table: TableName) -> TableName:
        """Return the name of a table in the sink."""
        for route in self.routes:
            if route.pattern.matches(table):
                return route.of(table)
        return table

    def ignored_rows(self, table: TableName) -> frozenset[RowOperation]:
        """Return which row changes of a table are left out."""
        return frozenset[RowOperation]().union(*(one.ignored_rows(table) for one in self.event_filters))

    def ignores(self, ddl: DdlEvent, tables: Iterable[TableName]) -> bool:
        """Return whether an event filter leaves a DDL out that touches ``tables``."""
        names = tuple(tables)
        return any(one.ignores(ddl, names) for one in self.event_filters)

    # --- schemas ---------------------------------------------------------------------------------------------------

    def part_of(self, schema: str) -> SchemaPart:
        """Return how much of a schema the replica has."""
        return self.tables.part_of(schema)

    def schema_name(self, schema: str) -> str:
        """Return the schema of the sink for statements about a schema: that of the route that takes it whole, else its own."""
        for route in self.routes:
            if route.pattern.schema.matches(schema) and route.takes_whole_schemas:
                return route.schema.of(TableName(schema, ""))
        return schema

    def is_apart(self, schema: str) -> bool:
        """Return whether the sink's schema of a schema holds all of its tables and none of others, as far as names can tell."""
        target = self.schema_name(schema)
        for route in self.routes:
            is_whole = route.takes_whole_schemas
            if route.pattern.schema.matches(schema):
                # The first route that takes all of it is the one of ``schema_name``; one before it takes tables elsewhere.
                if is_whole:
                    break
                return False
        return not any(route.may_fill(target, schema) for route in self.routes) and (
            target.casefold() == schema.casefold() or self._leaves(target)
        )

    def _leaves(self, schema: str) -> bool:
        """Return whether upstream's own schema of this name has no table there: it is left out, or routed elsewhere."""
        return self.part_of(schema) is SchemaPart.NONE or self.schema_name(schema).casefold() != schema.casefold()


EVERYTHING: Final = TableSelection()
