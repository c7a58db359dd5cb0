"""Upstream's tables at a TSO: TiDB shows the catalogue of any time that its garbage collection has kept.

A changefeed does not replicate tables without a primary key or a unique key of columns that are never NULL, unless it is forced to: whether
it is, upstream does not say. So such tables are not listed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.model.position import Ts
from applier.mysql.catalogue import NAMES_WITH_ROWS
from applier.mysql.errors import BELOW_GC
from applier.mysql.grants import Grants, shows_all_tables
from applier.mysql.names import SYSTEM_SCHEMAS
from applier.planner.table_check import ListedTables, TableLister
from applier.selection import TableSelection
from applier.sources.kit import SourceKit
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import SnapshotSession

_KEYS: Final = "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NULLABLE FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0"
_TEMPORARY: Final = "__tidb_br_temporary_"
"""Schemas that a restore of TiDB makes for itself."""


@dataclass(frozen=True, slots=True)
class TidbTables:
    """Implements ``TableLister``. Each answer has its own session."""

    settings: UpstreamSettings
    selection: TableSelection

    def listed_at(self, ts: Ts, settled: Collection[TableName] = ()) -> ListedTables | None:
        """Read the catalogue at ``ts``, without any later DDL. None: the time does not exist."""
        del settled
        if not ts:
            return None
        try:
            tables, keyed, grants = self._read(ts)
        except NeedsOperator as error:
            if error.facts.get("code") == BELOW_GC:
                return None
            raise
        chosen = [name for name in tables if _is_of_user(name) and self.selection.has(name)]
        filters = [one.tables for one in self.selection.event_filters]
        names = [name for name in sorted(chosen) if name in keyed and not any(one.has(name) for one in filters)]
        is_whole = len(names) == len(chosen) and shows_all_tables(grants)
        return ListedTables({name: self.selection.name(name) for name in names}, is_whole=is_whole)

    def _read(self, ts: Ts) -> tuple[list[TableName], frozenset[TableName], Grants]:
        session = SnapshotSession(self.settings, ts)
        try:
            tables = [TableName(*map(_text, row)) for row in session.rows(NAMES_WITH_ROWS)]
            keyed, grants = _keyed(session.rows(_KEYS)), Grants(_text(row[0]) for row in session.rows("SHOW GRANTS"))
        except BaseException:
            session.abandon()
            raise
        session.end()
        return tables, keyed, grants


def lister_of(kit: SourceKit, upstream: UpstreamSettings | None, selection: TableSelection, state: str | None = None) -> TableLister | None:
    """Return what lists upstream's tables: the source's own server, or the TiDB of the settings. ``state``: of the replica's progress."""
    own = kit.upstream_tables(selection, state)
    return TidbTables(upstream, selection) if own is None and upstream is not None else own


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "surrogateescape")


def _is_of_user(name: TableName) -> bool:
    schema = name.schema.casefold()
    return schema not in SYSTEM_SCHEMAS and not schema.startswith(_TEMPORARY)


def _keyed(parts: Collection[tuple[bytes | None, ...]]) -> frozenset[TableName]:
    """Return the tables that have a unique key of columns that are never NULL."""
    keys: dict[tuple[str, str, str], bool] = {}
    for part in parts:
        schema, table, index, nullable = map(_text, part)
        keys[schema, table, index] = keys.get((schema, table, index), True) and nullable.upper() != "YES"
    return frozenset(TableName(schema, table) for (schema, table, _), is_key in keys.items() if is_key)
