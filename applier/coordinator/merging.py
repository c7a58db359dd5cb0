"""Merging: adjacent small ranges of one stream are read again as one range, which replaces them in the cache.

A stream that does not resolve for an hour is read in thousands of small ranges, because each of them might hold the resolved event that
all others wait for. Their rows must be kept, but not in thousands of pieces: each piece costs something in Spark and here. Merged
ranges are merged again, so their number grows with the logarithm of what they hold, and so does how often a record is read. Streams that
are ahead of it are read less often instead (``read_ahead``).

A merge changes the cache and nothing else: positions, promises and DDLs of these records were taken in at the first reading.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from applier.coordinator.cache import Cache
from applier.coordinator.pace import LEAST_PER_RECORD
from applier.coordinator.stream_state import StreamState
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId, RangeReport

FAN: Final = 8
"""How many ranges become one. A greater number reads less again, a smaller one keeps fewer ranges."""


class Merges:
    """The merges of all streams: at most one per stream is being read. A stream has about ``most_ranges`` ranges before it is merged."""

    __slots__ = ("_busy", "_cache", "_failed", "_most_bytes", "_most_ranges", "_reading")

    def __init__(self, cache: Cache, most_ranges: int, most_bytes: int) -> None:
        self._cache, self._most_ranges, self._most_bytes = cache, most_ranges, most_bytes
        self._reading: dict[RangeId, tuple[RangeId, ...]] = {}
        # Streams with a merge that is being read: a scan of all merges per stream and plan would be quadratic.
        self._busy: set[Stream] = set()
        self._failed: set[Stream] = set()

    def __contains__(self, range_id: RangeId) -> bool:
        """Whether a range is one that is read again."""
        return range_id in self._reading

    def has_many(self, stream: Stream) -> bool:
        """Whether a stream has so many ranges that some should become one."""
        has_many = self._cache.ranges_of(stream) > max(self._most_ranges, FAN)
        if not has_many and self._failed:
            self._failed.discard(stream)
        return has_many

    def plan(self, state: StreamState) -> Iterator[tuple[RangeId, int]]:
        """Yield a range over the smallest run of a stream's ranges, and its expected bytes."""
        stream = state.stream
        if stream in self._failed or stream in self._busy:
            return
        # Only of the contiguous prefix: between two ranges after it a range may still be missing.
        ranges = [name for name in self._cache.names_of(stream) if name.end <= state.prefix]
        ends = [name.start for name in ranges[1:]] + [name.end for name in ranges[-1:]]
        weights = [self._weight(state, name, end) for name, end in zip(ranges, ends, strict=True)]
        # The smallest run; unless there are very many, none of which one range is more than half: that would be read again with each few
        # small ones behind it.
        runs = [slice(at, at + FAN) for at in range(len(ranges) - FAN + 1) if not self._cache.is_pinned(ranges[at : at + FAN])]
        sized = [(sum(weights[run]), ranges[run]) for run in runs if self._is_even(weights[run]) or len(ranges) > 2 * self._most_ranges]
        size, run = min(sized, default=(0, []))
        if not run or size > self._most_bytes:
            return
        merge = RangeId(stream, run[0].start, run[-1].end)
        if not self._cache.is_leaving(merge):
            self._reading[merge] = tuple(run)
            self._busy.add(stream)
            yield merge, size

    def _weight(self, state: StreamState, name: RangeId, end: Offset) -> int:
        """Return what reading again up to ``end`` costs, in bytes: those of a range's rows, and something for each record."""
        # Where offsets count nothing, what lies behind the range has not been counted: its events stand for it.
        report = self._cache.report_of(name)
        return report.bytes + LEAST_PER_RECORD * (report.events if state.cuts.are_given else end - name.start)

    @staticmethod
    def _is_even(weights: Sequence[int]) -> bool:
        return 2 * max(weights) <= sum(weights)

    def take(self, report: RangeReport) -> None:
        """Replace the pieces by the merged range. They stay if the topic has lost rows that they hold, or if a segment was cut of them."""
        pieces = self._end(report.range)
        if self._cache.is_pinned(pieces):
            self._cache.refuse(report)
            return
        # A replay stays a replay, and a row may have become one since: the sum never shrinks unless Kafka has removed records.
        if report.rows + report.replays < self._cache.read_rows(pieces):
            self._cache.refuse(report)
            self._failed.add(report.range.stream)
        else:
            self._cache.replace(pieces, report)

    def forget(self, merge: RangeId) -> None:
        """Keep the pieces: reading them again failed. Nothing is merged until the stream has few ranges again."""
        self._end(merge)
        self._failed.add(merge.stream)

    def _end(self, merge: RangeId) -> tuple[RangeId, ...]:
        self._busy.remove(merge.stream)
        return self._reading.pop(merge)
