"""What a comparison finds. No value of a row, except in ``RowDifference``, which stays in memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from applier.model.events import TableName
from applier.model.position import NO_TS, Ts
from applier.sinks.table_reader import NOTHING, Checksum, Key, Value


class RowState(StrEnum):
    """How a row of the sink differs from upstream's."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """A row that differs. ``row``: upstream's values, None if they were not asked for, or if upstream has no such row."""

    state: RowState
    key: Key = field(repr=False)
    columns: tuple[str, ...] = ()
    row: tuple[Value, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeResult:
    """A range that was compared, at the checkpoint ``ts`` of the sink."""

    ts: Ts
    upstream: Checksum
    sink: Checksum
    differences: tuple[RowDifference, ...] = ()
    is_cut: bool = False
    """There are more differences: the limit was reached."""


@dataclass(slots=True, kw_only=True)
class TableResult:
    """A table of the sink. ``problem``: why its rows were not compared, or why they cannot be equal; "" if there is none."""

    name: TableName
    problem: str = ""
    upstream: Checksum = NOTHING
    sink: Checksum = NOTHING
    differences: list[RowDifference] = field(default_factory=list)
    is_cut: bool = False
    ranges: int = 0

    def add(self, result: RangeResult) -> None:
        """Add a range."""
        self.upstream += result.upstream
        self.sink += result.sink
        self.differences += result.differences
        self.is_cut |= result.is_cut
        self.ranges += 1

    @property
    def is_equal(self) -> bool:
        """Whether the table is the same on both sides."""
        return not (self.problem or self.differences or self.is_cut)

    def count(self, state: RowState) -> int:
        """Return how many rows are missing, extra or different."""
        return sum(each.state is state for each in self.differences)

    @property
    def columns(self) -> Counter[str]:
        """The columns that differ, with the number of their rows."""
        return Counter(name for each in self.differences for name in each.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of ``applier verify``."""

    tables: Sequence[TableResult]
    views: int
    seconds: float
    first_ts: Ts = NO_TS
    last_ts: Ts = NO_TS
    """The sink's checkpoints between which the ranges were compared."""
    is_exact: bool = False
    """Upstream was read as it was at the sink's checkpoint: no difference can be a row on its way."""
    skipped_ranges: int = 0
    """Ranges that an earlier run had found equal at the same checkpoint."""
    unwritten: int = 0
    """Rows that the statements of the repair exclude: the sink's columns cannot hold them."""

    @property
    def is_equal(self) -> bool:
        """Whether the sink equals upstream."""
        return all(table.is_equal for table in self.tables)
