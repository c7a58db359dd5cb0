"""Reads the foreign keys of the sink, whose actions its writers execute. Errors of the database come out as SQLAlchemy's."""

from collections.abc import Collection, Iterable
from typing import Final

from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import RULES, Row, read_view
from applier.mysql.names import spellings
from applier.mysql.queries import QUERIES
from applier.mysql.session import read_named
from applier.planner.ordered_rows import KeyLink

_ALL: Final = f"SELECT * FROM {RULES.source}"  # noqa: S608 - constants


def foreign_keys(connection: Connection, tables: Collection[TableName] | None) -> list[KeyLink] | None:
    """Return the foreign keys of some tables (None: of all of the server); None on TiDB."""
    if "tidb" in str(connection.scalar(QUERIES["version"])).casefold():
        return None
    if tables is None:
        return _links(read_named(connection, _ALL))
    found = read_view(connection, RULES, set(spellings(connection, tables).values()))
    return _links(row for rows in found.values() for row in rows)


def _links(rows: Iterable[Row]) -> list[KeyLink]:
    return [
        KeyLink(
            row["CONSTRAINT_NAME"],
            TableName(row["CONSTRAINT_SCHEMA"], row["TABLE_NAME"]).fold(),
            TableName(row["UNIQUE_CONSTRAINT_SCHEMA"], row["REFERENCED_TABLE_NAME"]).fold(),
            row["DELETE_RULE"],
            row["UPDATE_RULE"],
        )
        for row in rows
    ]
