"""What is known of one stream: what was planned, read and promised, and where a restart would have to begin.

A stream's resolved_ts grows only through resolved events of the contiguous prefix read since the stored offset: a later range counts
when all earlier ones have reported. A planned range keeps its ends for ever, also when reading it failed and is tried again.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from applier.coordinator.messages import RangeId, RangeReport, Step
from applier.coordinator.pace import Pace
from applier.coordinator.rules import ddl_holds_offset, holds_offset, is_behind_promise
from applier.errors import InvariantViolation
from applier.events import DdlIdentity
from applier.position import Offset, Stream, Ts

MAX_HELD = 1000
"""Ranges whose stairs are kept one by one; a stream that does not resolve for days has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus:
    """One stream for people to look at. Offsets are those of the next record; ``fallbacks`` counts ranges that stepped behind a promise."""

    stream: Stream
    resolved_ts: Ts
    next_offset: Offset
    read_offset: Offset
    end_offset: Offset
    cached_ranges: int
    cached_bytes: int
    replays: int
    fallbacks: int


class PlacedDdl(NamedTuple):
    """A DDL that was not settled when it was read."""

    offset: Offset
    key: DdlIdentity


class _Held(NamedTuple):
    hold: tuple[Step, ...]
    ddls: tuple[PlacedDdl, ...]

    def first(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None) -> Offset | None:
        """Return the first record that a restart at ``checkpoint_ts`` must read again; ``done`` counts as settled."""
        offsets = [
            ddl.offset for ddl in self.ddls if ddl.key in pending and ddl.key != done and ddl_holds_offset(ddl.key.ts, checkpoint_ts)
        ]
        stair = bisect_left(self.hold, 1, key=lambda step: int(holds_offset(step.value, checkpoint_ts)))
        if stair < len(self.hold):
            offsets.append(self.hold[stair].offset)
        return min(offsets, default=None)


def _joined(held: list[_Held]) -> _Held:
    stairs = [stair for one in held for stair in one.hold]
    hold = (Step(stairs[0].offset, max(stair.value for stair in stairs)),) if stairs else ()
    return _Held(hold, tuple(ddl for one in held for ddl in one.ddls))


class Reading:
    """The state of reading one stream from ``start``; ``resolved_ts`` begins at the checkpoint."""

    __slots__ = (
        "_forgotten",
        "_held",
        "_outstanding",
        "_passed",
        "_reported",
        "end",
        "fallbacks",
        "pace",
        "planned",
        "prefix",
        "replays",
        "resolved_ts",
        "stream",
    )

    def __init__(self, stream: Stream, start: Offset, end: Offset, resolved_ts: Ts) -> None:
        self.stream = stream
        self.planned = self.prefix = self._passed = start
        self.end = end
        self.resolved_ts = resolved_ts
        self.replays = self.fallbacks = 0
        self.pace = Pace()
        self._outstanding: set[RangeId] = set()
        self._forgotten: list[RangeId] = []
        self._reported: dict[Offset, tuple[RangeReport, tuple[PlacedDdl, ...]]] = {}
        self._held: deque[_Held] = deque()

    @property
    def outstanding(self) -> int:
        """How many planned ranges have neither reported nor been forgotten."""
        return len(self._outstanding)

    def plan(self, at_most: int, records: int) -> list[RangeId]:
        """Plan up to ``at_most`` further ranges, of up to ``records`` offsets and as many as fit into one, those that failed first."""
        records = min(records, self.pace.records)
        ranges = self._forgotten[:at_most]
        del self._forgotten[: len(ranges)]
        while len(ranges) < at_most and self.planned < self.end:
            to = Offset(min(self.planned + records, self.end))
            ranges.append(RangeId(self.stream, self.planned, to))
            self.planned = to
        self._outstanding.update(ranges)
        return ranges

    def forget(self, range_id: RangeId) -> None:
        """Plan a range again: reading it failed."""
        self._return(range_id)
        self._forgotten.append(range_id)
        self._forgotten.sort()

    def take(self, report: RangeReport, ddls: tuple[PlacedDdl, ...]) -> list[RangeReport]:
        """Take a report in; return the reports that now belong to the contiguous prefix and did not before, in order."""
        self._return(report.range)
        self.pace.learn(report.range.end - report.range.start, report.bytes)
        self.replays += report.replays
        self._reported[report.range.start] = (report, ddls)
        joined = []
        while self.prefix in self._reported:
            report, ddls = self._reported.pop(self.prefix)
            self._join(report, ddls)
            joined.append(report)
        return joined

    def _return(self, range_id: RangeId) -> None:
        if range_id not in self._outstanding:
            raise InvariantViolation("a range was reported that is not being read", range=range_id)
        self._outstanding.remove(range_id)

    def _join(self, report: RangeReport, ddls: tuple[PlacedDdl, ...]) -> None:
        oldest = min((ts for ts in (report.resolved_ts, report.min_ts) if ts), default=self.resolved_ts)
        self.fallbacks += is_behind_promise(oldest, self.resolved_ts)
        self.resolved_ts = max(self.resolved_ts, report.resolved_ts)
        self.prefix = report.range.end
        if report.hold or ddls:
            self._held.append(_Held(report.hold, ddls))
        if len(self._held) > MAX_HELD:
            self._thin_out()

    def _thin_out(self) -> None:
        """Halve the number of stairs by joining neighbours, which is conservative: an earlier offset stands for a later value."""
        held = list(self._held)
        self._held = deque(_joined(held[i : i + 2]) for i in range(0, len(held), 2))

    def next_offset(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None = None) -> Offset:
        """Return the stored offset at ``checkpoint_ts``: the first record of the prefix that still matters, or the prefix's end.

        ``pending`` are the DDLs that are not settled, of which ``done`` counts as settled.
        """
        for held in self._held:
            offset = held.first(checkpoint_ts, pending, done)
            if offset is not None:
                return max(offset, self._passed)
        return self.prefix

    def drop_spent(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], stored: Offset) -> None:
        """Forget what can never hold the stored offset again, now that the checkpoint stands at ``checkpoint_ts``.

        It never goes back behind ``stored``: stairs that are joined later would stand for offsets that did not matter any more.
        """
        self._passed = max(self._passed, stored)
        while self._held and self._held[0].first(checkpoint_ts, pending, None) is None:
            self._held.popleft()
