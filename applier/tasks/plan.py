"""What tasks need beside the cached ranges: how segments are prepared, and how one is written. Both cross to executors with their tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.model.range_report import RangeId
from applier.model.segment import SegmentWindow
from applier.planner import STOP, QuarantinePolicy
from applier.planner.catalogue import TableDescription
from applier.planner.keyless import ALL_REAL, EqualRowsRule, Repeats
from applier.planner.port import Dialect
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, ProgressCommit
from applier.tasks.handover import RangeContent

SMALL_SEGMENT_ROWS: Final = 5_000
SMALL_SEGMENT_BYTES: Final = 16 << 20
"""Up to so much, one task does everything: a shuffle costs more than the parallelism gives."""
SLICED_SEGMENT_ROWS: Final = 25_000
"""The same between two DDLs, of rows that are divided at them (``deal``): to prepare them, all tasks would read everything that is
cached, and no segment behind the DDL can be prepared with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePlan:
    """Segments that are prepared together. ``windows`` follow one another; only the first may be applied ``again``.

    ``ranges`` are the cached ranges that may hold their rows, with what they must contain.
    """

    windows: tuple[SegmentWindow, ...]
    ranges: Mapping[RangeId, RangeContent]
    tables: Mapping[FoldedName, TableDescription]
    rekeyed: Mapping[FoldedName, tuple[str, ...]]
    ordered: frozenset[FoldedName] = frozenset()
    """The tables that are written in the order of their rows (``PlanTarget.ordered``)."""
    rows: int
    """Rows of all segments at most, before compaction: the measure of how much parallelism pays."""
    size: int = 0
    """Bytes of these rows in the cache, by the mean of their ranges."""
    buckets: int
    bucket_splits: int = 1
    """How many reducers share a bucket, so that one task can hold its rows in memory. All versions of a row meet in one of them."""
    dialect: Dialect
    policy: QuarantinePolicy = STOP
    repeats: Repeats | None = None
    """What is known of repeated rows, if tables without a key are written (``PlanTarget.repeats``)."""
    equal_rows: EqualRowsRule = ALL_REAL
    bulk: bool = False
    """Whether tables may be loaded in bulk, where the dialect can."""
    later: tuple[Ts, ...] = ()
    """Where segments behind the first one will end, as far as DDLs are known. A batch with rows of many is divided once (``deal``)."""
    writers: int = 0
    """Rows ahead of W: how many tasks write them at once. 0: each window is one segment, in one transaction."""

    @property
    def is_small(self) -> bool:
        """Whether one task does everything."""
        return self.rows <= SMALL_SEGMENT_ROWS and self.size <= SMALL_SEGMENT_BYTES

    @property
    def is_small_slice(self) -> bool:
        """Whether one task does everything if it need not read more than these rows."""
        return len(self.windows) == 1 and self.rows <= SLICED_SEGMENT_ROWS and self.size <= SMALL_SEGMENT_BYTES

    @property
    def is_rerouted(self) -> bool:
        """Whether rows must change their bucket first: the listeners have dealt them by their handle keys, into ``buckets``."""
        return bool(self.rekeyed or self.ordered) or self.bucket_splits > 1

    @property
    def reducers(self) -> int:
        """How many tasks prepare: one per bucket, or per split of one."""
        return self.buckets * self.bucket_splits

    @property
    def parts(self) -> int:
        """Into how many parts the statements are divided: segments, or what each writer deletes, and then what each writes."""
        return 2 * self.writers or len(self.windows)

    @property
    def span(self) -> SegmentWindow:
        """All windows as one: what a chunk is selected by."""
        if len(self.windows) == 1:
            return self.windows[0]
        first, last = self.windows[0], self.windows[-1]
        return SegmentWindow(after_ts=first.after_ts, upto_ts=last.upto_ts, again=first.again, settled_tables=first.settled_tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """How one prepared segment is written. ``takes_refused``: whether rows that the database refuses are quarantined."""

    writer: Writer
    fence: Fence
    commit: ProgressCommit
    takes_refused: bool = False
