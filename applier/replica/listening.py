"""The lane that listens: has the next ranges read, and hands what was read to the coordinator."""

import math
import time
from collections.abc import Sequence
from typing import Final

from applier.model.errors import ApplierError
from applier.model.range_report import RangeId
from applier.replica.context import RunContext
from applier.replica.lane import Lane
from applier.replica.recovery import ends_listening, may_be_recreated, most_urgent, must_resume
from applier.replica.state import ReplicaState, report_settled
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.telemetry.activity import IDLE, LISTENING
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent

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
        """In how many seconds there is to be looked for something to read; while a job runs, never."""
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
            self._run.components.source.check_topics()
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
