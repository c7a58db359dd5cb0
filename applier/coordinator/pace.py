"""How much of each stream is read, and up to which upstream time all streams can be read together.

In Kafka a range may end anywhere, and an offset counts a record. A source whose offsets count nothing names cuts with the bytes between
them: then a range ends at a cut, and one of these bytes counts as a record does elsewhere.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
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
        """Return how many records are between ``after`` and the last position where a range can end."""
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


# --- course ----------------------------------------------------------------------------------------------------------
# What the records of one stream weigh, and how many it has per unit of upstream time, as far as that can be known before they are read.
#
# One measure bounds all that is read: bytes in the cache, in which a record and a DDL count as so many at least. Where a source names cuts,
# a record represents a byte of the source (``RangeCuts``), which has more or less of them in the cache.

GUESS: Final = 4 << 10
"""Bytes of a record before any was read. A record is one row, or a batch of up to megabytes; the producer's default is 16 rows."""

LEAST_PER_RECORD: Final = 64
"""Bytes of a record at least: also one that leaves nothing in the cache (a resolved event) takes its time to read."""

BYTES_PER_DDL: Final = 1 << 10
"""Bytes of a DDL: it leaves nothing in the cache, but all of it comes to the driver."""

GUESS_OF_BYTE: Final = 1.0
LEAST_PER_BYTE: Final = 0.25
"""The first two of a byte of the source."""

SHRINKING: Final = 8
"""How many times smaller the records of the next range are assumed to be, at most."""

HURRY: Final = 8.0
"""How many times as much is read of a stream whose last range brought no promise: the next one may come after millions of rows."""

MOST_PER_TS: Final = 1e6
"""Records per unit of a timestamp at most: what is read is bounded in bytes anyway."""


class Course:
    """Learns from the ranges that were read."""

    __slots__ = ("_hurry", "_least", "_passed", "_reached_ts", "_records", "_resolved_ts", "bytes_per_record", "first_ts")

    def __init__(self, *, counts_bytes: bool = False) -> None:
        self.bytes_per_record, self._least = (GUESS_OF_BYTE, LEAST_PER_BYTE) if counts_bytes else (float(GUESS), float(LEAST_PER_RECORD))
        self.first_ts = NO_TS
        """ts of the first event that was read: the checkpoint may be years before it."""
        self._reached_ts = self._resolved_ts = NO_TS
        self._records = self._passed = 0.0
        self._hurry = 1.0

    @property
    def bytes_per_ts(self) -> float:
        """Bytes per unit of a timestamp, more if the stream's rows lag behind its promises; 0 until events of two times were seen."""
        per_ts = min(self._records * self._hurry / self._passed, MOST_PER_TS) if self._passed else 0.0
        return per_ts * self.bytes_per_record

    def expected_bytes(self, records: int) -> int:
        """Return how many bytes so many records will probably have."""
        return int(records * self.bytes_per_record)

    def records_of(self, size: float) -> int:
        """Return how many records probably have ``size`` bytes together; at least one."""
        return max(1, int(size / self.bytes_per_record))

    def weigh(self, records: int, size: int, ddls: int = 0) -> None:
        """Record that a range of so many records has ``size`` bytes of rows, and so many DDLs."""
        # The last range alone, no mean: where large records begin, the next range must be small at once. Downward by steps, since ranges
        # without rows do not describe the records to come.
        size += BYTES_PER_DDL * ddls
        self.bytes_per_record = max(size / max(1, records), self.bytes_per_record / SHRINKING, self._least)

    def follow(self, report: RangeReport, records: int) -> None:
        """Add the next range of the contiguous prefix, which has so many records."""
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


# --- common time -----------------------------------------------------------------------------------------------------
# How far in upstream time all streams can be read together with a number of bytes.
#
# Streams that advance together close windows with what was read, and little is cached ahead of W. By equal shares, a stream with few rows
# would be read days ahead of one with many; its rows would lie among those of the others in the same chunks, and every segment would
# pass over them again.


class Unread(NamedTuple):
    """One stream: from which time on it is not read, bytes per unit of time, and how many bytes remain to read."""

    begins: int
    rate: float
    size: float


def common_time(streams: Iterable[Unread], size: float) -> float:
    """Return the time up to which all streams have ``size`` bytes together. Rates are above 0, and all together have more than ``size``."""
    # Between two times at which a stream joins, or has been read to its end, the bytes grow evenly.
    turns = [(turn, change) for begins, rate, left in streams for turn, change in ((begins, rate), (begins + left / rate, -rate))]
    reached, rate = 0.0, 0.0
    for turn, change in sorted(turns):
        if rate * (turn - reached) >= size:
            break
        size -= rate * (turn - reached)
        reached, rate = turn, rate + change
    return reached + size / rate if rate > 0 else reached
