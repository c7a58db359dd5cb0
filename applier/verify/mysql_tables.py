"""Tables of a server of the MySQL family, as the comparison needs them."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, text

from applier.ddl.column_parser import parse_type
from applier.ddl.column_type import ColumnType
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.model.events import TableName
from applier.mysql.catalogue import TABLES, Row, describe_with_rows, read_view
from applier.mysql.session_variables import SQL_MODE
from applier.mysql.system_schema import SYSTEM_SCHEMAS
from applier.planner.catalogue import ColumnDescription
from applier.verify.table_pair import Names, ServerKind, SideColumn, SideTable

_NAMES: Final = text("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES")
_ESTIMATES: Final = TABLES._replace(columns="TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS")
TABLE_TYPES: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})
"""Not SEQUENCE: MariaDB and TiDB list those, too."""
VIEW_TYPES: Final = frozenset({"VIEW"})

_REPAIRING: Final = (
    "SET NAMES utf8mb4",
    f"SET SESSION sql_mode = '{SQL_MODE},STRICT_ALL_TABLES', time_zone = '+00:00', foreign_key_checks = 0",
    "BEGIN",
)
_LENIENT: Final = (f"SET SESSION sql_mode = '{SQL_MODE}'", f"SET SESSION sql_mode = '{SQL_MODE},STRICT_ALL_TABLES'")
MYSQL: Final = ServerKind(name="MySQL", begins=_REPAIRING, lenient=_LENIENT)
MARIADB: Final = ServerKind(name="MariaDB", begins=_REPAIRING, lenient=_LENIENT)
TIDB: Final = ServerKind(name="TiDB", has_history=True, is_wide=True, begins=_REPAIRING, lenient=_LENIENT)


def kind_of_version(version: str) -> ServerKind:
    """Return which server shows this version."""
    shown = version.casefold()
    if "tidb" in shown:
        return TIDB
    return MARIADB if "mariadb" in shown else MYSQL


def read_names(connection: Connection, without: Collection[str]) -> Names:
    """Read the names of the tables and views that the user may see. Errors of the database come out as SQLAlchemy's."""
    hidden = SYSTEM_SCHEMAS.union(without)
    listed = [(TableName(schema, name), str(kind).upper()) for schema, name, kind in connection.execute(_NAMES)]
    tables, views = (
        tuple(sorted(name for name, kind in listed if kind in wanted and name.schema.casefold() not in hidden))
        for wanted in (TABLE_TYPES, VIEW_TYPES)
    )
    return Names(tables=tables, views=views)


def read_tables(connection: Connection, names: Collection[TableName]) -> list[SideTable]:
    """Describe tables, named as ``read_names`` lists them. Errors of the database come out as SQLAlchemy's."""
    described = {name: found for name, found in describe_with_rows(connection, names).items() if found[1]}
    estimates = read_view(connection, _ESTIMATES, described.keys())
    return [
        SideTable(
            description=found,
            columns=_columns(found.columns, columns),
            rows=sum(int(row["TABLE_ROWS"] or 0) for row in estimates[name]),
        )
        for name, (found, columns) in sorted(described.items())
    ]


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
