"""Chooses the next step: rows up to a DDL, the DDL, rows after it; first of all, the events that no position may pass."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from applier.coordinator.barriers import Barriers
from applier.coordinator.cache import Cache
from applier.coordinator.step import ApplySegment, ExecuteDdl, NeedNames, SaveProgress, Segment, Step
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.errors import InvariantViolation
from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.model.rejected_event import STORED_AT_ONCE, RejectedEvent
from applier.model.segment import SegmentWindow, is_beyond, moves_checkpoint

# --- segments --------------------------------------------------------------------------------------------------------
# Segments: the parts of a closed window between two DDL barriers, cut so that a transaction of the sink stays of bounded size.
#
# Segments are cut ahead of the checkpoint, so that several can be prepared while one is written. Their bounds and their ranges stay as they
# were cut, whatever is read meanwhile: the window was closed, so all their rows were there. What comes below W later is a replay of them,
# or a latecomer at exactly W, which ``CheckpointGroup`` notices since it counts from the time of the cut.
#
# Segments are cut again in two cases. A new partition takes W back until it has promised as much as the others. And a DDL arrives inside of
# a segment: a producer that keeps its promises writes none, since a DDL below W had arrived on all streams; but rows must never pass one.


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
        if self.settled_tables is None:
            return False
        found = cache.has_row_at(checkpoint_ts, self._reports, self.settled_tables)
        # Once per range: thousands of DDLs may have one ts, and a range thousands of tables.
        self._reports = self._reports if found else cache.number
        return found

    def segment_applied(self, reports: int, *, moves: bool) -> None:
        """Record the rows of the first ``reports`` ranges as applied. ``moves``: the checkpoint passes the group."""
        if moves:
            self.settled_tables = frozenset()
        self._reports = reports

    def ddl_executed(self, touches: frozenset[FoldedName] | None, reports: int, *, moves: bool) -> None:
        """Record what a DDL at the new checkpoint has touched."""
        if moves:
            self.segment_applied(reports, moves=True)
        # Applied again, rows of these tables would meet the table as it is after the DDL: 228 of 3,000 simulated histories end wrong.
        self.settled_tables = None if self.settled_tables is None or touches is None else self.settled_tables | touches


# --- segments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cut:
    """A segment, and the number of reports at the time when it was cut."""

    segment: Segment
    reports: int


class Segments:
    """Makes segments out of what is cached. ``_ahead``: segments that were cut and are not applied, in order."""

    __slots__ = ("_ahead", "_cache", "_most_rows", "_reports", "_streams", "group")

    def __init__(self, cache: Cache, streams: Streams, group: CheckpointGroup, most_rows: int) -> None:
        self._cache, self._streams, self.group, self._most_rows = cache, streams, group, most_rows
        self._ahead: deque[_Cut] = deque()
        self._reports = 0

    def has_latecomer(self, checkpoint_ts: Ts) -> bool:
        """Whether the group at the checkpoint must be applied again."""
        return self.group.has_latecomer(self._cache, checkpoint_ts)

    def has_rows(self, after_ts: Ts, upto_ts: Ts) -> bool:
        """Whether a segment was cut, or any cached row may be between two timestamps."""
        return bool(self._ahead) or self._cache.ahead.has_rows(after_ts, upto_ts)

    def cut_ahead(self, begun_ts: Ts, upto_ts: Ts, most_rows: int, at_least: int) -> tuple[Segment, ...]:
        """Cut further segments up to ``upto_ts``, of about ``most_rows`` in all. ``begun_ts``: where they begin if none was cut."""
        found: list[Segment] = []
        after_ts, rows = self._end_ts(begun_ts), 0
        # First by the rows of all ranges: a small feed asks in each cycle, and mostly for nothing.
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

        ``later``: where those after ``upto_ts`` end.
        """
        if not self._ahead:
            self._cut(after_ts, upto_ts)
        segment, self._reports = self._ahead[0].segment, self._ahead[0].reports
        end_ts = segment.window.upto_ts
        if again:
            # Selected now, and not when the segment was cut: the latecomer may have come since.
            settled = self.group.settled_tables or frozenset()
            window = SegmentWindow(after_ts=after_ts, upto_ts=end_ts, again=True, settled_tables=settled)
            segment, self._reports = self._cache.select_again(window), self._cache.number
        return ApplySegment(segment=segment, positions=self._streams.positions(end_ts), later=later if end_ts == upto_ts else ())

    def applied(self, *, moves: bool) -> None:
        """Record the segment of the last step as durable. ``moves``: the checkpoint passes the group."""
        self._release(self._ahead.popleft())
        self.group.segment_applied(self._reports, moves=moves)

    def cut_again_from(self, ts: Ts) -> None:
        """Remove the segments that reach beyond ``ts``."""
        is_stale = False
        while self._ahead and is_beyond(self._ahead[-1].segment.window.upto_ts, ts):
            self._release(self._ahead.pop())
            is_stale = True
        if is_stale:
            self._cache.ahead.restart()

    def _release(self, cut: _Cut) -> None:
        self._cache.unpin(cut.segment.ranges)


# --- unstored events -------------------------------------------------------------------------------------------------


class UnstoredEvents:
    """The events in the order of their reports."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: deque[RejectedEvent] = deque()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._events)

    def add(self, events: Iterable[RejectedEvent]) -> None:
        """Add events of a report."""
        self._events.extend(events)

    def next_batch(self) -> tuple[RejectedEvent, ...]:
        """Return the first ones, as many as one transaction stores."""
        return tuple(islice(self._events, STORED_AT_ONCE))

    def drop(self, stored: int) -> None:
        """Remove the first ones: they are stored."""
        for _ in range(stored):
            self._events.popleft()


# --- open step -------------------------------------------------------------------------------------------------------


class OpenStep:
    """Holds the step, and how many reports there were when it was decided."""

    __slots__ = ("reports", "step")

    def __init__(self) -> None:
        self.step: Step | None = None
        self.reports = 0

    def open(self, step: Step | None, reports: int) -> None:
        """Open a step."""
        self.step, self.reports = step, reports

    def check_none(self) -> None:
        """Raise InvariantViolation if a step is open."""
        if self.step is not None:
            raise InvariantViolation("the last step is not confirmed or withdrawn yet", step=type(self.step).__name__)

    def close(self, step: Step) -> None:
        """Close the open step; InvariantViolation if it is another one."""
        if step is not self.step:
            raise InvariantViolation("the confirmed step is not the open one", step=type(step).__name__)
        self.step = None

    def begun_ts(self, checkpoint_ts: Ts) -> Ts:
        """Return the checkpoint, or what it becomes when the open step is confirmed."""
        match self.step:
            case ApplySegment():
                return self.step.window.upto_ts
            case ExecuteDdl():
                return self.step.identity.ts
            case _:
                return checkpoint_ts


# --- step choice -----------------------------------------------------------------------------------------------------


ChosenStep: TypeAlias = ApplySegment | ExecuteDdl | NeedNames | SaveProgress


class StepChoice:
    """Chooses the next step that writes to the sink."""

    __slots__ = ("_barriers", "_rejected", "_segments", "_streams", "_window")

    def __init__(self, window: Window, streams: Streams, barriers: Barriers, segments: Segments, rejected: UnstoredEvents) -> None:
        self._window, self._streams, self._barriers, self._segments, self._rejected = window, streams, barriers, segments, rejected

    @property
    def is_due(self) -> bool:
        """Whether there is a next step."""
        return bool(self._rejected) or self._window.is_open

    def _end(self) -> tuple[Ts | None, Ts]:
        """Return the ts of the next DDL, if there is one that may run, and where the segments before it end."""
        watermark = self._window.watermark
        barrier = self._barriers.next_ts(watermark)
        return barrier, watermark if barrier is None else barrier

    def cut_ahead(self, begun_ts: Ts, most_rows: int, at_least: int, between_ddls: int) -> tuple[Segment, ...]:
        """Cut segments ahead, up to the next DDL: the rows after it are rendered with the catalogue as it is then.

        ``between_ddls``: what ``at_least`` is where another DDL follows the next one.
        """
        barrier, end = self._end()
        is_between = barrier is not None and bool(self._barriers.behind(barrier, self._window.watermark))
        return self._segments.cut_ahead(begun_ts, end, most_rows, max(at_least, between_ddls) if is_between else at_least)

    def next(self) -> ChosenStep | None:
        """Return the next step; None if the window has nothing left. The group at A with its latecomers goes with what comes first."""
        # Before rows and DDLs: their transaction would store positions after an event that is in no quarantine.
        if self._rejected:
            return self.save_progress()
        if not self.is_due:
            return None
        after = self._window.checkpoint_ts
        barrier, upto = self._end()
        # Before a DDL at A as well: the rows of the group belong before it.
        if self._window.has_history and self._segments.has_latecomer(after):
            return self._segments.make(after, upto, again=True)
        # A DDL without rows before it needs no segment: thousands of DDLs are not as many empty transactions.
        if barrier is not None and not self._segments.has_rows(after, upto):
            return self._execute(barrier)
        return self._segments.make(after, upto, again=False, later=self._barriers.behind(upto, self._window.watermark))

    def save_progress(self) -> SaveProgress:
        """Return the step that writes the present positions without moving the checkpoint.

        Rejected events come first. Positions are stored with the last of them: no position may pass an event that is not stored.
        """
        batch = self._rejected.next_batch()
        is_last = len(batch) == len(self._rejected)
        return SaveProgress(positions=self._streams.positions(self._window.checkpoint_ts) if is_last else {}, rejected_events=batch)

    def _execute(self, ts: Ts) -> ExecuteDdl | NeedNames:
        key = self._barriers.first_at(ts)
        if isinstance(key, NeedNames):
            return key
        return ExecuteDdl(
            identity=key,
            ddl=self._barriers.pending[key],
            position=self._barriers.position_of(key),
            positions=self._streams.positions(ts),
            positions_done=self._streams.positions(ts, done=key),
        )
