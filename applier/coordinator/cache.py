"""The cached ranges: which rows lie in which, by the listeners' reports. The rows are on the executors; nothing here is per row.

The checkpoint only moves forward, so the ranges are swept once: a range is opened when a segment reaches its first commit_ts, and so is
each table in it; both are closed when the checkpoint passes their last. What a step costs depends on the ranges that are open at its time,
not on all that are cached: ten thousand DDLs are ten thousand steps (846 to 940 µs each on 16 partitions, tests/bench/scale_bench.py).
"""

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from applier.coordinator.open_range import OpenRange
from applier.model.events import FoldedName, TableName
from applier.model.position import Stream, Ts
from applier.model.range_report import RangeId, RangeReport, TableRows
from applier.model.segment import is_beyond, is_spent, may_hold, overlaps_segment


class Selection(NamedTuple):
    """What a segment may contain: ranges, tables with their handle keys, and the number of rows at most."""

    ranges: tuple[RangeId, ...]
    tables: tuple[TableRows, ...]
    rows: int


class Cache:
    """All ranges that listeners hold, numbered in the order of their reports."""

    __slots__ = ("_ahead", "_empty", "_ends", "_names", "_number", "_open", "_ranges", "_spent", "bytes", "bytes_of")

    def __init__(self) -> None:
        self._number = 0
        self._ranges: dict[RangeId, tuple[int, RangeReport]] = {}
        # Released with the next step: no segment needs them, but the runner keeps every range until it is released.
        self._empty: list[RangeId] = []
        self._spent: dict[RangeId, None] = {}
        self._names: dict[Stream, set[RangeId]] = {}
        self._open: dict[RangeId, OpenRange] = {}
        # Heaps of (first or last commit_ts, number, range). A range that was dropped is left in them until it comes up.
        self._ahead: list[tuple[Ts, int, RangeId]] = []
        self._ends: list[tuple[Ts, int, RangeId]] = []
        self.bytes = 0
        self.bytes_of: Counter[Stream] = Counter()

    @property
    def number(self) -> int:
        """The number of the latest report; 0 before the first."""
        return self._number

    def ranges_of(self, stream: Stream) -> int:
        """How many ranges with rows a stream has."""
        return len(self._names.get(stream, ()))

    def add(self, report: RangeReport) -> None:
        """Take a range in. A range without rows can be released at once."""
        self._number += 1
        if not report.rows:
            self._empty.append(report.range)
            return
        self._keep(self._number, report)

    def _keep(self, number: int, report: RangeReport) -> None:
        self._ranges[report.range] = (number, report)
        heappush(self._ahead, (report.min_ts, number, report.range))
        heappush(self._ends, (report.max_ts, number, report.range))
        self._names.setdefault(report.range.stream, set()).add(report.range)
        self._count(report, 1)

    def _drop(self, name: RangeId) -> bool:
        """Drop a range, if it is there."""
        if name not in self._ranges:
            return False
        self._count(self._ranges.pop(name)[1], -1)
        self._names[name.stream].remove(name)
        self._open.pop(name, None)
        self._spent.pop(name, None)
        return True

    def _is_here(self, name: RangeId, number: int) -> bool:
        return name in self._ranges and self._ranges[name][0] == number

    def _count(self, report: RangeReport, sign: int) -> None:
        stream = report.range.stream
        self.bytes += sign * report.bytes
        self.bytes_of[stream] += sign * report.bytes

    def names_of(self, stream: Stream) -> list[RangeId]:
        """Name the ranges with rows of a stream, in offset order."""
        return sorted(self._names.get(stream, ()))

    def read_rows(self, names: Iterable[RangeId]) -> int:
        """How many rows were read in those ranges that are still here, replays included."""
        reports = (self._ranges[name][1] for name in names if name in self._ranges)
        return sum(report.rows + report.replays for report in reports)

    def refuse(self, name: RangeId) -> None:
        """Take in a range that can be released at once."""
        self._empty.append(name)

    def replace(self, pieces: tuple[RangeId, ...], merged: RangeReport) -> None:
        """Replace the pieces by a merged range, and let them be released. If all were released already, so can the merged range be."""
        # The merged range takes the greatest number of its pieces: a latecomer in one of them stays one.
        numbers = [self._ranges[piece][0] for piece in pieces if piece in self._ranges]
        for piece in pieces:
            if self._drop(piece):
                self._empty.append(piece)
        if numbers and merged.rows:
            self._keep(max(numbers), merged)
        else:
            self._empty.append(merged.range)

    def spent(self, checkpoint_ts: Ts) -> tuple[RangeId, ...]:
        """Name the ranges that can be released: their rows are below the checkpoint, or they have none."""
        while self._ends and is_spent(self._ends[0][0], checkpoint_ts):
            _, number, name = heappop(self._ends)
            if self._is_here(name, number):
                self._spent[name] = None
        return (*self._empty, *self._spent)

    def remove(self, ranges: tuple[RangeId, ...]) -> None:
        """Forget ranges that were released."""
        released = frozenset(ranges)
        self._empty = [name for name in self._empty if name not in released]
        for name in ranges:
            self._drop(name)

    def has_latecomer(self, ts: Ts, since: int, settled: frozenset[FoldedName]) -> bool:
        """Whether a range that was reported after number ``since`` may hold a row at ``ts`` that must be applied with its group."""
        return any(
            opened.number > since
            and may_hold(ts, opened.report.min_ts, opened.report.max_ts)
            and any(_is_at(ts, table, settled) for table in opened.tables(ts, ts))
            for opened in self._opened(ts, ts)
        )

    def _opened(self, after_ts: Ts, upto_ts: Ts) -> list[OpenRange]:
        """Return the ranges that may hold rows between two commit_ts (inclusive); ``after_ts`` never steps back."""
        while self._ahead and not is_beyond(self._ahead[0][0], upto_ts):
            _, number, name = heappop(self._ahead)
            if self._is_here(name, number):
                self._open[name] = OpenRange(number, self._ranges[name][1])
        for name in [name for name, opened in self._open.items() if is_spent(opened.report.max_ts, after_ts)]:
            del self._open[name]
        return list(self._open.values())

    def select(self, after_ts: Ts, upto_ts: Ts, settled: frozenset[FoldedName] | None) -> Selection:
        """Choose what a segment needs; with ``settled`` (not None) the group at ``after_ts`` too, except for those tables."""
        ranges, rows = [], 0
        tables: dict[tuple[TableName, tuple[str, ...], tuple[str, ...]], TableRows] = {}
        for opened in self._opened(after_ts, upto_ts):
            report = opened.report
            # Estimates, always from above: a range that may hold a row is read, and the planner looks at each row's commit_ts.
            most = opened.rows_between(after_ts, upto_ts) + (opened.rows_at(after_ts) if settled is not None else 0)
            mine = [table for table in opened.tables(after_ts, upto_ts) if _is_wanted(table, after_ts, upto_ts, settled)] if most else []
            if mine:
                ranges.append(report.range)
                rows += most
                for table in mine:
                    # One entry per reported key: the planner must see that the rows of a table disagree about it (``sink_key``).
                    key = (table.name, table.handle_key, table.bytes_key)
                    tables[key] = _joined(tables[key], table) if key in tables else table
        return Selection(tuple(ranges), tuple(tables.values()), rows)

    def cut(self, after_ts: Ts, upto_ts: Ts, max_rows: int) -> Ts:
        """Return where a segment should end so that it has about ``max_rows``: at ``upto_ts`` or before, never inside one commit_ts.

        Counts are known at up to 64 points per range, so the estimate may be off by a 64th of each range.
        """
        open_ranges = self._opened(after_ts, upto_ts)
        if max_rows >= sum(opened.rows_between(after_ts, upto_ts) for opened in open_ranges):
            return upto_ts
        # An upstream transaction that is larger than ``max_rows`` stays whole: in two it would be visible in two steps.
        total, end = 0, None
        increments: Counter[Ts] = Counter()
        for opened in open_ranges:
            increments.update(opened.rows_by_ts(after_ts, upto_ts))
        for ts, rows in sorted(increments.items()):
            if end is not None and total + rows > max_rows:
                return end
            total, end = total + rows, ts
        return upto_ts if end is None else end


def _is_wanted(table: TableRows, after_ts: Ts, upto_ts: Ts, settled: frozenset[FoldedName] | None) -> bool:
    if overlaps_segment(table.min_ts, table.max_ts, after_ts, upto_ts):
        return True
    return settled is not None and _is_at(after_ts, table, settled)


def _is_at(ts: Ts, table: TableRows, settled: frozenset[FoldedName]) -> bool:
    """Whether a table may have rows at the checkpoint that may be applied again: not without a key, not after a DDL there."""
    return bool(table.handle_key) and may_hold(ts, table.min_ts, table.max_ts) and not table.name.fold().is_covered(settled)


def _joined(one: TableRows, other: TableRows) -> TableRows:
    return one._replace(rows=one.rows + other.rows, min_ts=min(one.min_ts, other.min_ts), max_ts=max(one.max_ts, other.max_ts))
