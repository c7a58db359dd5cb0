"""When a run counts as ready: everything that the topics held at its start is applied. Pure."""

from collections.abc import Mapping, Sequence

from applier.coordinator import StreamStatus
from applier.model.position import Offset, Stream, Ts
from applier.model.segment import has_reached


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
