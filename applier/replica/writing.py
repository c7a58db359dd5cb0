"""The lane that writes: one segment at a time. After each the progress is read back: the sink says where the replica is."""

from threading import Event

from applier.coordinator.step import ApplySegment
from applier.model.errors import InvariantViolation
from applier.model.segment import moves_checkpoint
from applier.replica.context import RunContext
from applier.replica.lane import Lane
from applier.replica.preparing import Preparing
from applier.replica.segment_writer import SegmentWriter, WriteJob
from applier.replica.state import ReplicaState
from applier.sinks.progress import ProgressCommit
from applier.sinks.write_outcome import WriteOutcome


class Writing:
    """The segment that is being written."""

    def __init__(self, run: RunContext, state: ReplicaState, writer: SegmentWriter, preparing: Preparing) -> None:
        self._run, self._state, self._writer, self._preparing = run, state, writer, preparing
        self.lane: Lane[WriteOutcome] = Lane("write")
        self._job: WriteJob | None = None

    def begin(self, step: ApplySegment) -> None:
        """Start to write a segment. Raises what forbids it, before anything is written."""
        state = self._state
        state.locations.place_rows(step.tables)
        commit = ProgressCommit(
            checkpoint_ts=step.upto_ts,
            positions=step.positions,
            known_tables=state.tables.new_with_rows(step.tables, state.progress),
            topic_ids=state.topics.ids,
            locations=state.locations.waiting,
        )
        self._start(self._writer.job(step, state.contents, (state.progress.fence, commit), self._preparing.of(step)))

    def _start(self, job: WriteJob) -> None:
        durations = self._run.watcher.tally.durations
        # The phase is shown before the write, not after: a segment that hung was shown as listening, and one after a DDL as
        # that DDL, for which /healthz answers 200 without limit.
        self._run.watcher.enter("applying")

        def write() -> WriteOutcome:
            with durations.timed("apply"):
                return job.run()

        self._job = job
        self.lane.start(write)

    def take(self) -> Exception | None:
        """Confirm the segment that was written. Return why state must be reloaded instead, if the outcome is unknown."""
        job, self._job = self._job, None
        if job is None:
            raise InvariantViolation("no segment is being written")
        try:
            outcome = self.lane.result()
        except Exception as error:
            # The same segment in another way (row by row, without bulk loads …): nothing of it is durable.
            if (other := self._writer.after_error(job, error, self._state.progress.fence)) is None:
                raise
            self._start(other)
            return None
        state, watcher, step = self._state, self._run.watcher, job.step
        watcher.enter("listening")
        if (cause := state.read_back(outcome, job.commit)) is not None:
            return cause
        state.quarantine.note(outcome.quarantined, state.progress, watcher)
        watcher.tally.applied(outcome.rows, outcome.transactions)
        self._preparing.written(step)
        state.coordinator.applied(step)
        watcher.changed()
        # Not for every segment: rows at A that are applied again leave A where it is, and prove nothing about the next window.
        if moves_checkpoint(step.upto_ts, step.after_ts):
            state.recovery.moved()
        return None

    def discard(self, end: Event) -> None:
        """Wait for the write, and forget it: the sink says whether it has happened."""
        self.lane.discard(end)
        self._job = None
