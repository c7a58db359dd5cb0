"""The plan of one segment: everything that its tasks need beside the cached ranges. It crosses to executors with each task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from applier.model.events import FoldedName
from applier.model.range_report import RangeId
from applier.model.segment import SegmentWindow
from applier.planner import STOP, QuarantinePolicy
from applier.planner.catalogue import TableDescription
from applier.planner.port import Dialect
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, ProgressCommit
from applier.tasks.handover import RangeContent

SMALL_SEGMENT_ROWS: Final = 5_000
"""Below it, one task does everything: two shuffles cost more than the parallelism gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPlan:
    """One segment to write. ``ranges`` are the cached ranges that may hold its rows, with what they must contain."""

    window: SegmentWindow
    ranges: Mapping[RangeId, RangeContent]
    tables: Mapping[FoldedName, TableDescription]
    rekeyed: Mapping[FoldedName, tuple[str, ...]]
    rows: int
    """Rows of the segment at most, before compaction: the measure of how much parallelism pays."""
    buckets: int
    bucket_splits: int = 1
    """How many reducers share a bucket, so that one task can hold its rows in memory. All versions of a row meet in one of them."""
    dialect: Dialect
    writer: Writer
    fence: Fence
    commit: ProgressCommit
    policy: QuarantinePolicy = STOP

    @property
    def is_small(self) -> bool:
        """Whether one task does everything."""
        return self.rows <= SMALL_SEGMENT_ROWS

    @property
    def reducers(self) -> int:
        """How many times ``render`` runs: once per split of a bucket, or once for all."""
        return 1 if self.is_small else self.buckets * self.bucket_splits
