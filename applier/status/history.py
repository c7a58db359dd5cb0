"""The last hour of a run, kept in memory: how old the replica was, and how many rows a second it wrote.

A thread of its own takes a sample every few seconds, whether anybody asks or not.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from applier.telemetry.run_state import RunState

SAMPLE_S: Final = 5.0
"""Between two samples: 720 of them in an hour, some 30 kB as JSON."""
KEPT_S: Final = 3600.0


class Sample(NamedTuple):
    """A run at one moment. ``lag_s`` is None before the first checkpoint; ``rows_per_s`` is the mean since the sample before."""

    unix_s: float
    lag_s: float | None
    rows_per_s: float


class RecentHistory:
    """The samples of the last hour, taken by ``sample`` or by the thread between ``start`` and ``close``."""

    def __init__(self, state: Callable[[], RunState], *, every_s: float = SAMPLE_S) -> None:
        self._state, self._every_s = state, every_s
        self._samples: deque[Sample] = deque(maxlen=int(KEPT_S / every_s))
        self._last: tuple[float, int] | None = None
        self._ended = Event()
        self._thread: Thread | None = None

    def sample(self, unix_s: float, now_s: float) -> None:
        """Add how the run is now. ``now_s`` is a clock that never steps back."""
        state = self._state()
        rows = state.counts.rows
        before_s, before = self._last or (now_s, rows)
        rate = (rows - before) / (now_s - before_s) if now_s > before_s else 0.0
        self._last = (now_s, rows)
        lag_s = state.lag_s(unix_s)
        self._samples.append(Sample(round(unix_s, 1), None if lag_s is None else round(lag_s, 3), round(max(0.0, rate), 1)))

    def document(self) -> dict[str, Any]:
        """Return the samples as columns, which is what a chart takes."""
        samples = tuple(self._samples)
        return {
            "every_s": self._every_s,
            "unix_s": [each.unix_s for each in samples],
            "lag_s": [each.lag_s for each in samples],
            "rows_per_s": [each.rows_per_s for each in samples],
        }

    def start(self) -> None:
        """Take samples from now on."""
        self._thread = Thread(target=self._follow, name="applier-history", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more samples."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _follow(self) -> None:
        while True:
            self.sample(time.time(), time.monotonic())
            if self._ended.wait(self._every_s):
                return
