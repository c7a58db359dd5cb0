"""Tables whose rows a replica does not have: the server's own schemas, and those that are not selected.

Only the name is read, so no type, character set or missing metadata of such a table stops a replica.
"""

from dataclasses import dataclass
from typing import Final

from applier.model.events import RowOperation, TableName
from applier.selection import TableSelection

SYSTEM_SCHEMAS: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
"""Folded names."""


def is_system_schema(schema: str) -> bool:
    """Return whether a schema is the server's own."""
    return schema.casefold() in SYSTEM_SCHEMAS


@dataclass(frozen=True, slots=True)
class ExcludedTable:
    """``is_filtered``: the table filter excludes it. Else it is the server's own, or the event filter excludes all of its rows."""

    name: TableName
    is_filtered: bool


def excluded(name: TableName, selection: TableSelection) -> ExcludedTable | None:
    """Return the table if the replica has none of its rows; None if it has some."""
    if is_system_schema(name.schema):
        return ExcludedTable(name, is_filtered=False)
    if not selection.has(name):
        return ExcludedTable(name, is_filtered=True)
    return ExcludedTable(name, is_filtered=False) if len(selection.ignored_rows(name)) == len(RowOperation) else None
