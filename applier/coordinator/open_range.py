"""A cached range that the sweep of the cache has reached: its tables, and how many of its rows lie where.

A report counts rows at up to 64 points of its range, so that it stays small. Between two points the number is an estimate from above.
"""

from operator import attrgetter
from typing import Final

from applier.model.position import Ts
from applier.model.range_report import RangeReport, TableRows
from applier.model.segment import first_beyond, is_beyond, is_in_segment, is_spent, overlaps_segment

_TS: Final = attrgetter("ts")


class OpenRange:
    """The ``number``-th report. Its tables wait, in the order of their first commit_ts, until the sweep reaches them."""

    __slots__ = ("_open", "_waiting", "number", "report")

    def __init__(self, number: int, report: RangeReport) -> None:
        self.number, self.report = number, report
        self._waiting = sorted(report.tables, key=lambda table: table.min_ts, reverse=True)
        self._open: list[TableRows] = []

    def tables(self, after_ts: Ts, upto_ts: Ts) -> list[TableRows]:
        """Return the tables that may have rows between two commit_ts (inclusive), and perhaps others. Neither may step back."""
        while self._waiting and not is_beyond(self._waiting[-1].min_ts, upto_ts):
            self._open.append(self._waiting.pop())
        # A new list only where one is spent: most calls change nothing.
        if any(is_spent(table.max_ts, after_ts) for table in self._open):
            self._open = [table for table in self._open if not is_spent(table.max_ts, after_ts)]
        return self._open

    def rows_between(self, after_ts: Ts, upto_ts: Ts) -> int:
        """Return how many rows can lie in a segment, at most."""
        report = self.report
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

    def rows_by_ts(self, after_ts: Ts, upto_ts: Ts) -> dict[Ts, int]:
        """Return the rows of a segment by the points at which they are counted."""
        found: dict[Ts, int] = {}
        before = self._counted(after_ts)
        for ts, rows in self.report.row_counts:
            if is_in_segment(ts, after_ts, upto_ts):
                found[ts] = rows - before
                before = rows
        return found

    def _counted(self, ts: Ts) -> int:
        """Return how many rows have a commit_ts <= ``ts`` by the counts, at least."""
        at = first_beyond(self.report.row_counts, ts, _TS)
        return self.report.row_counts[at - 1].rows if at else 0
