"""When the first row of a catch-up is visible, and the last: looked at from outside, while it runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tests.bench.suite.sink import Sink
from tests.bench.suite.workload import Workload

LOOK_S = 0.05


class Visible:
    """Watches from outside when the first row is visible, and when the checkpoint has moved for the last time."""

    def __init__(self, url: str, workload: Workload) -> None:
        self._url, self._tables = url, workload.tables[:3]
        self._end = Event()
        self.first_s = self.last_s = float("nan")

    @contextmanager
    def watched(self, began: float) -> Iterator[None]:
        """Look until the end of the block; ``began`` is the time that counts as 0."""
        thread = Thread(target=self._run, args=(began,), name="visible", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _run(self, began: float) -> None:
        with Sink(self._url) as sink:
            while not self._end.wait(LOOK_S):
                if sink.has_rows(self._tables):
                    self.first_s = time.monotonic() - began
                    break
            seen = 0
            while not self._end.wait(LOOK_S):
                if (checkpoint := sink.checkpoint()) > seen:
                    seen, self.last_s = checkpoint, time.monotonic() - began
