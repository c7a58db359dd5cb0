"""The upstream of a simulated history as the server of ``rig.tidb``: every version of every table, with the columns that it had."""

from applier.demo.simulator.history import History
from applier.model.events import TableName
from tests.rig.snapshots import Snapshots, TableSnapshot
from tests.rig.tidb import Row, Tidb


def give_history(upstream: Tidb, history: History) -> None:
    """Let the server have what the history says, at every timestamp."""
    snapshots = Snapshots(history)
    names = {name for step in history for name in snapshots.tables(step.ts)}
    upstream.tables = {tuple(name): _HistoryTable(snapshots, name) for name in names}


class _HistoryTable:
    """What ``TableVersions`` does, from the history's own catalogue."""

    def __init__(self, snapshots: Snapshots, name: TableName) -> None:
        self._snapshots, self._name = snapshots, name

    def _at(self, ts: int) -> TableSnapshot | None:
        return self._snapshots.tables(ts).get(self._name)

    def columns_at(self, ts: int) -> dict[str, str] | None:
        found = self._at(ts)
        return None if found is None else {column.name: column.type.sql for column in found.table.columns}

    def unique_at(self, ts: int) -> dict[str, tuple[str, ...]]:
        found = self._at(ts)
        return {} if found is None else {index.name: index.columns for index in found.table.unique_indexes}

    def rows_at(self, ts: int) -> list[Row]:
        found = self._at(ts)
        if found is None:
            return []
        names = [column.name for column in found.table.columns]
        return [dict(zip(names, row, strict=True)) for row in found.rows.values()]
