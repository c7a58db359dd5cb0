"""Which ranges are read next: as many bytes as one listening job reads in seconds, divided so that the streams advance together.

Back-pressure holds streams that are ahead of the least promise; the streams that hold the watermark are never held (DESIGN.md 10):
everything else can be applied and released only after them. While closed rows wait to be written it is these that must be applied first,
and nothing is read if there are many of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from applier.coordinator.cache import Cache
from applier.coordinator.pace import LEAST_PER_RECORD, Unread, common_time
from applier.coordinator.policy import Policy
from applier.coordinator.stream_state import StreamState
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import is_ahead

# --- budget ----------------------------------------------------------------------------------------------------------
# One measure for all that is read ahead: the bytes of a plan, ``Policy.plan_bytes``, which one job reads in seconds. Records and DDLs count
# as bytes, too (``Course``). What follows are parts and multiples of a plan.

ACCELERATION: Final = 4
"""How many times as large the next plan may be."""
PIECES: Final = 8
"""Into how many ranges a plan of one stream alone is divided: several tasks read them at once."""
MERGED: Final = 2
"""A merged range is such a part at most."""
LEAD: Final = 2
"""Streams ahead of W wait while so many plans of rows beyond W are cached: a plan's rows may lie on both sides of W."""
WAITING: Final = 4
"""Nothing is read while so many plans of closed rows wait to be written: with fewer, the writer would wait."""


class Budget:
    """How much is read: a plan at a time, divided so that the streams reach the same upstream time, and no more than the memory holds."""

    __slots__ = ("_cache", "_expected", "_plan_bytes", "_policy", "_reading", "_reports")

    def __init__(self, cache: Cache, policy: Policy) -> None:
        self._cache, self._policy = cache, policy
        # The first plan is small however many streams there are, so that the first rows are visible soon: what a record weighs, and how
        # far it reaches in time, is known only when some were read.
        self._plan_bytes, self._reports = policy.first_plan_bytes, 0
        # What is being read counts too: it will be cached before the next plan.
        self._expected: dict[RangeId, int] = {}
        self._reading = 0

    def begin(self, range_id: RangeId, size: int) -> None:
        """Record that a range is read, which will probably have ``size`` bytes."""
        self._expected[range_id] = size
        self._reading += size

    def expected_bytes(self, range_id: RangeId) -> int:
        """Return how many bytes a range that is being read will probably have."""
        return self._expected[range_id]

    def end(self, range_id: RangeId) -> None:
        """Record that a range has reported or failed."""
        self._reading -= self._expected.pop(range_id, 0)

    @property
    def is_full(self) -> bool:
        """Whether the memory is used up."""
        return self._cache.bytes + self._reading >= self._policy.cached_bytes

    @property
    def holds_streams_ahead(self) -> bool:
        """Whether so much was read beyond W that the streams ahead of it must wait."""
        return self.is_full or self._cache.closed.beyond + self._reading >= LEAD * self._policy.plan_bytes

    @property
    def has_enough(self) -> bool:
        """Whether enough closed rows wait to be written."""
        return self.is_full or self._cache.closed.closed >= WAITING * self._policy.plan_bytes

    def divide(self, states: Sequence[StreamState]) -> list[RangeId]:
        """Plan the next ranges of streams that have more."""
        planned = []
        for state, size in self._shares(states):
            most = state.course.records_of(self._policy.plan_bytes / PIECES)
            if not state.cuts.are_given:
                most = min(most, self._policy.range_records)
            for name in state.plan(min(state.course.records_of(size), PIECES * most), most):
                self.begin(name, state.expected_bytes_of(name))
                planned.append(name)
        return planned

    def _shares(self, states: Sequence[StreamState]) -> list[tuple[StreamState, float]]:
        if self.is_full:
            # A little, and not nothing: it is they who hold the watermark, and what they lack empties the cache. Spark spills.
            return [(state, self._policy.first_plan_bytes / len(states)) for state in states if not state.outstanding]
        room = self._room()
        if room <= 0 or sum(state.expected_bytes for state in states) <= room:
            return [(state, room) for state in states if room > 0]
        # Those whose rate is not known have equal shares.
        share, known = room / len(states), [state for state in states if state.course.bytes_per_ts]
        shares = [(state, share) for state in states if not state.course.bytes_per_ts]
        base = min((state.begins_ts for state in known), default=0)
        unread = [Unread(state.begins_ts - base, state.course.bytes_per_ts, state.expected_bytes) for state in known]
        upto = common_time(unread, share * len(known))
        return shares + [(state, one.rate * (upto - one.begins)) for state, one in zip(known, unread, strict=True) if one.begins <= upto]

    def _room(self) -> float:
        """Return how many bytes the next plan may have: more than the last one, if something of that was read."""
        if self._cache.number > self._reports:
            self._plan_bytes = min(self._plan_bytes * ACCELERATION, self._policy.plan_bytes)
        self._reports = self._cache.number
        return min(self._plan_bytes, self._policy.cached_bytes - self._cache.bytes) - self._reading


# --- merging ---------------------------------------------------------------------------------------------------------
# Merging: adjacent small ranges of one stream are read again as one range, which replaces them in the cache.
#
# A stream that does not resolve for an hour is read in thousands of small ranges, because each of them might hold the resolved event that
# all others wait for. Their rows must be kept, but not in thousands of pieces: each piece costs something in Spark and here. Merged
# ranges are merged again, so their number grows with the logarithm of what they hold, and so does how often a record is read. Streams that
# are ahead of it are read less often instead (``ReadAhead``).
#
# A merge changes the cache and nothing else: positions, promises and DDLs of these records were taken in at the first reading.


FAN: Final = 8
"""How many ranges become one. A greater number reads less again, a smaller one keeps fewer ranges."""


class Merges:
    """The merges of all streams: at most one per stream is being read. A stream has about ``most_ranges`` ranges before it is merged."""

    __slots__ = ("_busy", "_cache", "_failed", "_most_bytes", "_most_ranges", "_reading")

    def __init__(self, cache: Cache, policy: Policy) -> None:
        self._cache, self._most_ranges, self._most_bytes = cache, policy.merge_ranges, policy.plan_bytes / MERGED
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
        # small ones after it.
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
        """Return what reading again up to ``end`` costs, in bytes: the size of a range's rows, and something for each record."""
        # Where offsets count nothing, what lies behind the range has not been counted: its events represent it.
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


# --- read ahead ------------------------------------------------------------------------------------------------------


LARGER: Final = 4
"""A stream that is ahead of W and has many ranges is read again when it has grown by such a part of what must be kept of it."""


class ReadAhead:
    """Plans ranges, and ranges that are read again to be merged."""

    __slots__ = ("_cache", "_streams", "_window", "budget", "merges")

    def __init__(self, streams: Streams, cache: Cache, window: Window, policy: Policy) -> None:
        self._streams, self._cache, self._window = streams, cache, window
        self.merges, self.budget = Merges(cache, policy), Budget(cache, policy)

    def plan(self) -> tuple[RangeId, ...]:
        """Return the next ranges to read; () if enough rows wait to be written."""
        # Then their writing makes room; at W == A only further reading can.
        if self._window.is_open and self.budget.has_enough:
            return ()
        ahead = self._ahead()
        must_wait = self._waiting(ahead)
        planned = self.budget.divide([state for state in self._streams if state.has_more and not must_wait(state)])
        for state in [state for state in self._streams if self.merges.has_many(state.stream) and not self._may_be_late(state, ahead)]:
            for merge, size in self.merges.plan(state):
                self.budget.begin(merge, size)
                planned.append(merge)
        if planned:
            self._cache.open_batch(planned)
        return tuple(planned)

    def _ahead(self) -> set[Stream]:
        """Return the streams that have promised more than the least promise."""
        least_ts = self._streams.least_resolved_ts(self._window.checkpoint_ts)
        return {state.stream for state in self._streams if is_ahead(state.resolved_ts, least_ts)}

    def _waiting(self, ahead: AbstractSet[Stream]) -> Callable[[StreamState], bool]:
        """Return the function that tells whether a stream must wait."""
        window, is_held = self._window, self.budget.holds_streams_ahead

        def must_wait(state: StreamState) -> bool:
            if window.is_beyond_need(max(state.resolved_ts, window.checkpoint_ts)):
                return True
            return (is_held and state.stream in ahead) or (self._may_be_late(state, ahead) and self._has_little(state))

        return must_wait

    def _may_be_late(self, state: StreamState, ahead: AbstractSet[Stream]) -> bool:
        """Whether nothing waits for what comes next in a stream: neither W, nor rows that are written ahead of it."""
        return state.stream in ahead and state.stream not in self._streams.applied

    def _has_little(self, state: StreamState) -> bool:
        """Whether a stream with many ranges would get another small one. So it is read less often, the longer W does not move."""
        return self.merges.has_many(state.stream) and LARGER * state.unplanned < state.kept

    def has_read(self, ends: Mapping[Stream, Offset]) -> bool:
        """Whether every stream was read up to ``ends``, or must wait: W cannot grow beyond one that was read to its end."""
        must_wait = self._waiting(self._ahead())
        return all(state.prefix >= ends.get(state.stream, state.prefix) or must_wait(state) for state in self._streams)
