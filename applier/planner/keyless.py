"""Tables without a key, under ``keyless = "best_effort"``: their rows are a multiset, and a deleted row is found by all of its columns.

No version supersedes another: each row event adds one row of its image or takes one away, and only the difference is written. What adds
and takes away the same image in one segment cancels out, so each image is either deleted or inserted, and all deletes may come first.

Equal rows of one commit_ts may be real, or one row that the producer has sent again. Nothing on the wire says which. A producer that goes
back sends everything again from there, in the same order (open_protocol.md 3.8). So rows are counted per run, which is what a producer has
sent between two points where it went back, and the greatest count holds: a run may have been cut short, and none has too many.

What is counted are events, an update with both of its rows. Equal events are in one partition whatever the dispatcher is, unless the number
of partitions changes between two runs; so streams count as runs. The halves of updates are not: under the dispatcher ``columns`` two equal
rows that become different ones are sent to two partitions.

A run of one stream ends

* at a ``RepeatPoint`` of the listeners: a promise that steps back, a row that is sent again after it was applied; and a promise, for
  rows at its ts. (Rows below a promise have all been sent before it: they do not count at all.)
* at a row that was there before and is older than the one before it: what one node sends of one table is in the order of commit_ts.
  A row that is merely older proves nothing: physical partitions of a table are not ordered among one another.

A producer that repeats exactly one transaction of a partition, before any promise, cannot be told from a transaction with equal rows; under
``columns`` that is nothing rare, since a partition has few rows of a table. Events of one record were sent by one run, so equal ones there
are real. More of them, in other records of the run, stop the applier before anything is written, unless the operator says which it is.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from applier.model.chunk import Chunk
from applier.model.errors import NeedsOperator
from applier.model.events import RowKind
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
Change: TypeAlias = tuple[int, Image | None, Image | None]
"""commit_ts, and the row before and after an event: events that agree in all three are equal."""

EQUAL_REMEDY: Final = (
    'Set sink.equal_rows: "all" if upstream\'s transaction has so many equal rows, "once" if the producer has sent them again. '
    'If you cannot tell, set "once", run `applier catchup --until-ts` up to just beyond commit_ts, '
    "and write the table again as of the checkpoint: docs/tables.md"
)


class EqualRows(StrEnum):
    """What happens to equal rows of one transaction in several records, which may be one row that was sent again."""

    STOP = "stop"
    ONCE = "once"
    """They were sent again: those of one record count."""
    ALL = "all"
    """They are real."""


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


class _SentChange(NamedTuple):
    """One event, with its rows: that before it and that after it, as far as it has them."""

    offset: int
    change: Change
    rows: tuple[int, ...]


@dataclass(slots=True)
class _EqualChanges:
    """Equal events of one run. ``state``: how often the producer went back before the last one, and what it had promised."""

    state: tuple[int, int]
    events: list[_SentChange] = field(default_factory=list)

    @property
    def certain(self) -> int:
        """How many of them are certainly real: those of one record."""
        return max(Counter(event.offset for event in self.events).values())


def counted_rows(
    final: FinalRows,
    origins: Sequence[Origin],
    images: Mapping[int, Image],
    repeats: Repeats,
    equal_rows: EqualRows = EqualRows.ALL,
) -> dict[Event, list[int]]:
    """Return the rows that count, of each kind of equal ones together. NeedsOperator where that cannot be told (``EqualRows.STOP``)."""
    by_change: dict[Change, list[_EqualChanges]] = defaultdict(list)
    table = origins[final.origin[next(iter(images))]].shape.name.fold() if images else None
    for stream, sent in _sent(final, origins, images).items():
        runs = _TableRuns([point for point in repeats.get(stream, ()) if point.table in {None, table}])
        for event in sent:
            runs.add(event)
        for change, found in runs.of_change.items():
            by_change[change] += found
    counted: dict[Event, list[int]] = defaultdict(list)
    # The earliest is named: what follows it may be counted once it is settled.
    for _, found in sorted(by_change.items(), key=_commit_ts):
        events = max(found, key=lambda run: len(run.events)).events
        if equal_rows is not EqualRows.ALL and len(events) > (certain := max(run.certain for run in found)):
            if equal_rows is EqualRows.STOP:
                raise _ambiguous(final, origins, events)
            events = events[:certain]
        for row in (row for event in events for row in event.rows):
            counted[final.commit_ts[row], final.kind[row], images[row]].append(row)
    return counted


def _commit_ts(item: tuple[Change, object]) -> int:
    return item[0][0]


def _sent(final: FinalRows, origins: Sequence[Origin], images: Mapping[int, Image]) -> dict[Stream, list[_SentChange]]:
    """Return the events of each stream in the order of their offsets."""
    places: dict[tuple[Stream, int, int], dict[int, int]] = defaultdict(dict)
    for row in images:
        # A range that was read again is in the cache twice until its first copy is released.
        places[origins[final.origin[row]].stream, final.offset[row], final.index[row]].setdefault(final.kind[row], row)
    by_stream: dict[Stream, list[_SentChange]] = defaultdict(list)
    for (stream, offset, _), kinds in sorted(places.items()):
        rows = tuple(row for _, row in sorted(kinds.items()))
        before, after = (images[kinds[kind]] if kind in kinds else None for kind in RowKind)
        by_stream[stream].append(_SentChange(offset, (final.commit_ts[rows[0]], before, after), rows))
    return by_stream


def _ambiguous(final: FinalRows, origins: Sequence[Origin], events: Sequence[_SentChange]) -> NeedsOperator:
    return NeedsOperator(
        "equal rows of one transaction came in several records: they are real, or the producer has sent them again",
        remedy=EQUAL_REMEDY,
        kind="equal_rows",
        rows=len(events),
        first_offset=events[0].offset,
        **final.place(events[-1].rows[0], origins).facts,
    )


class _TableRuns:
    """The runs of one stream. ``of_change``: those of each kind of equal events."""

    def __init__(self, points: Sequence[RepeatPoint]) -> None:
        self._points = points
        self._passed = self._returns = 0
        self._promised = self._latest = -1
        self.of_change: dict[Change, list[_EqualChanges]] = {}

    def add(self, event: _SentChange) -> None:
        """Take the next event, if it counts."""
        commit_ts = event.change[0]
        self._pass_points(event.offset)
        is_repeated = is_behind_promise(Ts(commit_ts), Ts(self._promised))
        if (event.change in self.of_change or is_repeated) and not may_follow(commit_ts, self._latest):
            self._go_back()
        self._latest = max(self._latest, commit_ts)
        if is_repeated:
            return
        runs = self.of_change.setdefault(event.change, [])
        if not runs or self._is_over(runs[-1], commit_ts):
            runs.append(_EqualChanges((self._returns, self._promised)))
        runs[-1].state = self._returns, self._promised
        runs[-1].events.append(event)

    def _is_over(self, run: _EqualChanges, commit_ts: int) -> bool:
        returns, promised = run.state
        return returns != self._returns or (repeats_from(self._promised, commit_ts) and not repeats_from(promised, commit_ts))

    def _go_back(self) -> None:
        self._returns += 1
        self._latest = -1

    def _pass_points(self, offset: int) -> None:
        while self._passed < len(self._points) and self._points[self._passed].offset <= offset:
            point = self._points[self._passed]
            self._passed += 1
            self._promised = max(self._promised, point.ts)
            if point.is_return:
                self._go_back()


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
