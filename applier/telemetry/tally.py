"""Counts what a run does: written in the engine's thread, frozen into the ``RunState`` by the monitor."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from threading import Lock
from typing import Final

from applier.model.position import Stream
from applier.model.range_report import RangeId
from applier.telemetry.run_state import Counts, Histogram

ACTIVITIES: Final = ("cycle", "listen", "prepare", "apply", "ddl", "save")
"""What is timed. ``cycle`` counts only cycles that read or did something."""

BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0, 3600.0)
"""Upper bounds of the histogram: from one round trip to the database to an ALTER of a large table."""


class Durations:
    """How long activities took. Thread-safe: listening and applying end in different threads."""

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
            # bisect_left: a Prometheus bucket `le` includes its bound.
            self._counts[activity][bisect_left(BOUNDS_S, seconds)] += 1
            self._sums[activity] += seconds

    def histograms(self) -> tuple[Histogram, ...]:
        """Return what was counted so far, by activity."""
        with self._counting:
            return tuple(Histogram(name, tuple(accumulate(counts)), self._sums[name]) for name, counts in self._counts.items())


class _ReadOffsets:
    """Which offsets of one stream were read: disjoint ranges, merged where they touch, so a run of months keeps one."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> int:
        """Add the offsets from ``start`` to ``end`` (exclusive); return how many of them are new."""
        # Ranges that only touch are merged as well: otherwise each cycle would add one that stays.
        touched = [(first, last) for first, last in self._ranges if first <= end and last >= start]
        new = end - start - sum(max(0, min(last, end) - max(first, start)) for first, last in touched)
        merged = (min([start, *(first for first, _ in touched)]), max([end, *(last for _, last in touched)]))
        self._ranges = sorted([*(known for known in self._ranges if known not in touched), merged])
        return new


class Tally:
    """What this run has done so far. For the engine's thread, except ``durations``."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.durations = Durations()
        self._read: defaultdict[Stream, _ReadOffsets] = defaultdict(_ReadOffsets)

    def read(self, found: RangeId, events: int, *, counts_offsets: bool = True) -> None:
        """Count a range with its events; of one that was read before in part, the same part of the events.

        ``counts_offsets``: whether an offset is a record; else an event counts as one.
        """
        # After a reload ranges are read again: counted twice, a display of records read would pass its total.
        new, counts = self._read[found.stream].add(found.start, found.end), self.counts
        seen = events * new // max(1, found.end - found.start)
        self.counts = replace(counts, records=counts.records + (new if counts_offsets else seen), events=counts.events + seen)

    def skipped(self, statements: Iterable[tuple[str, int]]) -> bool:
        """Count statements that were skipped, by kind; return whether this run has skipped none of a kind before."""
        total = Counter(dict(self.counts.skipped_statements))
        known = len(total)
        for kind, count in statements:
            total[kind] += count
        self.counts = replace(self.counts, skipped_statements=tuple(sorted(total.items())))
        return len(total) > known

    def applied(self, rows: int, transactions: int, absent: int = 0) -> None:
        """Count what a segment has written, and the ``absent`` rows that its deletes did not find."""
        counts = self.counts
        self.counts = replace(
            counts, rows=counts.rows + rows, transactions=counts.transactions + transactions, absent_rows=counts.absent_rows + absent
        )

    def settled_ddl(self, *, is_skipped: bool) -> None:
        """Count a DDL that is done or skipped."""
        counts = self.counts
        self.counts = replace(counts, ddls=counts.ddls + (not is_skipped), skipped_ddls=counts.skipped_ddls + is_skipped)

    def early_column(self) -> None:
        """Count a column that rows carry before its DDL."""
        self.counts = replace(self.counts, early_columns=self.counts.early_columns + 1)

    def rebuilt(self) -> None:
        """Count a reload of the state."""
        self.counts = replace(self.counts, rebuilds=self.counts.rebuilds + 1)
