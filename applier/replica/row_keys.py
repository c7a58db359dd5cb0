"""Whose rows can be written ahead of W (``consistency = "row"``), by the sink's catalogue: rows of one key must touch no row of another.

So the sink's table has one unique key, by whole columns that are never NULL, and two values of it are equal if their bytes are. Not so
floating-point numbers (0 and -0), texts under a collation that folds, and texts under one that ignores trailing spaces (TiDB's own
``utf8mb4_bin`` does): two spellings of one key. The last is right where a table comes in one stream: what one spelling deletes is then
written together with what the other inserts, deletes first.
"""

import re
from collections.abc import Iterable
from typing import Final

from applier.coordinator.step import KeyAnswer
from applier.model.events import FoldedName
from applier.model.range_report import TableRows
from applier.planner.catalogue import TableDescription
from applier.planner.table_check import SinkTable
from applier.replica.sink_tables import SinkTables
from applier.sinks.port import Sink

_INEXACT: Final = re.compile(r"(sqlite )?(float|double|real)", re.IGNORECASE)


def row_keys(sink: Sink, tables: SinkTables, asked: Iterable[TableRows], *, by_table: bool) -> dict[FoldedName, KeyAnswer]:
    """Return the key of each table whose rows can be written one by one. ``by_table``: each comes in one stream."""
    asked = list(asked)
    examined = sink.examine([table.name for table in asked])
    return {
        name: _key_of(description, examined[name], by_table=by_table)
        for name, description in tables.describe(asked).items()
        if name in examined
    }


def _key_of(table: TableDescription, examined: SinkTable, *, by_table: bool) -> KeyAnswer:
    # All unique indexes, not only those that make a key: one with NULLs, a prefix or an expression lets a row replace another one, too.
    if len(table.unique_indexes) != 1 or len(table.unique_keys) != 1 or examined.folding or (examined.padding and not by_table):
        return None
    key = {name.casefold() for name in table.unique_keys[0]}
    types = [column.sql_type for column in table.columns if column.name.casefold() in key]
    return None if any(_INEXACT.match(sql_type) for sql_type in types) else tuple(sorted(key))
