"""The coordinator: a state machine that turns reports of what was read into steps to perform, by the rules of DESIGN.md 3.

The caller, from one thread, repeats: ``plan`` ranges and have them read; ``report`` each (or ``forget`` it); fetch the list of
partitions and only then ``list`` it; take steps from ``next_step`` until there is none, confirming each. Nothing moves before it is
confirmed as durable: the checkpoint does with ``applied`` and ``executed``. After an outcome that is not known, the caller makes a
new coordinator from what the sink says.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from applier.coordinator.admission import Admission
from applier.coordinator.barriers import Barriers
from applier.coordinator.cache import Cache
from applier.coordinator.listing import check_excluded, check_known, check_new, has_held_records, is_required, missing
from applier.coordinator.merging import Merges
from applier.coordinator.policy import Policy
from applier.coordinator.reading import PlacedDdl, StreamState, StreamStatus
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import ApplySegment, Evict, ExecuteDdl, NeedNames, SaveProgress, Step
from applier.model.errors import InvariantViolation
from applier.model.events import DdlEvent, DdlIdentity, FoldedName
from applier.model.listing import Listing, PartitionExtent
from applier.model.position import NO_TS, Offset, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.rejected_event import STORED_AT_ONCE, RejectedEvent
from applier.model.segment import floor_ts, has_moved, has_reached, is_ahead, is_open, moves_checkpoint


class Coordinator:
    """The state of one run between rebuilds."""

    def __init__(self, start: StartingPoint, *, policy: Policy, until_ts: Ts | None = None) -> None:
        """Begin at the durable state ``start``. With ``until_ts`` the watermark stops there."""
        self._policy, self._until_ts = policy, until_ts
        self._start_ts = start.start_ts
        self._stored = dict(start.positions)
        self._admission = Admission(stream.topic for stream in start.positions)
        self._checkpoint_ts = self._watermark = start.checkpoint_ts
        self._settled_tables = start.ddl_touched_at_checkpoint
        self._barriers = Barriers(start.settled, start.start_ts)
        self._streams: dict[Stream, StreamState] = {}
        self._cache = Cache()
        self._merges = Merges(self._cache, policy.merge_ranges, policy.range_records)
        # Ranges with a greater number may hold rows at the checkpoint that its group lacked; after a restart that is every range.
        self._group = 0
        # No position may pass them before they are stored, so that comes before every other step.
        self._bad_events: deque[RejectedEvent] = deque()
        self._step: Step | None = None
        self._step_group = 0
        self._is_listed = self._is_fresh = False

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def checkpoint_ts(self) -> Ts:
        """A: everything up to it is durable."""
        return self._checkpoint_ts

    @property
    def watermark(self) -> Ts:
        """W, as of the latest list of partitions."""
        return max(self._watermark, self._checkpoint_ts)

    @property
    def floor_ts(self) -> Ts:
        """Listeners drop rows with a smaller commit_ts, as replays."""
        return floor_ts(self._checkpoint_ts, self._start_ts)

    @property
    def pending_ddls(self) -> tuple[DdlEvent, ...]:
        """The DDLs that were read and have not run, by ts."""
        return tuple(self._barriers)

    @property
    def cached_bytes(self) -> int:
        """Size of the cached chunks of all streams."""
        return self._cache.bytes

    @property
    def holding_stream(self) -> Stream | None:
        """The stream that holds the watermark: the least resolved_ts, of several the first by name."""
        return min(self._streams, key=lambda stream: (self.resolved_ts(stream), stream), default=None)

    @property
    def streams(self) -> tuple[StreamStatus, ...]:
        """All streams that are read, by name."""
        return tuple(self._status(self._streams[stream]) for stream in sorted(self._streams))

    @property
    def is_step_due(self) -> bool:
        """Whether there is something to write already, before anything more is read."""
        return self._step is None and self._decide() is not None

    def resolved_ts(self, stream: Stream) -> Ts:
        """Return what a stream has promised; never below the checkpoint; 0 for a partition that is not read."""
        reading = self._streams.get(stream)
        return NO_TS if reading is None else max(reading.resolved_ts, self._checkpoint_ts)

    def _status(self, reading: StreamState) -> StreamStatus:
        return StreamStatus(
            stream=reading.stream,
            resolved_ts=self.resolved_ts(reading.stream),
            next_offset=reading.next_offset(self._checkpoint_ts, self._barriers.pending),
            read_offset=reading.prefix,
            end_offset=reading.end,
            cached_ranges=self._cache.ranges_of(reading.stream),
            cached_bytes=self._cache.bytes_of[reading.stream],
            replays=reading.replays,
            fallbacks=reading.fallbacks,
        )

    def is_caught_up(self, ends: Mapping[Stream, Offset]) -> bool:
        """Whether every stream was read up to ``ends`` and no step is left; or everything up to until_ts is applied.

        A stream that must wait because it is ahead of one that was read to its end need not be read further: W cannot grow.
        False as long as the partitions were not listed after the last report.
        """
        if not self._is_fresh or self._step is not None or self._decide() is not None:
            return False
        if self._until_ts is not None and has_reached(self.watermark, self._until_ts):
            return True
        least, is_full = self._least_resolved_ts(), self._cache.bytes >= self._policy.cached_bytes
        return all(
            self._is_read_to(reading, ends) or self._is_held_back(reading, least, is_full=is_full) for reading in self._streams.values()
        )

    def _is_read_to(self, reading: StreamState, ends: Mapping[Stream, Offset]) -> bool:
        return reading.prefix >= ends.get(reading.stream, reading.prefix)

    # --- reading ---------------------------------------------------------------------------------------------------

    def plan(self) -> tuple[RangeId, ...]:
        """Return the next ranges to read; () if there is nothing to read, or nothing that may be cached.

        A range is not planned twice, unless it is forgotten. It ends at or below an end offset that was listed.
        """
        planned: list[RangeId] = []
        least = self._least_resolved_ts()
        expected = self._cache.bytes
        for reading in sorted(self._streams.values(), key=lambda reading: reading.resolved_ts):
            is_full = expected >= self._policy.cached_bytes
            ranges = reading.plan(self._at_most(reading, least, is_full=is_full), self._policy.range_records)
            expected += sum(reading.pace.expected_bytes(name.end - name.start) for name in ranges)
            planned += [*ranges, *self._merges.plan(reading)]
        return tuple(planned)

    def _at_most(self, reading: StreamState, least_ts: Ts, *, is_full: bool) -> int:
        """How many ranges a stream may be given now."""
        if self._is_held_back(reading, least_ts, is_full=is_full):
            return 0
        return max(0, (1 if is_full else self._policy.ranges_per_stream) - reading.outstanding)

    def _is_held_back(self, reading: StreamState, least_ts: Ts, *, is_full: bool) -> bool:
        """Whether a stream that is ahead of the least promise must wait. The streams that hold the watermark never do."""
        resolved_ts = self.resolved_ts(reading.stream)
        if self._until_ts is not None and has_reached(resolved_ts, self._until_ts):
            return True
        if not is_ahead(resolved_ts, least_ts):
            return False
        return is_full or self._cache.ranges_of(reading.stream) + reading.outstanding >= self._policy.lead_ranges

    def _least_resolved_ts(self) -> Ts:
        return min((self.resolved_ts(stream) for stream in self._streams), default=self._checkpoint_ts)

    def forget(self, range_id: RangeId) -> None:
        """Plan a range again: it could not be read."""
        if range_id in self._merges:
            self._merges.forget(range_id)
        else:
            self._reading(range_id).forget(range_id)

    def is_merge(self, range_id: RangeId) -> bool:
        """Whether a planned range was read before, and is read again only to take the place of several."""
        return range_id in self._merges

    def ddls_to_ask(self, reports: Iterable[RangeReport]) -> tuple[Ts, ...]:
        """Return the timestamps at which the ledger must be asked before these reports are taken in."""
        arrivals = (arrival.ddl for report in reports if report.range not in self._merges for arrival in report.ddls)
        return tuple(sorted(self._barriers.times_to_ask(arrivals, self._begun_ts())))

    def know(self, settled: Iterable[DdlIdentity]) -> None:
        """Take in the answer: the ledger's identities at these timestamps, done and skipped."""
        self._barriers.know(settled)

    def report(self, report: RangeReport) -> None:
        """Take in what a planned range held. NeedsOperator if something was missed: a DDL below A that is not known (``ddls_to_ask``)."""
        if report.range in self._merges:
            self._merges.take(report)
            return
        reading = self._reading(report.range)
        stream = report.range.stream
        if report.range.start == reading.prefix:
            self._admission.judge(report, self._checkpoint_ts)
        admitted = ((arrival.offset, self._barriers.admit(stream, arrival, self._begun_ts())) for arrival in report.ddls)
        ddls = tuple(PlacedDdl(offset, key) for offset, key in admitted if key is not None)
        for joined in reading.take(report, ddls):
            self._admission.judge(joined, self._checkpoint_ts)
        self._cache.add(report)
        self._bad_events.extend(report.rejected_events)
        self._is_fresh = False

    def _reading(self, range_id: RangeId) -> StreamState:
        if range_id.stream not in self._streams:
            raise InvariantViolation("a range of a stream that is not read", range=range_id)
        return self._streams[range_id.stream]

    def _begun_ts(self) -> Ts:
        """The checkpoint, or what it becomes when the step in hand ends."""
        match self._step:
            case ApplySegment():
                return self._step.upto_ts
            case ExecuteDdl():
                return self._step.identity.ts
            case _:
                return self._checkpoint_ts

    def list(self, listing: Listing) -> None:
        """Take in the partitions, and close the window at what they have promised.

        The listing must have been fetched after everything that was reported: a partition that appeared before those resolved events
        were written may hold rows below them. NeedsOperator if it contradicts what is known (expired, made anew, excluded records).
        """
        for stream in (*self._stored, *self._streams):
            if stream not in listing.extents and is_required(stream, self._policy.required_partitions):
                raise missing(stream)
        for stream, extent in sorted(listing.extents.items()):
            if is_required(stream, self._policy.required_partitions):
                self._list_required(stream, extent)
            else:
                check_excluded(stream, extent)
        self._admission.listed()
        self._is_listed = self._is_fresh = True
        least = self._least_resolved_ts()
        self._watermark = max(self._checkpoint_ts, least if self._until_ts is None else min(least, self._until_ts))

    def _list_required(self, stream: Stream, extent: PartitionExtent) -> None:
        reading = self._streams.get(stream)
        if reading is not None:
            check_known(stream, extent, reading.planned, reading.end)
            reading.end = extent.end
            return
        stored = self._stored.get(stream)
        if stored is not None:
            check_known(stream, extent, stored.next_offset, stored.next_offset)
        elif not has_held_records(extent):
            return
        elif self._is_listed:
            check_new(stream, extent)
        start = extent.earliest if stored is None else stored.next_offset
        self._admission.join(stream, has_history=has_moved(self._checkpoint_ts, self._start_ts))
        self._streams[stream] = StreamState(stream, start, extent.end, self._checkpoint_ts)

    # --- steps -----------------------------------------------------------------------------------------------------

    def next_step(self) -> Step | None:
        """Return the next step, or None. The caller confirms it by the method that belongs to it, or takes it back by ``withdraw``."""
        self._must_be_idle()
        spent = self._cache.spent(self._checkpoint_ts)
        return self._hand_out(Evict(spent) if spent else self._decide())

    def progress_step(self) -> SaveProgress:
        """Return the step that writes the present positions without moving the checkpoint."""
        self._must_be_idle()
        step = self._progress_step()
        self._hand_out(step)
        return step

    def _progress_step(self) -> SaveProgress:
        rejected_events = tuple(islice(self._bad_events, STORED_AT_ONCE))
        is_last = len(rejected_events) == len(self._bad_events)
        return SaveProgress(positions=self._positions(self._checkpoint_ts) if is_last else {}, rejected_events=rejected_events)

    def _must_be_idle(self) -> None:
        if self._step is not None:
            raise InvariantViolation("the last step was neither confirmed nor withdrawn", step=type(self._step).__name__)

    def _hand_out(self, step: Step | None) -> Step | None:
        self._step, self._step_group = step, self._cache.number
        return step

    def _decide(self) -> ApplySegment | ExecuteDdl | NeedNames | SaveProgress | None:
        """Rows up to a DDL, the DDL, rows after it. The group at A with its latecomers goes with what comes first."""
        if self._bad_events:
            return self._progress_step()
        after = self._checkpoint_ts
        if not is_open(after, self._watermark):
            return None
        barrier = self._barriers.next_ts(self._watermark)
        upto = self._watermark if barrier is None else barrier
        if self._has_latecomer():
            return self._segment(after, upto, again=True)
        if barrier is not None and not self._cache.select(after, upto, None).ranges:
            return self._ddl(barrier)
        return self._segment(after, upto, again=False)

    def _has_latecomer(self) -> bool:
        if self._settled_tables is None or not has_moved(self._checkpoint_ts, self._start_ts):
            return False
        return self._cache.has_latecomer(self._checkpoint_ts, self._group, self._settled_tables)

    def _segment(self, after_ts: Ts, upto_ts: Ts, *, again: bool) -> ApplySegment:
        settled = self._settled_tables if again else None
        upto_ts = self._cache.cut(after_ts, upto_ts, self._policy.segment_rows)
        ranges, tables, rows = self._cache.select(after_ts, upto_ts, settled)
        return ApplySegment(
            after_ts=after_ts,
            upto_ts=upto_ts,
            again=again,
            settled_tables=settled or frozenset(),
            ranges=ranges,
            tables=tables,
            positions=self._positions(upto_ts),
            rows=rows,
        )

    def _ddl(self, ts: Ts) -> ExecuteDdl | NeedNames:
        key = self._barriers.first_at(ts)
        if isinstance(key, NeedNames):
            return key
        return ExecuteDdl(
            identity=key,
            ddl=self._barriers.pending[key],
            place=self._barriers.place_of(key),
            positions=self._positions(ts),
            positions_done=self._positions(ts, done=key),
        )

    def _positions(self, ts: Ts, done: DdlIdentity | None = None) -> dict[Stream, StreamPosition]:
        """Return the positions at checkpoint ``ts``, of every stream of known topics: a new topic is judged before it has any."""
        pending = self._barriers.pending
        return {
            stream: StreamPosition(next_offset=reading.next_offset(ts, pending, done), resolved_ts=max(self.resolved_ts(stream), ts))
            for stream, reading in self._streams.items()
            if self._admission.is_known(stream.topic)
        }

    # --- outcomes --------------------------------------------------------------------------------------------------

    def applied(self, step: ApplySegment) -> None:
        """The segment is durable."""
        self._take_back(step)
        if moves_checkpoint(step.upto_ts, self._checkpoint_ts):
            self._settled_tables = frozenset()
        self._group = self._step_group
        self._advance(step.upto_ts, step.positions)

    def executed(self, step: ExecuteDdl) -> None:
        """The DDL is durable as done or skipped."""
        self._take_back(step)
        if moves_checkpoint(step.identity.ts, self._checkpoint_ts):
            self._settled_tables = frozenset()
            self._group = self._step_group
        at_ts, touched = self._settled_tables, step.identity.touches
        self._settled_tables = None if at_ts is None or touched is None else at_ts | touched
        self._barriers.settle(step.identity)
        self._advance(step.identity.ts, step.positions_done)

    def saved(self, step: SaveProgress) -> None:
        """The positions are durable."""
        self._take_back(step)
        for _ in step.rejected_events:
            self._bad_events.popleft()
        self._advance(self._checkpoint_ts, step.positions)

    def named(self, step: NeedNames, existing: Collection[FoldedName]) -> None:
        """Answer NeedNames: which of the tables exist."""
        self._take_back(step)
        self._barriers.name(existing)

    def evicted(self, step: Evict) -> None:
        """The ranges are released."""
        self._take_back(step)
        self._cache.remove(step.ranges)

    def withdraw(self, step: Step) -> None:
        """Take a step back: it was surely not performed."""
        self._take_back(step)

    def _take_back(self, step: Step) -> None:
        if step is not self._step:
            raise InvariantViolation("a step was confirmed that is not in hand", step=type(step).__name__)
        self._step = None

    def _advance(self, checkpoint_ts: Ts, stored: Mapping[Stream, StreamPosition]) -> None:
        self._checkpoint_ts = checkpoint_ts
        self._stored |= stored
        for stream, position in stored.items():
            self._streams[stream].drop_spent(checkpoint_ts, position.next_offset)
