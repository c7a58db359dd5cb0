"""The tables of a vault, and the few DDLs that it can say."""

import re
import sqlite3
from collections.abc import Collection

from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.planner.port import ColumnDescription, TableDescription
from tests.vault.dialect import quote, stored

CREATE = re.compile(r"CREATE TABLE `?(\w+)`? \((.+)\)", re.IGNORECASE | re.DOTALL)
COLUMN = re.compile(r"`?(\w+)`? (\w+(?:\(\d+\))?)(.*)", re.DOTALL)


def apply_ddl(connection: sqlite3.Connection, ddl: DdlEvent) -> None:
    if re.match(r"CREATE (SCHEMA|DATABASE)", ddl.query, re.IGNORECASE):
        return
    if re.match(r"DROP TABLE", ddl.query, re.IGNORECASE):
        connection.execute(f"DROP TABLE {stored(ddl.schema, ddl.table)}")
        return
    made = CREATE.fullmatch(ddl.query)
    if made is None:
        raise NeedsOperator("a vault cannot say this DDL", remedy=Remedy("vault.skip", "Skip it with `applier ddl skip`"), query=ddl.query)
    columns = [COLUMN.fullmatch(text.strip()) for text in made[2].split(", ")]
    keys = [found[1] for found in columns if "PRIMARY KEY" in found[3].upper()]
    # The type is kept as upstream wrote it; the vault itself has none.
    listed = [f'{quote(found[1])} "{found[2]}"{" NOT NULL" if "NOT NULL" in found[3].upper() else ""}' for found in columns]
    connection.execute(f"CREATE TABLE {stored(ddl.schema, made[1])} ({','.join(listed)}, PRIMARY KEY ({','.join(map(quote, keys))}))")


def names_of(connection: sqlite3.Connection) -> list[TableName]:
    names = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name LIKE '%!%'").fetchall()
    return [TableName(*name.split("!")) for (name,) in names]


def describe(connection: sqlite3.Connection, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
    found = {}
    for name in {table.fold() for table in tables} & {table.fold() for table in names_of(connection)}:
        known = next(table for table in names_of(connection) if table.fold() == name)
        rows = connection.execute(
            'SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (f"{known.schema}!{known.table}",)
        ).fetchall()
        key = tuple(row[0] for row in sorted(rows, key=lambda row: row[3]) if row[3])
        columns = tuple(ColumnDescription(name=row[0], sql_type=row[1].lower(), nullable=not (row[2] or row[3])) for row in rows)
        found[name] = TableDescription(schema=known.schema, table=known.table, columns=columns, unique_keys=(key,), primary_key=key)
    return found
