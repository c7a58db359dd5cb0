"""Which stream holds back the watermark although it is read, and for how long (DESIGN.md 10). Pure: time is passed in as ``now_s``.

A stream is silent while it is read to its end, again and again, without a new resolved event. Time in which it was not read does not
count: that of a backlog, of a stream that must wait for another one, of a long DDL. Nothing is missing in a binlog that was read to its
end: an upstream without writes is no stall.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from applier.coordinator import StreamStatus
from applier.model.position import Offset, Stream, Ts
from applier.model.segment import has_advanced

MAX_ROUND_S: Final = 5.0
"""The longest time between two reads to the end that counts as silence: in a longer one the stream was not read."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream that holds back the watermark and has been silent for too long."""

    stream: Stream
    resolved_ts: Ts
    silent_s: float


@dataclass(slots=True)
class _Silence:
    resolved_ts: Ts
    goal: Offset
    """The end offset when the stream was last read to its end: once it is read, another round has passed without a resolved event."""
    round_s: float = 0.0
    silent_s: float = 0.0


class StallRule:
    """Watches the resolved_ts of all streams. ``stall_after_s``: seconds of silence that are too long."""

    def __init__(self, stall_after_s: float) -> None:
        self._stall_after_s = stall_after_s
        self._silences: dict[Stream, _Silence] = {}
        self._looked_at_s: float | None = None

    def observe(self, streams: Iterable[StreamStatus], holding: Stream | None, now_s: float) -> Stall | None:
        """Look at the streams; return the stall if the one that holds back the watermark has been silent for too long.

        ``now_s`` is of any clock that does not step back.
        """
        passed_s = 0.0 if self._looked_at_s is None else now_s - self._looked_at_s
        self._looked_at_s = now_s
        self._silences = {status.stream: self._look(status, passed_s) for status in streams}
        silence = None if holding is None else self._silences.get(holding)
        if holding is None or silence is None or silence.silent_s < self._stall_after_s:
            return None
        return Stall(holding, silence.resolved_ts, silence.silent_s)

    def silent_s(self, stream: Stream) -> float:
        """Return for how long a stream has been silent."""
        silence = self._silences.get(stream)
        return 0.0 if silence is None else silence.silent_s

    def _look(self, status: StreamStatus, passed_s: float) -> _Silence:
        silence = self._silences.get(status.stream)
        # A smaller resolved_ts is no progress: after a reload the same ones are read once more.
        if silence is None or status.is_promised_by_reading or has_advanced(status.resolved_ts, silence.resolved_ts):
            return _Silence(status.resolved_ts, status.end_offset)
        # Time counts only when a round is complete: a stream whose records nobody reads is waiting, not silent.
        silence.round_s += passed_s
        if status.read_offset >= silence.goal:
            silence.silent_s += min(silence.round_s, MAX_ROUND_S)
            silence.round_s, silence.goal = 0.0, status.end_offset
        return silence
