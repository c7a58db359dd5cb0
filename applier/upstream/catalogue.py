"""Upstream's unique keys, collations and plain columns, asked of TiDB where its records do not show them (canal-json, simple).

The answers are about the present: a replica that lags may learn of an index that its rows do not have yet. So a statement that has run
in the sink comes first, and upstream is asked only where that does not answer.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from applier.model.events import FoldedName, TableName
from applier.model.position import Ts
from applier.mysql.catalogue import NAMES_BUT_VIEWS, read_upstream_keys
from applier.mysql.session import discard, open_reader, read_rows
from applier.planner.table_check import ListedTables, UpstreamKeys
from applier.selection import TableSelection
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import STATEMENT_TIMEOUT_S, failures_explained
from applier.upstream.tables import TidbTables

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
        """Drop the cached answers."""
        self._names = None

    def definitions(self, tables: Collection[FoldedName]) -> Mapping[FoldedName, UpstreamKeys]:
        """Ask for all tables at once. SourceError."""
        return self._ask(lambda session: self._read(session, tables))

    def _read(self, session: Any, tables: Collection[FoldedName]) -> dict[FoldedName, UpstreamKeys]:
        if self._names is None:
            found = [TableName(*map(str, row)) for row in read_rows(session, NAMES_BUT_VIEWS)]
            # Of two tables with one name in the sink, the replica has the second one.
            found.sort(key=self.selection.has)
            self._names = {self.selection.name(name).fold(): name for name in found}
        names = {table: name for table in tables if (name := self._names.get(table)) is not None}
        keys = read_upstream_keys(session, names.values())
        return {table: keys[name] for table, name in names.items()}

    def listed_at(self, ts: Ts, settled: Collection[TableName] = ()) -> ListedTables | None:
        """List the tables at ``ts``."""
        return TidbTables(self.settings, self.selection).listed_at(ts, settled)

    def check_names(self, tables: Collection[FoldedName]) -> None:
        """Accept all: TiDB has no two tables whose names differ only in case."""

    def is_left_out(self, table: FoldedName) -> bool:
        """Ask the selection; a table that was not asked for counts as having the same name in the sink."""
        name = (self._names or {}).get(table, TableName(*table))
        return not self.selection.has(name)

    def _ask(self, work: Callable[[Any], T]) -> T:
        with failures_explained("reading the definitions of upstream's tables"):
            session = open_reader(self.settings.server, self.settings.time_zone, STATEMENT_TIMEOUT_S)
            try:
                return work(session)
            finally:
                discard(session)
