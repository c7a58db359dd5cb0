"""How many records a stream has per unit of upstream time: what it takes to read it up to a given time."""

from math import sqrt
from typing import Final

from applier.model.position import NO_TS, Ts
from applier.model.range_report import RangeReport

GROWTH: Final = 8.0
"""How many times as much is read of a stream whose last range brought no promise: the next one may lie behind millions of rows."""

MOST: Final = 1e6
"""Records per unit of a timestamp at most: what is read is bounded in bytes anyway."""


class StreamRate:
    """Learns from the ranges of the contiguous prefix. ``per_ts``: records per unit of a timestamp; 0 until two promises were seen."""

    __slots__ = ("_promised_ts", "_records", "per_ts")

    def __init__(self) -> None:
        self.per_ts = 0.0
        self._records = 0
        # Not the checkpoint: the first promise may lie years above it.
        self._promised_ts = NO_TS

    def learn(self, report: RangeReport) -> None:
        """Take in the next range of the prefix."""
        self._records += report.range.end - report.range.start
        if not self._promised_ts:
            self._begin(report)
        passed = report.resolved_ts - self._promised_ts
        if report.resolved_ts and passed > 0:
            measured = self._records / passed
            # The geometric mean: one burst must not have the stream read days ahead when it is quiet again.
            self.per_ts = sqrt(self.per_ts * measured) if self.per_ts else measured
            self._promised_ts, self._records = report.resolved_ts, 0
        else:
            self.per_ts = min(self.per_ts * GROWTH, MOST)

    def _begin(self, report: RangeReport) -> None:
        """Measure from the first event that was read."""
        if report.hold:
            self._promised_ts = Ts(report.hold[0].value)
