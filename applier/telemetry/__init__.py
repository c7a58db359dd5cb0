"""What a run tells about itself: snapshots for a display, log lines, metrics, a status for whoever asks over HTTP.

The engine counts and notes; a ``Monitor`` makes of it what is shown. Nothing here decides anything, and nothing holds row values,
secrets or connection strings.
"""

from applier.telemetry.log import configure_logging
from applier.telemetry.log_event import LogEvent
from applier.telemetry.retries import retries_noted
from applier.telemetry.snapshot import Observer, SilentObserver, Snapshot, Watcher
from applier.telemetry.tally import Tally

__all__ = ["LogEvent", "Observer", "SilentObserver", "Snapshot", "Tally", "Watcher", "configure_logging", "retries_noted"]
