"""How many records a stream has per unit of upstream time: what it takes to read it up to a given time."""

from typing import Final

from applier.model.position import NO_TS
from applier.model.range_report import RangeReport
from applier.model.segment import has_advanced

HURRY: Final = 8.0
"""How many times as much is read of a stream whose last range brought no promise: the next one may lie behind millions of rows."""

MOST: Final = 1e6
"""Records per unit of a timestamp at most: what is read is bounded in bytes anyway."""


class StreamRate:
    """Learns from the ranges of the contiguous prefix."""

    __slots__ = ("_hurry", "_passed", "_reached_ts", "_records", "_resolved_ts", "first_ts")

    def __init__(self) -> None:
        self.first_ts = NO_TS
        """ts of the first event that was read: the checkpoint may lie years below it."""
        self._reached_ts = self._resolved_ts = NO_TS
        self._records = self._passed = 0.0
        self._hurry = 1.0

    @property
    def per_ts(self) -> float:
        """Records per unit of a timestamp, more if the stream is behind its promises; 0 until events of two times were seen."""
        return min(self._records * self._hurry / self._passed, MOST) if self._passed else 0.0

    def learn(self, report: RangeReport, records: int) -> None:
        """Add the next range of the prefix. ``records``: how many it has."""
        # Sums of records and of time, in which what was before fades: a burst weighs as little as it was short, so that the stream is not
        # read days ahead when it is quiet again.
        self._records = self._records / 2 + records
        if report.hold:
            reached_ts = report.hold[-1].value
            self.first_ts = self.first_ts or report.hold[0].value
            self._passed = self._passed / 2 + max(0, reached_ts - (self._reached_ts or self.first_ts))
            self._reached_ts = max(reached_ts, self._reached_ts)
        if has_advanced(report.resolved_ts, self._resolved_ts):
            self._resolved_ts, self._hurry = report.resolved_ts, 1.0
        else:
            self._hurry = min(self._hurry * HURRY, MOST)
