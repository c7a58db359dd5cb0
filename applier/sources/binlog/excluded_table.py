"""A table whose rows a replica does not have: only its name is read, so no type, character set or missing metadata stops a run."""

from dataclasses import dataclass

from applier.model.events import RowOperation, TableName
from applier.selection import TableSelection
from applier.sources.binlog.system_schema import is_system_schema


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
