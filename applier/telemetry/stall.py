"""Which stream holds the watermark although it has been read, and for how long (DESIGN.md 10). Pure: time is passed in as ``now_s``.

A stream is silent while what it had when its silence began is read and it promises nothing new. The time of a backlog is not silence,
and neither is the time in which nobody looked: while a long DDL runs, nothing is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from applier.coordinator import StreamStatus
from applier.position import Offset, Stream, Ts

MAX_LOOK_S: Final = 5.0
"""The most that passes as silence between two looks."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream that holds the watermark and has been silent for too long."""

    stream: Stream
    resolved_ts: Ts
    silent_s: float


@dataclass(slots=True)
class _Silence:
    resolved_ts: Ts
    end_offset: Offset
    """The end of the stream when the silence began."""
    silent_s: float = 0.0


class StallRule:
    """Watches the promises of all streams. ``stall_after_s``: seconds of silence that are too long."""

    def __init__(self, stall_after_s: float) -> None:
        self._stall_after_s = stall_after_s
        self._silences: dict[Stream, _Silence] = {}
        self._looked_at_s: float | None = None

    def observe(self, streams: Iterable[StreamStatus], holding: Stream | None, now_s: float) -> Stall | None:
        """Look at the streams; return the stall if the one that holds the watermark has been silent for too long.

        ``now_s`` is of any clock that does not step back.
        """
        passed_s = 0.0 if self._looked_at_s is None else min(now_s - self._looked_at_s, MAX_LOOK_S)
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
        # A smaller promise is no news: after a rebuild from the sink the same ones are read once more.
        if silence is None or status.resolved_ts > silence.resolved_ts:
            return _Silence(status.resolved_ts, status.end_offset)
        if status.read_offset >= silence.end_offset:
            silence.silent_s += passed_s
        return silence
