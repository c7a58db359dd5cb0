"""What a run knows of its replica: loaded from the sink, and read from the source since. A reload throws all of it away."""

from collections.abc import Iterable, Mapping

from applier.coordinator import Coordinator
from applier.model.errors import NeedsOperator
from applier.model.listing import Listing
from applier.model.position import Stream, StreamPosition, Ts
from applier.model.range_report import RangeId
from applier.replica.context import RunContext
from applier.replica.partition_growth import PartitionGrowth
from applier.replica.quarantine import QuarantineRules
from applier.replica.recovery import Recovery, checkpoint_mismatch, unknown_write
from applier.replica.repeats import RepeatLog
from applier.replica.settled_ddls import starting_point
from applier.replica.sink_tables import SinkTables
from applier.replica.stored_positions import StoredPositions
from applier.replica.topic_identity import TopicIdentity
from applier.selection import Locations
from applier.sinks.progress import Progress, ProgressCommit
from applier.sinks.write_outcome import WriteOutcome
from applier.tasks.handover import RangeContent


class ReplicaState:
    """The state of one replica in one run. Not thread-safe. ``progress`` and ``coordinator`` exist after the first ``rebuild``."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        components, settings = run.components, run.settings
        self.tables = SinkTables(components.sink, settings.accept, run.watcher.note, components.source.upstream_tables)
        self.topics = TopicIdentity(components.source)
        self.quarantine = QuarantineRules(components.sink.quarantine, unreadable=settings.quarantined.unreadable)
        self.recovery = Recovery()
        self._positions = StoredPositions()
        self.timeline = components.source.timeline
        self.contents: dict[RangeId, RangeContent] = {}
        """What the cached ranges hold."""
        self.repeats = RepeatLog()
        self._growth = None
        # A source that keeps the order sends each row once.
        if settings.writes_keyless and not components.source.decoder.keeps_order:
            self._growth = PartitionGrowth(components.source, settings.settle_ms, settings.policy.required_partitions)
        self.locations: Locations
        self.progress: Progress
        self.coordinator: Coordinator

    def load(self, commit: ProgressCommit | None = None) -> Progress:
        """Read the progress from the sink. ``commit``: what this run has committed since the last time. NeedsOperator if it is missing."""
        # After a commit of our own nothing but the progress row is read again: there may be thousands of streams and tables, and nobody
        # else writes them in this epoch.
        known = None if commit is None else commit.applied_to(self.progress)
        progress = self._run.components.sink.load(known=known)
        if progress is None:
            raise NeedsOperator(
                "the progress row is missing in the sink", remedy="Restore the sink from a backup, or create the replica again"
            )
        return progress

    def read_back(self, outcome: WriteOutcome, commit: ProgressCommit) -> Exception | None:
        """Read the progress after a write. Return why state must be reloaded, if the outcome is unknown."""
        if (cause := unknown_write(outcome, self.progress.fence)) is not None:
            return cause
        self.progress = self.load(commit)
        self.locations.stored(commit.locations)
        return checkpoint_mismatch(self.progress, commit)

    def rebuild(self, progress: Progress) -> None:
        """Forget what was read and cached, and start again at ``progress``."""
        components, settings = self._run.components, self._run.settings
        self.progress = progress
        self.tables.forget()
        # At each reload too: while the run waited somebody may have added a trigger or a unique index, which would lose rows.
        self.tables.check_known(progress.known_tables)
        self.contents.clear()
        self.repeats.clear()
        if self._growth is not None:
            self._growth.begin(progress.positions)
        self.locations = Locations(components.sink.locations(), progress.known_tables, selects=settings.selects)
        # Cached ranges belong to the coordinator that planned them; a new one starts from the stored offsets.
        components.runner.release_all()
        self.quarantine.reload(progress)
        self.coordinator = Coordinator(starting_point(components.sink, progress), policy=settings.policy, until_ts=self._until_ts())

    def list(self, listing: Listing) -> None:
        """Tell the coordinator which partitions there are. Errors as of ``Coordinator.list``; SourceError."""
        # Before a window closes at what they have promised.
        if self._growth is not None:
            self.repeats.unordered_ts = self._growth.listed(listing, self.progress.checkpoint_ts)
        self.coordinator.list(listing)

    def to_store(
        self, wanted: Mapping[Stream, StreamPosition], checkpoint_ts: Ts, ranges: Iterable[RangeId] = (), *, is_last: bool = False
    ) -> dict[Stream, StreamPosition]:
        """Return the positions that a commit stores, ``ranges`` being those of its rows. See ``StoredPositions``."""
        if self._growth is not None:
            wanted = self._growth.without_new(wanted)
        with_rows = {range_id.stream for range_id in ranges}
        return self._positions.chosen(wanted, self.progress, checkpoint_ts, topic_ids=self.topics.ids, with_rows=with_rows, is_last=is_last)

    def _until_ts(self) -> Ts | None:
        settings = self._run.settings
        if settings.until_time_ms is None:
            return settings.until_ts
        return self._run.components.source.ts_at_time(settings.until_time_ms)
