"""The lane that writes: one segment, or some rows ahead of W, at a time.

After each the progress is read back: the sink says where the replica is.
"""

from collections.abc import Iterable
from dataclasses import replace
from threading import Event

from applier.coordinator import Coordinator
from applier.coordinator.step import ApplyRows, ApplySegment
from applier.ddl.conditions import added_columns
from applier.model.errors import ApplierError, FatalSinkError, InvariantViolation, ProtocolError, RetryableSinkError, SourceError
from applier.model.events import DdlEvent, FoldedName
from applier.model.range_report import RangeId
from applier.model.segment import moves_checkpoint
from applier.planner.column_match import LACKS_COLUMN
from applier.replica.context import RunContext
from applier.replica.lane import Lane
from applier.replica.preparing import Preparing
from applier.replica.recovery import reason, unknown_write
from applier.replica.segment_writer import RowsInPhases, SegmentWriter, WriteJob
from applier.replica.state import ReplicaState
from applier.sinks.failpoint import reach
from applier.sinks.progress import ProgressCommit, WriteOutcome
from applier.sources.peek import read_whole
from applier.sources.port import Source
from applier.telemetry.activity import LISTENING, WRITING
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent

# --- early columns ---------------------------------------------------------------------------------------------------
# Finds out whether a column that only rows have is added by a DDL behind them.
#
# A changefeed that restarts while upstream adds a column sends rows that carry it before its DDL (pingcap/tiflow issue 12760). Nobody can
# have written to a column that is not public: its value is the one that the DDL gives to all rows, so the early one may be dropped.


def early_column(error: Exception, names: Iterable[FoldedName], coordinator: Coordinator, source: Source) -> tuple[FoldedName, str] | None:
    """Return table and column that an error is about, if a DDL behind the rows adds it; else None. ``names``: the tables of the rows.

    The DDLs that were read are known. Where none of them does, the rest of the topics is read, once: such a failure would end the run.
    """
    if not isinstance(error, FatalSinkError) or error.message != LACKS_COLUMN:
        return None
    table, column = str(error.facts.get("table", "")).casefold(), str(error.facts.get("column", "")).casefold()
    found = next((name for name in names if str(name) == table), None)
    # Every DDL that is not settled lies behind the rows: a segment ends at the first one.
    if found is not None and any(_adds(ddl, found, column) for ddl in (*coordinator.pending_ddls, *_unread_ddls(coordinator, source))):
        return found, column
    return None


def _adds(ddl: DdlEvent, table: FoldedName, column: str) -> bool:
    return ddl.name.fold() == table and column in added_columns(ddl.query)


def _unread_ddls(coordinator: Coordinator, source: Source) -> Iterable[DdlEvent]:
    streams = [status for status in coordinator.streams if status.read_offset < status.end_offset and not status.is_promised_by_reading]
    placers = {status.stream: source.decoder.placer(status.stream) for status in streams}
    ranges = [RangeId(status.stream, status.read_offset, status.end_offset) for status in streams]
    for range_id, records in read_whole(source.reader, ranges):
        for record in records:
            for _, event in placers[range_id.stream].place_each(*record):
                if isinstance(event, DdlEvent):
                    yield event


# --- writing ---------------------------------------------------------------------------------------------------------


class Writing:
    """The segment that is being written."""

    def __init__(self, run: RunContext, state: ReplicaState, writer: SegmentWriter, preparing: Preparing) -> None:
        self._run, self._state, self._writer, self._preparing = run, state, writer, preparing
        self.lane: Lane[WriteOutcome] = Lane("write")
        self._job: WriteJob | None = None

    def begin(self, step: ApplySegment) -> None:
        """Start to write a segment. Raises what forbids it, before anything is written."""
        state = self._state
        state.locations.place_rows(step.segment.tables)
        commit = ProgressCommit(
            checkpoint_ts=step.window.upto_ts,
            positions=state.to_store(step.positions, step.window.upto_ts, step.segment.ranges),
            known_tables=state.tables.new_with_rows(step.segment.tables, state.progress),
            topic_ids=state.topics.ids,
            locations=state.locations.waiting,
            source_state=self._run.components.source.state_at(step.window.upto_ts),
        )
        self._start(self._writer.job(step, state.contents, (state.progress.fence, commit), self._preparing.of(step)))

    def begin_rows(self, step: ApplyRows) -> None:
        """Start to write rows ahead of W. Raises what forbids it, before anything is written."""
        state = self._state
        state.locations.place_rows(step.tables)
        known, locations = state.tables.new_with_rows(step.tables, state.progress), state.locations.waiting
        if known or locations:
            # Before their first row, which has a transaction of its own: found by the next run, it would be one of others.
            before = ProgressCommit(checkpoint_ts=state.progress.checkpoint_ts, positions={}, known_tables=known, locations=locations)
            outcome = self._writer.save(state.progress.fence, before)
            if (cause := state.read_back(outcome, before)) is not None:
                raise cause
        commit = ProgressCommit(
            checkpoint_ts=state.progress.checkpoint_ts,
            positions=state.to_store(step.positions, state.progress.checkpoint_ts, step.ranges),
            topic_ids=state.topics.ids,
            ahead_tables=step.ahead_tables,
        )
        self._start(self._writer.rows_job(step, state.contents, (state.progress.fence, commit)))

    def _take_rows(self, job: WriteJob, step: ApplyRows) -> Exception | None:
        """Store how far the streams are, once all of their rows are durable. Return why state must be reloaded, if it must."""
        state, watcher = self._state, self._run.watcher
        try:
            outcome = self.lane.result()
        except ApplierError as error:
            return self._rows_refused(step, error)
        if (cause := unknown_write(outcome, state.progress.fence)) is not None:
            return cause
        if job.phases is not None and job.phases.has_rest:
            return self._start_rest(job, job.phases)
        reach("rows.before_progress")
        # Its lock is exclusive: no writer of rows, however late, holds the row any more when it is granted.
        if (cause := state.read_back(self._writer.save(state.progress.fence, job.commit), job.commit)) is not None:
            return cause
        watcher.tally.applied(outcome.rows, 0)
        state.coordinator.rows_written(step)
        watcher.changed()
        state.recovery.moved()
        return None

    def _start_rest(self, job: WriteJob, phases: RowsInPhases) -> Exception | None:
        """Write the second phase in a window of its own. Return why state must be reloaded, if it must."""
        reach("rows.between_phases")
        if (cause := self._next_window()) is not None:
            return cause
        fence = self._state.progress.fence
        self._start(replace(job, run=lambda: phases.rest(fence)))
        return None

    def _next_window(self) -> Exception | None:
        """Move the window, and nothing else: what still runs of the present one writes no more. Return why state must be reloaded."""
        state = self._state
        same = ProgressCommit(checkpoint_ts=state.progress.checkpoint_ts, positions={})
        return state.read_back(self._writer.save(state.progress.fence, same), same)

    def _rows_refused(self, step: ApplyRows, error: ApplierError) -> Exception | None:
        """Let the rows of the table that an error is about wait for W. What was written of them is written again there.

        Return why state must be reloaded, if it must.
        """
        cause: Exception | None = error
        try:
            # Other tasks of the step, or copies of them, may still write: the rows of the next step are newer.
            cause = self._next_window()
        finally:
            # Whatever keeps the window from moving is what the run goes on about. What came first would be named nowhere.
            if cause is not None:
                self._run.watcher.note(LogEvent.ROWS_REFUSED, **reason(error))
        if cause is not None:
            return cause
        if self._writer.refused_load(error):
            self._state.coordinator.withdraw(step)
            return None
        about = str(error.facts.get("table", "")).casefold()
        refused = next((name for table in step.tables if str(name := table.name.fold()) == about), None)
        # An image that cannot be read is a matter of its row: its segment names or quarantines it. Other errors of the source are not.
        is_of_row = isinstance(error, ProtocolError) or not isinstance(error, RetryableSinkError | SourceError)
        if refused is None or not is_of_row:
            raise error
        self._run.watcher.note(LogEvent.ROWS_WAIT, table=about, reason=error.message)
        self._state.coordinator.rows_refused(step, refused)
        return None

    def _start(self, job: WriteJob) -> None:
        durations = self._run.watcher.tally.durations
        # The phase is shown before the write, not after: a segment that hung was shown as listening, and one after a DDL as
        # that DDL, for which /healthz answers 200 without limit.
        self._run.watcher.enter(WRITING)

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
        if isinstance(job.step, ApplyRows):
            self._run.watcher.enter(LISTENING)
            return self._take_rows(job, job.step)
        try:
            outcome = self.lane.result()
        except Exception as error:
            self._expect_early_column(job, error)
            # The same segment in another way (row by row, without bulk loads …): nothing of it is durable.
            if (other := self._writer.after_error(job, error, self._state.progress.fence)) is None:
                raise
            self._start(other)
            return None
        state, watcher, step = self._state, self._run.watcher, job.step
        watcher.enter(LISTENING)
        if (cause := state.read_back(outcome, job.commit)) is not None:
            return cause
        state.quarantine.note(outcome.quarantined, state.progress, watcher)
        watcher.tally.applied(outcome.rows, outcome.transactions, sum(rows for _, rows in outcome.absent))
        for table, rows in outcome.absent:
            watcher.note(LogEvent.DELETES_WITHOUT_ROW, table=table, rows=rows, checkpoint_ts=state.progress.checkpoint_ts)
        self._preparing.written(step)
        state.coordinator.applied(step)
        watcher.changed()
        # Not for every segment: rows at A that are applied again leave A where it is, and prove nothing about the next window.
        if moves_checkpoint(step.window.upto_ts, step.window.after_ts):
            state.recovery.moved()
            watcher.worked(Side.REST)
        return None

    def _expect_early_column(self, job: WriteJob, error: Exception) -> None:
        """Let rows carry a column that a later DDL adds, if ``error`` is about one."""
        names = () if job.plan is None else job.plan.tables
        found = early_column(error, names, self._state.coordinator, self._run.components.source)
        if found is not None:
            self._state.tables.expect(*found)
            self._run.watcher.tally.early_column()
            self._run.watcher.note(LogEvent.EARLY_COLUMN, table=str(found[0]), column=found[1])

    def discard(self, end: Event) -> None:
        """Wait for the write, and forget it: the sink says whether it has happened."""
        self.lane.discard(end)
        self._job = None
