"""Makes jobs of segments: how they are prepared, written, and written in another way where a database refuses the first one.

A write is retried while its transaction was rolled back. Jobs run in another thread and do not ask the sink; making a job does.
``RepeatLog`` knows where rows of tables without a key begin to repeat (``planner.keyless``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

import stamina

from applier.coordinator.step import ApplyRows, ApplySegment, Segment
from applier.coordinator.streams import has_held_records, is_required
from applier.model.errors import (
    SKIP_RECORD,
    ApplierError,
    BulkRefused,
    BulkUnavailable,
    FatalSinkError,
    InvariantViolation,
    NeedsOperator,
    Remedy,
    RetryableSinkError,
    RowRefused,
)
from applier.model.events import TableName
from applier.model.position import NO_TS, Listing, PartitionExtent, Stream, Ts
from applier.model.range_report import RangeId, RangeReport, RepeatPoint, TableRows
from applier.model.segment import SegmentWindow, is_applied, is_behind_promise, is_beyond
from applier.model.topic_name import PartitionLimits
from applier.planner import QuarantinePolicy
from applier.planner.keyless import ALL_REAL, EqualRowsRule, Repeats
from applier.replica.sink_tables import SinkTables, refuse_keyless, rekeyed_tables
from applier.sinks.port import Sink
from applier.sinks.progress import Fence, ProgressCommit, WriteOutcome, WriteState
from applier.sinks.quarantine import Quarantined
from applier.sources.port import Source
from applier.tasks.handover import RangeContent
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.port import Prepared, Runner
from applier.tasks.write import error_of, not_written, phases
from applier.telemetry.log_event import LogEvent
from applier.telemetry.retries import Notes

KEPT_POINTS: Final = 16
"""At so many points of a stream, or twice as many as were kept before, the points of applied rows are
removed. Few: there may be ten thousand streams, and each segment asks for the points of all of them."""


class RepeatLog:
    """The points of all streams. Not thread-safe."""

    def __init__(self) -> None:
        """Begin without points."""
        self._points: defaultdict[Stream, list[RepeatPoint]] = defaultdict(list)
        self._left: dict[Stream, int] = {}
        self.unordered_ts = NO_TS
        """``PartitionGrowth.listed``, of the last list of partitions."""

    def add(self, report: RangeReport, checkpoint_ts: Ts) -> None:
        """Add a range."""
        points = self._points[report.range.stream]
        points += report.repeats
        if len(points) > max(KEPT_POINTS, 2 * self._left.get(report.range.stream, 0)):
            points[:] = _open_points(points, checkpoint_ts)
            self._left[report.range.stream] = len(points)

    def since(self, checkpoint_ts: Ts) -> Repeats:
        """Return the points that concern rows above a checkpoint, in the order of their offsets."""
        points = {
            stream: tuple(open_points) for stream, points in self._points.items() if (open_points := _open_points(points, checkpoint_ts))
        }
        return Repeats(points, self.unordered_ts)

    def clear(self) -> None:
        """Forget all of them: everything is read again."""
        self._points.clear()
        self._left.clear()
        self.unordered_ts = NO_TS


def _open_points(points: list[RepeatPoint], checkpoint_ts: Ts) -> list[RepeatPoint]:
    """Return the points that concern rows above a checkpoint, and the last one, by which the next one is judged."""
    found: list[RepeatPoint] = []
    last = Ts(0)
    for point in sorted(points, key=lambda point: point[:3]):
        # A range knows only its own promises: whether its first one steps back shows here.
        steps_back = point.ts != NO_TS and is_behind_promise(point.ts, last)
        found.append(point._replace(is_return=True) if steps_back else point)
        last = point.ts or last
    return [point for point in found[:-1] if point.is_return or not is_applied(point.ts, checkpoint_ts)] + found[-1:]


# --- partition growth ------------------------------------------------------------------------------------------------
# Up to which commit_ts rows of tables without a key may have come again in another partition, because partitions were added.
#
# What a producer sends again goes to other partitions then, and some of it may lie behind a promise there, where no one reads it. So the
# order of a partition proves nothing about equal rows (``planner.keyless``) that were sent before the change. They were committed before
# the new partition got its first record; a producer with several nodes takes note of new partitions node by node, which takes some time
# more. A new partition without a record may be in use too, since others get their rows first.
#
# The next run must know of the change too. So a new partition gets no stored position before the checkpoint has passed these rows: until
# then, each run finds it new, and reads it from its first record on. Partitions that were there at the first start, or with the first one
# of their topic, count as old.

ALL_TS: Final = Ts(2**63 - 1)
RequiredPartitions: TypeAlias = Mapping[str, int] | PartitionLimits | None
T = TypeVar("T")


class PartitionGrowth:
    """Which partitions are new. Not thread-safe."""

    __slots__ = ("_known", "_partitions", "_settle_ms", "_source", "_topics", "_until")

    def __init__(self, source: Source, settle_ms: int, partitions: RequiredPartitions = None) -> None:
        """``settle_ms``: how long after its first record a node of the producer may not know of a partition.

        ``partitions``: as ``Policy.required_partitions``.
        """
        self._source, self._settle_ms, self._partitions = source, settle_ms, partitions
        self.begin(())

    def begin(self, stored: Iterable[Stream]) -> None:
        """Begin with the streams that have a stored position; none: at the first start of a replica."""
        self._known = set(stored)
        self._topics = {stream.topic for stream in self._known}
        self._until: dict[Stream, Ts] = {}

    def listed(self, listing: Listing, checkpoint_ts: Ts) -> Ts:
        """Record the partitions. Return up to where the order of rows proves nothing. SourceError."""
        found = [stream for stream in listing.extents.keys() - self._known if is_required(stream, self._partitions)]
        if not found:
            return NO_TS
        for stream in found:
            if stream.topic in self._topics:
                self._look(stream, listing.extents[stream], checkpoint_ts)
            else:
                self._known.add(stream)
        self._topics |= {stream.topic for stream in found}
        return max(self._until.values(), default=NO_TS)

    def _look(self, stream: Stream, extent: PartitionExtent, checkpoint_ts: Ts) -> None:
        if (until_ts := self._until.get(stream, ALL_TS)) == ALL_TS:
            time_ms = self._source.times.time_ms(stream, extent.earliest) if has_held_records(extent) else None
            until_ts = ALL_TS if time_ms is None else self._source.times.ts_at(time_ms + self._settle_ms)
        self._until[stream] = until_ts
        if is_beyond(checkpoint_ts, until_ts):
            self._known.add(stream)
            del self._until[stream]

    def without_new(self, of_stream: Mapping[Stream, T]) -> Mapping[Stream, T]:
        """Return what is given by stream without the new ones."""
        if not self._until:
            return of_stream
        return {stream: value for stream, value in of_stream.items() if stream not in self._until}


# --- bulk loads ------------------------------------------------------------------------------------------------------


MOST_REFUSED: Final = 3
"""Each refused load costs its segment a second write, so a run that has had so many makes no more."""


class BulkLoads:
    """The bulk loads of one run."""

    def __init__(self, sink: Sink, notes: Notes) -> None:
        self._sink, self._notes = sink, notes
        self._refused = 0
        self._is_over = False

    @property
    def are_used(self) -> bool:
        """Whether the next segments are loaded in bulk."""
        return not self._is_over and self._sink.bulk

    def refused(self, error: BulkRefused) -> None:
        """Note a refused load, whose segment is written by REPLACE; and once, that there are no more."""
        if self._is_over:  # of a segment that was prepared before
            return
        self._refused += 1
        self._notes.note(LogEvent.BULK_LOAD_REFUSED, error_message=error.message, **error.facts)
        if isinstance(error, BulkUnavailable) or self._refused == MOST_REFUSED:
            self._is_over = True
            self._notes.note(LogEvent.BULK_LOADS_ENDED, refused=self._refused)


# --- rows phases -----------------------------------------------------------------------------------------------------
# Rows ahead of W that several tasks write: DELETEs in one window, all others in the next.
#
# A copy of a task (an executor that was given up, but still runs) may write late. Within a window that changes nothing: DELETEs commute,
# as do the final rows of different keys. A late DELETE after the REPLACE of another spelling of its key would remove that row. So the
# caller moves the window when ``first`` has left something for ``rest``.

Retried = Callable[[Callable[[], WriteOutcome]], WriteOutcome]


class RowsInPhases:
    """The rows of one step. ``retried``: calls a write again while it was certainly rolled back."""

    def __init__(self, runner: Runner, plan: PreparePlan, write_plan: WritePlan, retried: Retried) -> None:
        self._runner, self._plan, self._write_plan, self._retried = runner, plan, write_plan, retried
        self._prepared: Prepared | None = None
        self._left: Sequence[int] = ()
        self._deleted = 0

    @property
    def has_rest(self) -> bool:
        """Whether rows are left for another window."""
        return bool(self._left)

    def first(self) -> WriteOutcome:
        """Prepare the rows. Delete, and leave the others for ``rest``; or write the others, if there is nothing to delete."""
        prepared = self._runner.prepare(self._plan)
        if isinstance(prepared, ApplierError):
            return not_written(prepared)
        self._prepared = prepared
        if (error := error_of(prepared.parts)) is not None:
            self._drop()
            return self._retried(lambda: not_written(error))
        deletes, others = phases(prepared.parts)
        outcome = self._write(deletes or others, self._write_plan)
        if deletes and others and outcome.state is WriteState.COMMITTED:
            self._left, self._deleted = others, outcome.rows
        else:
            self._drop()
        return outcome

    def rest(self, fence: Fence) -> WriteOutcome:
        """Write what is left, in the window of ``fence``. Returns the rows of both phases."""
        left, self._left = self._left, ()
        outcome = self._write(left, replace(self._write_plan, fence=fence))
        self._drop()
        return replace(outcome, rows=outcome.rows + self._deleted)

    def _write(self, parts: Sequence[int], write_plan: WritePlan) -> WriteOutcome:
        prepared = self._prepared
        if prepared is None or not parts:
            return WriteOutcome(state=WriteState.COMMITTED)
        try:
            return self._retried(lambda: self._runner.write_rows(prepared, parts, write_plan))
        except ApplierError:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._prepared is not None:
            self._runner.drop(self._prepared)
            self._prepared = None


# --- segment writer --------------------------------------------------------------------------------------------------


QUARANTINE = 'sink.on_rejected_row = "quarantine": such rows are quarantined, and everything else is applied'
MAX_WAIT_S = 5.0
ROWS_PER_TASK = 100_000
BYTES_PER_TASK = 64 << 20
"""A bucket is compacted in memory, at some 700 bytes a row. A segment is far larger only if one upstream transaction is."""
PLACEHOLDER_BYTES = 1 << 20
"""What the row of a placeholder takes once it is read: it was too large for a message, and Kafka's default limit is 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRules:
    """How segments are written. ``attempts``: how often one write is tried at most; ``policy``: which rows are quarantined.

    ``writers``: how many tasks write rows ahead of W at once.
    """

    buckets: int
    attempts: int
    policy: QuarantinePolicy
    repeats: RepeatLog | None = None
    """What is known of repeated rows; None: tables without a key are refused."""
    equal_rows: EqualRowsRule = ALL_REAL
    """What happens to equal rows that may be one row, in tables without a key."""
    writers: int = 1


@dataclass(frozen=True, slots=True)
class WriteJob:
    """One segment to write, or rows ahead of W. ``plan`` is None for a segment without rows."""

    step: ApplySegment | ApplyRows
    commit: ProgressCommit
    plan: PreparePlan | None
    run: Callable[[], WriteOutcome]
    phases: RowsInPhases | None = None
    """Rows ahead of W that may need a second window."""


class SegmentWriter:
    """Gives segments to the runner, and progress to the sink."""

    def __init__(self, sink: Sink, runner: Runner, tables: SinkTables, rules: WriteRules, loads: BulkLoads) -> None:
        self._sink, self._runner, self._tables, self._rules, self._loads = sink, runner, tables, rules, loads

    def plan_ahead(self, segments: Sequence[Segment], contents: Mapping[RangeId, RangeContent]) -> PreparePlan:
        """Plan how segments that follow one another are prepared. Raises what forbids one of them."""
        ranges = dict.fromkeys(range_id for segment in segments for range_id in segment.ranges)
        # One entry per table and reported key, over all segments: two of them may disagree about the key of a table.
        tables: dict[tuple[TableName, tuple[str, ...] | None, tuple[str, ...], TableName | None], TableRows] = {}
        for table in (table for segment in segments for table in segment.tables):
            key = (table.name, table.handle_key, table.bytes_key, table.routed_from)
            tables[key] = tables[key].joined(table) if key in tables else table
        rows = sum(segment.rows for segment in segments)
        return self._plan(
            tuple(segment.window for segment in segments), [*tables.values()], {range_id: contents[range_id] for range_id in ranges}, rows
        )

    def job(
        self,
        step: ApplySegment,
        contents: Mapping[RangeId, RangeContent],
        progress: tuple[Fence, ProgressCommit],
        prepared: tuple[Prepared, int] | None,
    ) -> WriteJob:
        """Make the job that writes a segment, which may be ``prepared``. Raises what forbids it."""
        (fence, commit), segment = progress, step.segment
        if not segment.ranges:
            # A window of resolved events alone moves the checkpoint: no Spark job for it.
            return WriteJob(step, commit, None, lambda: self.save(fence, commit))
        contents_of = {range_id: contents[range_id] for range_id in segment.ranges}
        plan = replace(self._plan((step.window,), segment.tables, contents_of, segment.rows), later=step.later)
        write_plan = WritePlan(writer=self._sink.writer, fence=fence, commit=commit, takes_refused=plan.policy.refused)
        if prepared is None:
            return self._applying(WriteJob(step, commit, plan, lambda: self._runner.apply(plan, write_plan)))
        return self._applying(WriteJob(step, commit, plan, lambda: self._runner.write(*prepared, write_plan)))

    def rows_job(self, step: ApplyRows, contents: Mapping[RangeId, RangeContent], progress: tuple[Fence, ProgressCommit]) -> WriteJob:
        """Make the job that writes rows ahead of W. Raises what forbids it."""
        fence, commit = progress
        if not step.ranges:
            return WriteJob(step, commit, None, lambda: WriteOutcome(state=WriteState.COMMITTED))
        plan = self._plan((step.window,), step.tables, {range_id: contents[range_id] for range_id in step.ranges}, step.rows)
        # A row that is refused comes again in its segment, where it is named or quarantined.
        plan = replace(plan, writers=self._rules.writers, policy=QuarantinePolicy())
        write_plan = WritePlan(writer=self._sink.writer, fence=fence, commit=commit)
        if plan.is_small:
            return WriteJob(step, commit, plan, lambda: self._retried(lambda: self._runner.apply(plan, write_plan)))
        phases = RowsInPhases(self._runner, plan, write_plan, self._retried)
        return WriteJob(step, commit, plan, phases.first, phases)

    def refused_load(self, error: Exception) -> bool:
        """Record that a bulk load was refused, if ``error`` shows it: the next rows are written without."""
        if isinstance(error, BulkRefused):
            self._loads.refused(error)
        return isinstance(error, BulkRefused)

    def after_error(self, job: WriteJob, error: Exception, fence: Fence) -> WriteJob | None:
        """Return the job that writes a segment in another way, or that says what is wrong with it; None: ``error`` stays."""
        plan = job.plan
        if plan is None:
            return None
        other: PreparePlan | None = None
        # A column that a later DDL adds: at most once per column.
        if isinstance(error, FatalSinkError) and (expected := self._tables.with_early_columns(plan.tables)) is not None:
            other = replace(plan, tables=expected)
        # At most once per unique index: each round takes one out of the plan's tables.
        elif isinstance(error, NeedsOperator) and (explained := self._tables.explained(error, plan.tables)) is not None:
            other = replace(plan, tables=explained)
        # The refused row is somewhere in the segment. Statements that carry their rows cost more, so they are made only now: to quarantine
        # the row, or to name it.
        elif isinstance(error, RowRefused) and "offset" not in error.facts and not plan.policy.trace_rows:
            other = replace(plan, policy=replace(plan.policy, trace_rows=True), bulk=False)
        # REPLACE says what is wrong, if it is refused too. Also where this plan has no loads: the segment may have been prepared with them.
        elif isinstance(error, BulkRefused):
            self._loads.refused(error)
            other = replace(plan, bulk=False)
        if other is None:
            return None
        write_plan = WritePlan(writer=self._sink.writer, fence=fence, commit=job.commit, takes_refused=other.policy.refused)
        return self._applying(WriteJob(job.step, job.commit, other, lambda: self._runner.apply(other, write_plan)))

    def save(self, fence: Fence, commit: ProgressCommit, quarantined: Quarantined | None = None) -> WriteOutcome:
        """Write progress alone, with what is quarantined."""
        return self._retried(lambda: self._sink.save(fence, commit, quarantined))

    def _applying(self, job: WriteJob) -> WriteJob:
        def run() -> WriteOutcome:
            try:
                return self._retried(job.run)
            except RowRefused as error:
                if "offset" in error.facts or (job.plan is not None and job.plan.policy.trace_rows):
                    error.remedy = error.remedy.then(_remedy(error))
                raise

        return replace(job, run=run)

    def _plan(
        self,
        windows: tuple[SegmentWindow, ...],
        rows_of_tables: Sequence[TableRows],
        ranges: Mapping[RangeId, RangeContent],
        rows: int,
    ) -> PreparePlan:
        tables = self._tables.describe(rows_of_tables)
        rekeyed = rekeyed_tables(rows_of_tables, tables)
        ordered = self._tables.ordered(rows_of_tables, rekeyed)
        log, repeats = self._rules.repeats, None
        if log is None:
            refuse_keyless(rows_of_tables, rekeyed)
        elif not all(table.handle_key for table in rows_of_tables):
            repeats = log.since(windows[0].after_ts)
        size = rows * sum(content.bytes for content in ranges.values()) // max(1, sum(content.rows for content in ranges.values()))
        size += PLACEHOLDER_BYTES * min(rows, sum(table.placeholders for table in rows_of_tables))
        tasks = max(rows // ROWS_PER_TASK, size // BYTES_PER_TASK)
        return PreparePlan(
            windows=windows,
            ranges=ranges,
            tables=tables,
            rekeyed=rekeyed,
            ordered=ordered,
            rows=rows,
            size=size,
            buckets=self._rules.buckets,
            bucket_splits=max(1, tasks // self._rules.buckets),
            dialect=self._sink.dialect,
            policy=self._rules.policy,
            repeats=repeats,
            equal_rows=self._rules.equal_rows,
            bulk=self._loads.are_used,
        )

    def _retried(self, write: Callable[[], WriteOutcome]) -> WriteOutcome:
        """Retry a write whose transaction was rolled back, with jittered back-off; raise what must not be retried."""
        # A transaction that was rolled back has changed nothing, so the same plan runs again under the same fencing token. An
        # unknown outcome is a value here, not an error: it must not be retried.
        for attempt in stamina.retry_context(on=RetryableSinkError, attempts=self._rules.attempts, timeout=None, wait_max=MAX_WAIT_S):
            with attempt:
                outcome = write()
                if outcome.state is WriteState.FAILED:
                    raise outcome.error or InvariantViolation("a write failed without an error")
                return outcome
        message = "retries ended without an outcome"
        raise InvariantViolation(message)


def _remedy(error: RowRefused) -> Remedy:
    """Return the remedy: how the replica continues without the row."""
    facts = error.facts
    if "event" not in facts:
        return Remedy("replica.quarantine-rejected-rows", f"Or set {QUARANTINE}")
    return Remedy("replica.skip-row", f"Skip this row with `{SKIP_RECORD} --event {facts['event']}`, or set {QUARANTINE}")
