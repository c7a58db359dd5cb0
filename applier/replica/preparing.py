"""The lane that prepares: renders the closed segments that come next, several at a time, while the one before them is written."""

from collections.abc import Sequence
from threading import Event
from typing import Final, NamedTuple

from applier.coordinator.step import ApplySegment, Segment
from applier.model.errors import ApplierError
from applier.model.position import Ts
from applier.model.segment import moves_checkpoint
from applier.replica.context import RunContext
from applier.replica.lane import Lane
from applier.replica.segment_writer import BYTES_PER_TASK, SegmentWriter
from applier.replica.state import ReplicaState
from applier.tasks.port import Prepared
from applier.telemetry.activity import PREPARING

ROWS_AT_ONCE: Final = 400_000
MIN_SEGMENTS, MAX_SEGMENTS = 4, 150
"""So much is prepared by one job: each row passes through Python once for all of its segments. More rows than a plan of listening has: with
3 segments, jobs lay across three batches, and 64 streams were read 2.3 times instead of 1.8. Many small segments (``max_transaction_rows``)
are too many partitions of a shuffle."""


class _Ready(NamedTuple):
    """Where a segment is prepared."""

    segment: Segment
    prepared: Prepared
    number: int
    changes: int
    """DDLs that had run when it was planned. One that came late, into segments that were cut, lies before those behind it."""


class Preparing:
    """What is prepared, and what is being prepared."""

    def __init__(self, run: RunContext, state: ReplicaState, writer: SegmentWriter) -> None:
        self._run, self._state, self._writer = run, state, writer
        self.lane: Lane[Prepared | ApplierError] = Lane("prepare")
        self._pending: Sequence[Segment] = ()
        self._changes = 0
        self._ready: dict[Ts, _Ready] = {}

    def begin(self) -> bool:
        """Start to prepare the next segments, if the lane is free, few are prepared, and there are many rows to apply."""
        if self.lane.is_busy or sum(ready.segment.rows for ready in self._ready.values()) >= (most_rows := self._most_rows()):
            return False
        segments = self._state.coordinator.segments_ahead(
            most_rows, at_least=self._run.settings.ahead_rows, between_ddls=self._run.settings.sliced_rows
        )
        if not segments:
            return False
        try:
            plan = self._writer.plan_ahead(segments, self._state.contents)
        except ApplierError:
            # It would stop the segments before it as well. Without preparation it comes up again, when its own segment is due.
            return False
        runner, durations = self._run.components.runner, self._run.watcher.tally.durations

        def prepare() -> Prepared | ApplierError:
            with durations.timed("prepare"):
                return runner.prepare(plan)

        self._run.watcher.enter(PREPARING)
        self._pending, self._changes = segments, self._state.tables.changes
        self.lane.start(prepare)
        return True

    def _most_rows(self) -> int:
        """How many rows are prepared by one job: some segments of the usual size, but no more than its tasks can hold in memory."""
        settings, contents = self._run.settings, self._state.contents.values()
        rows, size = sum(content.rows for content in contents), sum(content.bytes for content in contents)
        in_memory = settings.buckets * BYTES_PER_TASK * rows // max(1, size)
        usual = settings.policy.segment_rows
        return max(1, min(max(MIN_SEGMENTS * usual, ROWS_AT_ONCE), MAX_SEGMENTS * usual, in_memory))

    def take(self) -> ApplierError | None:
        """Take what was prepared; return the error of the job, if it has failed."""
        segments, self._pending = self._pending, ()
        prepared = self.lane.result()
        if isinstance(prepared, ApplierError):
            return prepared
        ready = [_Ready(segment, prepared, number, self._changes) for number, segment in enumerate(segments)]
        begun = {one.segment.window.after_ts: one for one in ready}
        # A segment that was cut again replaces the one with the same beginning.
        void = [self._ready.pop(after_ts) for after_ts in begun if after_ts in self._ready]
        self._ready |= begun
        self._free(void)
        return None

    def is_pending(self, step: ApplySegment) -> bool:
        """Whether the segment is being prepared."""
        return step.segment in self._pending

    def of(self, step: ApplySegment) -> tuple[Prepared, int] | None:
        """Return where the segment is prepared; None if it is not, or could not be."""
        ready = self._ready.get(step.window.after_ts)
        # Not the same where it was cut again, perhaps with the same bounds and more rows (a new partition may hold W back), and where the
        # group at A is applied again with it: rows of it were not prepared.
        if ready is None or ready.segment != step.segment or ready.changes != self._state.tables.changes:
            return None
        # Prepared alone, when it is its turn, it may succeed: an error is also that of the segments behind it, and what the segment before
        # has taught about its tables (``SinkTables.explained``) was not known yet. If it fails again, its error is that of the step.
        is_failed = ready.prepared.parts[ready.number].error is not None
        return None if is_failed else (ready.prepared, ready.number)

    def written(self, step: ApplySegment) -> None:
        """Forget the prepared segments up to this one. A job's files are deleted when all of its segments are written."""
        self._free([self._ready.pop(after_ts) for after_ts in list(self._ready) if not moves_checkpoint(after_ts, step.window.after_ts)])

    def _free(self, done: Sequence[_Ready]) -> None:
        for prepared in {id(ready.prepared): ready.prepared for ready in done}.values():
            if all(prepared is not ready.prepared for ready in self._ready.values()):
                self._run.components.runner.drop(prepared)

    def discard(self, end: Event) -> None:
        """Wait for the job, and forget everything: state is reloaded. The runner releases what it keeps."""
        self.lane.discard(end)
        self._pending = ()
        self._ready.clear()
