"""How much of what is cached waits to be written, and how much lies ahead of the watermark."""

from applier.coordinator.range_heap import RangeHeap
from applier.model.position import Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import is_beyond


class ClosedBytes:
    """``beyond``: bytes of the ranges that may hold rows above W; ``closed``: of those that hold none."""

    __slots__ = ("_beyond", "_ends", "beyond", "closed")

    def __init__(self) -> None:
        self._beyond: dict[RangeId, int] = {}
        # By their last commit_ts.
        self._ends = RangeHeap(lambda entry: entry.name in self._beyond)
        self.beyond = self.closed = 0

    def add(self, report: RangeReport) -> None:
        """Take a range in."""
        self._beyond[report.range] = report.bytes
        self.beyond += report.bytes
        self._ends.add(report.max_ts, 0, report.range)

    def drop(self, report: RangeReport) -> None:
        """Forget a range."""
        if report.range in self._beyond:
            self.beyond -= self._beyond.pop(report.range)
            self._ends.lost_one()
        else:
            self.closed -= report.bytes

    def close(self, watermark: Ts) -> None:
        """Record W. Where it steps back for a new partition, what was closed still counts as closed."""
        while (end := self._ends.first) is not None and not is_beyond(end.ts, watermark):
            size = self._beyond.pop(self._ends.pop().name)
            self.beyond, self.closed = self.beyond - size, self.closed + size
