"""Threads that compare ranges, each with its own sessions. A lost connection costs the range, not the verification."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Final, Self, TypeVar

from applier.model.errors import RetryableSinkError
from applier.verify.moment import Sides

T = TypeVar("T")

TRIES: Final = 5
QUEUED: Final = 3
"""Ranges that wait for a thread, per thread: enough that none is idle, few enough that bounds stay fresh."""


class Workers:
    """``jobs`` threads. ``open_sides`` makes the sessions of one of them; they connect when they are used."""

    def __init__(self, jobs: int, open_sides: Callable[[], Sides]) -> None:
        self._jobs = jobs
        self._open_sides = open_sides
        self._pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="verify")
        self._local = threading.local()
        self._opened: list[Sides] = []
        self._waiting: set[Future[None]] = set()
        self._is_stopped = threading.Event()

    def submit(self, work: Callable[[Sides], None]) -> None:
        """Have the work done by a thread; waits while enough is queued. Raises what earlier work has raised."""
        self._collect(self._jobs * QUEUED - 1)
        self._waiting.add(self._pool.submit(self._run, work))

    def finish(self) -> None:
        """Wait until all work is done; raises what it has raised."""
        self._collect(0)

    def _collect(self, most: int) -> None:
        while len(self._waiting) > most:
            done, self._waiting = wait(self._waiting, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()

    def _run(self, work: Callable[[Sides], None]) -> None:
        if self._is_stopped.is_set():
            return
        sides: Sides | None = getattr(self._local, "sides", None)
        if sides is None:
            sides = self._local.sides = self._open_sides()
            self._opened.append(sides)
        attempt(sides, work, self._is_stopped)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the threads; what has not begun is skipped. A statement that runs is waited for."""
        self._is_stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for sides in self._opened:
            sides.close()


def attempt(sides: Sides, work: Callable[[Sides], T], is_stopped: threading.Event | None = None) -> T:
    """Do the work, again with new sessions if a connection is lost. ``is_stopped`` ends the pauses."""
    pause = time.sleep if is_stopped is None else is_stopped.wait
    for tried in range(1, TRIES):
        try:
            return work(sides)
        except RetryableSinkError:
            sides.close()
            pause(2.0**tried / 4)
    return work(sides)
