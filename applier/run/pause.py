"""A run that an operator has paused: it keeps the replica, and reads nothing until it is resumed (``applier pause``, ``applier resume``).

The pause is in the sink's bookkeeping, so that it reaches a daemon on any machine, and lasts when the daemon is restarted.
"""

import time
from typing import Final

from applier.model.errors import NeedsOperator, Remedy
from applier.model.failure import FailureKind
from applier.replica.engine import Engine
from applier.replica.shutdown import Shutdown
from applier.sinks.overview import Pause
from applier.sinks.port import Sink
from applier.telemetry.log import utc_text
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor

LOOK_S: Final = 1.0
"""How often a run asks: one small statement, and a pause holds within two seconds."""


class PauseGate:
    """Keeps one daemon from its next cycle while its replica is paused. Not thread-safe."""

    def __init__(self, sink: Sink, engine: Engine, monitor: Monitor, shutdown: Shutdown) -> None:
        self._sink, self._engine, self._monitor, self._shutdown = sink, engine, monitor, shutdown
        self._pause: Pause | None = None
        self._looked_at = float("-inf")

    def wait_if_paused(self) -> bool:
        """Return whether the replica is paused; if it is, wait ``LOOK_S`` first. Ask before each cycle."""
        # One look for each call while paused, so that an error in it is retried as any other, and an end of the pause is seen.
        now = time.monotonic()
        if self._pause is None and now - self._looked_at < LOOK_S:
            return False
        pause = self._sink.bookkeeping.pauses.read()
        self._looked_at = now
        if pause is None:
            self._release()
            return False
        if self._pause is None:
            self._engine.pause()
            self._monitor.note(LogEvent.PAUSED, said_by=pause.said_by)
            self._pause = pause
        self._engine.check_owner()
        self._monitor.pause(pause.said_by, pause.said_at.timestamp())
        self._monitor.changed()
        self._shutdown.wait(LOOK_S)
        return True

    def _release(self) -> None:
        if self._pause is not None:
            self._monitor.resume()
            self._monitor.note(LogEvent.PAUSE_ENDED, after_s=round(time.time() - self._pause.said_at.timestamp(), 1))
            self._pause = None


def refuse_paused(sink: Sink) -> None:
    """Refuse to apply anything to a replica that is paused. NeedsOperator names who has paused it."""
    pause = sink.bookkeeping.pauses.read()
    if pause is not None:
        raise NeedsOperator(
            "the replica is paused",
            remedy=Remedy("run.resume-first", "Resume it first: `applier resume`"),
            kind=FailureKind.PAUSED,
            paused_by=pause.said_by,
            paused_at=utc_text(pause.said_at),
        )
