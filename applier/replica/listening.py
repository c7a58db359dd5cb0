"""Has the next ranges read while steps are performed, and hands what was read to the coordinator."""

from collections.abc import Sequence

from applier.model.errors import ApplierError, JobAborted
from applier.model.range_report import RangeId
from applier.replica.context import RunContext
from applier.replica.recovery import ends_listening, may_be_recreated, most_urgent
from applier.replica.settled_ddls import report_settled
from applier.replica.state import ReplicaState
from applier.spark.listen_ahead import ListenAhead
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure


class Listening:
    """The reading side of one run. Only the job itself runs in another thread (``ListenAhead``)."""

    def __init__(self, run: RunContext, state: ReplicaState) -> None:
        self._run, self._state = run, state
        durations = run.watcher.tally.durations
        self._ahead = ListenAhead(run.components.runner, lambda: durations.timed("listen"), run.shutdown.event)

    def start(self, ranges: Sequence[RangeId]) -> None:
        """Start to read ``ranges``, if there are any."""
        self._run.watcher.enter("listening" if ranges else "idle")
        floor_ts, buckets = self._state.coordinator.floor_ts, self._run.settings.buckets
        tolerance_of = self._state.quarantine.tolerance_of
        self._ahead.start([ListenTask(range=r, floor_ts=floor_ts, buckets=buckets, tolerance=tolerance_of(r.stream)) for r in ranges])

    def finish(self) -> Sequence[ListenOutcome]:
        """Wait for the job and return its outcomes; () if there is none, or if a shutdown was requested."""
        return self._ahead.finish()

    def take(self, outcomes: Sequence[ListenOutcome]) -> JobAborted | None:
        """Report what was read to the coordinator. Return why state must be reloaded at once, if it must; raise what ends the cycle."""
        # Before any report is taken: a DDL below A that the ledger does not know stops the run with 6, one that it knows is a
        # replay.
        self._report_settled(outcomes)
        errors = [error for outcome in outcomes if (error := self._take(outcome)) is not None]
        self._run.watcher.changed()
        if not errors:
            return None
        error = most_urgent(errors)
        # The end of a shorter new topic looks like retention. The check raises the right error with the right remedy.
        if may_be_recreated(error):
            self._state.topics.check(self._state.progress.topic_ids)
        return self._state.recovery.after_listening(error)

    def discard(self) -> None:
        """Wait for the job and release what it has cached: its ranges will be planned again."""
        self._ahead.discard()

    def close(self) -> None:
        """Start no more jobs. One that runs is not waited for: the end of the runner ends it."""
        self._ahead.close()

    def _report_settled(self, outcomes: Sequence[ListenOutcome]) -> None:
        reports = [outcome for outcome in outcomes if not isinstance(outcome, RangeFailure)]
        try:
            report_settled(self._run.components.sink, self._state.coordinator, reports)
        except Exception as error:
            self._state.recovery.mark_failing(error)  # what was read is lost with it
            raise

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
            self._run.watcher.tally.read(found.stream, found.start, found.end, outcome.events)
        coordinator.report(outcome)
        return None
