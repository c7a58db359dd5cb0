"""The three lanes of a run: listening, preparing and writing at the same time. What each begins and takes is its own module's."""

import time

from applier.coordinator.step import ApplyRows, ApplySegment
from applier.replica.context import RunContext
from applier.replica.lane import wait_for_any
from applier.replica.listening import Listening
from applier.replica.preparing import Preparing
from applier.replica.segment_writer import BulkLoads, SegmentWriter, WriteRules
from applier.replica.state import ReplicaState
from applier.replica.step_runner import StepRunner
from applier.replica.writing import Writing


class Lanes:
    """Begins what can begin, and takes what is done. Not thread-safe: the lanes' own threads only do the work."""

    def __init__(self, run: RunContext, state: ReplicaState) -> None:
        settings = run.settings
        rules = WriteRules(
            buckets=settings.buckets,
            attempts=settings.apply_attempts,
            policy=settings.quarantined,
            repeats=state.repeats if settings.writes_keyless else None,
            equal_rows=settings.equal_rows,
            writers=settings.writers,
        )
        writer = SegmentWriter(run.components.sink, run.components.runner, state.tables, rules, BulkLoads(run.components.sink, run.watcher))
        self._run, self._state = run, state
        self.steps = StepRunner(run, state, writer)
        self._listening = Listening(run, state)
        self._preparing = Preparing(run, state, writer)
        self._writing = Writing(run, state, writer, self._preparing)
        self._written_s = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether any lane has work, or a result that was not taken."""
        return self._listening.lane.is_busy or self._preparing.lane.is_busy or self.is_writing

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do: everything was read, and no lane has work."""
        return self._listening.is_idle and not self.is_busy

    @property
    def is_writing(self) -> bool:
        """Whether a segment is being written."""
        return self._writing.lane.is_busy

    @property
    def held_since_s(self) -> float:
        """Since when nothing was written although a segment is prepared or written, by the monotonic clock; infinite if none is."""
        return max(min(self._preparing.lane.busy_since_s, self._writing.lane.busy_since_s), self._written_s)

    @property
    def idle_s(self) -> float:
        """How long there is nothing to do, if no lane is busy: until reading is due."""
        return self._listening.due_in_s

    def read_ahead(self) -> bool:
        """Start to read what comes next; return whether it has started."""
        return self._listening.begin(is_applying=self.is_writing or self._preparing.lane.is_busy)

    def prepare_ahead(self) -> bool:
        """Start to prepare what comes next; return whether it has started."""
        return self._preparing.begin()

    def write(self, step: ApplySegment | ApplyRows) -> bool:
        """Start to write a segment, or rows ahead of W. False, with nothing done: the segment is being prepared."""
        if isinstance(step, ApplyRows):
            self._writing.begin_rows(step)
            return True
        if self._preparing.is_pending(step):
            return False
        self._writing.begin(step)
        return True

    def take_written(self) -> Exception | None:
        """Confirm the segment that was written, waiting for it if need be. Return why state must be reloaded, if it must."""
        try:
            cause = self._writing.take()
        except Exception as error:
            self._state.recovery.mark_failing(error)
            raise
        self._written_s = time.monotonic()
        return cause

    def take_done(self) -> Exception | None:
        """Take what is done; return why state must be reloaded, if it must."""
        # Writing first: what is confirmed is durable, whatever the other lanes bring.
        if self._writing.lane.is_done and (cause := self.take_written()) is not None:
            return cause
        if self._preparing.lane.is_done and (failed := self._preparing.take()) is not None:
            return self._state.recovery.after_preparing(failed)
        return self._listening.take() if self._listening.lane.is_done else None

    def wait(self, timeout_s: float) -> None:
        """Wait until something is done, reading is due, or the time is over."""
        lanes = self._listening.lane, self._preparing.lane, self._writing.lane
        wait_for_any(lanes, min(timeout_s, self._listening.due_in_s))

    def discard(self) -> None:
        """Wait for all work, and forget it: its ranges are planned again."""
        end = self._run.shutdown.event
        self._writing.discard(end)
        self._preparing.discard(end)
        self._listening.discard()

    def close(self) -> None:
        """Start no more work. What runs is not waited for: the end of the runner ends it."""
        for lane in (self._listening.lane, self._preparing.lane, self._writing.lane):
            lane.close()
