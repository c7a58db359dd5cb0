"""Watches over a run from a thread of its own, and says so when it has given no sign of life for long: nothing is stuck in silence.

It decides nothing: what waits may have its reason (a job waits for executors, an ALTER for its rows), which the operator can see then.
"""

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Final, Protocol, Self

FIRST_S: Final = 60.0
"""Silence that is worth a word. Each further word comes after twice as long a time."""

LOOK_S: Final = 5.0


class SilenceRule:
    """When a word is due. Pure: how long the silence has lasted is passed in."""

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._first_s = self._next_s = first_s

    def is_due(self, silent_s: float) -> bool:
        """Tell whether a word about a silence of ``silent_s`` seconds is due now."""
        if silent_s < self._first_s:
            self._next_s = self._first_s
            return False
        if silent_s < self._next_s:
            return False
        self._next_s *= 2
        return True


class Watchable(Protocol):
    """A run whose signs of life can be seen from another thread."""

    def silent_s(self) -> float:
        """Return how long ago its last sign of life was."""
        ...

    def tell_silence(self, silent_s: float) -> None:
        """Say that it has been silent for so long."""
        ...


class Watchdog:
    """A context manager: the watch lasts as long as its block."""

    def __init__(self, run: Watchable, rule: SilenceRule | None = None, wait: Callable[[Event], bool] | None = None) -> None:
        self._run, self._rule = run, rule or SilenceRule()
        self._wait = wait or (lambda is_over: is_over.wait(LOOK_S))
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="applier-vigil", daemon=True)

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the watch."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._wait(self._is_over):
            silent_s = self._run.silent_s()
            if self._rule.is_due(silent_s):
                self._run.tell_silence(silent_s)
