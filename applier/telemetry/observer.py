"""The ports of telemetry: what a display takes, and what the engine calls."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from applier.coordinator import Coordinator
from applier.model.position import Timeline
from applier.sinks.progress import Progress
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent
from applier.telemetry.retries import Notes
from applier.telemetry.run_state import RunState
from applier.telemetry.tally import Tally


class Observer(Protocol):
    """A display of a run. Called from the engine's thread, after each step: must be quick and must not raise."""

    def update(self, state: RunState) -> None:
        """Show the newest state; older ones may be skipped."""
        ...

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Show an event that must not be missed: a DDL, a retry, a resumed checkpoint."""
        ...


class Watched(Protocol):
    """What a monitor watches: the replica as the engine holds it. Both are replaced when state is reloaded."""

    @property
    def coordinator(self) -> Coordinator:
        """The present coordinator."""
        ...

    @property
    def progress(self) -> Progress:
        """The progress as it was read from the sink last."""
        ...


class Watcher(Notes, Protocol):
    """What the engine reports a run to. Called from the engine's thread: must be quick and must not raise."""

    @property
    def tally(self) -> Tally:
        """Where the engine counts."""
        ...

    def opened(self, timeline: Timeline) -> None:
        """Show timestamps from now on as the source means them: it is open."""
        ...

    def watch(self, replica: Watched) -> None:
        """Look at ``replica`` from now on: the run has loaded its state."""
        ...

    def enter(self, phase: str) -> None:
        """Record what the run does from now on: one of ``PHASES``."""
        ...

    def during(self, phase: str, ddl: str = "") -> AbstractContextManager[None]:
        """Return a context in which the run is in another phase. Its beginning is shown before the block begins, since that may hang."""
        ...

    def starting_spark(self) -> AbstractContextManager[None]:
        """Return a context in which Spark starts. Any thread may call it."""
        ...

    def worked(self, *sides: Side) -> None:
        """Mark these sides healthy: what failed there is over. Called often."""
        ...

    def held_since(self, since_s: float) -> None:
        """Record since when a segment is being applied, by the monotonic clock; infinite if none is.

        What is read meanwhile is not progress: a run that reads on and cannot write hangs.
        """
        ...

    def changed(self) -> None:
        """Note that the engine has made a step: its state may be looked at."""
        ...


class SilentObserver:
    """Shows nothing: for callers that only want the result."""

    def update(self, state: RunState) -> None:
        """Ignore it."""

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Ignore it."""
