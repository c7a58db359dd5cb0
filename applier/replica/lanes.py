"""The three lanes of a run: listening, preparing and writing at the same time.

``Listening`` has the next ranges read and gives the result to the coordinator. ``Preparing`` renders the next closed segments, several at a
time, while the segment before them is written. ``Writing`` writes one segment, or some rows ahead of W, at a time; after each it reads the
progress back: the sink says where the replica is.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from threading import Event
from typing import Final, NamedTuple

from applier.coordinator import Coordinator
from applier.coordinator.step import ApplyRows, ApplySegment, Segment
from applier.ddl.conditions import added_columns
from applier.model.errors import ApplierError, FatalSinkError, InvariantViolation, ProtocolError, RetryableSinkError, SourceError
from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Ts
from applier.model.range_report import RangeId
from applier.model.segment import moves_checkpoint
from applier.planner.column_match import LACKS_COLUMN
from applier.replica.context import Lane, RunContext, wait_for_any
from applier.replica.recovery import ends_listening, may_be_recreated, most_urgent, must_resume, reason, unknown_write
from applier.replica.segment_writer import BYTES_PER_TASK, BulkLoads, RowsInPhases, SegmentWriter, WriteJob, WriteRules
from applier.replica.state import ReplicaState, report_settled
from applier.replica.step_runner import StepRunner
from applier.sinks.failpoint import reach
from applier.sinks.progress import ProgressCommit, WriteOutcome
from applier.sources.peek import read_whole
from applier.sources.port import Source
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.port import Prepared
from applier.telemetry.activity import IDLE, LISTENING, PREPARING, WRITING
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent

ROWS_AT_ONCE: Final = 400_000
MIN_SEGMENTS, MAX_SEGMENTS = 4, 150
"""Bytes that one job prepares: each row passes through Python once for all of its segments. More rows than a plan of listening has: with
3 segments, jobs read from three batches, and 64 streams were read 2.3 times instead of 1.8. Many small segments (``max_transaction_rows``)
are too many partitions of a shuffle."""


class _Ready(NamedTuple):
    """Where a segment is prepared."""

    segment: Segment
    prepared: Prepared
    number: int
    changes: int
    """DDLs that had run when it was planned. One that came late, into segments that were cut, comes before those after it."""


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
        """Collect what was prepared; return the error of the job, if it has failed."""
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
        # Prepared alone, when it is its turn, it may succeed: an error is also that of the segments after it, and what the segment before
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


# --- early columns ---------------------------------------------------------------------------------------------------
# Finds out whether a column that only rows have is added by a DDL after them.
#
# A changefeed that restarts while upstream adds a column sends rows that carry it before its DDL (pingcap/tiflow issue 12760). No one can
# have written to a column that is not public: its value is the one that the DDL gives to all rows, so the early one may be dropped.


def early_column(error: Exception, names: Iterable[FoldedName], coordinator: Coordinator, source: Source) -> tuple[FoldedName, str] | None:
    """Return table and column that an error is about, if a DDL after the rows adds it; else None. ``names``: the tables of the rows.

    The DDLs that were read are known. Where none does, the rest of the topics is read, once: such a failure would end the run.
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
            source_state=self._run.components.state_at(step.window.upto_ts),
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
            # Whatever keeps the window from moving is what the run reports. What came first would be named nowhere.
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


PACED_EVENTS: Final = 20_000
"""A job that has read more than that is followed by the next at once: there is a backlog, and a pause would only cost time."""

IDLE_SHARE: Final = 0.05
"""How much of a core looking may take while nothing arrives: a look at 10,000 partitions costs 90 ms."""


class Listening:
    """The reading side of one run."""

    def __init__(self, run: RunContext, state: ReplicaState) -> None:
        self._run, self._state = run, state
        self.lane: Lane[Sequence[ListenOutcome]] = Lane("listen")
        self._due_s = 0.0
        self.is_idle = False
        """Whether everything that Kafka holds was read when it was looked at last."""
        self._topics = set[str]()

    @property
    def due_in_s(self) -> float:
        """After how many seconds to look for something to read; while a job runs, never."""
        return math.inf if self.lane.is_busy else max(0.0, self._due_s - time.monotonic())

    def begin(self, *, is_applying: bool) -> bool:
        """Start to read the next ranges, if the lane is free, the pace allows it, and there are any; return whether it has started."""
        if self.lane.is_busy or time.monotonic() < self._due_s:
            return False
        began_s = time.thread_time()
        ranges = self._state.coordinator.plan()
        if not ranges:
            # Everything that was listed is read, or may not be cached. What the topics hold now is asked only then: a job's end asks, too.
            if (moved := self.list_partitions()) is not None:
                self._state.recovery.reload_for(moved)
                return False
            ranges = self._state.coordinator.plan()
        # A write that hangs is shown as one, though the next ranges are read meanwhile.
        if not is_applying:
            self._run.watcher.enter(LISTENING if ranges else IDLE)
        settings = self._run.settings
        idle_s = max(settings.idle_s, (time.thread_time() - began_s) / IDLE_SHARE)
        self._due_s = time.monotonic() + (settings.pace_s if ranges else idle_s)
        self.is_idle = not ranges
        if ranges:
            self._start(ranges)
        return bool(ranges)

    def _start(self, ranges: Sequence[RangeId]) -> None:
        coordinator, tolerance_of = self._state.coordinator, self._state.quarantine.tolerance_of
        floor_ts, buckets = coordinator.floor_ts, self._run.settings.buckets
        tasks = [
            ListenTask(
                range=range_id,
                floor_ts=floor_ts,
                buckets=buckets,
                tolerance=tolerance_of(range_id.stream),
                expected_bytes=coordinator.expected_bytes(range_id),
                notes_repeats=self._run.settings.writes_keyless,
                watches_keys=coordinator.watches_keys,
            )
            for range_id in ranges
        ]
        runner, durations = self._run.components.runner, self._run.watcher.tally.durations

        def listen() -> Sequence[ListenOutcome]:
            with durations.timed("listen"):
                return runner.listen(tasks)

        self.lane.start(listen)

    def take(self) -> ApplierError | None:
        """Report what was read to the coordinator, and list the partitions.

        Return why state must be reloaded at once, if it must; raise what ends the cycle.
        """
        try:
            outcomes = self.lane.result()
            # Before any report is taken: a DDL below A that the ledger does not know stops the run with 6, one that it knows is a
            # replay.
            self._report_settled(outcomes)
        except Exception as error:
            self._state.recovery.mark_failing(error)  # what was read is lost with it
            raise
        failed = [failure for outcome in outcomes if (failure := self._take(outcome)) is not None]
        self._run.watcher.changed()
        if failed:
            decisive = most_urgent(failed)
            # The end of a shorter new topic looks like retention. The check raises the right error with the right remedy.
            if may_be_recreated(decisive):
                self._state.topics.check(self._state.progress.topic_ids)
            return self._state.recovery.after_listening(decisive)
        if sum(outcome.events for outcome in outcomes if not isinstance(outcome, RangeFailure)) > PACED_EVENTS:
            self._due_s = 0.0
        self._run.watcher.worked(Side.SPARK)
        # Listed after the reports were taken: a window may close only then (DESIGN.md 3, "which streams count").
        return self.list_partitions()

    def list_partitions(self) -> ApplierError | None:
        """Tell the coordinator which partitions there are, and how far they go. Return why state must be reloaded instead, if it must."""
        try:
            listing = self._run.components.source.listing()
            # Before anything of a topic that has just appeared is read.
            self._run.components.check_topics()
        except ApplierError as error:
            if must_resume(error):
                return error
            # A missing topic is the one sure sign that it may be recreated. Taken for an unreachable broker, records of the
            # new one could be applied until the next check, up to five seconds later.
            self._state.topics.make_check_due()
            raise
        # Its id is needed before anything of it is stored: it may be recreated like any other.
        if any(stream.topic not in self._topics for stream in listing.extents):
            self._topics = {stream.topic for stream in listing.extents}
            self._state.topics.make_check_due()
        self._state.list(listing)
        self._state.recovery.listed()
        self._run.watcher.worked(Side.SOURCE)
        return None

    def discard(self) -> None:
        """Wait for the job, and forget what it gives: its ranges are planned again."""
        self.lane.discard(self._run.shutdown.event)
        self.is_idle = False

    def _report_settled(self, outcomes: Sequence[ListenOutcome]) -> None:
        reports = [outcome for outcome in outcomes if not isinstance(outcome, RangeFailure)]
        report_settled(self._run.components.sink, self._state.coordinator, reports)

    def _take(self, outcome: ListenOutcome) -> ApplierError | None:
        coordinator, found = self._state.coordinator, outcome.range
        is_merge = coordinator.is_merge(found)
        if isinstance(outcome, RangeFailure):
            coordinator.forget(found)
            return outcome.error if ends_listening(outcome.error, is_merge=is_merge) else None
        # Only what a report says of the cached chunks: rows never pass through the driver (DESIGN.md 4).
        self._state.contents[found] = RangeContent.of(outcome)
        # A merge reads again what was counted with its small ranges.
        if not is_merge:
            self._run.watcher.tally.read(found, outcome.events, counts_offsets=coordinator.counts_offsets(found))
            # Of each kind once: a heartbeat comes every second.
            if outcome.skipped_statements and self._run.watcher.tally.skipped(outcome.skipped_statements):
                self._run.watcher.note(LogEvent.STATEMENTS_SKIPPED, **dict(outcome.skipped_statements))
            if self._run.settings.writes_keyless:
                self._state.repeats.add(outcome, self._state.progress.checkpoint_ts)
        self._state.locations.leave_out(name.fold() for name in outcome.left_out)
        coordinator.report(outcome)
        return None


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
