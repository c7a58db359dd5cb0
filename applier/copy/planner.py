"""Plans the chunks of a copy: which ranges are not known yet, which are not written, and when all of it is done. Pure.

The boundaries of a table are found one after the other (``walk``): each is the key that lies so many rows behind the last one, as upstream
compares keys. So the chunks of a table are disjoint and cover all keys: the first has no lower bound, the last no upper one. A chunk that
was planned keeps its bounds for good, also in a later run; one that failed is given out again.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from applier.copy.port import Bound, ChunkDone, CopyTable, KeyRange, PlannedChunk
from applier.model.events import TableName
from applier.model.position import NO_TS, Ts

CHUNK_BYTES: Final = 32 << 20
"""A transaction of the sink that its replicas and its undo log bear, and that a kill may repeat."""
LEAST_ROWS, MOST_ROWS = 1_000, 500_000
ASSUMED_ROW_BYTES: Final = 100
"""Of a table without statistics."""


class Walk(NamedTuple):
    """A boundary to ask upstream for: the key that lies ``rows`` behind ``lower``."""

    table: CopyTable
    lower: Bound | None
    rows: int


class PlannedTask(NamedTuple):
    """A chunk to write."""

    table: CopyTable
    chunk: KeyRange


@dataclass(slots=True)
class _Plan:
    table: CopyTable
    planned: int = 0
    lower: Bound | None = None
    is_walked: bool = False
    """Whether the last chunk is planned."""
    waiting: deque[KeyRange] = field(default_factory=deque)
    running: int = 0
    done: int = 0
    rows: int = 0
    size_bytes: int = 0

    @property
    def is_done(self) -> bool:
        return self.is_walked and self.done == self.planned

    @property
    def chunk_rows(self) -> int:
        """How many rows a chunk gets: by what the done ones weigh, else by upstream's statistics."""
        row_bytes = self.size_bytes / self.rows if self.rows else self.table.size_bytes / self.table.rows if self.table.rows else 0
        return min(MOST_ROWS, max(LEAST_ROWS, int(CHUNK_BYTES / (row_bytes or ASSUMED_ROW_BYTES))))


class CopyPlanner:
    """The chunks of some tables. ``planned``: what earlier runs have planned and done. Not thread-safe."""

    def __init__(self, tables: Sequence[CopyTable], planned: Mapping[TableName, Sequence[PlannedChunk]]) -> None:
        self._plans = {table.name: _Plan(table) for table in tables}
        self._high_ts = NO_TS
        for name, chunks in planned.items():
            for chunk, done in chunks:
                self._add(self._plans[name], chunk)
                if done is not None:
                    self._plans[name].waiting.remove(chunk)
                    self._count(self._plans[name], done)

    @property
    def is_done(self) -> bool:
        """Whether every chunk of every table is in the sink."""
        return all(plan.is_done for plan in self._plans.values())

    @property
    def high_ts(self) -> Ts:
        """A position at or behind everything that the views of the done chunks have seen."""
        return self._high_ts

    @property
    def rows(self) -> int:
        """How many rows the done chunks have."""
        return sum(plan.rows for plan in self._plans.values())

    @property
    def size_bytes(self) -> int:
        """How many bytes the done chunks have."""
        return sum(plan.size_bytes for plan in self._plans.values())

    @property
    def tables_done(self) -> int:
        """How many tables are whole."""
        return sum(plan.is_done for plan in self._plans.values())

    def walk(self, at_least: int) -> Walk | None:
        """Return the next boundary to ask for; None: ``at_least`` chunks wait to be written, or all are planned."""
        if sum(len(plan.waiting) for plan in self._plans.values()) >= at_least:
            return None
        plan = next((plan for plan in self._plans.values() if not plan.is_walked), None)
        return None if plan is None else Walk(plan.table, plan.lower, plan.chunk_rows)

    def bounded(self, walk: Walk, upper: Bound | None) -> KeyRange:
        """Plan the chunk that ends at the boundary; None: there are no more rows. It is stored before it is written."""
        plan = self._plans[walk.table.name]
        chunk = KeyRange(plan.planned, walk.lower, upper)
        self._add(plan, chunk)
        return chunk

    def take(self, at_most: int) -> list[PlannedTask]:
        """Give out chunks: one table after the other, the chunks of each in their order."""
        found = list[PlannedTask]()
        for plan in self._plans.values():
            while plan.waiting and len(found) < at_most:
                found.append(PlannedTask(plan.table, plan.waiting.popleft()))
                plan.running += 1
        return found

    def done(self, task: PlannedTask, done: ChunkDone) -> None:
        """Count a chunk that is in the sink."""
        plan = self._plans[task.table.name]
        plan.running -= 1
        self._count(plan, done)

    def failed(self, task: PlannedTask) -> None:
        """Let a chunk be given out again."""
        plan = self._plans[task.table.name]
        plan.running -= 1
        plan.waiting.append(task.chunk)

    @staticmethod
    def _add(plan: _Plan, chunk: KeyRange) -> None:
        plan.planned, plan.lower = chunk.number + 1, chunk.upper
        plan.is_walked = chunk.upper is None
        plan.waiting.append(chunk)

    def _count(self, plan: _Plan, done: ChunkDone) -> None:
        plan.done += 1
        plan.rows += done.rows
        plan.size_bytes += done.size_bytes
        self._high_ts = max(self._high_ts, done.high_ts)
