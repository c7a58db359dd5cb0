"""Upstream's rows at any snapshot ts, for tests that stand in for TiDB: handle-key-only rows are read there (open_protocol.md 2.9)."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from applier.demo.simulator.catalogue import Catalogue, Key
from applier.demo.simulator.operation import Row, UpstreamStep
from applier.demo.simulator.schema import Table
from applier.model.events import TableName, Value
from applier.model.position import Ts


class TableSnapshot(NamedTuple):
    """A table as it was: its definition, and its rows by folded handle key."""

    table: Table
    rows: Mapping[Key, Row]


class Snapshots:
    """Every version of upstream. Values are as rows carry them on the wire: ENUM and SET as numbers, DECIMAL and times as text."""

    def __init__(self, history: Iterable[UpstreamStep]) -> None:
        self._times: list[Ts] = []
        self._states: list[dict[TableName, TableSnapshot]] = []
        catalogue = Catalogue()
        for step in history:
            catalogue.change(step.rows)
            for ddl in step.ddls:
                catalogue.execute(ddl)
            changed = {change.table.name for change in step.rows}
            self._times.append(step.ts)
            self._states.append(self._copied(catalogue, changed, everything=bool(step.ddls)))

    def _copied(self, catalogue: Catalogue, changed: set[TableName], *, everything: bool) -> dict[TableName, TableSnapshot]:
        last = self._states[-1] if self._states else {}
        return {
            state.table.name: TableSnapshot(state.table, dict(state.rows))
            if everything or state.table.name in changed
            else last[state.table.name]
            for state in catalogue
        }

    def tables(self, ts: int) -> Mapping[TableName, TableSnapshot]:
        """Return all tables with everything that was committed at or before ``ts``."""
        place = bisect_right(self._times, ts)
        return self._states[place - 1] if place else {}

    def row(self, name: TableName, key: Mapping[str, Value], ts: int) -> dict[str, Value] | None:
        """Return the row with these handle-key values at ``ts``, by column name; None if there was none, KeyError without the table."""
        table, rows = self.tables(ts)[name]
        for row in rows.values():
            if all(row[table.position[column]] == value for column, value in key.items()):
                return dict(zip((column.name for column in table.columns), row, strict=True))
        return None
