"""The ports of telemetry: what a display is given, and whom the engine tells."""

from dataclasses import dataclass
from typing import Any, Protocol

from applier.model.position import NO_TS, Ts
from applier.telemetry.log_event import LogEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one moment. ``records_total`` are the records up to the known end offsets; 0 while they are not known."""

    phase: str
    """One of ``applier.telemetry.tally.PHASES``."""
    records_read: int = 0
    records_total: int = 0
    rows_applied: int = 0
    transactions: int = 0
    ddls: int = 0
    watermark: Ts = NO_TS
    checkpoint_ts: Ts = NO_TS
    lag_s: float | None = None
    """Seconds between the upstream commit time of the checkpoint and now; None before the first checkpoint."""
    current_ddl: str = ""
    """Text of the DDL that runs now."""
    holding_stream: str = ""
    """The stream that holds the watermark, as ``topic/partition``."""
    elapsed_s: float = 0.0


class Observer(Protocol):
    """Who watches a run. Called from the engine's thread, after each step: must be quick and must not raise."""

    def update(self, snapshot: Snapshot) -> None:
        """Take the newest state; older ones may be forgotten."""
        ...

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Take one thing that happened and must not be missed: a DDL, a retry, a resumed checkpoint."""
        ...


class Watcher(Protocol):
    """Whom the engine tells. Called from the engine's thread: must be quick and must not raise."""

    def changed(self) -> None:
        """Hear that the engine has made a step: its state may be looked at."""
        ...

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Take one thing that happened, as an ``Observer`` does."""
        ...


class SilentObserver:
    """Shows nothing: for callers that only want the result."""

    def update(self, snapshot: Snapshot) -> None:
        """Forget it."""

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Forget it."""
