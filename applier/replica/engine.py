"""The engine: one cycle after the other, by the coordinator's plan. It decides nothing.

One cycle: plan ranges and start to listen; meanwhile perform every step that is due by what was reported before; take the reports;
list the partitions. What to do is the coordinator's decision, what to do after a failure is ``Recovery``'s.
"""

import time

from applier.coordinator import Coordinator
from applier.model.errors import SourceError
from applier.model.listing import Listing
from applier.model.position import Ts
from applier.replica.context import Components, EngineSettings, RunContext
from applier.replica.listening import Listening
from applier.replica.loading import StateLoader
from applier.replica.recovery import Recovery
from applier.replica.shutdown import Shutdown
from applier.replica.state import ReplicaState
from applier.replica.step_runner import StepRunner
from applier.sinks.progress import Progress
from applier.telemetry.observer import Watcher


class Engine:
    """Runs cycles over one source, one sink and one runner. Not thread-safe. After a shutdown request it starts no further step."""

    def __init__(self, components: Components, settings: EngineSettings, watcher: Watcher, shutdown: Shutdown) -> None:
        run = RunContext(components, settings, watcher, shutdown)
        self._run, self._state = run, ReplicaState(run)
        self._listening = Listening(run, self._state)
        self._loader = StateLoader(run, self._state, self._listening)
        self._steps = StepRunner(run, self._state)

    @property
    def progress(self) -> Progress:
        """The progress as it was read from the sink last."""
        return self._state.progress

    @property
    def coordinator(self) -> Coordinator:
        """The coordinator of the moment: a reload replaces it."""
        return self._state.coordinator

    @property
    def recovery(self) -> Recovery:
        """What has failed since the replica moved last."""
        return self._state.recovery

    def begin(self, listing: Listing, *, start_ts: Ts, accept_gap: bool) -> None:
        """Take the replica up at the sink's checkpoint, or create it at ``start_ts``. See ``StateLoader.begin``."""
        self._loader.begin(listing, start_ts=start_ts, accept_gap=accept_gap)

    def cycle(self) -> bool:
        """Listen to the next ranges while due steps are performed; return whether anything was read or done.

        After an error it may be called again: if the outcome of a step is unknown, it reloads state first.
        """
        began_s = time.monotonic()
        is_busy = self._cycle()
        if is_busy:
            self._run.watcher.tally.durations.add("cycle", time.monotonic() - began_s)
        return is_busy

    def save_progress(self) -> None:
        """Write positions that grew without a window, unless state must be reloaded first."""
        if self.recovery.cause is not None:
            return
        step = self.coordinator.progress_step()
        if step.positions == self.progress.positions and not step.rejected_events:
            # An idle feed comes here every few seconds: nothing new, so no transaction.
            self.coordinator.withdraw(step)
            return
        try:
            self._reload_if(self._steps.perform(step))
        except Exception as error:
            # The step stays open in the coordinator: without a reload the next cycle would find it there. A failed save
            # alone does not count as failing: it writes no rows.
            self.recovery.reload_for(error)
            raise

    def close(self) -> None:
        """Start no more reading; the runner's end ends what runs."""
        self._listening.close()

    def _cycle(self) -> bool:
        # The fencing token would refuse the next write anyway; asked here, the run ends with the name of the new owner instead.
        self._check_owner()
        if self.recovery.cause is not None:
            self._loader.reload(self.recovery.cause)
        # A topic may be recreated while the run waits: for the database, in a long ALTER, for Kafka itself. Unchecked, the new
        # topic would be read at the old offsets, and its rows below them would be lost.
        self._state.topics.check_if_due(self.progress.topic_ids)
        ranges = self.coordinator.plan()
        self._listening.start(ranges)
        try:
            # One try for both: a reload after a failed step releases every cached range, those that are just being read
            # included.
            is_performed = self._perform_due_steps()
            outcomes = self._listening.finish()
        except Exception as error:
            self.recovery.mark_failing(error)
            raise
        # The listening job is not waited for: nothing of it is needed, and one without executors would last all of
        # run.shutdown_timeout_s, so that nothing would be saved.
        if self._run.shutdown.is_requested:
            return is_performed
        self._reload_if(self._listening.take(outcomes))
        # Listed after the reports were taken: a window may close only then (DESIGN.md 3, "which streams count").
        self.coordinator.list(self._listing())
        return is_performed or bool(ranges)

    def _perform_due_steps(self) -> bool:
        is_performed = False
        while not self._run.shutdown.is_requested and (step := self.coordinator.next_step()) is not None:
            self._check_owner()
            self._reload_if(self._steps.perform(step))
            is_performed = True
            self._run.watcher.changed()
        return is_performed

    def _reload_if(self, cause: Exception | None) -> None:
        if cause is not None:
            self._loader.reload_after_wait(cause)

    def _listing(self) -> Listing:
        try:
            return self._run.components.source.listing()
        except SourceError:
            # A missing topic is the one sure sign that it may be recreated. Taken for an unreachable broker, records of the
            # new one could be applied until the next check, up to five seconds later.
            self._state.topics.make_check_due()
            raise

    def _check_owner(self) -> None:
        error = self._run.components.sink.heartbeat_lost()
        if error is not None:
            raise error
