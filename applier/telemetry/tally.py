"""What a run has done so far: counted by the engine, looked at by everybody else."""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from typing import Final, NamedTuple

from applier.model.position import Stream

PHASES: Final = ("starting", "listening", "applying", "ddl", "waiting", "idle", "done")
"""What a run may be doing. ``waiting``: something is retried; ``idle``: there is nothing new in Kafka."""

ACTIVITIES: Final = ("cycle", "listen", "apply", "ddl", "save")
"""What is timed. ``cycle`` counts those only that read or did something."""

BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0, 3600.0)
"""Upper ends of the durations that are counted together: from one round trip to the database to an ALTER of a large table."""


class Histogram(NamedTuple):
    """How often an activity took how long: ``counts`` are cumulative, one per bound of ``BOUNDS_S`` and one for everything."""

    activity: str
    counts: tuple[int, ...]
    sum_s: float


class Durations:
    """How long activities took. Listening and applying end in different threads."""

    def __init__(self) -> None:
        self._counts = {activity: [0] * (len(BOUNDS_S) + 1) for activity in ACTIVITIES}
        self._sums = dict.fromkeys(ACTIVITIES, 0.0)
        self._counting = Lock()

    @contextmanager
    def timed(self, activity: str) -> Iterator[None]:
        """Count how long the block takes, also when it raises."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(activity, time.monotonic() - began)

    def add(self, activity: str, seconds: float) -> None:
        """Count one that took ``seconds``."""
        with self._counting:
            self._counts[activity][bisect_left(BOUNDS_S, seconds)] += 1
            self._sums[activity] += seconds

    def histograms(self) -> tuple[Histogram, ...]:
        """Return what was counted so far, by activity."""
        with self._counting:
            return tuple(Histogram(name, tuple(accumulate(counts)), self._sums[name]) for name, counts in self._counts.items())


class _Seen:
    """Which offsets of one stream were read: disjoint ranges, one as long as no range is missing between."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> int:
        """Add the offsets from ``start`` to ``end`` (exclusive); return how many of them are new."""
        touched = [(first, last) for first, last in self._ranges if first <= end and last >= start]
        new = end - start - sum(max(0, min(last, end) - max(first, start)) for first, last in touched)
        merged = (min([start, *(first for first, _ in touched)]), max([end, *(last for _, last in touched)]))
        self._ranges = sorted([*(known for known in self._ranges if known not in touched), merged])
        return new


@dataclass(slots=True)
class Tally:
    """What this run has done so far. ``records`` counts the offsets that were read, each once however often it is read again."""

    records: int = 0
    events: int = 0
    rows: int = 0
    transactions: int = 0
    ddls: int = 0
    rebuilds: int = 0
    current_ddl: str = ""
    phase: str = "starting"
    durations: Durations = field(default_factory=Durations)
    _seen: defaultdict[Stream, _Seen] = field(default_factory=lambda: defaultdict(_Seen))

    def read(self, stream: Stream, start: int, end: int, events: int) -> None:
        """Count a range with its events; of one that was read before in part, the same part of the events."""
        new = self._seen[stream].add(start, end)
        self.records += new
        self.events += events * new // max(1, end - start)
