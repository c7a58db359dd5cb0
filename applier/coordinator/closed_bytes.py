"""How much of what is cached waits to be written, and how much lies ahead of the watermark."""

from heapq import heappop, heappush

from applier.model.position import Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import is_beyond


class ClosedBytes:
    """``beyond``: bytes of the ranges that may hold rows above W; ``closed``: of those that hold none."""

    __slots__ = ("_beyond", "_ends", "beyond", "closed")

    def __init__(self) -> None:
        self._beyond: dict[RangeId, int] = {}
        # A heap of (last commit_ts, range). A range that was dropped is left in it until it comes up.
        self._ends: list[tuple[Ts, RangeId]] = []
        self.beyond = self.closed = 0

    def add(self, report: RangeReport) -> None:
        """Take a range in."""
        self._beyond[report.range] = report.bytes
        self.beyond += report.bytes
        heappush(self._ends, (report.max_ts, report.range))

    def drop(self, report: RangeReport) -> None:
        """Forget a range."""
        if report.range in self._beyond:
            self.beyond -= self._beyond.pop(report.range)
        else:
            self.closed -= report.bytes

    def close(self, watermark: Ts) -> None:
        """Take in W. Where it steps back for a new partition, what was closed still counts as closed."""
        while self._ends and not is_beyond(self._ends[0][0], watermark):
            size = self._beyond.pop(heappop(self._ends)[1], 0)
            self.beyond, self.closed = self.beyond - size, self.closed + size
