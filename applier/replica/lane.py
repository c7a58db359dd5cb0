"""A lane: a thread that does one piece of work at a time, while the engine's thread decides what comes next."""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Event
from typing import Any, Final, Generic, TypeVar

from applier.model.errors import InvariantViolation

T = TypeVar("T")

LOOK_S: Final = 0.2
"""How often a wait looks whether it must end early."""


class Lane(Generic[T]):
    """Everything but the work itself happens in the caller's thread."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._work: Future[T] | None = None
        self._began_s = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether work was started whose result was not taken."""
        return self._work is not None

    @property
    def busy_since_s(self) -> float:
        """When its work began, by the monotonic clock; infinite without work."""
        return self._began_s if self.is_busy else math.inf

    @property
    def is_done(self) -> bool:
        """Whether there is a result to take."""
        return self._work is not None and self._work.done()

    def start(self, work: Callable[[], T]) -> None:
        """Begin work. The result of the work before must have been taken."""
        self._began_s = time.monotonic()
        # The work belongs to the caller's run: its log lines show timestamps as that run's source means them.
        self._work = self._pool.submit(copy_context().run, work)

    def result(self) -> T:
        """Wait for the work, and return or raise what it has given."""
        work, self._work = self._work, None
        if work is None:
            raise InvariantViolation("a lane without work was asked for its result")
        return work.result()

    def discard(self, end: Event) -> None:
        """Wait for the work, if there is any, and forget what it gives: the sink says what it has done.

        Once ``end`` is set it is not waited for: a job without executors lasts for ever.
        """
        work, self._work = self._work, None
        while work is not None and not end.is_set() and not wait([work], LOOK_S).done:
            pass

    def close(self) -> None:
        """Begin no more work; what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def pending(self) -> tuple[Future[T], ...]:
        """The work whose result was not taken, for ``wait_for_any``."""
        return () if self._work is None else (self._work,)


def wait_for_any(lanes: Iterable[Lane[Any]], timeout_s: float) -> None:
    """Wait until one of the lanes has a result, or the time is over."""
    wait([work for lane in lanes for work in lane.pending], timeout_s, FIRST_COMPLETED)
