"""The engine: repeats cycles by the coordinator's plan. It decides nothing.

Three lanes work at once: the next ranges are read, the next segments are prepared, and one segment is written. One cycle begins what can
begin in each lane, performs the other steps that are due (a DDL waits for the segments before it), and takes what a lane has done. What to
do is the coordinator's decision, what to do after a failure is ``Recovery``'s.
"""

import time

from applier.coordinator import Coordinator
from applier.coordinator.step import ApplyRows, ApplySegment
from applier.model.errors import ApplierError
from applier.model.position import Listing
from applier.replica.context import LOOK_S, Components, EngineSettings, RunContext
from applier.replica.lanes import Lanes
from applier.replica.loading import StateLoader
from applier.replica.recovery import Recovery
from applier.replica.shutdown import Shutdown
from applier.replica.state import ReplicaState
from applier.sinks.progress import Progress
from applier.sources.start import StartPoint
from applier.telemetry.observer import Watcher


class Engine:
    """Runs cycles over one source, one sink and one runner. Not thread-safe. After a shutdown request it starts no further step."""

    def __init__(self, components: Components, settings: EngineSettings, watcher: Watcher, shutdown: Shutdown) -> None:
        run = RunContext(components, settings, watcher, shutdown)
        self._run, self._state = run, ReplicaState(run)
        self._lanes = Lanes(run, self._state)
        self._loader = StateLoader(run, self._state, self._lanes)

    @property
    def progress(self) -> Progress:
        """The progress as it was read from the sink last."""
        return self._state.progress

    @property
    def coordinator(self) -> Coordinator:
        """The present coordinator: a reload replaces it."""
        return self._state.coordinator

    @property
    def recovery(self) -> Recovery:
        """The failures since the checkpoint last moved."""
        return self._state.recovery

    @property
    def is_idle(self) -> bool:
        """Whether everything that Kafka holds is read, and nothing waits to be written."""
        return self._lanes.is_idle and self.recovery.cause is None

    @property
    def waits_for_nothing(self) -> bool:
        """Whether no step has failed and none runs: then an answer of the sink is enough."""
        return self.is_idle or not (self.recovery.is_failing or self.recovery.cause or self._lanes.is_writing)

    def begin(self, start: StartPoint, *, accept_gap: bool) -> Listing:
        """Continue the replica at the sink's checkpoint, or create it at ``start``; return the partitions. See ``StateLoader.begin``."""
        return self._loader.begin(start, accept_gap=accept_gap)

    def cycle(self) -> bool:
        """Begin what can begin in each lane, wait a little, and take what is done; return whether there was anything to do.

        After an error it may be called again: if the outcome of a step is unknown, it reloads state first.
        """
        began_s = time.monotonic()
        is_busy = self._cycle()
        if is_busy:
            self._run.watcher.tally.durations.add("cycle", time.monotonic() - began_s)
        return is_busy

    def save_progress(self, *, is_last: bool = False) -> None:
        """Write positions that grew without a window, unless state must be reloaded first. ``is_last``: all of them."""
        if self.recovery.cause is not None:
            return
        if self._lanes.is_writing:
            if not self._run.shutdown.is_requested:
                return  # the segment stores the positions
            self._reload_if(self._lanes.take_written())
            if self._lanes.is_writing:
                return  # in another way, after a refused row: the next start does it
        step = self.coordinator.progress_step()
        try:
            self._reload_if(self._lanes.steps.save(step, is_last=is_last))
        except Exception as error:
            # The step stays open in the coordinator: without a reload the next cycle would find it there. A failed save
            # alone does not count as failing: it writes no rows.
            self.recovery.reload_for(error)
            raise

    def pause(self) -> None:
        """Wait for the segment that is being written, save the progress, and drop what was read ahead. The next cycle reloads state."""
        while self._lanes.is_writing and not self._run.shutdown.is_requested:
            self._run.shutdown.wait(LOOK_S)
            self.check_owner()
            self._reload_if(self._lanes.take_done())
        self.save_progress(is_last=True)
        if self._run.shutdown.is_requested:
            return  # the end of the run takes what is left
        self._lanes.discard()
        self._run.components.runner.release_all()
        # An operator pauses to change something: tables, privileges, settings. All of it is looked at again.
        self.recovery.reload_for(ApplierError("the replica was paused"))

    def check_owner(self) -> None:
        """Raise why this run must stop, if its heartbeat has found a reason."""
        error = self._run.components.sink.heartbeat_lost()
        if error is not None:
            raise error

    def check_tables(self) -> None:
        """Look for tables of upstream that the sink lacks, unless this run has. NeedsOperator names them."""
        self._state.missing.check(self.progress.checkpoint_ts)

    def close(self) -> None:
        """Start no more work; closing the runner ends what runs."""
        self._lanes.close()

    def _cycle(self) -> bool:
        self._run.watcher.held_since(self._lanes.held_since_s)
        # The fencing token would refuse the next write anyway; asked here, the run ends with the name of the new owner instead.
        self.check_owner()
        if self.recovery.cause is not None:
            self._loader.reload(self.recovery.cause)
        # A topic may be recreated while the run waits: for the database, in a long ALTER, for Kafka itself. Unchecked, the new
        # topic would be read at the old offsets, and its rows below them would be lost.
        self._state.topics.check_if_due(self.progress.topic_ids)
        self._state.missing.check_if_due(self.progress.checkpoint_ts)
        is_begun = self._lanes.read_ahead()
        try:
            is_begun |= self._perform_due_steps()
        except Exception as error:
            self.recovery.mark_failing(error)
            raise
        if not self._lanes.is_busy:
            if not is_begun:
                self._run.shutdown.wait(self._lanes.idle_s)
            return is_begun
        # The lanes are not waited for at a shutdown: nothing of them is needed but the segment that is being written, and a listening job
        # without executors would last all of run.shutdown_timeout_s, so that nothing would be saved.
        self._lanes.wait(LOOK_S)  # no longer: a shutdown, or the loss of the replica lock, must be seen
        if not self._run.shutdown.is_requested:
            self._reload_if(self._lanes.take_done())
        return True

    def _perform_due_steps(self) -> bool:
        """Perform what is due, up to a segment that must be written: that happens in its lane."""
        is_begun = False
        while not self._run.shutdown.is_requested and self.recovery.cause is None:
            is_begun |= self._lanes.prepare_ahead()
            if self._lanes.is_writing or (step := self.coordinator.next_step()) is None:
                break
            self.check_owner()
            if not isinstance(step, ApplySegment | ApplyRows):
                self._reload_if(self._lanes.steps.perform(step))
                self._run.watcher.changed()
            elif not self._lanes.write(step):
                self.coordinator.withdraw(step)  # it is being prepared
                break
            is_begun = True
        return is_begun

    def _reload_if(self, cause: Exception | None) -> None:
        if cause is not None:
            self._loader.reload_after_wait(cause)
