"""How much is read of each stream, and how far in upstream time all streams can be read together.

In Kafka a range may end anywhere, and an offset counts a record. A source whose offsets count nothing names cuts with the bytes between
them: then a range ends at a cut, and one of these bytes counts as a record does elsewhere.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from operator import itemgetter
from typing import Final, NamedTuple

from applier.model.position import NO_TS, Offset, PartitionExtent
from applier.model.range_report import RangeReport
from applier.model.segment import has_advanced

# --- range cuts ------------------------------------------------------------------------------------------------------


_OFFSET: Final = itemgetter(0)


class RangeCuts:
    """What the latest listing says of one stream. Its cuts may reach less far than what was planned before."""

    __slots__ = ("_extent",)

    def __init__(self, extent: PartitionExtent) -> None:
        self._extent = extent

    def grow(self, extent: PartitionExtent) -> None:
        """Record a later listing."""
        self._extent = extent

    @property
    def are_given(self) -> bool:
        """Whether the source names them."""
        return self._extent.cuts is not None

    def has_more(self, after: Offset) -> bool:
        """Whether a range can begin at ``after``."""
        cuts = self._extent.cuts
        return self._extent.end > after if cuts is None else bool(cuts) and cuts[-1].offset > after

    def left(self, after: Offset) -> int:
        """Return how many records lie between ``after`` and the last position where a range can end."""
        cuts = self._extent.cuts
        if cuts is None:
            return self._extent.end - after
        return sum(cut.size for cut in cuts[self._next(after) :])

    def _next(self, after: Offset) -> int:
        return bisect_right(self._extent.cuts or (), after, key=_OFFSET)

    def ends(self, after: Offset, records: int, most: int) -> Iterator[tuple[Offset, int]]:
        """Yield where the next ranges end, and how many records each has: about ``records`` together, each up to ``most``, all about equal.

        At least one, if there is one. Between two cuts there may be more than ``most``.
        """
        records = min(records, self.left(after))
        pieces = -(-records // most)
        if self._extent.cuts is not None:
            yield from self._ends_at_cuts(self._next(after), records, max(1, pieces))
            return
        at = after
        for piece in range(pieces, 0, -1):
            size = -(-records // piece)
            at = Offset(at + size)
            records -= size
            yield at, size

    def _ends_at_cuts(self, at: int, records: int, pieces: int) -> Iterator[tuple[Offset, int]]:
        cuts = self._extent.cuts or ()
        for piece in range(pieces, 0, -1):
            wanted, size, begin = records // piece, 0, at
            # Where nothing lies before a cut, what lies after it belongs to another log: no range may hold both.
            while at < len(cuts) and (at == begin or (cuts[at - 1].size and 0 < cuts[at].size <= wanted - size)):
                size += cuts[at].size
                at += 1
            if at == begin:
                return
            yield cuts[at - 1].offset, size
            records -= size
            if records <= 0:
                return


# --- range size ------------------------------------------------------------------------------------------------------
# How many bytes the records of one stream have, as far as that can be known before they are read.
#
# Where a source names cuts, a record represents a byte of the source (``RangeCuts``), which has more or less of them in the cache.

GUESS: Final = 4 << 10
"""Bytes of a record before any was read. A record is one row, or a batch of up to megabytes; the producer's default is 16 rows."""

LEAST_PER_RECORD: Final = 64
"""Bytes of a record at least: also one that leaves nothing in the cache (a resolved event) takes its time to read."""

GUESS_OF_BYTE: Final = 1.0
LEAST_PER_BYTE: Final = 0.25
"""The same of a byte of the source."""

SHRINKING: Final = 8
"""How many times smaller the records of the next range are assumed to be, at most."""


class RangeSize:
    """Learns from the ranges that were read."""

    __slots__ = ("_least", "bytes_per_record")

    def __init__(self, *, counts_bytes: bool = False) -> None:
        self.bytes_per_record: float = GUESS_OF_BYTE if counts_bytes else GUESS
        self._least = LEAST_PER_BYTE if counts_bytes else LEAST_PER_RECORD

    def learn(self, records: int, size: int) -> None:
        """Record the ``size`` in bytes of a range of so many records."""
        # The last range alone, no mean: where large records begin, the next range must be small at once. Downward by steps, since ranges
        # without rows do not describe the records to come.
        self.bytes_per_record = max(size / max(1, records), self.bytes_per_record / SHRINKING, self._least)

    def expected_bytes(self, records: int) -> int:
        """Return how many bytes so many records will probably have."""
        return int(records * self.bytes_per_record)

    def records_of(self, size: float) -> int:
        """Return how many records probably have ``size`` bytes together; at least one."""
        return max(1, int(size / self.bytes_per_record))


# --- stream rate -----------------------------------------------------------------------------------------------------


HURRY: Final = 8.0
"""How many times as much is read of a stream whose last range brought no promise: the next one may lie behind millions of rows."""

MOST_PER_TS: Final = 1e6
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
        return min(self._records * self._hurry / self._passed, MOST_PER_TS) if self._passed else 0.0

    def learn(self, report: RangeReport, records: int) -> None:
        """Add the next range of the prefix. ``records``: how many it has."""
        # Sums of records and of time, in which what was before fades: a burst weighs as little as it was short, so that the stream is not
        # read days ahead when it is quiet again.
        self._records = self._records / 2 + records
        if report.resume_points:
            reached_ts = report.resume_points[-1].value
            self.first_ts = self.first_ts or report.resume_points[0].value
            self._passed = self._passed / 2 + max(0, reached_ts - (self._reached_ts or self.first_ts))
            self._reached_ts = max(reached_ts, self._reached_ts)
        if has_advanced(report.resolved_ts, self._resolved_ts):
            self._resolved_ts, self._hurry = report.resolved_ts, 1.0
        else:
            self._hurry = min(self._hurry * HURRY, MOST_PER_TS)


# --- level -----------------------------------------------------------------------------------------------------------
# How far in upstream time all streams can be read together with a number of bytes.
#
# Streams that advance together close windows with what was read, and little is cached ahead of W. By equal shares, a stream with few rows
# would be read days ahead of one with many; its rows would lie among those of the others in the same chunks, and every segment would
# pass over them again.


class Course(NamedTuple):
    """One stream: from which time on it is read, bytes per unit of time, and how many bytes remain to read."""

    begins: int
    rate: float
    size: float


def level_of(courses: Iterable[Course], size: float) -> float:
    """Return the time up to which all streams have ``size`` bytes together. Rates are above 0, and all together have more than ``size``."""
    waiting = sorted(courses, reverse=True)
    ends: list[tuple[float, float]] = []
    level, rate = float(waiting[-1].begins), 0.0
    while waiting or ends:
        # Up to the next time at which a stream joins, or has been read to its end, the bytes grow evenly.
        at = min(waiting[-1].begins if waiting else ends[0][0], ends[0][0] if ends else waiting[-1].begins)
        passed = rate * (at - level)
        if passed >= size:
            break
        level, size = at, size - passed
        if ends and ends[0][0] == at:
            rate -= heappop(ends)[1]
        else:
            course = waiting.pop()
            rate += course.rate
            heappush(ends, (course.begins + course.size / course.rate, course.rate))
    return level + size / rate if rate > 0 else level
