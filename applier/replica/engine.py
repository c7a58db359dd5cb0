"""The engine: performs the coordinator's steps in order and decides nothing.

One cycle: plan ranges and begin to listen; meanwhile perform every step that is due by what was reported before; take the reports;
list the partitions. After every write the progress is read back from the sink: the sink, not the driver's memory, says where we are.
An outcome that is not known raises the epoch (so that a write still in flight can never arrive later) and rebuilds coordinator and
streams from the sink.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from applier.coordinator import Coordinator, Policy
from applier.coordinator.starting_point import check_beginning, streams_that_begin_late
from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl, NeedNames, SaveProgress, Step
from applier.ddl import policy as ddl_rule
from applier.model.errors import ApplierError, Fenced, JobAborted, NeedsOperator, SourceError, SparkSessionLost, UnknownOutcome
from applier.model.listing import Listing
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.model.segment import moves_checkpoint
from applier.planner import STOP, QuarantinePolicy
from applier.planner.table_check import Acceptance
from applier.replica.quarantine import QuarantineDecisions
from applier.replica.recovery import Recovery, is_transient, reason, urgency
from applier.replica.segment_writer import SegmentWriter, WriteRules
from applier.replica.settled_ddls import starting_point, tell_settled
from applier.replica.shutdown import Shutdown
from applier.replica.sink_tables import SinkTables
from applier.replica.topic_identity import TopicIdentity
from applier.sinks.port import Sink
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Source
from applier.spark.ahead import ListenAhead
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.port import Runner
from applier.telemetry import Watcher
from applier.telemetry.log_event import LogEvent
from applier.telemetry.retries import failure_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How the engine runs. ``ddl_policy``: DDL type name -> apply, skip or stop; types not named are applied."""

    policy: Policy
    buckets: int
    ddl_policy: Mapping[str, str] = field(default_factory=dict)
    quarantined: QuarantinePolicy = STOP
    """What is set aside instead of stopping the run."""
    accept: Acceptance = field(default_factory=Acceptance)
    """Differences between the sink's tables and upstream's that the operator accepts."""
    apply_attempts: int = 8
    until_ts: Ts | None = None


@dataclass(frozen=True, slots=True)
class Components:
    """What an engine works with."""

    source: Source
    sink: Sink
    runner: Runner


class Engine:
    """Runs cycles over one source, one sink and one runner. Not thread-safe. When ``stop`` is wished, no further step is begun."""

    def __init__(self, parts: Components, settings: EngineSettings, watcher: Watcher, shutdown: Shutdown) -> None:
        self._source, self._sink, self._runner, self._settings = parts.source, parts.sink, parts.runner, settings
        self._watcher, self._shutdown = watcher, shutdown
        self._ahead = ListenAhead(parts.runner, lambda: watcher.tally.durations.timed("listen"), shutdown.event)
        self._tables = SinkTables(parts.sink, settings.accept, watcher.note)
        self._topics = TopicIdentity(parts.source)
        rules = WriteRules(buckets=settings.buckets, attempts=settings.apply_attempts, policy=settings.quarantined)
        self._writer = SegmentWriter(parts.sink, parts.runner, self._tables, rules)
        self._quarantine = QuarantineDecisions(parts.sink.quarantine, unreadable=settings.quarantined.unreadable)
        self._contents: dict[RangeId, RangeContent] = {}
        self._accepted: Mapping[Stream, Offset] = {}
        self.recovery = Recovery()
        self.progress: Progress
        self.coordinator: Coordinator

    # --- beginning -------------------------------------------------------------------------------------------------

    def begin(self, listing: Listing, *, start_ts: Ts, accept_gap: bool) -> None:
        """Take up the replica where the sink says it is (or create it at ``start_ts``), and settle what a dead run left.

        The sink must have been acquired. NeedsOperator if the topic no longer holds the replica's beginning, or was made anew.
        """
        progress = self._sink.load()
        if accept_gap:
            self._accepted = {stream: extent.earliest for stream, extent in listing.extents.items()}
        self._check_beginning(listing, progress.positions if progress else {}, progress.start_ts if progress else start_ts)
        if progress is None:
            progress = self._sink.begin(start_ts)
            self._watcher.note(LogEvent.REPLICA_CREATED, start_ts=start_ts, epoch=progress.fence.epoch)
        else:
            self._watcher.note(LogEvent.REPLICA_RESUMED, checkpoint_ts=progress.checkpoint_ts, epoch=progress.fence.epoch)
        self._topics.check(progress.topic_ids)
        self._settle(progress.fence)
        self._build(self._loaded())
        self._watcher.watch(self)
        self.coordinator.list(listing)

    def _settle(self, fence: Fence) -> None:
        """Settle what a dead run left: perhaps a statement that takes hours, which is no sign of a run that hangs."""
        with self._watcher.during("ddl"):
            self._sink.settle(fence)

    def _check_beginning(self, listing: Listing, positions: Mapping[Stream, object], start_ts: Ts) -> None:
        """Refuse streams without a position whose beginning may matter; also when rebuilding: retention does not wait for a commit."""
        late = [s for s in streams_that_begin_late(listing, positions) if listing.extents[s].earliest > self._accepted.get(s, 0)]
        times = {stream: self._source.record_time_ms(stream, listing.extents[stream].earliest) for stream in late} if start_ts else {}
        check_beginning(late, listing, start_ts, times)

    def _build(self, progress: Progress) -> None:
        self.progress = progress
        self._tables.forget()
        self._tables.check_known(progress.known_tables)
        self._contents.clear()
        self._runner.release_all()
        self._quarantine.reload(progress)
        self.coordinator = Coordinator(starting_point(self._sink, progress), policy=self._settings.policy, until_ts=self._settings.until_ts)

    # --- one cycle -------------------------------------------------------------------------------------------------

    def cycle(self) -> bool:
        """Listen to the next ranges while the steps that are due are performed; tell whether anything was read or done.

        After an error it may be called again: where a step was left in the air it begins anew from what the sink says.
        """
        began_s = time.monotonic()
        is_busy = self._cycle()
        if is_busy:
            self._watcher.tally.durations.add("cycle", time.monotonic() - began_s)
        return is_busy

    def _cycle(self) -> bool:
        self._check_owner()
        if self.recovery.failure is not None:
            self._resume(self.recovery.failure)
        self._topics.check_if_due(self.progress.topic_ids)
        ranges = self.coordinator.plan()
        self._listen(ranges)
        try:
            performed = self._perform_due_steps()
            outcomes = self._ahead.finish()
        except Exception as error:
            self.recovery.doubt(error)
            raise
        if self._shutdown.is_requested:
            return performed
        self._take(outcomes)
        self.coordinator.list(self._listing())
        return performed or bool(ranges)

    def _listing(self) -> Listing:
        try:
            return self._source.listing()
        except SourceError:
            self._topics.doubt()
            raise

    def close(self) -> None:
        """Let go of what listens ahead; the runner's end ends its job."""
        self._ahead.close()

    def save_progress(self) -> None:
        """Write positions that grew without a window, unless a step was left in the air."""
        if self.recovery.failure is not None:
            return
        step = self.coordinator.progress_step()
        if step.positions == self.progress.positions and not step.rejected_events:
            self.coordinator.withdraw(step)
            return
        try:
            self._perform(step)
        except Exception as error:
            self.recovery.failure = error
            raise

    def _listen(self, ranges: Sequence[RangeId]) -> None:
        self._watcher.enter("listening" if ranges else "idle")
        floor_ts = self.coordinator.floor_ts
        tolerance_of, buckets = self._quarantine.tolerance_of, self._settings.buckets
        self._ahead.start([ListenTask(range=r, floor_ts=floor_ts, buckets=buckets, tolerance=tolerance_of(r.stream)) for r in ranges])

    def _perform_due_steps(self) -> bool:
        performed = False
        while not self._shutdown.is_requested and (step := self.coordinator.next_step()) is not None:
            self._check_owner()
            self._perform(step)
            performed = True
            self._watcher.changed()
        return performed

    def _take(self, outcomes: Sequence[ListenOutcome]) -> None:
        try:
            tell_settled(self._sink, self.coordinator, [each for each in outcomes if not isinstance(each, RangeFailure)])
        except Exception as error:
            self.recovery.doubt(error)  # what was read is lost with it
            raise
        errors = []
        for outcome in outcomes:
            is_merge = self.coordinator.is_merge(outcome.range)
            if isinstance(outcome, RangeFailure):
                self.coordinator.forget(outcome.range)
                # What cannot be merged, because it has expired meanwhile, is cached in parts and stays so.
                errors += [] if is_merge and not is_transient(outcome.error) else [outcome.error]
                continue
            self._contents[outcome.range] = RangeContent.of(outcome)
            if not is_merge:
                self._watcher.tally.read(outcome.range.stream, outcome.range.start, outcome.range.end, outcome.events)
            self.coordinator.report(outcome)
        self._watcher.changed()
        if errors:
            self._failed(errors)

    def _failed(self, errors: Sequence[ApplierError]) -> None:
        """Raise what stopped a listener, what will not pass by itself first; a job that was lost is no reason to stop."""
        error = min(errors, key=urgency)
        if isinstance(error, JobAborted):
            self._rebuild(error)
            return
        if isinstance(error, SparkSessionLost):
            self.recovery.failure = error  # what was cached is lost with it
        if error.facts.get("kind") == "retention":
            self._topics.check(self.progress.topic_ids)  # the end of a shorter topic looks the same
        raise error

    def _check_owner(self) -> None:
        error = self._sink.heartbeat_lost()
        if error is not None:
            raise error

    # --- steps -----------------------------------------------------------------------------------------------------

    def _perform(self, step: Step) -> None:
        match step:
            case ApplySegment():
                self._apply(step)
            case ExecuteDdl():
                self._execute(step)
            case SaveProgress():
                self._save(step)
            case NeedNames():
                self.coordinator.named(step, self._sink.describe(step.tables))
            case Evict():
                self._runner.release(step.ranges)
                for range_id in step.ranges:
                    self._contents.pop(range_id, None)
                self.coordinator.evicted(step)
            case _:
                assert_never(step)

    def _apply(self, step: ApplySegment) -> None:
        commit = ProgressCommit(
            checkpoint_ts=step.upto_ts,
            positions=step.positions,
            known_tables=self._tables.new_with_rows(step.tables, self.progress),
            topic_ids=self._topics.ids,
        )
        with self._watcher.during("applying"), self._watcher.tally.durations.timed("apply"):
            outcome = self._writer.write(step, self._contents, self.progress.fence, commit)
        if not self._confirmed(outcome, commit):
            return
        self._note_quarantined(outcome)
        self._watcher.tally.applied(outcome.rows, outcome.transactions)
        self.coordinator.applied(step)
        if moves_checkpoint(step.upto_ts, step.after_ts):
            self.recovery.moved()

    def _save(self, step: SaveProgress) -> None:
        commit = ProgressCommit(checkpoint_ts=self.progress.checkpoint_ts, positions=step.positions, topic_ids=self._topics.ids)
        quarantined = self._quarantine.quarantined(step.rejected_events, self._source.reader)
        with self._watcher.during("applying"), self._watcher.tally.durations.timed("save"):
            outcome = self._writer.save(self.progress.fence, commit, quarantined)
        if self._confirmed(outcome, commit):
            self._note_quarantined(outcome)
            self.coordinator.saved(step)

    def _note_quarantined(self, outcome: WriteOutcome) -> None:
        self._quarantine.note_stored(outcome.quarantined, self.progress)
        for event in outcome.quarantined:
            self._watcher.note(LogEvent.EVENT_QUARANTINED, **event.facts)

    def _confirmed(self, outcome: WriteOutcome, commit: ProgressCommit) -> bool:
        """Read the progress back; False if everything was rebuilt from it because the outcome is not what was meant."""
        if outcome.state is WriteState.FENCED:
            raise _fenced(self.progress.fence)
        if outcome.state is WriteState.REBUILD:
            self._rebuild(outcome.error or UnknownOutcome("the sink is at another window than this run"))
            return False
        self.progress = self._loaded(commit)
        if self.progress.checkpoint_ts != commit.checkpoint_ts:
            self._rebuild(UnknownOutcome("the sink's checkpoint is not the one that was meant"))
            return False
        return True

    def _rebuild(self, cause: Exception) -> None:
        wait_s = self.recovery.next_wait_s(cause)
        self._watcher.note(LogEvent.RETRY, **failure_facts(cause), attempt=self.recovery.rebuilds, wait_s=round(wait_s, 2))
        self._shutdown.pause(wait_s)
        self._resume(cause)

    def _resume(self, cause: Exception) -> None:
        """Begin anew from what the sink says."""
        self._watcher.tally.rebuilt()
        self._watcher.note(LogEvent.RECOVERING, **reason(cause))
        self._ahead.discard()
        self._settle(self._sink.raise_epoch().fence)
        progress, listing = self._loaded(), self._source.listing()
        self._topics.check(progress.topic_ids)
        self._check_beginning(listing, progress.positions, progress.start_ts)
        self._build(progress)
        self._watcher.note(LogEvent.RECOVERED, checkpoint_ts=self.progress.checkpoint_ts, epoch=self.progress.fence.epoch)
        self.coordinator.list(listing)
        self.recovery.reloaded()

    # --- DDL -------------------------------------------------------------------------------------------------------

    def _execute(self, step: ExecuteDdl) -> None:
        ddl, fence = step.ddl, self.progress.fence
        after = ProgressCommit(checkpoint_ts=ddl.commit_ts, positions=step.positions_done, topic_ids=self._topics.ids)
        try:
            is_skipped = self._quarantine.skips(ddl) or ddl_rule.is_skipped(ddl, self._settings.ddl_policy)
            with self._watcher.during("ddl", ddl.query), self._watcher.tally.durations.timed("ddl"):
                if is_skipped:
                    self._sink.skip_ddl(fence, step.identity, ddl, after=after)
                else:
                    before = self._before(step)
                    self._sink.run_ddl(fence, step.identity, ddl, before=before, after=after)
        except UnknownOutcome as error:
            self._rebuild(error)
            return
        except ApplierError as error:
            error.facts |= step.place.facts
            raise
        self.progress = self._loaded(after if is_skipped else before)
        self._tables.executed(ddl)
        self._watcher.tally.settled_ddl()
        event = LogEvent.DDL_SKIPPED if is_skipped else LogEvent.DDL_APPLIED
        self._watcher.note(event, commit_ts=ddl.commit_ts, table=str(ddl.name), query=ddl.query)
        self.coordinator.executed(step)
        self.recovery.moved()

    def _before(self, step: ExecuteDdl) -> ProgressCommit:
        return ProgressCommit(
            checkpoint_ts=step.ddl.commit_ts,
            positions=step.positions,
            known_tables=self._tables.new_with_ddl(step.ddl, self.progress),
            topic_ids=self._topics.ids,
        )

    def _loaded(self, commit: ProgressCommit | None = None) -> Progress:
        """Read the progress. Behind a ``commit`` of this run the known tables are known: there may be thousands, and they only grow."""
        known = None if commit is None else self.progress.known_tables
        if commit is not None and commit.known_tables and known is not None:
            known |= commit.known_tables
        progress = self._sink.load(known_tables=known)
        if progress is None:
            raise NeedsOperator("the progress row is gone from the sink", remedy="Restore the sink from a backup, or make the replica anew")
        return progress


def _fenced(fence: Fence) -> ApplierError:
    return Fenced("another run has taken over the replica", epoch=fence.epoch)
