"""Tables without a key, under ``keyless = "best_effort"``: their rows are a multiset, and a deleted row is found by all of its columns.

No version supersedes another: each row event adds one row of its image or takes one away, and only the difference is written. What adds
and takes away the same image in one segment cancels out, so each image is either deleted or inserted, and all deletes may come first.

Equal rows of one commit_ts may be real, or one row that the producer has sent again. Nothing on the wire says which. A producer that goes
back sends everything again from there, in the same order (open_protocol.md 3.8). So rows are counted per run, which is what a producer has
sent between two points where it went back, and the greatest count holds: a run may have been cut short, and none has too many. Equal rows
are in one partition whatever the dispatcher is, unless the number of partitions changes between two runs; so streams count as runs.

A run of one stream ends

* at a ``RepeatPoint`` of the listeners: a promise that steps back, a row that is sent again after it was applied; and a promise, for
  rows at its ts. (Rows below a promise have all been sent before it: they do not count at all.)
* at a row that was there before and is older than the one before it: what one node sends of one table is in the order of commit_ts.
  A row that is merely older proves nothing: physical partitions of a table are not ordered among one another.

A producer that repeats exactly one transaction, before any promise, cannot be told from a transaction with equal rows.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from applier.model.chunk import Chunk
from applier.model.position import Stream, Ts
from applier.model.range_report import RepeatPoint
from applier.model.segment import is_behind_promise, may_follow, repeats_from
from applier.planner.column_match import Origin
from applier.planner.final_rows import FinalRows

Repeats: TypeAlias = Mapping[Stream, Sequence[RepeatPoint]]
"""Stream -> the points from which on its rows are repeated, in the order of their offsets."""
Image: TypeAlias = tuple[str, ...]
"""The literals of a whole row. As texts, 0.0 and -0.0 differ, and rows of two producers that differ in the order of columns do not."""
Event: TypeAlias = tuple[int, int, Image]
"""commit_ts, kind and image: rows that agree in all three are equal."""


class KeylessRows:
    """All rows of one table without a key in one segment, in the order in which they come."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._rows = FinalRows()

    def feed(self, rows: Chunk, origin: "array[int]") -> None:
        """Take rows of the table; ``origin`` as in ``FinalRows``. None of them supersedes another."""
        first = len(self._rows)
        self._rows.feed(rows, [(number,) for number in range(first, first + len(rows.key))], origin)

    def finish(self) -> FinalRows:
        """Return the rows; each has the empty key, by which errors name it."""
        self._rows.finish()
        self._rows.keys = [b""] * len(self._rows)
        return self._rows


def counted_rows(final: FinalRows, origins: Sequence[Origin], images: Mapping[int, Image], repeats: Repeats) -> dict[Event, list[int]]:
    """Return, of each kind of equal rows, those of the run that has the most of them, in the order of their offsets."""
    most: dict[Event, list[int]] = {}
    by_stream: dict[Stream, list[int]] = defaultdict(list)
    for row in images:
        by_stream[origins[final.origin[row]].stream].append(row)
    for stream, numbers in sorted(by_stream.items()):
        # An update is two rows of one event: of equal place, the delete comes first.
        numbers.sort(key=lambda row: (final.offset[row], final.index[row], final.kind[row]))
        runs = _Runs(repeats.get(stream, ()))
        place = None
        for row in numbers:
            # A range that was read again is in the cache twice until its first copy is released.
            if place == (place := (final.offset[row], final.index[row], final.kind[row])):
                continue
            event = (final.commit_ts[row], final.kind[row], images[row])
            run = runs.add(event, row, final.offset[row])
            if len(run) > len(most.get(event, ())):
                most[event] = run
    return most


class _Runs:
    """The runs of one stream, and how many equal rows the last run of each kind has."""

    def __init__(self, points: Sequence[RepeatPoint]) -> None:
        self._points = points
        self._passed = self._returns = 0
        self._promised = self._latest = -1
        self._runs: dict[Event, tuple[int, int, list[int]]] = {}
        """Event -> times that the producer went back, and what it promised, before its last row; the rows of its last run."""

    def add(self, event: Event, row: int, offset: int) -> list[int]:
        """Take the next row, and return the rows of its run that are equal to it; none if it does not count."""
        commit_ts = event[0]
        self._pass_points(offset)
        is_repeated = is_behind_promise(Ts(commit_ts), Ts(self._promised))
        returns, promised, run = self._runs.get(event, (self._returns, self._promised, []))
        if (run or is_repeated) and not may_follow(commit_ts, self._latest):
            self._returns += 1
            self._latest = -1
        self._latest = max(self._latest, commit_ts)
        if is_repeated:
            return []
        is_promised_since = repeats_from(self._promised, commit_ts) and not repeats_from(promised, commit_ts)
        if returns != self._returns or is_promised_since:
            run = []
        run.append(row)
        self._runs[event] = (self._returns, self._promised, run)
        return run

    def _pass_points(self, offset: int) -> None:
        while self._passed < len(self._points) and self._points[self._passed].offset <= offset:
            point = self._points[self._passed]
            self._passed += 1
            self._promised = max(self._promised, point.ts)
            if point.is_return:
                self._returns += 1
                self._latest = -1


def net_rows(counted: Mapping[Event, Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return the rows to delete and the rows to insert: of each image the difference, by its last events."""
    by_image: dict[Image, tuple[list[int], list[int]]] = {}
    for (_, kind, image), rows in sorted(counted.items(), key=_time):
        by_image.setdefault(image, ([], []))[kind].extend(rows)
    deleted: list[int] = []
    inserted: list[int] = []
    for taken, added in by_image.values():
        kept = len(added) - len(taken)
        if kept < 0:
            deleted += taken[kept:]
        elif kept:
            inserted += added[-kept:]
    return deleted, inserted


def _time(item: tuple[Event, Iterable[int]]) -> tuple[int, int]:
    return item[0][:2]
