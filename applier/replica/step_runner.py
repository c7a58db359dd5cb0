"""Performs the coordinator's steps, one at a time. After each write the progress is read back: the sink says where the replica is."""

from typing import assert_never

from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl, NeedNames, SaveProgress, Step
from applier.ddl import policy as ddl_rule
from applier.model.errors import ApplierError, UnknownOutcome
from applier.model.segment import moves_checkpoint
from applier.replica.context import RunContext
from applier.replica.recovery import checkpoint_mismatch, unknown_write
from applier.replica.segment_writer import SegmentWriter, WriteRules
from applier.replica.state import ReplicaState
from applier.sinks.progress import ProgressCommit
from applier.sinks.write_outcome import WriteOutcome
from applier.telemetry.log_event import LogEvent


class StepRunner:
    """Performs steps of one run. Each method for a step returns why state must be reloaded, or None: the step was confirmed."""

    def __init__(self, run: RunContext, state: ReplicaState) -> None:
        self._run, self._state, settings = run, state, run.settings
        rules = WriteRules(buckets=settings.buckets, attempts=settings.apply_attempts, policy=settings.quarantined)
        self._writer = SegmentWriter(run.components.sink, run.components.runner, state.tables, rules)

    def perform(self, step: Step) -> Exception | None:
        """Perform ``step`` and confirm it to the coordinator. Return why state must be reloaded instead, if its outcome is unknown."""
        match step:
            case ApplySegment():
                return self._apply(step)
            case ExecuteDdl():
                return self._execute(step)
            case SaveProgress():
                return self._save(step)
            case NeedNames():
                self._state.coordinator.answer_names(step, self._run.components.sink.describe(step.tables))
            case Evict():
                self._evict(step)
            case _:
                assert_never(step)
        return None

    def _apply(self, step: ApplySegment) -> Exception | None:
        state, watcher = self._state, self._run.watcher
        commit = ProgressCommit(
            checkpoint_ts=step.upto_ts,
            positions=step.positions,
            known_tables=state.tables.new_with_rows(step.tables, state.progress),
            topic_ids=state.topics.ids,
        )
        # The phase is shown before the write, not after: a segment that hung was shown as listening, and one after a DDL as
        # that DDL, for which /healthz answers 200 without limit.
        with watcher.during("applying"), watcher.tally.durations.timed("apply"):
            outcome = self._writer.write(step, state.contents, state.progress.fence, commit)
        if (cause := self._read_back(outcome, commit)) is not None:
            return cause
        self._note_quarantined(outcome)
        watcher.tally.applied(outcome.rows, outcome.transactions)
        state.coordinator.applied(step)
        # Not for every segment: rows at A that are applied again leave A where it is, and prove nothing about the next window.
        if moves_checkpoint(step.upto_ts, step.after_ts):
            state.recovery.moved()
        return None

    def _save(self, step: SaveProgress) -> Exception | None:
        state, watcher = self._state, self._run.watcher
        commit = ProgressCommit(checkpoint_ts=state.progress.checkpoint_ts, positions=step.positions, topic_ids=state.topics.ids)
        # Rejected events are stored with the positions that pass them: an event is in the quarantine or read again, never
        # neither.
        quarantined = state.quarantine.quarantined(step.rejected_events, self._run.components.source.reader)
        with watcher.during("applying"), watcher.tally.durations.timed("save"):
            outcome = self._writer.save(state.progress.fence, commit, quarantined)
        if (cause := self._read_back(outcome, commit)) is not None:
            return cause
        self._note_quarantined(outcome)
        state.coordinator.saved(step)
        return None

    def _execute(self, step: ExecuteDdl) -> Exception | None:
        state, watcher, ddl = self._state, self._run.watcher, step.ddl
        sink, fence = self._run.components.sink, state.progress.fence
        after = ProgressCommit(checkpoint_ts=ddl.commit_ts, positions=step.positions_done, topic_ids=state.topics.ids)
        try:
            is_skipped = state.quarantine.skips(ddl) or ddl_rule.is_skipped(ddl, self._run.settings.ddl_policy)
            with watcher.during("ddl", ddl.query), watcher.tally.durations.timed("ddl"):
                # A skipped DDL has no intent: nothing runs whose outcome could be unknown.
                if is_skipped:
                    sink.skip_ddl(fence, step.identity, ddl, after=after)
                else:
                    before = self._before(step)
                    sink.run_ddl(fence, step.identity, ddl, before=before, after=after)
        except UnknownOutcome as error:
            # The intent may be written or not, the statement may run or not: a reload settles it from the ledger.
            return error
        except ApplierError as error:
            error.facts |= step.place.facts
            raise
        # `before` holds the known tables, and a skipped DDL records none: it has touched nothing.
        state.progress = state.load(after if is_skipped else before)
        # What the next segments are rendered from must be the catalogue as it is after this DDL (DESIGN.md 4, Align).
        state.tables.executed(ddl)
        watcher.tally.settled_ddl()
        event = LogEvent.DDL_SKIPPED if is_skipped else LogEvent.DDL_APPLIED
        watcher.note(event, commit_ts=ddl.commit_ts, table=str(ddl.name), query=ddl.query)
        state.coordinator.executed(step)
        state.recovery.moved()
        return None

    def _before(self, step: ExecuteDdl) -> ProgressCommit:
        """Return the progress that is committed with the intent: the checkpoint moves to the DDL's ts even if no row came before it."""
        return ProgressCommit(
            checkpoint_ts=step.ddl.commit_ts,
            positions=step.positions,
            known_tables=self._state.tables.new_with_ddl(step.ddl, self._state.progress),
            topic_ids=self._state.topics.ids,
        )

    def _evict(self, step: Evict) -> None:
        # Release before the coordinator plans again: its budget of cached bytes counts them as free from then on.
        self._run.components.runner.release(step.ranges)
        for range_id in step.ranges:
            self._state.contents.pop(range_id, None)
        self._state.coordinator.evicted(step)

    def _read_back(self, outcome: WriteOutcome, commit: ProgressCommit) -> Exception | None:
        """Read the progress after a write. Return why state must be reloaded, if the outcome is unknown."""
        state = self._state
        if (cause := unknown_write(outcome, state.progress.fence)) is not None:
            return cause
        state.progress = state.load(commit)
        return checkpoint_mismatch(state.progress, commit)

    def _note_quarantined(self, outcome: WriteOutcome) -> None:
        self._state.quarantine.note_stored(outcome.quarantined, self._state.progress)
        for event in outcome.quarantined:
            self._run.watcher.note(LogEvent.EVENT_QUARANTINED, **event.facts)
