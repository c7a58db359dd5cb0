"""Collects what a run shows of its streams: their status, how long they are silent, the stall, whether the run has caught up once.

A run is ready once everything that the topics held at its start is applied.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from applier.coordinator import Coordinator, StreamStatus
from applier.model.position import Offset, Stream, Ts
from applier.model.segment import has_reached
from applier.telemetry.run_state import Histogram, StreamsView, StreamView
from applier.telemetry.stall import StallRule


class ReadyRule:
    """Watches a run until it has caught up once. Afterwards it stays ready: its lag shows how far it is behind."""

    def __init__(self) -> None:
        self._ends: Mapping[Stream, Offset] | None = None
        self._goal: Ts | None = None
        self._is_ready = False

    def observe(self, streams: Sequence[StreamStatus], checkpoint_ts: Ts) -> bool:
        """Look at the streams; return whether the run has caught up with the ends that the first look showed."""
        # Fixed at the first look: a feed that always grows would never count as ready.
        if self._ends is None:
            self._ends = {status.stream: status.end_offset for status in streams}
        if self._goal is None and all(status.read_offset >= self._ends.get(status.stream, status.read_offset) for status in streams):
            self._goal = min((status.resolved_ts for status in streams), default=checkpoint_ts)
        self._is_ready = self._is_ready or (self._goal is not None and has_reached(checkpoint_ts, self._goal))
        return self._is_ready


LOOK_S: Final = 0.5
"""The least time between two looks: a look costs tens of microseconds per stream, and cycles are short."""
LOOK_SHARE: Final = 0.02
"""The share of the time that looks may take. At 10,000 streams a look took 0.3 s, so twice a second would be most of a core."""


class StreamCollector:
    """Looks at the streams of one run, now and then. ``stall_after_s``: see ``StallRule``."""

    def __init__(self, stall_after_s: float) -> None:
        self._stall_rule, self._ready_rule = StallRule(stall_after_s), ReadyRule()
        self._totals = _RunningTotals()
        self.is_ready = False
        """Whether the run has caught up once."""
        self._next_s: float | None = None

    def is_due(self, now_s: float) -> bool:
        """Return whether the next look is due."""
        return self._next_s is None or now_s >= self._next_s

    def looked(self, began_s: float, ended_s: float) -> None:
        """Plan the next look: the longer one lasts, the later comes the next."""
        self._next_s = began_s + max(LOOK_S, (ended_s - began_s) / LOOK_SHARE)

    def collect(self, coordinator: Coordinator, checkpoint_ts: Ts, durations: tuple[Histogram, ...], now_s: float) -> StreamsView:
        """Look at every stream. ``now_s`` is of any clock that does not step back."""
        streams, holding = coordinator.streams, coordinator.holding_stream
        stall = self._stall_rule.observe(streams, holding, now_s)
        self.is_ready = self._ready_rule.observe(streams, checkpoint_ts)
        return StreamsView(
            each=tuple(self._view(status) for status in streams),
            # A binlog alone holds nothing back: what is read of it is promised.
            holding=None if all(status.is_promised_by_reading for status in streams) else holding,
            stall=stall,
            pending_ddls=len(coordinator.pending_ddls),
            cached_bytes=coordinator.cached_bytes,
            durations=durations,
        )

    def _view(self, status: StreamStatus) -> StreamView:
        replays, fallbacks, missing = self._totals.add(status.stream, (status.replays, status.fallbacks, status.missing))
        silent_s = self._stall_rule.silent_s(status.stream)
        return StreamView(status=status, silent_s=silent_s, replays=replays, fallbacks=fallbacks, missing=missing)


class _RunningTotals:
    """Sums counts that start at 0 again when state is reloaded: Prometheus' counters must not step back."""

    def __init__(self) -> None:
        self._last: dict[Stream, tuple[int, ...]] = {}
        self._total: dict[Stream, tuple[int, ...]] = {}

    def add(self, stream: Stream, counts: Iterable[int]) -> tuple[int, ...]:
        """Take the counts of a stream as they are now; return them summed over all reloads."""
        now = tuple(counts)
        last = self._last.get(stream, (0,) * len(now))
        total = self._total.get(stream, (0,) * len(now))
        self._last[stream] = now
        # A count below the last one means a new coordinator: its count is added, not its difference.
        self._total[stream] = tuple(t + (n - b if n >= b else n) for t, n, b in zip(total, now, last, strict=True))
        return self._total[stream]
