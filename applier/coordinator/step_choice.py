"""What comes next: rows up to a DDL, the DDL, rows after it; before everything else the events that no position may pass."""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

from applier.coordinator.barriers import Barriers
from applier.coordinator.segments import Segments
from applier.coordinator.step import ApplySegment, ExecuteDdl, NeedNames, SaveProgress, Segment, Step
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.errors import InvariantViolation
from applier.model.position import Ts
from applier.model.rejected_event import STORED_AT_ONCE, RejectedEvent

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
        """Take events of a report in."""
        self._events.extend(events)

    def next_batch(self) -> tuple[RejectedEvent, ...]:
        """Return as many as one transaction stores."""
        return tuple(islice(self._events, STORED_AT_ONCE))

    def drop(self, stored: int) -> None:
        """Forget the first ones: they are stored."""
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
        """Cut segments ahead, up to the next DDL: what lies behind it is rendered by the catalogue that it leaves.

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
            place=self._barriers.place_of(key),
            positions=self._streams.positions(ts),
            positions_done=self._streams.positions(ts, done=key),
        )
