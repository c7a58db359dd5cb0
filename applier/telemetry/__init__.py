"""What a run shows of itself: one ``RunState``, which the display, the log, the metrics, ``/status`` and the watchdog read.

The engine counts and notes events; the ``Monitor`` makes the state of it. Nothing here decides anything, and nothing holds values of rows,
secrets or connection strings. May import ``spark`` and everything below it, and needs little of it: ``coordinator``, ``sinks.port``.
Read ``run_state`` first, then ``monitor`` and ``log_event``.
"""

from applier.telemetry.log import configure_logging
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Notes, Observer, SilentObserver, Watcher
from applier.telemetry.retries import retries_noted
from applier.telemetry.run_state import RunState

__all__ = ["LogEvent", "Notes", "Observer", "RunState", "SilentObserver", "Watcher", "configure_logging", "retries_noted"]
