"""A heap of ranges by time, for those who take the earliest and are told which are gone.

A range that is gone cannot be taken out of the middle of a heap. It is skipped when it comes up; and when half of the heap may be gone, the
heap is made again without it. A stream that does not resolve for an hour has its ranges merged again and again, and none comes up until W
has passed it.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from applier.model.position import Ts
from applier.model.range_report import RangeId

LEAST: Final = 64
"""Entries for which making the heap again is not worth it."""


class HeapEntry(NamedTuple):
    """A range, by ``ts``. ``number``: of its report, since a range of the same name may be another reading."""

    ts: Ts
    number: int
    name: RangeId


class RangeHeap:
    """``is_there`` says whether an entry still counts."""

    __slots__ = ("_entries", "_gone", "_is_there")

    def __init__(self, is_there: Callable[[HeapEntry], bool]) -> None:
        self._entries: list[HeapEntry] = []
        self._is_there = is_there
        self._gone = 0

    def __len__(self) -> int:
        """Return how many entries it keeps, those that are gone included."""
        return len(self._entries)

    def add(self, ts: Ts, number: int, name: RangeId) -> None:
        """Take a range in."""
        heappush(self._entries, HeapEntry(ts, number, name))

    def fill(self, entries: Iterable[HeapEntry]) -> None:
        """Begin again with these entries."""
        self._entries, self._gone = list(entries), 0
        heapify(self._entries)

    def lost_one(self) -> None:
        """Mark an entry that may be gone."""
        self._gone += 1
        if self._gone > max(LEAST, len(self._entries) // 2):
            self.fill(filter(self._is_there, self._entries))

    @property
    def first(self) -> HeapEntry | None:
        """The earliest entry that still counts."""
        while self._entries and not self._is_there(self._entries[0]):
            heappop(self._entries)
        return self._entries[0] if self._entries else None

    def pop(self) -> HeapEntry:
        """Take out what ``first`` has named."""
        return heappop(self._entries)
