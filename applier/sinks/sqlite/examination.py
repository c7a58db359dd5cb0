"""What the table check wants to know of the file's tables: views in their places, triggers, and the collations of unique keys.

Every table of the file has transactions. Foreign keys do nothing: each session of the applier sets ``PRAGMA foreign_keys = OFF``.
"""

import sqlite3
from collections.abc import Collection
from typing import Final

from applier.ddl.generated import unportable_columns
from applier.model.events import FoldedName, TableName
from applier.planner.table_check import FoldingColumn, SinkTable
from applier.sinks.sqlite.catalogue import StoredObject, find_objects, known_columns

_TRIGGERS: Final = "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
_FOLDING: Final = (
    "SELECT DISTINCT x.name, x.coll FROM pragma_index_list(?) AS l, pragma_index_xinfo(l.name) AS x "
    "WHERE l.\"unique\" AND x.key AND x.name IS NOT NULL AND upper(x.coll) <> 'BINARY'"
)


def examine(connection: sqlite3.Connection, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
    """Examine the tables that exist, and the views that bear their names."""
    objects = find_objects(connection)
    triggers: dict[str, list[str]] = {}
    for table, trigger in connection.execute(_TRIGGERS):
        triggers.setdefault(table.casefold(), []).append(trigger)
    found = [objects[name.fold()] for name in tables if name.fold() in objects]
    return {entry.name.fold(): _examined(connection, entry, triggers.get(entry.stored.casefold(), [])) for entry in found}


def _examined(connection: sqlite3.Connection, entry: StoredObject, triggers: list[str]) -> SinkTable:
    if entry.is_view:
        return SinkTable(name=entry.name, kind="VIEW")
    folding = tuple(FoldingColumn(*row) for row in connection.execute(_FOLDING, (entry.stored,)))
    unportable = tuple(unportable_columns(known_columns(connection, entry)))
    return SinkTable(name=entry.name, engine="SQLite", triggers=tuple(triggers), folding=folding, unportable=unportable)
