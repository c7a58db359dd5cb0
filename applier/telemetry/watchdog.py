"""Reports, from its own thread, that a run makes no progress: nothing hangs unnoticed.

It ends nothing: what the run waits for may have its reason (a job waits for executors, an ALTER for its rows). The operator decides.
"""

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Final, Protocol, Self

FIRST_S: Final = 60.0
"""Time without progress before the first report. Each further one comes after twice as long."""

LOOK_S: Final = 5.0


class ReportRule:
    """When a report is due. Pure: how long the run has made no progress is passed in."""

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._first_s = self._next_s = first_s

    def is_due(self, silent_s: float) -> bool:
        """Return whether a report is due now, after ``silent_s`` seconds without progress."""
        if silent_s < self._first_s:
            self._next_s = self._first_s
            return False
        if silent_s < self._next_s:
            return False
        # A job that waits for executors over a night gets ten lines, not ten thousand.
        self._next_s *= 2
        return True


class Watchable(Protocol):
    """A run whose progress can be seen from another thread."""

    def without_progress_s(self) -> float:
        """Return how many seconds ago it has made its last step."""
        ...

    def report_no_progress(self, silent_s: float) -> None:
        """Log that it has made no step for ``silent_s``."""
        ...


class Watchdog:
    """A context manager: watches ``run`` until its block ends."""

    def __init__(self, run: Watchable, rule: ReportRule | None = None, wait: Callable[[Event], bool] | None = None) -> None:
        self._run, self._rule = run, rule or ReportRule()
        self._wait = wait or (lambda is_over: is_over.wait(LOOK_S))
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="applier-watchdog", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the thread."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._wait(self._is_over):
            silent_s = self._run.without_progress_s()
            if self._rule.is_due(silent_s):
                self._run.report_no_progress(silent_s)
