"""What a run knows of its replica: loaded from the sink, and read from the source since. A reload throws all of it away.

The sink's skip rules and quarantine (``QuarantineRules``) are read when the run starts, and at every reload.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from applier.coordinator import Coordinator
from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA, StartingPoint
from applier.coordinator.stream_state import CLOSED_TS
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName
from applier.model.failure import FailureKind
from applier.model.position import Listing, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import is_past, passed_with
from applier.replica.context import RunContext
from applier.replica.missing_tables import MissingTables
from applier.replica.recovery import Recovery, checkpoint_mismatch, unknown_write
from applier.replica.segment_writer import PartitionGrowth, RepeatLog
from applier.replica.sink_tables import SinkTables
from applier.selection import Locations
from applier.sinks.bookkeeping.quarantine import QuarantineStore
from applier.sinks.ledger_entry import DdlState
from applier.sinks.port import Sink
from applier.sinks.progress import Progress, ProgressCommit, WriteOutcome
from applier.sinks.quarantine import Quarantined
from applier.sources.port import RangeReader, TopicFacts
from applier.tasks.handover import RangeContent
from applier.tasks.tolerance import Tolerance
from applier.tasks.write import RecordFetcher
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Watcher


class QuarantineRules:
    """The rules by which events are quarantined or skipped. Not thread-safe."""

    def __init__(self, store: QuarantineStore, *, unreadable: bool) -> None:
        """Take the sink's quarantine. ``unreadable``: events that cannot be read are quarantined."""
        self._store, self._unreadable = store, unreadable
        self._tolerances: dict[Stream, Tolerance] = {}
        self._common = Tolerance(unreadable=unreadable)

    def reload(self, progress: Progress) -> None:
        """Read what matters from ``progress`` on."""
        stored: dict[Stream, set[tuple[int, int]]] = defaultdict(set)
        for event in self._store.positions():
            stored[event.stream].add(event[1:])
        skipped: dict[Stream, dict[tuple[int, int], str]] = defaultdict(dict)
        skipped_ts: dict[tuple[Ts, FoldedName | None], str] = {}
        for rule in self._store.skip_rules():
            if rule.position is not None:
                skipped[rule.position.stream][rule.position.offset, rule.position.event] = rule.decided_by
            # A transaction below A is applied or skipped already.
            elif not is_past(rule.commit_ts, progress.checkpoint_ts):
                skipped_ts[rule.commit_ts, rule.table] = rule.decided_by
        self._common = Tolerance(unreadable=self._unreadable, skipped_ts=skipped_ts)
        self._tolerances = {}
        for stream in stored.keys() | skipped.keys():
            position = progress.positions.get(stream)
            # Positions below the stored offset are not read again. Without this bound the tolerances that travel with each
            # task grow for years.
            first = 0 if position is None else position.next_offset
            self._tolerances[stream] = replace(
                self._common,
                stored=frozenset(event for event in stored[stream] if event[0] >= first),
                skipped={event: decided_by for event, decided_by in skipped[stream].items() if event[0] >= first},
            )

    def note(self, events: Sequence[RejectedEvent], progress: Progress, watcher: Watcher) -> None:
        """Log what this run has just stored, and remember it: a merge reads its ranges again. Below the positions nothing is read again."""
        for event in events:
            watcher.note(LogEvent.EVENT_QUARANTINED, **event.facts)
        found: dict[Stream, set[tuple[int, int]]] = defaultdict(set)
        for event in events:
            found[event.position.stream].add(event.position[1:])
        for stream, rejected in found.items():
            known, position = self.tolerance_of(stream), progress.positions.get(stream)
            first = 0 if position is None else position.next_offset
            stored = frozenset(event for event in known.stored | rejected if event[0] >= first)
            self._tolerances[stream] = replace(known, stored=stored)

    def tolerance_of(self, stream: Stream) -> Tolerance:
        """Return what a listener of ``stream`` may exclude."""
        return self._tolerances.get(stream, self._common)

    def skips(self, ddl: DdlEvent) -> bool:
        """Return whether the operator has a rule to skip a DDL."""
        rules: Mapping[tuple[Ts, FoldedName | None], str] = self._common.skipped_ts
        return (ddl.commit_ts, ddl.name.fold()) in rules or (ddl.commit_ts, None) in rules

    def quarantined(self, events: Iterable[RejectedEvent], reader: RangeReader) -> Quarantined | None:
        """Return what a transaction stores in the quarantine; None for nothing. The listeners have refused too many already."""
        # The records go through this process, one by one: there are few, and a transaction without rows has no task that could do it.
        found = tuple(events)
        return Quarantined(RecordFetcher(reader), found, at_most=None) if found else None


# --- settled ddls ----------------------------------------------------------------------------------------------------
# What a run loads of the ledger: the identities at and above the checkpoint, and older DDLs when they are replayed.
#
# The ledger is never pruned, and a replay may bring any of its DDLs at any time. Loaded whole it would hold years of DDLs in memory, so the
# run asks about an old one when it arrives: one query per set of reports, however many DDLs they hold.


def load_starting_point(sink: Sink, progress: Progress) -> StartingPoint:
    """Return the durable state from which a coordinator begins."""
    # Intents are not settled yet, so they are no reason to drop the DDL when it comes again. What runs in the background is.
    settled = [key for key in sink.bookkeeping.ledger_since(progress.checkpoint_ts) if key.state is not DdlState.INTENT]
    # Rows at A of tables that a DDL at A has touched are not applied again: their table is another one now (DESIGN.md 3, Rows).
    at_checkpoint = [
        key.identity.touches for key in settled if key.identity.ts == progress.checkpoint_ts and key.state is not DdlState.SKIPPED
    ]
    return StartingPoint(
        checkpoint_ts=progress.checkpoint_ts,
        start_ts=progress.start_ts,
        positions=progress.positions,
        settled=frozenset(key.identity for key in settled),
        ahead_tables=progress.ahead_tables,
        ddl_touched_at_checkpoint=None if None in at_checkpoint else frozenset().union(*[t for t in at_checkpoint if t is not None]),
    )


def report_settled(sink: Sink, coordinator: Coordinator, reports: Sequence[RangeReport]) -> None:
    """Report to the coordinator which old DDLs of ``reports`` the ledger has settled. Comes before the reports themselves."""
    times = coordinator.ddls_to_ask(reports)
    if times:
        coordinator.add_settled(key.identity for key in sink.bookkeeping.ledger_at(times) if key.state is not DdlState.INTENT)


# --- topic identity --------------------------------------------------------------------------------------------------
# Detects a topic that was deleted and created again: it has other records at the same offsets.
#
# Offsets alone show that only while the new topic is shorter than what was read of the old one. Kafka gives each topic an id for life.

CHECK_INTERVAL_S: Final = 5.0
"""Between two requests. Partitions are listed in each cycle anyway, and no new topic outgrows an old one unseen in less time."""


class TopicIdentity:
    """The ids of the topics. Not thread-safe."""

    def __init__(self, topics: TopicFacts | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._topics, self._clock = topics, clock
        self._checked_at: float | None = None
        self.ids: dict[str, str] = {}
        """Kafka's ids so far; recorded with the progress."""

    def check(self, recorded: Mapping[str, str]) -> None:
        """Compare Kafka's ids with those ``recorded`` in the sink and with earlier ones. NeedsOperator if a topic was recreated."""
        present = {} if self._topics is None else dict(self._topics.ids())
        # Only topics that Kafka gives an id: old brokers and mock clusters have none, and then nothing is compared.
        for topic, topic_id in present.items():
            for known in (recorded.get(topic, topic_id), self.ids.get(topic, topic_id)):
                if known != topic_id:
                    raise NeedsOperator(
                        "the topic was recreated; stored offsets are invalid",
                        remedy=FROM_DUMP_TO_REPLICA,
                        kind=FailureKind.RECREATED,
                        topic=topic,
                        recorded_id=known,
                        present_id=topic_id,
                    )
        # Merged, not replaced: a broker that does not answer with ids for a while must not make the run forget them.
        self.ids |= present
        self._checked_at = self._clock()

    def make_check_due(self) -> None:
        """Make the next check due at once: the topics could not be listed, and a topic is missing while it is recreated."""
        self._checked_at = None

    def check_if_due(self, recorded: Mapping[str, str]) -> None:
        """Check if ``CHECK_INTERVAL_S`` has passed. After a long wait that is so, before anything that is read then is applied."""
        if self._checked_at is None or self._clock() - self._checked_at >= CHECK_INTERVAL_S:
            self.check(recorded)


# --- stored positions ------------------------------------------------------------------------------------------------
# Which positions a commit stores: at once if they matter to the next start, the others now and then.
#
# A resolved event moves the position of each partition about once a second. Of ten thousand rows of the bookkeeping, a commit would write
# all, though rows came in a few of them. A position that is stored later is an older one: the next start reads its stream from there, and
# knows what it finds (DESIGN.md section 3). So an unchanged row means the same position, and a promise is there for display.

FEW: Final = 100
"""Number of rows that any commit may write in addition: they cost less than a millisecond."""
EVERY_S: Final = 10.0
"""How old a stored position may be. Retention and ``stall_after_s`` are counted in minutes at least."""


class StoredPositions:
    """Chooses among positions. It forgets nothing: what was not stored still differs from what is."""

    def __init__(self) -> None:
        self._due_s = 0.0

    def chosen(
        self,
        wanted: Mapping[Stream, StreamPosition],
        progress: Progress,
        checkpoint_ts: Ts,
        *,
        topic_ids: Mapping[str, str],
        with_rows: Collection[Stream] = (),
        is_last: bool = False,
    ) -> dict[Stream, StreamPosition]:
        """Return the positions to store with ``checkpoint_ts``.

        ``progress`` is what is stored, ``with_rows`` are the streams whose rows are written, ``topic_ids`` go with the positions.
        ``is_last``: nothing more may be stored by this run for long.
        """
        named = {topic for topic, topic_id in topic_ids.items() if progress.topic_ids.get(topic) != topic_id}
        stored = progress.positions
        changed = {stream: position for stream, position in wanted.items() if stored.get(stream) != position or stream.topic in named}
        now = time.monotonic()
        if is_last or len(changed) <= FEW or now >= self._due_s:
            if len(changed) > FEW:
                self._due_s = now + EVERY_S
            return changed
        rows = frozenset(with_rows)
        implied_ts = passed_with(checkpoint_ts)
        return {
            stream: position
            for stream, position in changed.items()
            if stream in rows or stream.topic in named or _matters(position, stored.get(stream), implied_ts)
        }


def _matters(position: StreamPosition, stored: StreamPosition | None, implied_ts: Ts) -> bool:
    """Whether the next start could not do without a position. ``implied_ts``: up to where the checkpoint says that rows are written."""
    if stored is None or (position.resolved_ts == CLOSED_TS) != (stored.resolved_ts == CLOSED_TS):
        return True
    # Rows ahead of the checkpoint are written once. 0 says that none are.
    return bool(position.applied_ts) != bool(stored.applied_ts) or max(position.applied_ts, implied_ts) != max(
        stored.applied_ts, implied_ts
    )


# --- state -----------------------------------------------------------------------------------------------------------


class ReplicaState:
    """The state of one replica in one run. Not thread-safe. ``progress`` and ``coordinator`` exist after the first ``rebuild``."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        components, settings = run.components, run.settings
        self.tables = SinkTables(components.sink, settings.accept, run.watcher.note, components.source.upstream_tables)
        self.missing = MissingTables(components.sink, components.upstream_lister)
        self.topics = TopicIdentity(components.source.topics)
        self.quarantine = QuarantineRules(components.sink.bookkeeping.quarantine, unreadable=settings.quarantined.unreadable)
        self.recovery = Recovery()
        self._positions = StoredPositions()
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
        # After a commit of our own nothing but the progress row is read again: there may be thousands of streams and tables, and no one
        # else writes them in this epoch.
        known = None if commit is None else commit.applied_to(self.progress)
        progress = self._run.components.sink.load(known=known)
        if progress is None:
            raise NeedsOperator(
                "the progress row is missing in the sink",
                remedy=Remedy("replica.restore-backup", "Restore the sink from a backup, or create the replica again"),
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
        # At each reload too: while the run waited someone may have added a trigger or a unique index, which would lose rows.
        self.tables.check_known(progress.known_tables)
        self.contents.clear()
        self.repeats.clear()
        if self._growth is not None:
            self._growth.begin(progress.positions)
        self.locations = Locations(components.sink.bookkeeping.locations(), progress.known_tables, selects=settings.selects)
        # Cached ranges belong to the coordinator that planned them; a new one starts from the stored offsets.
        components.runner.release_all()
        self.quarantine.reload(progress)
        self.coordinator = Coordinator(load_starting_point(components.sink, progress), policy=settings.policy, until_ts=self._until_ts())

    def list(self, listing: Listing) -> None:
        """Tell the coordinator which partitions there are. Errors as in ``Coordinator.list``; SourceError."""
        # Before a window closes at what they have promised.
        if self._growth is not None:
            self.repeats.unordered_ts = self._growth.listed(listing, self.progress.checkpoint_ts)
        self.coordinator.list(listing)

    def to_store(
        self, wanted: Mapping[Stream, StreamPosition], checkpoint_ts: Ts, ranges: Iterable[RangeId] = (), *, is_last: bool = False
    ) -> dict[Stream, StreamPosition]:
        """Return the positions that a commit stores, ``ranges`` being the ranges of its rows. See ``StoredPositions``."""
        if self._growth is not None:
            wanted = self._growth.without_new(wanted)
        with_rows = {range_id.stream for range_id in ranges}
        return self._positions.chosen(wanted, self.progress, checkpoint_ts, topic_ids=self.topics.ids, with_rows=with_rows, is_last=is_last)

    def _until_ts(self) -> Ts | None:
        settings = self._run.settings
        if settings.until_time_ms is None:
            return settings.until_ts
        return self._run.components.source.times.ts_at(settings.until_time_ms)
