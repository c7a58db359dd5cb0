"""All streams that are read: which of them count, what they have promised, and their positions.

A window closes only at a list of partitions that was fetched after the resolved events were read (DESIGN.md 3, "which streams count"): a
partition that appeared before those events were written may hold rows below them. A new partition that holds a record is required from
its first offset on; one that has never held any is not, unless an admin event has announced it. One that its own last record, an admin
event, leaves out is closed: it promises everything.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from applier.coordinator.cache import Cache
from applier.coordinator.new_topics import NewTopics
from applier.coordinator.partition_check import check_excluded, check_known, check_new, has_held_records, is_required, missing
from applier.coordinator.stored_offset import PlacedDdl
from applier.coordinator.stream_state import CLOSED_TS, StreamState, StreamStatus
from applier.model.errors import InvariantViolation
from applier.model.events import DdlIdentity
from applier.model.listing import Listing, PartitionExtent
from applier.model.position import NO_TS, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.row_window import passed_with
from applier.model.topic_name import PartitionLimits


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
        self.applied: dict[Stream, Ts] | None = None
        """Up to where rows are written ahead of the checkpoint, of streams where they may be; None: ``consistency = "transaction"``."""

    def __iter__(self) -> Iterator[StreamState]:
        """Give the streams in the order in which they joined."""
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
        """Look at a range that is next in its stream. NeedsOperator if it shows that the history of a new topic was missed."""
        if report.range.start == self.of(report.range).prefix:
            self._new_topics.check(report, checkpoint_ts)

    def take(self, report: RangeReport, ddls: tuple[PlacedDdl, ...], checkpoint_ts: Ts) -> None:
        """Take a report in, with its DDLs that are not settled."""
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
        if self.applied is None:
            return positions
        applied = self.applied
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
            applied_ts=NO_TS if self.applied is None else max(self.applied.get(state.stream, NO_TS), checkpoint_ts),
        )
