"""The cached ranges, by the listeners' reports. The rows are on the executors; nothing here is per row.

``Sweep`` tells which ranges have rows of a segment.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import takewhile
from operator import attrgetter
from typing import Final, NamedTuple

from applier.coordinator.step import Segment
from applier.model.events import FoldedName, TableName
from applier.model.position import Stream, Ts
from applier.model.range_report import RangeId, RangeReport, RowCount, TableRows
from applier.model.segment import SegmentWindow, first_beyond, is_beyond, is_spent, lies_in_segment, may_hold, overlaps_segment

# --- sweep -----------------------------------------------------------------------------------------------------------
# A sweep: one pass over the cached ranges, in the order of time.
#
# A range is opened when the sweep reaches its first commit_ts, and so is each table in it; both are closed when the sweep leaves their last
# behind. What a segment costs depends on the ranges that are open at its time, not on all that are cached: ten thousand DDLs are ten
# thousand steps. The sweep never steps back: it stands where the last segment ends that was handed out ahead of the checkpoint. At the
# checkpoint itself the index begins, since what is spent is released: the group there, which is seldom applied again, has a new sweep.


# --- index -----------------------------------------------------------------------------------------------------------


class IndexedRange(NamedTuple):
    """A range, by ``ts``. ``number``: of its report, since a range may be read again under the same name."""

    ts: Ts
    number: int
    name: RangeId


_TS: Final = attrgetter("ts")


BEFORE_ALL: Final = Ts(-1)


class RangeIndex:
    """Ranges in the order of one of their timestamps. A walker remembers a timestamp: it has seen everything before."""

    # A sorted list, and no tree: to insert moves pointers, 5 us of them among 20,000 ranges, which is less than a report costs.
    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[IndexedRange] = []

    def __iter__(self) -> Iterator[IndexedRange]:
        """Yield the ranges, the earliest first."""
        return iter(self._entries)

    def add(self, ts: Ts, number: int, name: RangeId) -> None:
        """Add a range."""
        insort(self._entries, IndexedRange(ts, number, name))

    def remove(self, ts: Ts, number: int, name: RangeId) -> None:
        """Remove a range."""
        del self._entries[bisect_left(self._entries, IndexedRange(ts, number, name))]

    def between(self, after_ts: Ts, upto_ts: Ts) -> list[IndexedRange]:
        """Return the ranges whose timestamp is above ``after_ts``, up to ``upto_ts``."""
        return self._entries[first_beyond(self._entries, after_ts, _TS) : first_beyond(self._entries, upto_ts, _TS)]

    def first_after(self, ts: Ts) -> IndexedRange | None:
        """Return the first range whose timestamp is above ``ts``."""
        at = first_beyond(self._entries, ts, _TS)
        return self._entries[at] if at < len(self._entries) else None


# --- open range ------------------------------------------------------------------------------------------------------
# A cached range that a sweep has reached: its tables, and how many of its rows lie where.
#
# A report counts rows at up to 64 points of its range, so that it stays small. Between two points the number is an estimate from above.


class OpenRange:
    """The ``number``-th report. Its tables wait, in the order of their first commit_ts, until a sweep reaches them."""

    __slots__ = ("_open", "_waiting", "number", "report")

    def __init__(self, number: int, report: RangeReport) -> None:
        self.number, self.report = number, report
        # Sorted when they are asked for: of a range that lies in one segment they are not.
        self._waiting: list[TableRows] | None = None
        self._open: list[TableRows] = []

    def tables(self, after_ts: Ts, upto_ts: Ts) -> list[TableRows]:
        """Return the tables that may have rows between two commit_ts (inclusive), and perhaps others. ``after_ts`` may not step back."""
        if self._waiting is None:
            self._waiting = sorted(self.report.tables, key=lambda table: table.min_ts, reverse=True)
        while self._waiting and not is_beyond(self._waiting[-1].min_ts, upto_ts):
            self._open.append(self._waiting.pop())
        # A new list only where one is spent: most calls change nothing.
        if any(is_spent(table.max_ts, after_ts) for table in self._open):
            self._open = [table for table in self._open if not is_spent(table.max_ts, after_ts)]
        return self._open

    def rows_between(self, after_ts: Ts, upto_ts: Ts) -> int:
        """Return the most rows that a segment can have."""
        report = self.report
        if lies_in_segment(report.min_ts, report.max_ts, after_ts, upto_ts):
            return report.rows
        if not overlaps_segment(report.min_ts, report.max_ts, after_ts, upto_ts):
            return 0
        counts = report.row_counts
        at = first_beyond(counts, upto_ts, _TS)
        if at == len(counts):
            most = report.rows
        elif at and counts[at - 1].ts == upto_ts:
            most = counts[at - 1].rows
        else:
            # A point is the commit_ts of a row, and this point is after the segment: so is that row.
            most = counts[at].rows - 1
        return most - self._counted(after_ts)

    def rows_at(self, ts: Ts) -> int:
        """Return the most rows that can have exactly the timestamp ``ts``."""
        return self.rows_between(Ts(ts - 1), ts)

    def counts(self, after_ts: Ts) -> Iterator[RowCount]:
        """Yield the points above a commit_ts at which rows are counted, each with the rows since the point before it."""
        counts = self.report.row_counts
        for at in range(first_beyond(counts, after_ts, _TS), len(counts)):
            yield RowCount(counts[at].ts, counts[at].rows - (counts[at - 1].rows if at else 0))

    def _counted(self, ts: Ts) -> int:
        """Return how many rows have a commit_ts <= ``ts`` by the counts, at least."""
        at = first_beyond(self.report.row_counts, ts, _TS)
        return self.report.row_counts[at - 1].rows if at else 0


# --- sweep -----------------------------------------------------------------------------------------------------------


class Sweep:
    """Walks over ``ranges``, which are the cache's: the number of each report, and the report. ``starts``: by their first commit_ts."""

    __slots__ = ("_open", "_ranges", "_reached_ts", "_starts")

    def __init__(self, ranges: Mapping[RangeId, tuple[int, RangeReport]], starts: RangeIndex) -> None:
        self._ranges, self._starts, self._reached_ts = ranges, starts, BEFORE_ALL
        self._open: dict[RangeId, OpenRange] = {}

    def add(self, number: int, report: RangeReport) -> None:
        """Add a range. It is open if it begins before the point that the sweep has reached."""
        if not is_beyond(report.min_ts, self._reached_ts):
            self._open[report.range] = OpenRange(number, report)

    def drop(self, name: RangeId) -> None:
        """Remove a range."""
        self._open.pop(name, None)

    def restart(self) -> None:
        """Restart with all cached ranges."""
        self._open.clear()
        self._reached_ts = BEFORE_ALL

    def has_rows(self, after_ts: Ts, upto_ts: Ts) -> bool:
        """Whether any row may be in a segment."""
        # Range by range, as in ``_counted``: a DDL far ahead must not open all that lies before it.
        opened = self._opened(after_ts, after_ts)
        while True:
            if any(one.rows_between(after_ts, upto_ts) and _wanted(one, after_ts, upto_ts, None) for one in opened):
                return True
            if (following := self._starts.first_after(self._reached_ts)) is None or is_beyond(following.ts, upto_ts):
                return False
            opened = self._reach(following.ts)

    def select(self, window: SegmentWindow) -> Segment:
        """Choose what a segment needs."""
        after_ts, upto_ts, settled = window.after_ts, window.upto_ts, window.settled_tables if window.again else None
        ranges, rows = [], 0
        tables: dict[tuple[TableName, tuple[str, ...] | None, tuple[str, ...], TableName | None], TableRows] = {}
        for opened in self._opened(after_ts, upto_ts):
            report = opened.report
            # Estimates, always from above: a range that may hold a row is read, and the planner looks at each row's commit_ts.
            most = opened.rows_between(after_ts, upto_ts) + (opened.rows_at(after_ts) if settled is not None else 0)
            mine = _wanted(opened, after_ts, upto_ts, settled) if most else []
            if mine:
                ranges.append(report.range)
                rows += most
                for table in mine:
                    # One entry per reported key: the planner must see that the rows of a table disagree about it (``sink_key``).
                    key = (table.name, table.handle_key, table.bytes_key, table.routed_from)
                    tables[key] = tables[key].joined(table) if key in tables else table
        return Segment(window=window, ranges=tuple(ranges), tables=tuple(tables.values()), rows=rows)

    def holds(self, rows: int, after_ts: Ts, upto_ts: Ts) -> bool:
        """Whether there may be at least so many rows between two timestamps."""
        found = 0
        for _, counted in self._counted(after_ts, upto_ts):
            found += counted
            if found >= rows:
                return True
        return False

    def cut(self, after_ts: Ts, upto_ts: Ts, most_rows: int) -> Ts:
        """Return where a segment should end so that it has about ``most_rows``: at ``upto_ts`` or before, never inside one commit_ts.

        Counts are known at up to 64 points per range, so the estimate may be off by a 64th of each range.
        """
        total, end = 0, None
        for ts, rows in self._counted(after_ts, upto_ts):
            # An upstream transaction that is larger than ``most_rows`` stays whole: in two it would be visible in two steps.
            if end is not None and total + rows > most_rows:
                return end
            total, end = total + rows, ts
        return upto_ts

    def _counted(self, after_ts: Ts, upto_ts: Ts) -> Iterator[tuple[Ts, int]]:
        """Yield the points in a segment at which rows are counted, with the rows of all ranges since the point before."""
        # Ranges are opened one by one as they are reached: a segment that looked at all that the window holds after it would make a
        # window of many segments quadratic.
        points: list[tuple[Ts, int, int, Iterator[RowCount]]] = []
        for opened in self._opened(after_ts, after_ts):
            _push(points, opened.number, opened.counts(after_ts))
        while True:
            following = self._starts.first_after(self._reached_ts)
            if not points and following is None:
                return
            reached_ts = points[0][0] if following is None or points else following.ts
            if is_beyond(reached_ts, upto_ts):
                return
            for opened in self._reach(reached_ts):
                _push(points, opened.number, opened.counts(after_ts))
            if not points:  # none has rows behind ``after_ts``
                continue
            ts, rows = points[0][0], 0
            while points and points[0][0] == ts:
                _, number, counted, counts = heappop(points)
                rows += counted
                _push(points, number, counts)
            yield ts, rows

    def _reach(self, upto_ts: Ts) -> list[OpenRange]:
        """Open the ranges that begin at or before ``upto_ts``; return the newly opened ones."""
        reached = []
        for _, number, name in self._starts.between(self._reached_ts, upto_ts):
            self._open[name] = OpenRange(number, self._ranges[name][1])
            reached.append(self._open[name])
        self._reached_ts = max(self._reached_ts, upto_ts)
        return reached

    def _opened(self, after_ts: Ts, upto_ts: Ts) -> list[OpenRange]:
        """Return the ranges that may hold rows between two commit_ts (inclusive), and perhaps others; ``after_ts`` never steps back."""
        self._reach(upto_ts)
        for name in [name for name, opened in self._open.items() if is_spent(opened.report.max_ts, after_ts)]:
            del self._open[name]
        return list(self._open.values())


def _push(points: list[tuple[Ts, int, int, Iterator[RowCount]]], number: int, counts: Iterator[RowCount]) -> None:
    """Put the next point of a range among the points of the others."""
    for ts, rows in counts:
        heappush(points, (ts, number, rows, counts))
        return


def _wanted(opened: OpenRange, after_ts: Ts, upto_ts: Ts, settled: frozenset[FoldedName] | None) -> Sequence[TableRows]:
    """Return the tables of a range that a segment needs."""
    report = opened.report
    # The usual case of a live feed: the whole range lies in it.
    if lies_in_segment(report.min_ts, report.max_ts, after_ts, upto_ts):
        return report.tables
    return [
        table
        for table in opened.tables(after_ts, upto_ts)
        if overlaps_segment(table.min_ts, table.max_ts, after_ts, upto_ts) or (settled is not None and _is_at(after_ts, table, settled))
    ]


def _is_at(ts: Ts, table: TableRows, settled: frozenset[FoldedName]) -> bool:
    """Whether a table may have rows at the checkpoint that may be applied again: not without a key, not after a DDL there."""
    return bool(table.identifying) and may_hold(ts, table.min_ts, table.max_ts) and not table.name.fold().is_covered(settled)


# --- batch bytes -----------------------------------------------------------------------------------------------------
# Batches: what one plan had read is cached together, and freed together.
#
# The chunks of one listening job are one block of memory to the runner. It is freed when the last of its ranges is released, so until then
# all of it counts.


class _Batch:
    """The ranges of one plan that are read or cached, and the bytes of the read ones."""

    __slots__ = ("bytes", "ranges")

    def __init__(self, ranges: Iterable[RangeId]) -> None:
        self.ranges = set(ranges)
        self.bytes = 0


class BatchBytes:
    """The batches that are not free. ``bytes``: what they have cached."""

    __slots__ = ("_of", "bytes")

    def __init__(self) -> None:
        self._of: dict[RangeId, _Batch] = {}
        self.bytes = 0

    def open(self, ranges: Iterable[RangeId]) -> None:
        """Add the ranges of a plan."""
        batch = _Batch(ranges)
        self._of.update(dict.fromkeys(batch.ranges, batch))

    def add(self, name: RangeId, size: int) -> None:
        """Record that a range was read."""
        self._of[name].bytes += size
        self.bytes += size

    def release(self, name: RangeId) -> None:
        """Record that a range was released, or could not be read."""
        batch = self._of.pop(name)
        batch.ranges.remove(name)
        if not batch.ranges:
            self.bytes -= batch.bytes


# --- closed bytes ----------------------------------------------------------------------------------------------------


class ClosedBytes:
    """``beyond``: bytes of the ranges that may hold rows above W; ``closed``: of ranges that hold none."""

    __slots__ = ("_closed_ts", "_ends", "_ranges", "beyond", "closed")

    def __init__(self, ranges: Mapping[RangeId, tuple[int, RangeReport]], ends: RangeIndex) -> None:
        self._ranges, self._ends, self._closed_ts = ranges, ends, BEFORE_ALL
        self.beyond = self.closed = 0

    def add(self, report: RangeReport) -> None:
        """Count a range."""
        self._count(report, report.bytes)

    def drop(self, report: RangeReport) -> None:
        """Stop counting a range."""
        self._count(report, -report.bytes)

    def _count(self, report: RangeReport, size: int) -> None:
        if is_beyond(report.max_ts, self._closed_ts):
            self.beyond += size
        else:
            self.closed += size

    def close(self, watermark: Ts) -> None:
        """Record W. Where it steps back for a new partition, what was closed still counts as closed."""
        size = sum(self._ranges[end.name][1].bytes for end in self._ends.between(self._closed_ts, watermark))
        self.beyond, self.closed = self.beyond - size, self.closed + size
        self._closed_ts = max(self._closed_ts, watermark)


# --- cache -----------------------------------------------------------------------------------------------------------


class Cache:
    """All ranges that listeners hold, numbered in the order of their reports."""

    __slots__ = (
        "_batches",
        "_empty",
        "_ends",
        "_names",
        "_number",
        "_pinned",
        "_ranges",
        "_starts",
        "ahead",
        "bytes_of",
        "closed",
        "rows",
    )

    def __init__(self) -> None:
        self._number = 0
        self._ranges: dict[RangeId, tuple[int, RangeReport]] = {}
        # Released with the next step: no segment needs them, but the runner keeps every range until it is released.
        self._empty: dict[RangeId, None] = {}
        self._names: dict[Stream, set[RangeId]] = {}
        # By their first and by their last commit_ts.
        self._starts, self._ends = RangeIndex(), RangeIndex()
        self.ahead = Sweep(self._ranges, self._starts)
        self._pinned: Counter[RangeId] = Counter()
        self._batches = BatchBytes()
        self.bytes_of: Counter[Stream] = Counter()
        self.closed = ClosedBytes(self._ranges, self._ends)
        self.rows = 0
        """Rows of all ranges."""

    @property
    def number(self) -> int:
        """The number of the latest report; 0 before the first."""
        return self._number

    @property
    def bytes(self) -> int:
        """Size of all cached ranges, and of batches that cannot be freed yet."""
        return self._batches.bytes

    def open_batch(self, ranges: Iterable[RangeId]) -> None:
        """Record which ranges are read, cached and freed together."""
        self._batches.open(ranges)

    def give_up(self, name: RangeId) -> None:
        """Record that a range could not be read."""
        self._batches.release(name)

    def ranges_of(self, stream: Stream) -> int:
        """How many ranges with rows a stream has."""
        return len(self._names.get(stream, ()))

    def add(self, report: RangeReport) -> None:
        """Add a range. A range without rows can be released at once."""
        self._number += 1
        self._batches.add(report.range, report.bytes)
        if not report.rows:
            self._empty[report.range] = None
            return
        self._keep(self._number, report)

    def _keep(self, number: int, report: RangeReport) -> None:
        self._ranges[report.range] = (number, report)
        self.ahead.add(number, report)
        self._starts.add(report.min_ts, number, report.range)
        self._ends.add(report.max_ts, number, report.range)
        self._names.setdefault(report.range.stream, set()).add(report.range)
        self.bytes_of[report.range.stream] += report.bytes
        self.rows += report.rows
        self.closed.add(report)

    def _drop(self, name: RangeId) -> bool:
        """Drop a range, if it is there."""
        if name not in self._ranges:
            return False
        number, report = self._ranges.pop(name)
        self._starts.remove(report.min_ts, number, name)
        self._ends.remove(report.max_ts, number, name)
        self.bytes_of[name.stream] -= report.bytes
        self.rows -= report.rows
        self.closed.drop(report)
        self._names[name.stream].remove(name)
        self.ahead.drop(name)
        return True

    def report_of(self, name: RangeId) -> RangeReport:
        """Return the report of a range with rows."""
        return self._ranges[name][1]

    def let_go(self, names: Iterable[RangeId]) -> None:
        """Unpin ranges that no segment needs, whatever the checkpoint is: the next step releases them."""
        for name in names:
            if name not in self._pinned and self._drop(name):
                self._empty[name] = None

    def names_of(self, stream: Stream) -> list[RangeId]:
        """Name the ranges with rows of a stream, in offset order."""
        return sorted(self._names.get(stream, ()))

    def has_row_at(self, ts: Ts, since: int, settled: frozenset[FoldedName]) -> bool:
        """Whether a range that was reported after number ``since`` may hold a row at the checkpoint that must be applied with its group."""
        begun = self._starts.between(BEFORE_ALL, ts)
        return any(number > since and any(_is_at(ts, table, settled) for table in self.report_of(name).tables) for _, number, name in begun)

    def select_again(self, window: SegmentWindow) -> Segment:
        """Choose what a segment needs with the group at the checkpoint, where it begins."""
        return Sweep(self._ranges, self._starts).select(window)

    def read_rows(self, names: Iterable[RangeId]) -> int:
        """Rows of the cached ranges, replays included."""
        reports = (self._ranges[name][1] for name in names if name in self._ranges)
        return sum(report.rows + report.replays for report in reports)

    def refuse(self, merged: RangeReport) -> None:
        """Record a merged range that does not replace its pieces: it can be released at once."""
        self._batches.add(merged.range, merged.bytes)
        self._empty[merged.range] = None

    def replace(self, pieces: tuple[RangeId, ...], merged: RangeReport) -> None:
        """Replace the pieces by a merged range, and let them be released. If all were released already, so can the merged range be."""
        # The merged range takes the greatest number of its pieces: a latecomer in one of them stays one.
        numbers = [self._ranges[piece][0] for piece in pieces if piece in self._ranges]
        for piece in pieces:
            if self._drop(piece):
                self._empty[piece] = None
        if numbers and merged.rows:
            self._batches.add(merged.range, merged.bytes)
            self._keep(max(numbers), merged)
        else:
            self.refuse(merged)

    def pin(self, names: Iterable[RangeId]) -> None:
        """Pin ranges that a segment uses, until it is applied."""
        self._pinned.update(names)

    def unpin(self, names: Iterable[RangeId]) -> None:
        """Undo one ``pin``."""
        for name in names:
            self._pinned[name] -= 1
            if not self._pinned[name]:
                del self._pinned[name]

    def is_pinned(self, names: Iterable[RangeId]) -> bool:
        """Whether a segment that was cut names any of these ranges."""
        return any(name in self._pinned for name in names)

    def spent(self, checkpoint_ts: Ts) -> tuple[RangeId, ...]:
        """Name the ranges that can be released: their rows are below the checkpoint, or they have none."""
        return (*self._empty, *(end.name for end in takewhile(lambda end: is_spent(end.ts, checkpoint_ts), self._ends)))

    def is_leaving(self, name: RangeId) -> bool:
        """Whether the next step releases a range: until then its name is in use."""
        return name in self._empty

    def remove(self, ranges: tuple[RangeId, ...]) -> None:
        """Remove ranges that were released."""
        for name in ranges:
            self._empty.pop(name, None)
            self._drop(name)
            self._batches.release(name)
