"""The time zone in which a DDL runs on the file: that of upstream's session, if the DDL depends on it."""

import sqlite3

from applier.ddl import parse_ddl
from applier.ddl.column_type import ColumnType
from applier.ddl.zone_use import in_zone_of_need
from applier.model.events import DdlEvent
from applier.sinks.sqlite.catalogue import find_objects, read_definition
from applier.sinks.sqlite.names import Sql, compose, quote


def in_its_zone(connection: sqlite3.Connection, ddl: DdlEvent) -> DdlEvent:
    """Return the DDL with the zone of its session if it depends on it. NeedsOperator: it does, and the zone is not known."""
    statement = parse_ddl(ddl)
    tables = () if statement is None else statement.needs[:1]
    entry = find_objects(connection).get(tables[0].fold()) if tables else None

    def types() -> dict[str, ColumnType]:
        definition = None if entry is None or entry.is_view else read_definition(connection, entry)
        return {} if definition is None else {column.name.casefold(): column.type for column in definition.columns}

    def holds(column: str) -> bool:
        if entry is None:
            return False
        condition = compose(" WHERE {column} IS NOT NULL", column=quote(column)) if column else Sql("")
        statement = compose("SELECT EXISTS (SELECT 1 FROM {table}{condition})", table=quote(entry.stored), condition=condition)
        return bool(connection.execute(statement).fetchone()[0])

    return in_zone_of_need(ddl, types, holds)
