"""Writes one segment from the cached ranges, or progress alone. A write is retried while its transaction was rolled back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import stamina

from applier.coordinator.step import ApplySegment
from applier.model.errors import InvariantViolation, NeedsOperator, RetryableSinkError, RowRefused
from applier.model.range_report import RangeId
from applier.model.segment import SegmentWindow
from applier.planner import QuarantinePolicy
from applier.replica.sink_tables import SinkTables, refuse_keyless, rekeyed_tables
from applier.sinks.port import Sink
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.quarantine import Quarantined
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.tasks.handover import RangeContent
from applier.tasks.plan import ApplyPlan
from applier.tasks.port import Runner

QUARANTINE_REMEDY = 'or set sink.on_rejected_row = "quarantine": such rows are quarantined, and everything else is applied'
MAX_WAIT_S = 20.0
ROWS_PER_TASK = 100_000
"""A bucket is compacted in memory, at some 700 bytes a row. A segment is far larger only if one upstream transaction is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRules:
    """How segments are written. ``attempts``: how often one write is tried at most; ``policy``: which rows are quarantined."""

    buckets: int
    attempts: int
    policy: QuarantinePolicy


class SegmentWriter:
    """Gives segments to the runner, and progress to the sink."""

    def __init__(self, sink: Sink, runner: Runner, tables: SinkTables, rules: WriteRules) -> None:
        self._sink, self._runner, self._tables, self._rules = sink, runner, tables, rules

    def write(self, step: ApplySegment, contents: Mapping[RangeId, RangeContent], fence: Fence, commit: ProgressCommit) -> WriteOutcome:
        """Write a segment whose ranges hold ``contents``; one without rows starts no job."""
        if not step.ranges:
            # A window of resolved events alone moves the checkpoint: no job for it.
            return self.save(fence, commit)
        plan = self._plan(step, contents, fence, commit)
        try:
            return self._written(plan)
        except RowRefused as error:
            error.remedy = f"{error.remedy.rstrip('.')}. {_remedy(error)}"
            raise

    def save(self, fence: Fence, commit: ProgressCommit, quarantined: Quarantined | None = None) -> WriteOutcome:
        """Write progress alone, with what is quarantined."""
        return self._retried(lambda: self._sink.save(fence, commit, quarantined))

    def _written(self, plan: ApplyPlan) -> WriteOutcome:
        try:
            return self._retried(lambda: self._runner.apply(plan))
        # At most once per unique index: each round takes one out of the plan's tables.
        except NeedsOperator as error:
            if (explained := self._tables.explained(error, plan.tables)) is None:
                raise
            return self._written(replace(plan, tables=explained))
        except RowRefused as error:
            if "offset" in error.facts:
                raise
        # The refused row is somewhere in the segment. Statements that carry their rows cost more, so they are made only now: to quarantine
        # the row, or to name it.
        trace_rows = replace(plan, policy=replace(plan.policy, trace_rows=True))
        return self._retried(lambda: self._runner.apply(trace_rows))

    def _plan(self, step: ApplySegment, contents: Mapping[RangeId, RangeContent], fence: Fence, commit: ProgressCommit) -> ApplyPlan:
        refuse_keyless(step.tables)
        tables = self._tables.describe(step.tables)
        return ApplyPlan(
            window=SegmentWindow(
                after_ts=step.after_ts,
                upto_ts=step.upto_ts,
                again=step.again,
                settled_tables=step.settled_tables,
            ),
            ranges={range_id: contents[range_id] for range_id in step.ranges},
            tables=tables,
            rekeyed=rekeyed_tables(step.tables, tables),
            rows=step.rows,
            buckets=self._rules.buckets,
            bucket_splits=max(1, step.rows // (self._rules.buckets * ROWS_PER_TASK)),
            dialect=self._sink.dialect,
            writer=self._sink.writer,
            fence=fence,
            commit=commit,
            policy=self._rules.policy,
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


def _remedy(error: RowRefused) -> str:
    """Return the remedy: how the replica continues without the row."""
    facts = error.facts
    if "event" not in facts:
        return f"{QUARANTINE_REMEDY[0].upper()}{QUARANTINE_REMEDY[1:]}"
    place = f"--stream {facts['topic']}/{facts['partition']} --offset {facts['offset']} --event {facts['event']}"
    return f"Skip this row with `applier skip {place}`, {QUARANTINE_REMEDY}"
