"""The partial rows of one table in one segment: rows whose images lack columns of the sink's table.

A partial row supersedes only columns. So the latest one of each key *and set of columns* is kept. What a key's row is in the end: its
latest whole row or delete (``FinalRows``), and the partial rows that follow it, laid over in order.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from applier.model.chunk import Chunk
from applier.model.events import MARKER_IMAGE
from applier.model.segment import is_later_version
from applier.planner.division import selected
from applier.planner.final_rows import FinalRows, Key

ColumnSet = frozenset[str]


class Part(NamedTuple):
    """One partial row: its place among those of its column set."""

    final: FinalRows
    row: int

    @property
    def version(self) -> tuple[int, ...]:
        """What orders the versions of a key."""
        return self.final.version(self.row)


class RowsOfTable(NamedTuple):
    """Some rows of one table, with their keys and the numbers of their origins."""

    chunk: Chunk
    keys: Sequence[Key]
    origin: "array[int]"

    def some(self, chosen: Sequence[int]) -> "RowsOfTable":
        """Return some of them."""
        return RowsOfTable(
            selected(self.chunk, chosen), [self.keys[row] for row in chosen], array("i", [self.origin[row] for row in chosen])
        )

    def place(self, row: int) -> tuple[int, int, int]:
        """Return commit_ts, offset and index: what rows of one event share."""
        return self.chunk.commit_ts[row], self.chunk.offset[row], self.chunk.index[row]


def _unsplit_updates(rows: RowsOfTable, columns: Sequence[ColumnSet | None]) -> set[tuple[Any, ...]]:
    """Return key and place of the partial rows: of a delete with the same ones, the row is not gone."""
    return {(rows.keys[row], *rows.place(row)) for row, found in enumerate(columns) if found is not None}


class PartialRows:
    """Feed partial rows, ``finish``, then read what lies over the whole rows."""

    __slots__ = ("_by_columns", "_keeps_order")

    def __init__(self, *, keeps_order: bool = False) -> None:
        """Begin without rows. ``keeps_order``: as in ``RowDecoder``."""
        self._keeps_order = keeps_order
        self._by_columns: dict[ColumnSet, FinalRows] = {}

    def feed(self, rows: RowsOfTable, columns: Sequence[ColumnSet | None]) -> RowsOfTable:
        """Take the partial rows of some rows of the table; return the others. ``columns``: the column set of each; None: not partial."""
        updates = _unsplit_updates(rows, columns)
        others: list[int] = []
        parts: dict[ColumnSet, list[int]] = {}
        for row, found in enumerate(columns):
            if found is not None:
                parts.setdefault(found, []).append(row)
            # An update of a row without handle key comes as a delete and an upsert. What it leaves is not a new row.
            elif rows.chunk.kind[row] or (rows.keys[row], *rows.place(row)) not in updates:
                others.append(row)
        for found, chosen in parts.items():
            self._by_columns.setdefault(found, FinalRows(keeps_order=self._keeps_order)).feed(*rows.some(chosen))
        return rows.some(others)

    def laid_over(self, whole: FinalRows) -> Iterator[tuple[Key, int | None, list[Part]]]:
        """Yield each key with the row of ``whole`` (None: it has none) and the parts that follow it, in order.

        A key whose parts are all superseded is left out.
        """
        parts: dict[Key, list[Part]] = {}
        for final in self._by_columns.values():
            final.finish()
            for row, key in enumerate(final.keys):
                base = whole.row_of(key)
                # An empty image marks an event that cannot be read. The plan of the key needs all of its parts.
                if base is None or whole.image[base] == MARKER_IMAGE or is_later_version(final.version(row), whole.version(base)):
                    parts.setdefault(key, []).append(Part(final, row))
        for key, found in parts.items():
            yield key, whole.row_of(key), sorted(found, key=lambda part: part.version)
