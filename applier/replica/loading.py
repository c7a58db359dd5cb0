"""Loads a run's state from the sink: at its start, and again after a failure with an unknown outcome.

Both ways settle what an earlier run (or this one) may have left, and check that the topics still hold what the replica needs: retention
does not wait for a commit, and a topic may be recreated while the run waits.
"""

from collections.abc import Mapping
from dataclasses import replace

from applier.coordinator.starting_point import check_beginning, streams_that_begin_late
from applier.model.position import Listing, Offset, Stream, Ts
from applier.model.segment import moves_checkpoint
from applier.replica.context import RunContext
from applier.replica.lanes import Lanes
from applier.replica.recovery import reason
from applier.replica.state import ReplicaState
from applier.sinks.progress import Fence, Progress
from applier.sources.start import ReplicaPosition, StartPoint
from applier.telemetry.activity import DDL
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent
from applier.telemetry.retries import failure_facts


class StateLoader:
    """Loads the state of one replica. Not thread-safe."""

    def __init__(self, run: RunContext, state: ReplicaState, lanes: Lanes) -> None:
        self._run, self._state, self._lanes = run, state, lanes
        self._accepted: Mapping[Stream, Offset] = {}
        """The earliest offsets of streams whose gap the operator has accepted."""

    def begin(self, start: StartPoint, *, accept_gap: bool) -> Listing:
        """Take the replica up at the sink's checkpoint, or create it at ``start``; return the partitions. The sink must have been acquired.

        NeedsOperator if the source does not hold the replica's beginning any more, or a topic was recreated.
        """
        sink, watcher, state = self._run.components.sink, self._run.watcher, self._state
        progress = sink.load()
        listing = self._listing(progress or start)
        if accept_gap:
            self._accepted = {stream: extent.earliest for stream, extent in listing.extents.items()}
        # Before the replica is created: a refused start must not leave a progress row behind, which a later start would resume.
        self._check_gap(listing, progress.positions if progress else {}, progress.start_ts if progress else start.start_ts)
        if progress is None:
            progress = sink.begin(start.start_ts, start.state)
            watcher.note(LogEvent.REPLICA_CREATED, start_ts=start.start_ts, epoch=progress.fence.epoch)
        else:
            watcher.note(LogEvent.REPLICA_RESUMED, checkpoint_ts=progress.checkpoint_ts, epoch=progress.fence.epoch)
        state.topics.check(progress.topic_ids)
        self._settle(progress.fence)
        # Read again: a settled DDL has moved the fence and the positions.
        state.rebuild(state.load())
        # Only now: before the first rebuild there is no coordinator to look at.
        watcher.watch(state)
        state.coordinator.list(listing)
        return listing

    def _listing(self, at: Progress | StartPoint) -> Listing:
        """Tell the source where the replica is, and list the partitions as they are from there."""
        source = self._run.components.source
        if isinstance(at, Progress):
            position = ReplicaPosition(checkpoint_ts=at.checkpoint_ts, positions=at.positions, state=at.source_state)
        else:
            position = ReplicaPosition(checkpoint_ts=at.start_ts, positions={}, state=at.state)
        if source.position is not None:
            source.position.resume(replace(position, xa=self._run.components.sink.bookkeeping.xa))
        listing = source.listing()
        self._run.components.check_topics()
        return listing

    def reload_after_wait(self, cause: Exception) -> None:
        """Wait as long as ``Recovery`` says, then reload. JobAborted or UnknownOutcome if this has happened too often in a row."""
        recovery = self._state.recovery
        wait_s = recovery.next_wait_s(cause)
        self._run.watcher.note(LogEvent.RETRY, **failure_facts(cause), attempt=recovery.reloads, wait_s=round(wait_s, 2))
        # A shutdown ends the wait, not the reload: the progress that is saved at the end must not come from state that may be wrong.
        self._run.shutdown.wait(wait_s)
        self.reload(cause)

    def reload(self, cause: Exception) -> None:
        """Start again from the sink's checkpoint, under a new epoch."""
        components, watcher, state = self._run.components, self._run.watcher, self._state
        watcher.tally.rebuilt()
        watcher.note(LogEvent.RECOVERING, **reason(cause))
        # First: a job that still runs would cache ranges that the new coordinator plans again.
        self._lanes.discard()
        # Raising the epoch comes before reading the progress: after that no write still in flight can change what is read (DESIGN.md 8).
        self._settle(components.sink.raise_epoch().fence)
        progress = state.load()
        listing = self._listing(progress)
        # A segment may have been written while another lane failed, and its outcome was not taken.
        if moves_checkpoint(progress.checkpoint_ts, state.progress.checkpoint_ts):
            state.recovery.moved()
            watcher.worked(Side.REST)
        # Before the offsets of this progress are used for anything.
        state.topics.check(progress.topic_ids)
        self._check_gap(listing, progress.positions, progress.start_ts)
        state.rebuild(progress)
        watcher.note(LogEvent.STATE_RELOADED, checkpoint_ts=progress.checkpoint_ts, epoch=progress.fence.epoch)
        state.coordinator.list(listing)
        state.recovery.reloaded()
        # If no step has failed, the sink itself has: it has just answered.
        if not state.recovery.is_failing:
            watcher.worked(Side.REST)

    def _settle(self, fence: Fence) -> None:
        """Settle the DDLs that an earlier run has begun. One of them may still run for hours, so this is the phase of a DDL."""
        with self._run.watcher.during(DDL):
            self._run.components.sink.settle(fence)

    def _check_gap(self, listing: Listing, positions: Mapping[Stream, object], start_ts: Ts) -> None:
        """Refuse streams without a position whose expired records may matter. NeedsOperator names the gap."""
        # Offset 0 needs no check: nothing has expired before it.
        late = [s for s in streams_that_begin_late(listing, positions) if listing.extents[s].earliest > self._accepted.get(s, 0)]
        check_beginning(late, listing, start_ts, self._run.components.source.times.holds_all_since)
