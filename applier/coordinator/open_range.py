"""A cached range that a sweep has reached: its tables, and how many of its rows lie where.

A report counts rows at up to 64 points of its range, so that it stays small. Between two points the number is an estimate from above.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from applier.model.position import Ts
from applier.model.range_report import RangeReport, RowCount, TableRows
from applier.model.segment import first_beyond, is_beyond, is_spent, lies_in_segment, overlaps_segment

_TS: Final = attrgetter("ts")


class OpenRange:
    """The ``number``-th report. Its tables wait, in the order of their first commit_ts, until a sweep reaches them."""

    __slots__ = ("_open", "_waiting", "number", "report")

    def __init__(self, number: int, report: RangeReport) -> None:
        self.number, self.report = number, report
        # Sorted when they are asked for: one of the two sweeps seldom does.
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
        """Return how many rows can lie in a segment, at most."""
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
        """Return how many rows can lie at exactly ``ts``, at most."""
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
