"""Tables of a server of the MySQL family, as the comparison needs them."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, text

from applier.ddl.column_type import ColumnType
from applier.ddl.cursor import Cursor
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.type_parser import parse_type
from applier.model.events import TableName
from applier.planner.catalogue import ColumnDescription
from applier.sinks.mysql.catalogue import describe
from applier.sinks.mysql.information_schema import CatalogueView, Row, read_view
from applier.sinks.reserved import SYSTEM_SCHEMAS
from applier.verify.side import Contents, ServerKind, SideColumn, SideTable

_TABLES: Final = text("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, TABLE_ROWS FROM information_schema.TABLES")
_COLLATIONS: Final = CatalogueView(
    "information_schema.COLUMNS", columns="TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, CHARACTER_SET_NAME, COLLATION_NAME"
)
VIEW: Final = "VIEW"
BASE_TABLE: Final = "BASE TABLE"


def kind_of_version(version: str) -> ServerKind:
    """Return which server shows this version."""
    shown = version.casefold()
    if "tidb" in shown:
        return ServerKind.TIDB
    return ServerKind.MARIADB if "mariadb" in shown else ServerKind.MYSQL


def read_contents(connection: Connection, without: Collection[str]) -> Contents:
    """Describe the tables that the user may see. Errors of the database come out as SQLAlchemy's."""
    hidden = SYSTEM_SCHEMAS.union(without)
    listed = [
        (TableName(schema, name), str(kind).upper(), int(rows or 0))
        for schema, name, kind, rows in connection.execute(_TABLES)
        if schema.casefold() not in hidden
    ]
    rows = {name: estimate for name, kind, estimate in listed if kind == BASE_TABLE}
    described = {TableName(found.schema, found.table): found for found in describe(connection, rows.keys()).values()}
    # Two tables whose names differ only in case: ``describe`` knows one of them.
    for name in rows.keys() - described.keys():
        described.update((name, found) for found in describe(connection, [name]).values())
    collations = read_view(connection, _COLLATIONS, described.keys())
    tables = tuple(
        SideTable(description=found, columns=_columns(found.columns, collations[name]), rows=rows.get(name, 0))
        for name, found in sorted(described.items())
    )
    return Contents(tables=tables, views=tuple(sorted(name for name, kind, _ in listed if kind == VIEW)))


def _columns(described: Collection[ColumnDescription], rows: Collection[Row]) -> tuple[SideColumn, ...]:
    by_name = {row["COLUMN_NAME"]: row for row in rows}
    return tuple(
        SideColumn(
            description=column,
            type=_type_of(column),
            charset=by_name[column.name]["CHARACTER_SET_NAME"] or "",
            collation=by_name[column.name]["COLLATION_NAME"] or "",
        )
        for column in described
    )


def _type_of(column: ColumnDescription) -> ColumnType | None:
    """Return the type; None for one that is not replicated (GEOMETRY, UUID)."""
    try:
        found = parse_type(Cursor(column.sql_type))
    except DdlSyntaxError:
        return None
    return found.as_binary() if column.binary else found
