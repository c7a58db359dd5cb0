"""Tables without a key, under ``keyless = "best_effort"``: their rows are a multiset, and a deleted row is found by all of its columns.

No version supersedes another: each row event adds one row of its image or removes one, and only the difference is written. Adding
and removing the same image in one segment cancels out, so each image is either deleted or inserted, and all deletes may come first.

Equal rows of one commit_ts may be real, or one row that the producer has sent again. No number on the wire says which. A producer that goes
back sends everything again from there, in the same order (open_protocol.md 3.8). So rows are counted per run, which is what a producer has
sent between two points where it went back, and the greatest count holds: a run may lack rows, and none has too many.

What is counted are events, an update with both of its rows. Equal events are in one partition whatever the dispatcher is, unless the number
of partitions changes: then they were sent again into another one, or sent on both sides of the change, and nothing tells which. The halves
of updates are not: under the dispatcher ``columns`` two equal rows that become different ones are sent to two partitions.

A run of one stream ends

* at a ``RepeatPoint`` of the listeners: a row of its table that is sent again after it was applied; and a promise, for rows at its ts.
  (Rows below a promise have all been sent before it: they do not count at all.) A promise that steps back ends a run only if the operator
  says that equal rows are real: new rows may have come between the position where the producer went back and its next promise.
* at a row that was there before and is older than the one before it: what one node sends of one table is in the order of commit_ts.
  But not for a commit that comes again before the rows between: ``TableRuns``.

A producer that repeats one transaction of a partition at once, before any promise, shows none of this; under ``columns`` that is
common, since a partition has few rows of a table. But what it repeats begins with the transaction's first row. So equal rows are real

* in one record, which is sent by one run;
* in several, if the first row of their commit came once, or all of the commit in each of several runs alike. Records that are equal do not
  count: a client that got no answer stores its last ones again, from whichever row on.

Others stop the applier before anything of their commit is written, unless the operator says which they are (``EqualRowsRule``).

After a change of the number of partitions the first row may come again in another one. It may be below a promise there, and then it is not
read. So up to ``Repeats.unordered_ts`` neither an older row nor the first one proves anything: only promises and records do.

The physical partitions of one table keep no order among one another, and may move alone. There an older row proves nothing, nor does the
first one: only promises and records do. A table that is divided among nodes by its key ranges is the same, but its
rows do not show it: docs/tables.md forbids that.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from applier.model.chunk import Chunk
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import FoldedName, RowKind
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Stream, Ts
from applier.model.range_report import RepeatPoint
from applier.model.segment import first_beyond, is_behind_promise, is_beyond, may_follow, repeats_from
from applier.planner.column_match import Origin
from applier.planner.final_rows import FinalRows
from applier.planner.table_check import fits

# --- equal rows ------------------------------------------------------------------------------------------------------
# Equal rows of one transaction that may be one row, in tables without a key: who decides what they are, and the error that asks.
#
# The operator decides, table by table; what the wire shows is counted in ``keyless``. The error names the earliest commit of its segment,
# and all tables in which that commit has such rows: of an operator who decides about these, nothing else is guessed.

EQUAL_REMEDY: Final = Remedy(
    "planner.name-equal-rows-tables",
    'Name the tables under [sink.equal_rows_of]: "all" if upstream\'s transaction has so many equal rows, "once" if the producer has sent '
    'them again. If you cannot tell, set "once", run `applier catchup --until-ts …`, write these tables again at that checkpoint, '
    "and remove the setting: `applier docs tables`",
)


class EqualRows(StrEnum):
    """What happens to equal rows of one transaction in several records, which may be one row that was sent again."""

    STOP = "stop"
    ONCE = "once"
    """They were sent again: the rows of one record count."""
    ALL = "all"
    """They are real."""


@dataclass(frozen=True, slots=True)
class EqualRowsRule:
    """``patterns`` of tables as in ``Acceptance``: the first that fits decides; ``otherwise``: of all other tables."""

    otherwise: EqualRows = EqualRows.STOP
    patterns: tuple[tuple[str, EqualRows], ...] = ()

    def of(self, table: FoldedName) -> EqualRows:
        """Return what happens to equal rows of a table."""
        return next((choice for pattern, choice in self.patterns if fits(pattern, table)), self.otherwise)


ALL_REAL: Final = EqualRowsRule(EqualRows.ALL)


class AmbiguousRows(NeedsOperator):
    """Equal rows may be one row that was sent again, and the operator has not decided."""

    @classmethod
    def of(cls, position: Mapping[str, Any], **facts: Any) -> "AmbiguousRows":
        """Make the error of one table; ``position``: the facts of a row."""
        return cls(
            "equal rows of one transaction came in several records: they are real, or the producer has sent them again",
            remedy=EQUAL_REMEDY,
            kind=FailureKind.EQUAL_ROWS,
            **facts,
            **position,
            tables=position["table"],
        )


def earliest(errors: Iterable[AmbiguousRows]) -> AmbiguousRows:
    """Return the error about the earliest commit, with the tables of all errors about it."""
    # The earliest first: what follows it may be counted once it is settled.
    found = sorted(errors, key=lambda error: (error.facts["commit_ts"], error.facts["tables"]))
    first = found[0]
    of_commit = (error.facts["tables"] for error in found if error.facts["commit_ts"] == first.facts["commit_ts"])
    first.facts["tables"] = ", ".join(dict.fromkeys(table for tables in of_commit for table in tables.split(", ")))
    return first


# --- keyless runs ----------------------------------------------------------------------------------------------------
# What one producer has sent of a table without a key between two points where it went back: the runs by which ``keyless`` counts.
#
# Two nodes may send one table for a while: one that was replaced, and does not know it, beside the one that sends again. What a node sends
# again comes without a gap. So a commit that comes again does not begin a run where rows before it have not come again: the other node
# sends it, and equal rows in it may be real. Where nothing lies between the row with which a node has begun and the commit, nothing shows
# this.

Image: TypeAlias = tuple[str, ...]
"""The literals of a whole row. As texts, 0.0 and -0.0 differ, and rows of two producers that differ in the order of columns do not."""
Change: TypeAlias = tuple[int, Image | None, Image | None]
"""commit_ts, and the row before and after an event: events that agree in all three are equal."""


class SentChange(NamedTuple):
    """One event, with its rows: that before it and that after it, if it has them."""

    offset: int
    change: Change
    rows: tuple[int, ...]


@dataclass(slots=True)
class CommitRun:
    """The events of one commit in one run of one stream. ``returns``: how often the producer had gone back; ``promised``: and promised."""

    returns: int
    promised: int = -1
    events: list[SentChange] = field(default_factory=list)

    @property
    def first(self) -> Change:
        """The change that it begins with."""
        return self.events[0].change

    def records(self) -> list[tuple[Change, ...]]:
        """Return its changes, record by record."""
        by_record: dict[int, list[Change]] = defaultdict(list)
        for event in self.events:
            by_record[event.offset].append(event.change)
        return [tuple(changes) for changes in by_record.values()]


def is_ordered(commit_ts: int, ordered_from: int | None) -> bool:
    """Whether the order of the rows of a commit proves anything; ``ordered_from``: that of all commits beyond it does; None: of none."""
    return ordered_from is not None and is_beyond(Ts(commit_ts), Ts(ordered_from))


class TableRuns:
    """The runs of one stream. ``of_commit``: the runs of each commit_ts."""

    def __init__(self, points: Sequence[RepeatPoint], returns: AbstractSet[FoldedName | None], ordered_from: int | None) -> None:
        """``returns``: the tables (None: all) whose points show that the producer went back. ``ordered_from``: as in ``is_ordered``."""
        self._points, self._returning, self._ordered_from = points, returns, ordered_from
        self._passed = self._returns = 0
        self._promised = self._latest = -1
        self._seen: dict[Change, int] = {}
        """Change -> how often the producer had gone back when it came last."""
        self._sorted: list[Change] = []
        """The changes that were seen, by commit_ts. Up to ``_checked`` they came again since the producer has gone back."""
        self._checked = 0
        self.of_commit: dict[int, list[CommitRun]] = defaultdict(list)

    def add(self, event: SentChange) -> None:
        """Take the next event, if it counts."""
        commit_ts = event.change[0]
        self._pass_points(event.offset)
        is_repeated = is_behind_promise(Ts(commit_ts), Ts(self._promised))
        if self._ordered_from is not None and (event.change in self._seen or is_repeated) and not may_follow(commit_ts, self._latest):
            self._go_back(commit_ts)
        self._latest = max(self._latest, commit_ts)
        if event.change in self._seen:
            self._seen[event.change] = self._returns
        if is_repeated:
            return
        if event.change not in self._seen:
            self._seen[event.change] = self._returns
            self._sorted.insert(first_beyond(self._sorted, Ts(commit_ts), _commit_ts), event.change)
        runs = self.of_commit[commit_ts]
        if not runs or (self._may_begin(event, runs) and self._is_over(runs[-1], commit_ts)):
            runs.append(CommitRun(self._returns))
        runs[-1].promised = self._promised
        runs[-1].events.append(event)

    @staticmethod
    def _may_begin(event: SentChange, runs: Sequence[CommitRun]) -> bool:
        # Any other beginning is the commit's rest, from a node that continues beside the one that sends again. A record is of one run.
        return event.change == runs[0].first and event.offset != runs[-1].events[-1].offset

    def _is_over(self, run: CommitRun, commit_ts: int) -> bool:
        has_returned = run.returns != self._returns and is_ordered(commit_ts, self._ordered_from) and not self._lacks_rows(commit_ts)
        return has_returned or (repeats_from(self._promised, commit_ts) and not repeats_from(run.promised, commit_ts))

    def _lacks_rows(self, commit_ts: int) -> bool:
        """Whether rows between the producer's return and a commit have not come again: then another node sends the commit."""
        # Rows that the operator calls real are not doubted.
        if None in self._returning:
            return False
        while self._checked < len(self._sorted) and not may_follow(_commit_ts(change := self._sorted[self._checked]), commit_ts):
            if self._seen[change] != self._returns:
                return True
            self._checked += 1
        return False

    def _go_back(self, to_ts: int) -> None:
        self._returns += 1
        self._latest = -1
        self._checked = first_beyond(self._sorted, Ts(to_ts), _commit_ts)

    def _pass_points(self, offset: int) -> None:
        while self._passed < len(self._points) and self._points[self._passed].offset <= offset:
            point = self._points[self._passed]
            self._passed += 1
            self._promised = max(self._promised, point.ts)
            if point.is_return and point.table in self._returning:
                self._go_back(-1)


def _commit_ts(change: Change) -> Ts:
    return Ts(change[0])


# --- keyless ---------------------------------------------------------------------------------------------------------


Event: TypeAlias = tuple[int, int, Image]
"""commit_ts, kind and image: rows that agree in all three are equal."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """``points``: of each stream those after which its rows are repeated, in the order of their offsets."""

    points: Mapping[Stream, Sequence[RepeatPoint]] = field(default_factory=dict)
    unordered_ts: Ts = NO_TS
    """Up to there rows may have come again in another partition, because their number has changed."""


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


def counted_rows(
    final: FinalRows,
    origins: Sequence[Origin],
    images: Mapping[int, Image],
    repeats: Repeats,
    equal_rows: EqualRows = EqualRows.ALL,
) -> dict[Event, list[int]]:
    """Return the rows that count, of each kind of equal ones together. AmbiguousRows where that is not certain."""
    # Tables of upstream that are routed into one are sent, and sent again, each for itself.
    by_table: dict[FoldedName, dict[int, Image]] = defaultdict(dict)
    for row, image in images.items():
        by_table[origins[final.origin[row]].shape.upstream_name.fold()][row] = image
    counted: dict[Event, list[int]] = defaultdict(list)
    for of_table in by_table.values():
        for event, row in _counted_of_table(final, origins, of_table, repeats, equal_rows):
            counted[event].append(row)
    return counted


def _counted_of_table(
    final: FinalRows, origins: Sequence[Origin], images: Mapping[int, Image], repeats: Repeats, equal_rows: EqualRows
) -> Iterator[tuple[Event, int]]:
    table = origins[final.origin[next(iter(images))]].shape.name.fold()
    is_partitioned = any(origins[origin].shape.partitioned for origin in {final.origin[row] for row in images})
    # Of rows that the operator calls real there is no proof to doubt.
    ordered_from = None if is_partitioned else NO_TS if equal_rows is EqualRows.ALL else repeats.unordered_ts
    runs: dict[int, list[list[CommitRun]]] = defaultdict(list)
    streams_of: dict[Change, set[Stream]] = defaultdict(set)
    # A promise that steps back comes somewhere behind the position where the producer went back: it does not prove that equal rows are one.
    returns: set[FoldedName | None] = set() if is_partitioned else {table}
    if equal_rows is EqualRows.ALL:
        returns.add(None)
    for stream, sent in _sent(final, origins, images).items():
        of_stream = TableRuns(repeats.points.get(stream, ()), returns, ordered_from)
        for event in sent:
            of_stream.add(event)
            streams_of[event.change].add(stream)
        for commit_ts, found in of_stream.of_commit.items():
            runs[commit_ts].append(found)
    # The earliest is named: what follows it may be counted once it is settled.
    for commit_ts, of_streams in sorted(runs.items()):
        certain = _certain(of_streams, streams_of, is_ordered=is_ordered(commit_ts, ordered_from))
        for change, in_streams in _equal_events(of_streams).items():
            events = max(in_streams, key=len)
            number = sum(map(len, in_streams))
            if equal_rows is not EqualRows.ALL and number > (real := certain.get(change, 1)):
                if equal_rows is EqualRows.STOP:
                    raise AmbiguousRows.of(final.position(events[-1].rows[0], origins).facts, rows=number, first_offset=events[0].offset)
                events = events[:real]
            for row in (row for event in events for row in event.rows):
                yield (final.commit_ts[row], final.kind[row], images[row]), row


def _equal_events(of_streams: Iterable[Sequence[CommitRun]]) -> dict[Change, list[list[SentChange]]]:
    """Return the equal events of one commit: from each stream, the run with the most of them."""
    found: dict[Change, list[list[SentChange]]] = defaultdict(list)
    for runs in of_streams:
        most: dict[Change, list[SentChange]] = {}
        for run in runs:
            equal: dict[Change, list[SentChange]] = defaultdict(list)
            for event in run.events:
                equal[event.change].append(event)
            most |= {change: events for change, events in equal.items() if len(events) > len(most.get(change, ()))}
        for change, events in most.items():
            found[change].append(events)
    return found


def _certain(
    of_streams: Iterable[Sequence[CommitRun]], streams_of: Mapping[Change, AbstractSet[Stream]], *, is_ordered: bool
) -> dict[Change, int]:
    """Return how many of the equal events of one commit are certainly real, where there is more than one."""
    certain: dict[Change, int] = {}
    for runs in of_streams:
        # Most commits have no equal rows.
        if all(len({event.change for event in run.events}) == len(run.events) for run in runs):
            continue
        records = [run.records() for run in runs]
        found = [Counter(changes) for of_run in records for changes in of_run]
        if is_ordered and len(streams_of[runs[0].first]) == 1 and _is_sent_once(records, runs[0].first):
            # A client that got no answer stores its last records again, as they were.
            found.append(Counter(change for changes in set(records[0]) for change in changes))
        for change, number in (item for counter in found for item in counter.items()):
            certain[change] = max(number, certain.get(change, 1))
    return certain


def _is_sent_once(runs: Sequence[Sequence[tuple[Change, ...]]], first: Change) -> bool:
    """Whether each of some runs, given record by record, holds no event twice that came once."""
    # What is sent again begins with the first row of its commit. So no run holds a repetition in which that is in one record; but of two
    # runs that differ the second may hold what was left of the first, from a node that did not know that it was replaced.
    changes = [[change for record in records for change in record] for records in runs]
    return all(sum(first in record for record in records) == 1 for records in runs) and all(other == changes[0] for other in changes)


def _sent(final: FinalRows, origins: Sequence[Origin], images: Mapping[int, Image]) -> dict[Stream, list[SentChange]]:
    """Return the events of each stream in the order of their offsets."""
    positions: dict[tuple[Stream, int, int], dict[int, int]] = defaultdict(dict)
    for row in images:
        # A range that was read again is in the cache twice until its first copy is released.
        positions[origins[final.origin[row]].stream, final.offset[row], final.index[row]].setdefault(final.kind[row], row)
    by_stream: dict[Stream, list[SentChange]] = defaultdict(list)
    for (stream, offset, _), kinds in sorted(positions.items()):
        rows = tuple(row for _, row in sorted(kinds.items()))
        before, after = (images[kinds[kind]] if kind in kinds else None for kind in RowKind)
        by_stream[stream].append(SentChange(offset, (final.commit_ts[rows[0]], before, after), rows))
    return by_stream


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
