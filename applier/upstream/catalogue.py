"""Upstream's unique keys, collations and plain columns, asked of TiDB where its records do not show them (canal-json, simple).

What is asked is the present: a replica that lags may learn of an index that its rows do not have yet. So a statement that has run
in the sink comes first, and upstream is asked only where that does not answer.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from applier.model.events import FoldedName, TableName
from applier.model.position import Ts
from applier.mysql.catalogue import COLUMNS, INDEX_PARTS, Row, read_view
from applier.mysql.session import discard, open_reader, read_rows
from applier.planner.table_check import ListedTables, UpstreamKeys
from applier.selection import TableSelection
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import STATEMENT_TIMEOUT_S, failures_explained
from applier.upstream.tables import TidbTables

_TABLES: Final = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE <> 'VIEW'"
_INDEXES: Final = INDEX_PARTS._replace(columns="TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME", condition="NON_UNIQUE = 0")
_COLUMNS: Final = COLUMNS._replace(columns="TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLLATION_NAME, EXTRA")

_GENERATED: Final = re.compile(r"\b(?:STORED|VIRTUAL) GENERATED\b", re.IGNORECASE)
"""Not DEFAULT_GENERATED, which is a default that is an expression."""

T = TypeVar("T")


def tables_of(settings: UpstreamSettings | None, selection: TableSelection) -> "TidbCatalogue | None":
    """Return what answers for upstream's tables; None if nothing says where they are."""
    return None if settings is None else TidbCatalogue(settings, selection)


class TidbCatalogue:
    """Implements ``UpstreamTables``. Not thread-safe. It connects where it is asked, and keeps no session."""

    def __init__(self, settings: UpstreamSettings, selection: TableSelection) -> None:
        self.settings, self.selection = settings, selection
        self._names: dict[FoldedName, TableName] | None = None

    def forget(self) -> None:
        """Forget what was answered."""
        self._names = None

    def definitions(self, tables: Collection[FoldedName]) -> Mapping[FoldedName, UpstreamKeys]:
        """Ask for all tables at once. SourceError."""
        return self._ask(lambda session: self._read(session, tables))

    def _read(self, session: Any, tables: Collection[FoldedName]) -> dict[FoldedName, UpstreamKeys]:
        if self._names is None:
            found = [TableName(*map(str, row)) for row in read_rows(session, _TABLES)]
            # Of two tables with one name in the sink, the replica has the second one.
            found.sort(key=self.selection.has)
            self._names = {self.selection.name(name).fold(): name for name in found}
        names = {table: name for table in tables if (name := self._names.get(table)) is not None}
        parts, columns = read_view(session, _INDEXES, names.values()), read_view(session, _COLUMNS, names.values())
        return {table: _keys(parts[name], columns[name]) for table, name in names.items()}

    def listed_at(self, ts: Ts, settled: Collection[TableName] = ()) -> ListedTables | None:
        """List the tables at ``ts``."""
        return TidbTables(self.settings, self.selection).listed_at(ts, settled)

    def check_names(self, tables: Collection[FoldedName]) -> None:
        """Accept all: TiDB has no two tables whose names differ only in case."""

    def is_left_out(self, table: FoldedName) -> bool:
        """Ask the selection; a table that was not asked for is taken to have the same name in the sink."""
        name = (self._names or {}).get(table, TableName(*table))
        return not self.selection.has(name)

    def _ask(self, work: Callable[[Any], T]) -> T:
        with failures_explained("reading the definitions of upstream's tables"):
            session = open_reader(self.settings.server, self.settings.time_zone, STATEMENT_TIMEOUT_S)
            try:
                return work(session)
            finally:
                discard(session)


def _keys(parts: Iterable[Row], columns: Collection[Row]) -> UpstreamKeys:
    keys: dict[str, set[str]] = {}
    for part in parts:
        # The part of an expression has no column.
        keys.setdefault(part["INDEX_NAME"].casefold(), set()).update([part["COLUMN_NAME"].casefold()] if part["COLUMN_NAME"] else [])
    return UpstreamKeys(
        {index: frozenset(names) for index, names in keys.items()},
        {column["COLUMN_NAME"].casefold(): column["COLLATION_NAME"].casefold() for column in columns if column["COLLATION_NAME"]},
        frozenset(column["COLUMN_NAME"].casefold() for column in columns if not _GENERATED.search(str(column["EXTRA"]))),
    )
