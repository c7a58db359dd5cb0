"""A limit on the load: rows that both databases may digest in a second."""

import threading
import time
from collections.abc import Callable
from typing import Final

CREDIT_S: Final = 1.0


class Pace:
    """Shared by all threads. ``rows_per_s`` 0: no limit."""

    def __init__(self, rows_per_s: int, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep) -> None:
        self._rows_per_s = rows_per_s
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = now()

    def spend(self, rows: int) -> None:
        """Wait until the rows that were read before fit into the limit."""
        if not self._rows_per_s:
            return
        with self._lock:
            now = self._now()
            # The time that the databases took counts; a pause of hours must not allow a burst afterwards.
            self._free_at = max(self._free_at, now - CREDIT_S) + rows / self._rows_per_s
            pause_s = self._free_at - now
        if pause_s > 0:
            self._sleep(pause_s)
