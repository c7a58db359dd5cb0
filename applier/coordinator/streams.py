"""All streams that are read: which of them count, what they have promised, and their positions.

A window closes only at a list of partitions that was fetched after the resolved events were read (DESIGN.md 3, "which streams count"): a
partition that appeared before those events were written may hold rows below them. A new partition that holds a record is required from
its first offset on; one that has never held any is not, unless an admin event has announced it. One that its own last record, an admin
event, takes out of use is closed: it promises everything.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from applier.coordinator.cache import Cache
from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA
from applier.coordinator.stream_state import CLOSED_TS, PlacedDdl, StreamState, StreamStatus
from applier.model.errors import InvariantViolation, NeedsOperator, Remedy
from applier.model.events import DdlIdentity
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Listing, Offset, PartitionExtent, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import has_shown_past, is_past, passed_with
from applier.model.topic_name import PartitionLimits

# --- partition check -------------------------------------------------------------------------------------------------


def is_required(stream: Stream, partitions: Mapping[str, int] | PartitionLimits | None) -> bool:
    """Whether a partition counts: all do, unless ``partitions`` gives its topic a smaller number."""
    return partitions is None or stream.partition < partitions.get(stream.topic, stream.partition + 1)


def has_held_records(extent: PartitionExtent) -> bool:
    """Whether a record was ever written to a partition. One that has never held any is not required."""
    # Not ``earliest < end``: a partition that retention has emptied has held records too.
    return extent.end > 0


def check_excluded(stream: Stream, extent: PartitionExtent) -> None:
    """Refuse a record in a partition that the configuration excludes."""
    if extent.earliest < extent.end:
        raise _stop(
            stream,
            FailureKind.EXCLUDED_PARTITION,
            "the partition holds records, but source.partitions excludes it",
            Remedy("coordinator.raise-source-partitions", "Raise source.partitions, or remove the setting"),
            offset=extent.earliest,
        )


def check_known(stream: Stream, extent: PartitionExtent, next_offset: Offset, seen_end: Offset) -> None:
    """Check that the next records of a stream are still there, and that the stream is the one that was read before.

    ``seen_end`` is the end that an earlier list has shown: if it steps back, the records between are gone, and the run would wait for them.
    """
    if next_offset < extent.earliest:
        raise _stop(
            stream,
            FailureKind.RETENTION,
            "records expired before the replica applied them",
            Remedy("coordinator.lengthen-retention", f"Give the topic a longer retention. {FROM_DUMP_TO_REPLICA}"),
            missing_offsets=f"{next_offset}..{extent.earliest - 1}",
        )
    # A recreated topic counts its offsets from 0 again: its records would look like some that were read already.
    if extent.end < max(next_offset, seen_end) or not has_held_records(extent):
        raise _stop(
            stream,
            FailureKind.RECREATED,
            "the partition ends before an offset that was already seen: the topic was recreated or truncated",
            FROM_DUMP_TO_REPLICA,
            next_offset=next_offset,
            seen_end=seen_end,
            end_offset=extent.end,
        )


def check_new(stream: Stream, extent: PartitionExtent) -> None:
    """Refuse a partition that appeared while the replica runs and has lost its beginning already."""
    if extent.earliest > 0:
        raise _stop(
            stream,
            FailureKind.GAP,
            "the beginning of a new partition expired before it was read",
            Remedy("coordinator.lengthen-retention-of-new-partition", f"Give the topic a longer retention. {FROM_DUMP_TO_REPLICA}"),
            missing_offsets=f"0..{extent.earliest - 1}",
        )


def missing(stream: Stream) -> NeedsOperator:
    """Make the error for a partition that was read before and no longer exists."""
    return _stop(
        stream,
        FailureKind.RECREATED,
        "a partition that the replica has read is gone: its topic was removed from the configuration, recreated or shrunk",
        Remedy("coordinator.restore-topic", f"Put the topic back into source.topics, or create the replica again. {FROM_DUMP_TO_REPLICA}"),
    )


def _stop(stream: Stream, kind: FailureKind, message: str, remedy: Remedy, **facts: Any) -> NeedsOperator:
    return NeedsOperator(message, remedy=remedy, kind=kind, topic=stream.topic, partition=stream.partition, **facts)


# --- new topics ------------------------------------------------------------------------------------------------------
# New topics: a topic that is added to a replica with a checkpoint must have no history below that checkpoint (DESIGN.md 3).
#
# A topic is known when the sink stores positions of its streams. A new topic is checked by every partition that holds records: from its
# first offset up to its first resolved event above the checkpoint, no row and no DDL may lie below the checkpoint. What comes later on
# that partition may: it is a replay. The promise proves that: the producer had written everything below it, to all partitions, so a
# listing fetched after all promises shows every partition that could still hold a missed row.
#
# Until then no position of the topic is stored, so a restart at any moment checks it again from its first offset. The checkpoint cannot
# move meanwhile: the watermark is held by the partitions that have not promised more. The positions are stored by the same transaction
# that moves the checkpoint (or saves progress) after the topic was checked.

REMEDY = Remedy(
    "coordinator.remove-new-topic",
    "Remove the topic from source.topics. To replicate its tables, create a new replica: dump the upstream with them, load the dump, "
    "set source.start_ts to the dump's TSO, and give the replica another `name`",
)


class NewTopics:
    """Known topics, and the streams of new topics that are not checked yet."""

    __slots__ = ("_known", "_unchecked")

    def __init__(self, known: Iterable[str]) -> None:
        self._known = set(known)
        self._unchecked: dict[str, set[Stream]] = {}

    def is_known(self, topic: str) -> bool:
        """Whether positions of the topic's streams may be stored."""
        return topic in self._known

    def join(self, stream: Stream, *, has_history: bool) -> None:
        """Record a stream that is read now. ``has_history``: the checkpoint has moved, so a new topic must be checked."""
        if stream.topic in self._known:
            return
        if has_history:
            self._unchecked.setdefault(stream.topic, set()).add(stream)
        else:
            self._known.add(stream.topic)

    def check(self, report: RangeReport, checkpoint_ts: Ts) -> None:
        """Compare a range of the contiguous prefix with the checkpoint. NeedsOperator if the topic has a history below it."""
        if not self._unchecked:
            return
        stream = report.range.stream
        waiting = self._unchecked.get(stream.topic, set())
        if stream not in waiting:
            return
        if report.early_ts and is_past(report.early_ts, checkpoint_ts):
            raise _missed_topic(stream, report.early_offset, report.early_ts, checkpoint_ts)
        if has_shown_past(report.resolved_ts, checkpoint_ts):
            waiting.remove(stream)

    def listed(self) -> None:
        """Mark topics as known whose streams are all checked. Call it after all partitions of a listing have joined."""
        # Not at the last promise: another partition of the topic may have appeared meanwhile, and only a list shows it.
        checked = [topic for topic, waiting in self._unchecked.items() if not waiting]
        for topic in checked:
            del self._unchecked[topic]
        self._known.update(checked)


def _missed_topic(stream: Stream, offset: Offset, ts: Ts, checkpoint_ts: Ts) -> NeedsOperator:
    return NeedsOperator(
        "a new topic has events below the checkpoint: the replica has missed its history",
        remedy=REMEDY,
        kind=FailureKind.MISSED_TOPIC,
        topic=stream.topic,
        partition=stream.partition,
        offset=offset,
        commit_ts=ts,
        checkpoint_ts=checkpoint_ts,
    )


# --- streams ---------------------------------------------------------------------------------------------------------


class Streams:
    """The streams that are read, by name. ``pending``: the DDLs that are not settled, which change under it."""

    __slots__ = ("_announced", "_is_listed", "_new_topics", "_partitions", "_pending", "_states", "_stored", "applied")

    def __init__(
        self,
        stored: Mapping[Stream, StreamPosition],
        partitions: Mapping[str, int] | PartitionLimits | None,
        pending: Collection[DdlIdentity],
    ) -> None:
        self._stored = dict(stored)
        self._partitions = partitions
        self._pending = pending
        self._new_topics = NewTopics(stream.topic for stream in stored)
        self._states: dict[Stream, StreamState] = {}
        self._announced: dict[str, int] = {}
        """The number of partitions of a topic that its latest admin event has announced."""
        self._is_listed = False
        self.applied: dict[Stream, Ts] = {}
        """Up to where rows are written ahead of the checkpoint, of streams where they may be (``rows_ahead``)."""

    def __iter__(self) -> Iterator[StreamState]:
        """Yield the streams in the order in which they joined."""
        return iter(self._states.values())

    def of(self, range_id: RangeId) -> StreamState:
        """Return the stream of a range; InvariantViolation if it is not read."""
        if range_id.stream not in self._states:
            raise InvariantViolation("the range belongs to a stream that is not read", range=range_id)
        return self._states[range_id.stream]

    # --- promises --------------------------------------------------------------------------------------------------

    def resolved_ts(self, stream: Stream, checkpoint_ts: Ts) -> Ts:
        """Return what a stream has promised; never below the checkpoint; 0 for a partition that is not read."""
        state = self._states.get(stream)
        return NO_TS if state is None else max(state.resolved_ts, checkpoint_ts)

    def least_resolved_ts(self, checkpoint_ts: Ts) -> Ts:
        """Return the least promise of all streams: what closes a window."""
        # The least, not the greatest: with the window closed at the greatest, 797 of 3,000 simulated histories end wrong.
        return max(min((state.resolved_ts for state in self if not state.is_closed), default=checkpoint_ts), checkpoint_ts)

    def known_ts(self) -> Ts:
        """Return up to where the DDLs of all topics are known: each topic sends its own to all of its partitions."""
        topics: dict[str, Ts] = {}
        for state in self:
            topics[state.stream.topic] = max(topics.get(state.stream.topic, NO_TS), state.resolved_ts)
        return min(topics.values(), default=NO_TS)

    def holding(self, checkpoint_ts: Ts) -> Stream | None:
        """Return the stream with the least promise, of several the first by name."""
        open_streams = (state.stream for state in self if not state.is_closed)
        return min(open_streams, key=lambda stream: (self.resolved_ts(stream, checkpoint_ts), stream), default=None)

    # --- lists of partitions ---------------------------------------------------------------------------------------

    def list(self, listing: Listing, checkpoint_ts: Ts, *, has_history: bool) -> None:
        """Record the partitions. NeedsOperator if they contradict what is known (expired, recreated, excluded records).

        ``has_history``: the checkpoint has moved, so a topic that is new must not have records below it.
        """
        for stream in (*self._stored, *self._states):
            if stream not in listing.extents and is_required(stream, self._partitions):
                raise missing(stream)
        joining = []
        for stream, extent in listing.extents.items():
            if not is_required(stream, self._partitions):
                check_excluded(stream, extent)
            elif stream in self._states:
                self._grow(self._states[stream], extent)
            else:
                joining.append(stream)
        for stream in sorted(joining):
            self._join(stream, listing.extents[stream], checkpoint_ts, has_history=has_history)
        self._new_topics.listed()
        self._is_listed = True

    def has_new_topic(self, listing: Listing) -> bool:
        """Whether a list shows a partition of a topic that is not read yet, and that would have to be checked."""
        return any(
            stream not in self._states and not self._new_topics.is_known(stream.topic) and has_held_records(extent)
            for stream, extent in listing.extents.items()
            if is_required(stream, self._partitions)
        )

    def _grow(self, state: StreamState, extent: PartitionExtent) -> None:
        # One that was announced, and has not held a record yet.
        if not state.end and not extent.end:
            return
        # From ``planned`` on: ranges that are being read fail anyway if their records expire.
        check_known(state.stream, extent, state.planned, state.end)
        state.grow(extent)

    def _join(self, stream: Stream, extent: PartitionExtent, checkpoint_ts: Ts, *, has_history: bool) -> None:
        stored = self._stored.get(stream)
        if stored is not None:
            check_known(stream, extent, stored.next_offset, stored.next_offset)
        elif not has_held_records(extent) and stream.partition >= self._announced.get(stream.topic, 0):
            return
        elif self._is_listed:
            check_new(stream, extent)
        # Required from its first offset on, before it has promised anything: real replays may lie there. Required only after its first
        # promise, 220 of 3,000 simulated histories end wrong.
        start = extent.earliest if stored is None else stored.next_offset
        self._new_topics.join(stream, has_history=has_history)
        state = self._states[stream] = StreamState(stream, start, extent, checkpoint_ts)
        if stored is not None and stored.resolved_ts == CLOSED_TS:
            state.close()

    # --- reports ---------------------------------------------------------------------------------------------------

    def check(self, report: RangeReport, checkpoint_ts: Ts) -> None:
        """Examine a range that is next in its stream. NeedsOperator if it shows that the history of a new topic was missed."""
        if report.range.start == self.of(report.range).prefix:
            self._new_topics.check(report, checkpoint_ts)

    def take(self, report: RangeReport, ddls: tuple[PlacedDdl, ...], checkpoint_ts: Ts) -> None:
        """Add a report, with its DDLs that are not settled."""
        for joined in self.of(report.range).take(report, ddls):
            self._new_topics.check(joined, checkpoint_ts)
            if joined.partitions:
                self._announced[joined.range.stream.topic] = joined.partitions

    # --- positions -------------------------------------------------------------------------------------------------

    def positions(self, checkpoint_ts: Ts, done: DdlIdentity | None = None) -> dict[Stream, StreamPosition]:
        """Return the positions at ``checkpoint_ts``, of every stream of known topics: a new topic is checked before it has any.

        The DDL ``done`` counts as settled.
        """
        positions = {
            stream: state.position(checkpoint_ts, self._pending, done)
            for stream, state in self._states.items()
            # A partition that was announced, and has not held a record, has no position yet.
            if self._new_topics.is_known(stream.topic) and state.end
        }
        if not (applied := self.applied):
            return positions
        return {
            stream: replace(position, applied_ts=max(applied[stream], passed_with(checkpoint_ts))) if stream in applied else position
            for stream, position in positions.items()
        }

    def store(self, checkpoint_ts: Ts, positions: Mapping[Stream, StreamPosition]) -> None:
        """Record durable positions."""
        stored = self._stored
        for stream, position in positions.items():
            if stored.get(stream) is not position:
                stored[stream] = position
                self._states[stream].drop_spent(checkpoint_ts, position.next_offset)

    def statuses(self, checkpoint_ts: Ts, cache: Cache) -> tuple[StreamStatus, ...]:
        """Describe all streams, by name."""
        return tuple(self._status(self._states[stream], checkpoint_ts, cache) for stream in sorted(self._states))

    def _status(self, state: StreamState, checkpoint_ts: Ts, cache: Cache) -> StreamStatus:
        return StreamStatus(
            stream=state.stream,
            resolved_ts=self.resolved_ts(state.stream, checkpoint_ts),
            next_offset=state.position(checkpoint_ts, self._pending).next_offset,
            read_offset=state.prefix,
            end_offset=state.end,
            unread=state.unread,
            is_promised_by_reading=state.cuts.are_given,
            cached_ranges=cache.ranges_of(state.stream),
            cached_bytes=cache.bytes_of[state.stream],
            replays=state.replays,
            fallbacks=state.fallbacks,
            missing=state.missing,
            applied_ts=max(self.applied[state.stream], checkpoint_ts) if state.stream in self.applied else NO_TS,
        )
