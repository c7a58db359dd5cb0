"""What is known of one stream: what was planned and read, and what the stream has promised.

A stream's resolved_ts grows only through resolved events of the contiguous prefix read since the stored offset: a later range counts
when all earlier ones have reported. A planned range keeps its ends permanently, also when reading it failed and is tried again.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from applier.coordinator.pace import Course, RangeCuts
from applier.model.errors import InvariantViolation
from applier.model.events import DdlIdentity
from applier.model.position import MAX_TS, NO_TS, Offset, PartitionExtent, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, RangeReport, ResumePoint
from applier.model.segment import behind_promise, ddl_holds_offset, first_holding, is_behind_promise, keeps_offset, repeats_from

# --- stored offset ---------------------------------------------------------------------------------------------------
# The stored offset of one stream: where a restart begins to read.
#
# It is the first record with a row >= A, a DDL >= A that the ledger has not settled, or a resolved event > A (DESIGN.md 3). So a restart
# reads again all that still matters, the watermark included: the promises that were read are not stored, they are read once more.

_VALUE: Final = attrgetter("value")
MAX_HELD: Final = 1000
"""Ranges whose resume points are kept one by one, and DDLs; a stream that does not resolve for days has more."""

ResumePoints: TypeAlias = tuple[ResumePoint, ...]
"""The resume points of one range, as its report gives them; not empty."""


class PlacedDdl(NamedTuple):
    """A DDL that was not settled when it was read."""

    offset: Offset
    key: DdlIdentity


class _HeldDdls(NamedTuple):
    """Some DDLs, in order. ``offset``: of the first."""

    offset: Offset
    keys: tuple[DdlIdentity, ...]


class StoredOffset:
    """The rows, promises and DDLs of the contiguous prefix that keep the stored offset."""

    __slots__ = ("_ddls", "_held", "passed")

    def __init__(self, start: Offset) -> None:
        self.passed = start
        """No restart reads records before it."""
        self._held: deque[ResumePoints] = deque()
        self._ddls: deque[_HeldDdls] = deque()

    def add(self, hold: ResumePoints, ddls: Collection[PlacedDdl]) -> None:
        """Add the next range of the prefix."""
        self._ddls.extend(_HeldDdls(ddl.offset, (ddl.key,)) for ddl in ddls)
        if hold:
            self._held.append(hold)
        # Halved by joining neighbours, which is conservative: an earlier offset represents a later value. By pairs, so that old and new
        # entries are thinned alike. A restart then reads a few ranges more.
        if len(self._held) > MAX_HELD:
            held = list(self._held)
            self._held = deque(_joined(held[i : i + 2]) for i in range(0, len(held), 2))
        while len(self._ddls) > MAX_HELD:
            waiting = list(self._ddls)
            self._ddls = deque(_joined_ddls(waiting[i : i + 2]) for i in range(0, len(waiting), 2))

    def first(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None) -> tuple[Offset | None, Ts | None]:
        """Return the first record that a restart at ``checkpoint_ts`` must read, None if there is none.

        And up to which checkpoint it is that record, if nothing more is read; None if a DDL may change it.
        """
        # Resolved events count among the resume points. Without them a restart never learns the promises that were read before it:
        # 240 of 3,000 simulated histories stand still.
        point = self._first_point(checkpoint_ts)
        if self._ddls:
            ddl = self._first_ddl(checkpoint_ts, pending, done)
            found = [offset for offset in (point and point.offset, ddl) if offset is not None]
            return max(min(found), self.passed) if found else None, None
        if point is None:
            return None, MAX_TS
        # Joined entries represent offsets that did not matter any more: never above what was stored before.
        return max(point.offset, self.passed), point.value

    def _first_point(self, checkpoint_ts: Ts) -> ResumePoint | None:
        for hold in self._held:
            if (point := _first_held(hold, checkpoint_ts)) is not None:
                return point
        return None

    def _first_ddl(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None) -> Offset | None:
        """Return the first DDL that holds the stored offset. The settled ones before it never will again: each is checked once."""
        while self._ddls and not any(key in pending for key in self._ddls[0].keys):
            self._ddls.popleft()
        holding = (
            ddls.offset
            for ddls in self._ddls
            if any(key != done and key in pending and ddl_holds_offset(key.ts, checkpoint_ts) for key in ddls.keys)
        )
        return next(holding, None)

    def drop_spent(self, checkpoint_ts: Ts, stored: Offset) -> None:
        """Remove what can never keep the stored offset again: ``stored`` is durable at ``checkpoint_ts``."""
        self.passed = max(self.passed, stored)
        while self._held and _first_held(self._held[0], checkpoint_ts) is None:
            self._held.popleft()


def _first_held(hold: ResumePoints, checkpoint_ts: Ts) -> ResumePoint | None:
    at = first_holding(hold, checkpoint_ts, _VALUE)
    return hold[at] if at < len(hold) else None


def _joined(held: list[ResumePoints]) -> ResumePoints:
    return (ResumePoint(held[0][0].offset, max(point.value for hold in held for point in hold)),)


def _joined_ddls(ddls: list[_HeldDdls]) -> _HeldDdls:
    return _HeldDdls(ddls[0].offset, tuple(key for held in ddls for key in held.keys))


# --- stream state ----------------------------------------------------------------------------------------------------


CLOSED_TS: Final = Ts(MAX_TS)
"""The stored resolved_ts of a closed stream: the record that has closed it is not read again, and expires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus:
    """One stream as status, metrics and log show it.

    An offset names the next record. ``fallbacks`` counts ranges with an event below a promise.
    """

    stream: Stream
    resolved_ts: Ts
    next_offset: Offset
    read_offset: Offset
    end_offset: Offset
    cached_ranges: int
    cached_bytes: int
    replays: int
    fallbacks: int
    missing: int = 0
    """Number of offsets without a record that were read."""
    unread: int = 0
    """How many records are between ``read_offset`` and the end; 0 where offsets count none."""
    is_promised_by_reading: bool = False
    """Whether reading promises what was read: such a stream has no missing promise at its end."""
    applied_ts: Ts = NO_TS
    """Up to where its rows are written ahead of the checkpoint; 0: they are not."""


class _Known(NamedTuple):
    """A position that stays the same from one checkpoint to another, both included, while nothing is read."""

    since_ts: Ts
    until_ts: Ts
    position: StreamPosition


class StreamState:
    """The state of reading one stream from ``start``; ``resolved_ts`` begins at the checkpoint."""

    __slots__ = (
        "_announced",
        "_behind_ts",
        "_failed",
        "_known",
        "_outstanding",
        "_reported",
        "_stored",
        "born_ts",
        "course",
        "cuts",
        "end",
        "fallbacks",
        "is_from_beginning",
        "missing",
        "planned",
        "prefix",
        "repeats_beginning",
        "replays",
        "resolved_ts",
        "stream",
        "unpromised_ts",
    )

    def __init__(self, stream: Stream, start: Offset, extent: PartitionExtent, resolved_ts: Ts) -> None:
        self.stream = stream
        self.planned = self.prefix = start
        self.end, self.cuts = extent.end, RangeCuts(extent)
        self.is_from_beginning = not start
        self.born_ts = NO_TS
        """The first resolved event that was read."""
        self.repeats_beginning = False
        """Whether a later one was not above it: the producer has begun again."""
        self.unpromised_ts = self._behind_ts = NO_TS
        """The greatest commit_ts of rows that came before any promise."""
        self.resolved_ts = resolved_ts
        self._announced = 0
        self.replays = self.fallbacks = self.missing = 0
        self.course = Course(counts_bytes=self.cuts.are_given)
        self._outstanding: dict[RangeId, int] = {}
        """The ranges that are being read, and how many records each has."""
        self._failed: list[tuple[RangeId, int]] = []
        self._reported: dict[Offset, tuple[RangeReport, tuple[PlacedDdl, ...], int]] = {}
        self._stored = StoredOffset(start)
        self._known: _Known | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the producer no longer uses the partition: its last record announces a number of partitions without it.

        What comes after that record, if anything does, opens it again. It then counts as a new partition does: the producer writes the
        announcement of more partitions to all of them before anything above the promises that were given before.
        """
        return 0 < self._announced <= self.stream.partition and self.prefix >= self.end

    def close(self) -> None:
        """Mark the stream as closed: its stored position shows it."""
        self._announced = self.stream.partition

    @property
    def outstanding(self) -> int:
        """How many planned ranges have neither reported nor failed."""
        return len(self._outstanding)

    @property
    def has_more(self) -> bool:
        """Whether there is anything to plan."""
        return bool(self._failed) or self.cuts.has_more(self.planned)

    @property
    def unread(self) -> int:
        """How many records are between what was read and the end; 0 where offsets count none."""
        return 0 if self.cuts.are_given else self.end - self.prefix

    @property
    def kept(self) -> int:
        """How many offsets are between the durable position and what was read."""
        return self.prefix - self._stored.passed

    @property
    def unplanned(self) -> int:
        """How many records are between what was planned and the end; of a source that names cuts, what they count."""
        return self.cuts.left(self.planned)

    @property
    def expected_bytes(self) -> int:
        """How many bytes everything that is left to plan will probably have."""
        return self.course.expected_bytes(self.unplanned + sum(records for _, records in self._failed))

    @property
    def begins_ts(self) -> Ts:
        """From where on it is not read: its promise, or its first event if it has promised nothing yet."""
        return max(self.resolved_ts, self.course.first_ts)

    def grow(self, extent: PartitionExtent) -> None:
        """Record the stream's extent."""
        self.end = extent.end
        self.cuts.grow(extent)

    def expected_bytes_of(self, range_id: RangeId) -> int:
        """Return how many bytes a range that is being read will probably have."""
        return self.course.expected_bytes(self._outstanding[range_id])

    def plan(self, records: int, most: int) -> list[RangeId]:
        """Plan ranges of about ``records`` together, each of up to ``most``, all about equal; failed ranges come first, unchanged."""
        ranges: dict[RangeId, int] = {}
        while self._failed and records > 0:
            name, size = self._failed.pop(0)
            ranges[name] = size
            records -= size
        if records > 0:
            for to, size in self.cuts.ends(self.planned, records, most):
                ranges[RangeId(self.stream, self.planned, to)] = size
                self.planned = to
        self._outstanding |= ranges
        return list(ranges)

    def forget(self, range_id: RangeId) -> None:
        """Plan a range again: reading it failed."""
        self._failed.append((range_id, self._return(range_id)))
        self._failed.sort()

    def take(self, report: RangeReport, ddls: tuple[PlacedDdl, ...]) -> list[RangeReport]:
        """Add a report; return the reports that it adds to the contiguous prefix, in order."""
        records = self._return(report.range)
        self.course.weigh(records, report.bytes, len(ddls))
        self.replays += report.replays
        if not self.cuts.are_given:
            self.missing += report.range.end - report.range.start - report.records
        self._reported[report.range.start] = (report, ddls, records)
        joined = []
        # A promise counts when everything before it was read: by each report at once, 272 of 3,000 simulated histories end wrong.
        while self.prefix in self._reported:
            report, ddls, records = self._reported.pop(self.prefix)
            self._join(report, ddls)
            self.course.follow(report, records)
            joined.append(report)
        return joined

    def _return(self, range_id: RangeId) -> int:
        if range_id not in self._outstanding:
            raise InvariantViolation("the reported range is not being read", range=range_id)
        return self._outstanding.pop(range_id)

    def _join(self, report: RangeReport, ddls: tuple[PlacedDdl, ...]) -> None:
        oldest = min((ts for ts in (report.resolved_ts, report.min_ts) if ts), default=self.resolved_ts)
        self.fallbacks += is_behind_promise(oldest, self.resolved_ts)
        self._learn(report)
        # Never back: a smaller resolved event is a replay, and what was promised stays true.
        self.resolved_ts = max(self.resolved_ts, report.resolved_ts)
        self.prefix = report.range.end
        if report.events:
            self._announced = report.partitions if report.ends_announced else 0
        self._known = None
        self._stored.add(report.resume_points, ddls)

    def _learn(self, report: RangeReport) -> None:
        """Learn from a range, before its promise counts, whether the producer began again in it."""
        promises = report.promises
        self._behind_ts = max(self._behind_ts, promises.behind_ts, self._behind(report))
        if not self.born_ts:
            self.unpromised_ts = max(self.unpromised_ts, promises.unpromised_ts)
        later = promises.least_later_ts, promises.first_ts if self.born_ts else NO_TS
        self.born_ts = self.born_ts or promises.first_ts
        self.repeats_beginning = self.repeats_beginning or any(ts and repeats_from(self.born_ts, ts) for ts in later)

    def _behind(self, report: RangeReport) -> Ts:
        return behind_promise(report.min_ts, report.max_ts, self.resolved_ts) if report.rows else NO_TS

    @property
    def behind_ts(self) -> Ts:
        """No row above it came after a greater promise, except for rows beyond the watermark."""
        # Rows of a range whose predecessor is missing still may be in a segment.
        return max([self._behind_ts, *(self._behind(report) for report, _, _ in self._reported.values())])

    def position(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None = None) -> StreamPosition:
        """Return what is stored of the stream at ``checkpoint_ts``: the first record of the prefix that still matters, or the prefix's end.

        ``pending`` are the DDLs that are not settled; ``done`` counts as settled.
        """
        # Of many streams a step changes few: the others answer as they did the last time.
        known = self._known
        if known is not None and keeps_offset(checkpoint_ts, known.since_ts, known.until_ts):
            return known.position
        held, until_ts = self._stored.first(checkpoint_ts, pending, done)
        resolved_ts = CLOSED_TS if self.is_closed else max(self.resolved_ts, checkpoint_ts)
        position = StreamPosition(next_offset=self.prefix if held is None else held, resolved_ts=resolved_ts)
        self._known = None if until_ts is None else _Known(checkpoint_ts, min(until_ts, resolved_ts), position)
        return position

    def drop_spent(self, checkpoint_ts: Ts, stored: Offset) -> None:
        """Remove what can never keep the stored offset again: ``stored`` is durable at ``checkpoint_ts``."""
        self._stored.drop_spent(checkpoint_ts, stored)
