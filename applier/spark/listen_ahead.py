"""Listening ahead: the next ranges are read in a thread while a segment is applied (two Spark jobs at once)."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from threading import Event
from typing import Final

from applier.tasks.listen import ListenOutcome, ListenTask
from applier.tasks.port import Runner

LOOK_S: Final = 0.2
"""How often a wait for a job looks whether a shutdown was requested."""


class ListenAhead:
    """At most one listening job at a time. Everything but the job itself happens in the caller's thread."""

    def __init__(self, runner: Runner, timed: Callable[[], AbstractContextManager[None]], end: Event) -> None:
        """Listen through ``runner``; each job runs inside of a context that ``timed`` makes, in the thread of the job.

        Once ``end`` is set no job is waited for: its outcomes are not needed, and it may take long.
        """
        self._runner, self._timed, self._end = runner, timed, end
        self._pool = ThreadPoolExecutor(1, "listen")
        self._job: Future[Sequence[ListenOutcome]] | None = None

    def start(self, tasks: Sequence[ListenTask]) -> None:
        """Begin to read these ranges, if there are any. The job before must have been finished or discarded."""
        if tasks:
            self._job = self._pool.submit(self._listen, tasks)

    def finish(self) -> Sequence[ListenOutcome]:
        """Wait for the job and return its outcomes; () if there is none, or if ``end`` is set."""
        job, self._job = self._job, None
        while job is not None and not self._end.is_set():
            if wait([job], LOOK_S).done:
                return job.result()
        return ()

    def discard(self) -> None:
        """Wait for the job and release what it cached: its ranges are planned again."""
        self._runner.release([outcome.range for outcome in self.finish()])

    def _listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        with self._timed():
            return self._runner.listen(tasks)

    def close(self) -> None:
        """Begin no more jobs; one that runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
