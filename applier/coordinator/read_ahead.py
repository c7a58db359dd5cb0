"""Which ranges are read next: as many bytes as one listening job reads in seconds, divided so that the streams advance together.

Back-pressure holds streams that are ahead of the least promise; the streams that hold the watermark are never held (DESIGN.md 10): what
they lack is what lets everything else be applied and released. While closed rows wait to be written it is these that must be applied
first, and nothing is read if there are many of them.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from applier.coordinator.cache import Cache
from applier.coordinator.merging import Merges
from applier.coordinator.pace import Course, level_of
from applier.coordinator.policy import Policy
from applier.coordinator.stream_state import StreamState
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.model.segment import is_ahead

PIECES: Final = 8
"""Into how many ranges a plan of one stream alone is divided: several tasks read them at once."""
LARGER: Final = 4
"""A stream that is ahead of W and has many ranges is read again when it has grown by such a part of what must be kept of it."""
ACCELERATION: Final = 4
"""How many times as large as a plan that was limited the next one may be."""


class ReadAhead:
    """Plans ranges, and ranges that are read again to be merged."""

    __slots__ = ("_cache", "_expected", "_is_limited", "_pace", "_policy", "_reading", "_reports", "_streams", "_window", "merges")

    def __init__(self, streams: Streams, cache: Cache, window: Window, policy: Policy) -> None:
        self._streams, self._cache, self._window, self._policy = streams, cache, window, policy
        self.merges = Merges(cache, policy.merge_ranges, policy.merge_bytes)
        # The first plan is small however many streams there are, so that the first rows are visible soon: what a record weighs, and how
        # far it reaches in time, is known only when some were read.
        self._pace = policy.first_plan_bytes
        self._is_limited, self._reports = False, 0
        self._expected: dict[RangeId, int] = {}
        self._reading = 0

    # --- what is being read --------------------------------------------------------------------------------------------

    def expected_bytes(self, range_id: RangeId) -> int:
        """Return how many bytes a range that is being read will probably have."""
        return self._expected[range_id]

    def end(self, range_id: RangeId) -> None:
        """Record that a range has reported or failed."""
        self._reading -= self._expected.pop(range_id, 0)

    def plan(self) -> tuple[RangeId, ...]:
        """Return the next ranges to read; () if enough rows wait to be written."""
        if self._has_enough():
            return ()
        ahead = self._ahead()
        must_wait = self._waiting(ahead)
        hungry = [state for state in self._streams if state.has_more and not must_wait(state)]
        planned = self._ranges(hungry)
        for name in planned:
            self._expect(name, self._streams.of(name).expected_bytes_of(name))
        for state in [state for state in self._streams if self.merges.has_many(state.stream) and not self._may_be_late(state, ahead)]:
            for merge, size in self.merges.plan(state):
                self._expect(merge, size)
                planned.append(merge)
        if planned:
            self._cache.open_batch(planned)
        return tuple(planned)

    def _expect(self, name: RangeId, size: int) -> None:
        self._expected[name] = size
        self._reading += size

    # --- who may be read -----------------------------------------------------------------------------------------------

    def _has_enough(self) -> bool:
        """Whether the rows that wait to be written are enough. Then their writing makes room; at W == A only further reading can."""
        return self._window.is_open and (self._is_full or self._cache.closed.closed >= self._policy.waiting_bytes)

    @property
    def _is_full(self) -> bool:
        # What is being read counts too: it will be cached before the next plan.
        return self._cache.bytes + self._reading >= self._policy.cached_bytes

    def _ahead(self) -> set[Stream]:
        """Return the streams that have promised more than the least promise."""
        least_ts = self._streams.least_resolved_ts(self._window.checkpoint_ts)
        return {state.stream for state in self._streams if is_ahead(state.resolved_ts, least_ts)}

    def _waiting(self, ahead: AbstractSet[Stream]) -> Callable[[StreamState], bool]:
        """Return what says of a stream whether it must wait."""
        window, is_held = self._window, self._is_full or self._cache.closed.beyond + self._reading >= self._policy.lead_bytes

        def must_wait(state: StreamState) -> bool:
            if window.is_beyond_need(max(state.resolved_ts, window.checkpoint_ts)):
                return True
            return (is_held and state.stream in ahead) or (self._may_be_late(state, ahead) and self._has_little(state))

        return must_wait

    def _may_be_late(self, state: StreamState, ahead: AbstractSet[Stream]) -> bool:
        """Whether nothing waits for what comes next in a stream: neither W, nor rows that are written ahead of it."""
        return state.stream in ahead and state.stream not in self._streams.applied

    def _has_little(self, state: StreamState) -> bool:
        """Whether a stream with many ranges would get another small one. So it is read less often, the longer W stands still."""
        return self.merges.has_many(state.stream) and LARGER * state.unplanned < state.kept

    def has_read(self, ends: Mapping[Stream, Offset]) -> bool:
        """Whether every stream was read up to ``ends``, or must wait: W cannot grow beyond one that was read to its end."""
        must_wait = self._waiting(self._ahead())
        return all(state.prefix >= ends.get(state.stream, state.prefix) or must_wait(state) for state in self._streams)

    # --- how much ------------------------------------------------------------------------------------------------------

    def _ranges(self, hungry: list[StreamState]) -> list[RangeId]:
        """Divide what may be read among streams that have more."""
        if self._is_full:
            # One range each and not none: it is they who hold the watermark, and what they lack empties the cache. Spark spills.
            size = self._policy.first_plan_bytes / max(1, len(hungry))
            return [name for state in hungry if not state.outstanding for name in self._cut(state, size, pieces=1)]
        self._accelerate()
        room = min(self._pace - self._reading, self._policy.cached_bytes - self._cache.bytes - self._reading)
        if room <= 0:
            return []
        if sum(state.expected_bytes for state in hungry) <= room:
            return [name for state in hungry for name in self._cut(state, room)]
        self._is_limited = True
        return [name for state, size in self._shares(hungry, room) for name in self._cut(state, size)]

    def _accelerate(self) -> None:
        """Let this plan be larger, if the one before it was limited and something of it was read."""
        if self._is_limited and self._cache.number > self._reports:
            self._pace, self._is_limited = min(self._pace * ACCELERATION, self._policy.plan_bytes), False
        self._reports = self._cache.number

    def _shares(self, hungry: list[StreamState], room: float) -> Iterable[tuple[StreamState, float]]:
        """Divide ``room`` bytes: streams reach the same time together; those whose rate is not known have equal shares."""
        known = [state for state in hungry if state.rate.per_ts]
        share = room / len(hungry)
        for state in hungry:
            if not state.rate.per_ts:
                yield state, share
        if not known:
            return
        base = min(state.begins_ts for state in known)
        courses = [Course(state.begins_ts - base, state.bytes_per_ts, state.expected_bytes) for state in known]
        level = level_of(courses, share * len(known))
        for state, course in zip(known, courses, strict=True):
            if course.begins <= level:
                yield state, course.rate * (level - course.begins)

    def _cut(self, state: StreamState, size: float, *, pieces: int = PIECES) -> list[RangeId]:
        """Plan ranges of a stream that have about ``size`` bytes together: pieces of about equal size, one if it has few."""
        most = state.size.records_of(self._policy.plan_bytes / PIECES)
        if not state.cuts.are_given:
            most = min(most, self._policy.range_records)
        return state.plan(min(state.size.records_of(size), pieces * most), most)
