"""Which of upstream's tables the replica has, and which names they have in the sink. Pure values, compiled once per table.

``TableSelection`` is what everything else asks. A decoder has one: rows of tables that are skipped never reach the cache, and rows and
DDLs of routed tables come out of it with the sink's names. So nothing after a decoder knows that upstream has other names.
"""

from applier.selection.ddl_selection import select_ddl
from applier.selection.locations import LEFT_OUT, Changes, Locations, moves_of
from applier.selection.selection import (
    COPIES,
    EVERYTHING,
    LEFTOVERS,
    EventFilter,
    OnlineDdl,
    OnlineDdlMode,
    Route,
    SelectedTable,
    TableSelection,
)
from applier.selection.table_filter import PatternError, TableFilter

__all__ = [
    "COPIES",
    "EVERYTHING",
    "LEFTOVERS",
    "LEFT_OUT",
    "Changes",
    "EventFilter",
    "Locations",
    "OnlineDdl",
    "OnlineDdlMode",
    "PatternError",
    "Route",
    "SelectedTable",
    "TableFilter",
    "TableSelection",
    "moves_of",
    "select_ddl",
]
