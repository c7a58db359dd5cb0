"""What is known of one stream: what was planned, read and promised, and where a restart would have to begin.

A stream's resolved_ts grows only through resolved events of the contiguous prefix read since the stored offset: a later range counts
when all earlier ones have reported. A planned range keeps its ends for ever, also when reading it failed and is tried again.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from applier.coordinator.pace import RangeSize
from applier.model.errors import InvariantViolation
from applier.model.events import DdlIdentity
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import HoldPoint, RangeId, RangeReport
from applier.model.segment import ddl_holds_offset, holds_offset, is_behind_promise

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


Stairs: TypeAlias = tuple[HoldPoint, ...]
"""The hold line of a range, as its report gives it; not empty."""


def _first_held(stairs: Stairs, checkpoint_ts: Ts) -> Offset | None:
    """Return the first record of a range with a row or resolved event that a restart at ``checkpoint_ts`` must read again."""
    at = bisect_left(stairs, 1, key=lambda step: int(holds_offset(step.value, checkpoint_ts)))
    return stairs[at].offset if at < len(stairs) else None


def _joined(held: list[Stairs]) -> Stairs:
    return (HoldPoint(held[0][0].offset, max(stair.value for stairs in held for stair in stairs)),)


class StreamState:
    """The state of reading one stream from ``start``; ``resolved_ts`` begins at the checkpoint."""

    __slots__ = (
        "_ddls",
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
        self.pace = RangeSize()
        self._outstanding: set[RangeId] = set()
        self._forgotten: list[RangeId] = []
        self._reported: dict[Offset, tuple[RangeReport, tuple[PlacedDdl, ...]]] = {}
        self._held: deque[Stairs] = deque()
        self._ddls: deque[PlacedDdl] = deque()

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
        self._ddls.extend(ddls)
        if report.hold:
            self._held.append(report.hold)
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
        offsets = [
            offset for offset in (self._first_row(checkpoint_ts), self._first_ddl(checkpoint_ts, pending, done)) if offset is not None
        ]
        return max(min(offsets), self._passed) if offsets else self.prefix

    def _first_row(self, checkpoint_ts: Ts) -> Offset | None:
        """Return the first record with a row or resolved event that holds the stored offset."""
        found = (_first_held(stairs, checkpoint_ts) for stairs in self._held)
        return next((offset for offset in found if offset is not None), None)

    def _first_ddl(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None) -> Offset | None:
        """Return the first DDL that holds the stored offset. Those in front that are settled never will again: each is looked at once."""
        while self._ddls and self._ddls[0].key not in pending:
            self._ddls.popleft()
        holding = (
            ddl.offset for ddl in self._ddls if ddl.key != done and ddl.key in pending and ddl_holds_offset(ddl.key.ts, checkpoint_ts)
        )
        return next(holding, None)

    def drop_spent(self, checkpoint_ts: Ts, stored: Offset) -> None:
        """Forget what can never hold the stored offset again, now that the checkpoint stands at ``checkpoint_ts``.

        It never goes back behind ``stored``: stairs that are joined later would stand for offsets that did not matter any more.
        """
        self._passed = max(self._passed, stored)
        while self._held and _first_held(self._held[0], checkpoint_ts) is None:
            self._held.popleft()
