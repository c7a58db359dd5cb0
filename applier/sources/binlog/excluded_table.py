"""Tables whose rows a replica does not have: the server's own schemas, and those that are not selected.

Only the name is read, so no type, character set or missing metadata of such a table stops a replica.
"""

from typing import Final

from applier.model.events import RowOperation, TableName
from applier.selection import SelectedTable, TableSelection

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
