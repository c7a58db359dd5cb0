"""Which ranges are read next: as much as may be cached, and always what the watermark waits for.

Back-pressure holds streams that are ahead of the least promise; the streams that hold the watermark are never held (DESIGN.md 10): what
they lack is what lets everything else be applied and released.
"""

from collections.abc import Mapping

from applier.coordinator.cache import Cache
from applier.coordinator.merging import Merges
from applier.coordinator.policy import Policy
from applier.coordinator.stream_state import StreamState
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.model.segment import is_ahead


class ReadAhead:
    """Plans ranges, and ranges that are read again to be merged."""

    __slots__ = ("_cache", "_policy", "_streams", "_window", "merges")

    def __init__(self, streams: Streams, cache: Cache, window: Window, policy: Policy) -> None:
        self._streams, self._cache, self._window, self._policy = streams, cache, window, policy
        self.merges = Merges(cache, policy.merge_ranges, policy.range_records)

    def plan(self) -> tuple[RangeId, ...]:
        """Return the next ranges to read, those of the streams furthest behind first."""
        planned: list[RangeId] = []
        least_ts = self._streams.least_resolved_ts(self._window.checkpoint_ts)
        # What is being read counts against the memory too: it will be cached before the next plan.
        expected = self._cache.bytes
        # Furthest behind first, so that memory goes to the streams that hold back the watermark.
        for state in sorted(self._streams, key=lambda state: state.resolved_ts):
            is_full = expected >= self._policy.cached_bytes
            ranges = state.plan(self._at_most(state, least_ts, is_full=is_full), self._policy.range_records)
            expected += sum(state.size.expected_bytes(name.end - name.start) for name in ranges)
            planned += [*ranges, *self.merges.plan(state)]
        return tuple(planned)

    def _at_most(self, state: StreamState, least_ts: Ts, *, is_full: bool) -> int:
        """How many ranges a stream may be given now."""
        if self._is_held_back(state, least_ts, is_full=is_full):
            return 0
        # With a full cache one range at a time, not none: a stream that holds back the watermark is what empties the cache. Spark spills.
        return max(0, (1 if is_full else self._policy.ranges_per_stream) - state.outstanding)

    def _is_held_back(self, state: StreamState, least_ts: Ts, *, is_full: bool) -> bool:
        """Whether a stream that is ahead of the least promise must wait."""
        resolved_ts = self._streams.resolved_ts(state.stream, self._window.checkpoint_ts)
        if self._window.is_beyond_need(resolved_ts):
            return True
        if not is_ahead(resolved_ts, least_ts):
            return False
        return is_full or self._cache.ranges_of(state.stream) + state.outstanding >= self._policy.lead_ranges

    def has_read(self, ends: Mapping[Stream, Offset]) -> bool:
        """Whether every stream was read up to ``ends``, or must wait: W cannot grow beyond one that was read to its end."""
        least_ts, is_full = self._streams.least_resolved_ts(self._window.checkpoint_ts), self._cache.bytes >= self._policy.cached_bytes
        return all(
            state.prefix >= ends.get(state.stream, state.prefix) or self._is_held_back(state, least_ts, is_full=is_full)
            for state in self._streams
        )
