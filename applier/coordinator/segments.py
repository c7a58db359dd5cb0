"""Segments: the parts of a closed window between two DDL barriers, cut so that a transaction of the sink stays of bounded size.

Segments are cut ahead of the checkpoint, so that several can be prepared while one is written. Their bounds and their ranges stay as they
were cut, whatever is read meanwhile: the window was closed, so all their rows were there. What comes below W later is a replay of them,
or a latecomer at exactly W, which ``CheckpointGroup`` notices since it counts from the moment of the cut.

Segments are cut again in two cases. A new partition takes W back until it has promised as much as the others. And a DDL arrives inside of a
segment: a producer that keeps its promises writes none, since a DDL below W had arrived on all streams; but rows must never pass one.
"""

from collections import deque
from dataclasses import dataclass

from applier.coordinator.cache import Cache
from applier.coordinator.step import ApplySegment, Segment
from applier.coordinator.streams import Streams
from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.model.segment import SegmentWindow, is_beyond, moves_checkpoint

# --- checkpoint group ------------------------------------------------------------------------------------------------
# The group: all rows at exactly A. They stay cached, because a row of the same commit_ts may still arrive.
#
# A latecomer has the whole group applied again, so that a delete always meets its upsert (DESIGN.md 3, "rows"): together with the first
# segment for which W > A, and before any DDL at A. Not for tables that a DDL at A has touched: their rows at A belong before that DDL.


class CheckpointGroup:
    """Which rows at A may still come, and which must not be applied again."""

    __slots__ = ("_reports", "settled_tables")

    def __init__(self, settled_tables: frozenset[FoldedName] | None) -> None:
        self.settled_tables = settled_tables
        """What DDLs at A have touched; None: everything."""
        self._reports = 0
        # Ranges with a greater number may hold rows that the group lacked. After a restart that is every range: what was applied is
        # known to the sink, but not which rows it was.

    def has_latecomer(self, cache: Cache, checkpoint_ts: Ts) -> bool:
        """Whether the cache may hold a row at A that was not applied with the others."""
        return self.settled_tables is not None and cache.at_checkpoint.has_row_at(checkpoint_ts, self._reports, self.settled_tables)

    def segment_applied(self, reports: int, *, moves: bool) -> None:
        """Know the rows of the first ``reports`` ranges as applied. ``moves``: the checkpoint leaves the group behind."""
        if moves:
            self.settled_tables = frozenset()
        self._reports = reports

    def ddl_executed(self, touches: frozenset[FoldedName] | None, reports: int, *, moves: bool) -> None:
        """Know what a DDL at the new checkpoint has touched."""
        if moves:
            self.segment_applied(reports, moves=True)
        # Applied again, rows of these tables would meet the table as it is after the DDL: 228 of 3,000 simulated histories end wrong.
        self.settled_tables = None if self.settled_tables is None or touches is None else self.settled_tables | touches


# --- segments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cut:
    """A segment, and the number of reports at the moment when it was cut."""

    segment: Segment
    reports: int


class Segments:
    """Makes segments out of what is cached. ``_ahead``: those that were cut and are not applied, one behind the other."""

    __slots__ = ("_ahead", "_cache", "_most_rows", "_reports", "_streams", "group")

    def __init__(self, cache: Cache, streams: Streams, group: CheckpointGroup, most_rows: int) -> None:
        self._cache, self._streams, self.group, self._most_rows = cache, streams, group, most_rows
        self._ahead: deque[_Cut] = deque()
        self._reports = 0

    def has_latecomer(self, checkpoint_ts: Ts) -> bool:
        """Whether the group at the checkpoint must be applied again."""
        return self.group.has_latecomer(self._cache, checkpoint_ts)

    def has_rows(self, after_ts: Ts, upto_ts: Ts) -> bool:
        """Whether a segment was cut, or any cached row may lie between two timestamps."""
        return bool(self._ahead) or self._cache.ahead.has_rows(after_ts, upto_ts)

    def cut_ahead(self, begun_ts: Ts, upto_ts: Ts, most_rows: int, at_least: int) -> tuple[Segment, ...]:
        """Cut further segments up to ``upto_ts``, of about ``most_rows`` in all. ``begun_ts``: where they begin if none was cut."""
        found: list[Segment] = []
        after_ts, rows = self._end_ts(begun_ts), 0
        # First by the rows of all ranges: a small feed asks in each cycle, and mostly in vain.
        if self._cache.rows < at_least or not moves_checkpoint(upto_ts, after_ts):
            return ()
        if not self._cache.ahead.holds(at_least, after_ts, upto_ts):
            return ()
        # Only rows: a window without rows that was cut could not grow any more before it is applied. A rest that is less than a segment
        # comes along: prepared alone, it would have the same ranges read again.
        while self._cache.ahead.has_rows(after_ts, upto_ts) and (
            rows < most_rows or not self._cache.ahead.holds(self._most_rows, after_ts, upto_ts)
        ):
            segment = self._cut(after_ts, upto_ts)
            found.append(segment)
            after_ts, rows = segment.window.upto_ts, rows + segment.rows
        return tuple(found)

    def _end_ts(self, begun_ts: Ts) -> Ts:
        return self._ahead[-1].segment.window.upto_ts if self._ahead else begun_ts

    def _cut(self, after_ts: Ts, upto_ts: Ts) -> Segment:
        """Cut the segment that begins at ``after_ts``: up to ``upto_ts``, or less if it would have too many rows."""
        if self._cache.rows > self._most_rows:
            upto_ts = self._cache.ahead.cut(after_ts, upto_ts, self._most_rows)
        segment = self._cache.ahead.select(SegmentWindow(after_ts=after_ts, upto_ts=upto_ts))
        self._ahead.append(_Cut(segment, self._cache.number))
        self._cache.pin(segment.ranges)
        return segment

    def make(self, after_ts: Ts, upto_ts: Ts, *, again: bool, later: tuple[Ts, ...] = ()) -> ApplySegment:
        """Make the step of the first segment that was cut, or of one that begins at ``after_ts`` and ends at ``upto_ts`` or before.

        ``later``: where those behind ``upto_ts`` end.
        """
        if not self._ahead:
            self._cut(after_ts, upto_ts)
        segment, self._reports = self._ahead[0].segment, self._ahead[0].reports
        end_ts = segment.window.upto_ts
        if again:
            # Selected now, and not when the segment was cut: the latecomer may have come since.
            settled = self.group.settled_tables or frozenset()
            window = SegmentWindow(after_ts=after_ts, upto_ts=end_ts, again=True, settled_tables=settled)
            segment, self._reports = self._cache.at_checkpoint.select(window), self._cache.number
        return ApplySegment(segment=segment, positions=self._streams.positions(end_ts), later=later if end_ts == upto_ts else ())

    def applied(self, *, moves: bool) -> None:
        """Know the segment of the last step as durable. ``moves``: the checkpoint leaves the group behind."""
        self._release(self._ahead.popleft())
        self.group.segment_applied(self._reports, moves=moves)

    def cut_again_from(self, ts: Ts) -> None:
        """Forget the segments that reach beyond ``ts``."""
        is_stale = False
        while self._ahead and is_beyond(self._ahead[-1].segment.window.upto_ts, ts):
            self._release(self._ahead.pop())
            is_stale = True
        if is_stale:
            self._cache.ahead.restart()

    def _release(self, cut: _Cut) -> None:
        self._cache.unpin(cut.segment.ranges)
