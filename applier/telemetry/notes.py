"""The port for log events. It knows nothing of a run, so that a command can log without importing one."""

from typing import Any, Protocol

from applier.telemetry.log_event import LogEvent


class Notes(Protocol):
    """Takes events for the log. Called from the engine's thread: must be quick and must not raise."""

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Take an event that must not be missed."""
        ...
