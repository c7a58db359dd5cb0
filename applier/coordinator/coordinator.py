"""The coordinator: a state machine that turns reports of what was read into steps to perform, by the rules of DESIGN.md 3.

Theory of operation. Each stream delivers rows, DDLs and promises (resolved events), in any order between streams. The least promise of
all streams is the watermark W: up to it, everything has been read. A, the checkpoint, is the sink's position in time. The window
(A, W] is therefore complete, and is applied in order of time:

- a segment of rows up to the next DDL's ts T, in one transaction of the sink that moves A to T;
- the DDL, once W > T: then every copy of it, every other DDL of the same ts and every row at T has arrived;
- the rows after it, and so on up to W. A window with many rows is cut into several segments, never inside of one commit_ts.

What arrives below A is a replay, and is dropped; rows at exactly A stay, since a late one has its whole group applied again. Each stream
stores the offset of its first record that still matters, so a restart reads again all that it needs, promises included. Whatever
would have to be skipped or guessed raises NeedsOperator instead.

Who holds which part of the state: ``window`` A and W; ``streams`` the streams, their promises, positions and new topics, each in a
``stream_state``; ``read_ahead`` which ranges are read next, by one budget, and which become one; ``pace`` where ranges may end, what a
stream probably holds, and how far all get; ``cache`` the ranges that are cached, their bytes and their rows; ``barriers`` the DDLs that
wait, and their order within one ts; ``step_choice`` the segments that were cut, also ahead of A, the rows at A, and the next step;
``rows_ahead`` (``consistency = "row"``) which rows are written ahead of W. Each comparison of two timestamps is in ``model/segment``.

The caller, from one thread, repeats: ``plan`` ranges, have them read, ``report`` each (or ``forget`` it); fetch the list of partitions and
only then ``list`` it; take steps from ``next_step`` until there is none, confirming each. While a step is open it may plan, report, list,
and ask for ``segments_ahead``. Nothing moves before it is confirmed as durable. An outcome that is not known needs a new coordinator.
"""

from collections.abc import Collection, Iterable, Mapping

from applier.coordinator.barriers import Barriers
from applier.coordinator.cache import Cache
from applier.coordinator.policy import Policy
from applier.coordinator.read_ahead import ReadAhead
from applier.coordinator.rows_ahead import RowsAhead, RowsInOrder
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import (
    ApplyRows,
    ApplySegment,
    AskKeys,
    Evict,
    ExecuteDdl,
    KeyAnswer,
    NeedNames,
    SaveProgress,
    Segment,
    Step,
)
from applier.coordinator.step_choice import CheckpointGroup, OpenStep, Segments, StepChoice, UnstoredEvents
from applier.coordinator.stream_state import PlacedDdl, StreamStatus
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.events import DdlEvent, DdlIdentity, FoldedName
from applier.model.position import Listing, Offset, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import moves_checkpoint


class Coordinator:
    """The state of one run between rebuilds: what the engine talks to."""

    def __init__(self, start: StartingPoint, *, policy: Policy, until_ts: Ts | None = None) -> None:
        """Start at the durable state ``start``. With ``until_ts`` the watermark stops there."""
        self._window = Window(start.checkpoint_ts, start.start_ts, until_ts)
        self._barriers = Barriers(start.settled, start.start_ts)
        self._streams = Streams(start.positions, policy.required_partitions, self._barriers.pending)
        self._cache = Cache()
        self._group = CheckpointGroup(start.ddl_touched_at_checkpoint)
        self._rejected = UnstoredEvents()
        self._reading = ReadAhead(self._streams, self._cache, self._window, policy)
        self._segments = Segments(self._cache, self._streams, self._group, policy.segment_rows)
        self._choice = StepChoice(self._window, self._streams, self._barriers, self._segments, self._rejected)
        self._open = OpenStep()
        self._rows: RowsAhead | RowsInOrder = RowsInOrder()
        if policy.rows is not None:
            self._rows = RowsAhead(start, policy.rows, self._streams, self._cache, self._barriers)

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def checkpoint_ts(self) -> Ts:
        """A: everything up to it is durable."""
        return self._window.checkpoint_ts

    @property
    def watermark(self) -> Ts:
        """W, at the latest list of partitions."""
        return self._window.watermark

    @property
    def floor_ts(self) -> Ts:
        """Listeners drop rows with a smaller commit_ts: they are replays."""
        return self._window.floor_ts

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
        """The stream that holds back the watermark: the least resolved_ts, of several the first by name."""
        return self._streams.holding(self.checkpoint_ts)

    @property
    def streams(self) -> tuple[StreamStatus, ...]:
        """All streams that are read, by name."""
        return self._streams.statuses(self.checkpoint_ts, self._cache)

    def resolved_ts(self, stream: Stream) -> Ts:
        """Return what a stream has promised; never below the checkpoint; 0 for a partition that is not read."""
        return self._streams.resolved_ts(stream, self.checkpoint_ts)

    def is_caught_up(self, ends: Mapping[Stream, Offset]) -> bool:
        """Whether every stream was read up to ``ends`` and no step is left; or everything up to until_ts is applied.

        A stream that must wait because it is ahead of one that was read to its end need not be read further: W cannot grow.
        False as long as the partitions were not listed after the last report.
        """
        if not self._window.is_fresh or self._open.step is not None or self._choice.is_due or self._rows_step() is not None:
            return False
        return self._window.is_done or self._reading.has_read(ends)

    # --- reading ---------------------------------------------------------------------------------------------------

    def plan(self) -> tuple[RangeId, ...]:
        """Return the next ranges to read; () if there is nothing to read, or nothing that may be cached.

        A range is not planned twice, unless it is forgotten. It ends at or below an end offset that was listed.
        """
        return self._reading.plan()

    def expected_bytes(self, range_id: RangeId) -> int:
        """Return how many bytes a range that is being read will probably have: the measure by which ranges are dealt out to tasks."""
        return self._reading.budget.expected_bytes(range_id)

    @property
    def watches_keys(self) -> bool:
        """Whether reports must name an update that has changed its key: versions of one row would come in two streams."""
        return self._rows.watches_keys

    def counts_offsets(self, range_id: RangeId) -> bool:
        """Whether the offsets of a range that is being read count its records."""
        return not self._streams.of(range_id).cuts.are_given

    def forget(self, range_id: RangeId) -> None:
        """Plan a range again: it could not be read."""
        (self._reading.merges if self.is_merge(range_id) else self._streams.of(range_id)).forget(range_id)
        self._reading.budget.end(range_id)
        self._cache.give_up(range_id)

    def is_merge(self, range_id: RangeId) -> bool:
        """Whether a planned range was read before, and is read again only to replace several."""
        return range_id in self._reading.merges

    def ddls_to_ask(self, reports: Iterable[RangeReport]) -> tuple[Ts, ...]:
        """Return the timestamps at which the ledger must be asked before these reports are taken in."""
        arrivals = (arrival.ddl for report in reports if not self.is_merge(report.range) for arrival in report.ddls)
        return tuple(sorted(self._barriers.times_to_ask(arrivals, self._begun_ts())))

    def add_settled(self, settled: Iterable[DdlIdentity]) -> None:
        """Record the answer: the ledger's identities at these timestamps, done and skipped."""
        self._barriers.add_settled(settled)

    def report(self, report: RangeReport) -> None:
        """Record what a planned range held. NeedsOperator if something was missed: a DDL below A that is not known (``ddls_to_ask``)."""
        self._reading.budget.end(report.range)
        if self.is_merge(report.range):
            self._reading.merges.take(report.kept())
            return
        begun_ts = self._begun_ts()
        self._streams.check(report, begun_ts)
        ddls, report = self._admitted(report) if report.ddls else (), report.kept()
        self._rows.report(report, ddls)
        self._streams.take(report, ddls, begun_ts)
        self._cache.add(report)
        self._rejected.add(report.rejected_events)
        self._window.is_fresh = False

    def _admitted(self, report: RangeReport) -> tuple[PlacedDdl, ...]:
        stream, begun_ts = report.range.stream, self._begun_ts()
        admitted = [(arrival.offset, self._barriers.admit(stream, arrival, begun_ts)) for arrival in report.ddls]
        placed = tuple(PlacedDdl(offset, key) for offset, key in admitted if key is not None)
        if placed:
            self._segments.cut_again_from(min(ddl.key.ts for ddl in placed))
        return placed

    def _begun_ts(self) -> Ts:
        return self._open.begun_ts(self.checkpoint_ts)

    def list(self, listing: Listing) -> None:
        """Record the partitions, and close the window at what they have promised.

        The listing must have been fetched after everything that was reported: a partition that appeared before those resolved events
        were written may hold rows below them. NeedsOperator if it contradicts what is known (expired, recreated, excluded records).
        A list that shows a new topic while an open step moves the checkpoint is rejected: the caller lists again in its next cycle.
        """
        # A new topic is checked against a checkpoint that cannot move until it was (``NewTopics``), and this one may.
        if self._begun_ts() != self.checkpoint_ts and self._streams.has_new_topic(listing):
            return
        self._streams.list(listing, self.checkpoint_ts, has_history=self._window.has_history)
        self._window.close(self._streams.least_resolved_ts(self.checkpoint_ts))
        self._cache.closed.close(self.watermark)
        self._segments.cut_again_from(max(self.watermark, self._begun_ts()))

    # --- steps -----------------------------------------------------------------------------------------------------

    def next_step(self) -> Step | None:
        """Return the next step, or None. The caller confirms it by the method that belongs to it, or takes it back by ``withdraw``."""
        self._open.check_none()
        spent = self._cache.spent(self.checkpoint_ts)
        step = Evict(spent) if spent else self._rows_step() or self._choice.next()
        if isinstance(step, ApplySegment):
            step = self._rows.without_written(step)
        self._open.open(step, self._cache.number)
        return step

    def _rows_step(self) -> Step | None:
        return None if self._rejected else self._rows.next(self._window)

    def segments_ahead(self, most_rows: int, at_least: int = 1, between_ddls: int = 1) -> tuple[Segment, ...]:
        """Return the next closed segments that were not returned yet, of about ``most_rows`` in all: up to the next DDL, or W.

        () if fewer than ``at_least`` rows are left: a small segment that is cut now could not grow until it is written. Or fewer than
        ``between_ddls`` before a DDL that another one follows: they are read divided there. Also while a step is open. ``next_step`` gives
        segments with exactly these bounds, ranges, tables and rows unless it is ``again``: then the group at ``after_ts`` comes along.
        Until then the ranges stay cached. In rare cases the bounds change: they are returned again, and must be compared.
        """
        if not self._rows.cuts_ahead:
            return ()
        return self._choice.cut_ahead(self._begun_ts(), most_rows, at_least, between_ddls)

    def progress_step(self) -> SaveProgress:
        """Return the step that writes the present positions without moving the checkpoint."""
        self._open.check_none()
        step = self._choice.save_progress()
        self._open.open(step, self._cache.number)
        return step

    def applied(self, step: ApplySegment) -> None:
        """The segment is durable."""
        self._open.close(step)
        upto_ts = step.window.upto_ts
        self._segments.applied(moves=moves_checkpoint(upto_ts, self.checkpoint_ts))
        self._advance(upto_ts, step.positions)

    def rows_written(self, step: ApplyRows) -> None:
        """The rows and the positions of their streams are durable."""
        self._open.close(step)
        self._rows.written(step, self.checkpoint_ts)
        self._streams.store(self.checkpoint_ts, step.positions)

    def rows_refused(self, step: ApplyRows, table: FoldedName) -> None:
        """Rows of this table could not be written ahead: they wait for W, and then their segment reports the error."""
        self._open.close(step)
        self._rows.refused(table)

    def answer_keys(self, step: AskKeys, keys: Mapping[FoldedName, KeyAnswer]) -> None:
        """Answer AskKeys; a table without an entry does not qualify."""
        self._open.close(step)
        self._rows.answer(step, keys)

    def executed(self, step: ExecuteDdl) -> None:
        """The DDL is durable as done or skipped."""
        self._open.close(step)
        # A DDL that the filter excludes touches nothing in the sink: latecomers at its ts are applied.
        ts, touches = step.identity.ts, frozenset[FoldedName]() if step.ddl.left_out else step.identity.touches
        self._group.ddl_executed(touches, self._open.reports, moves=moves_checkpoint(ts, self.checkpoint_ts))
        self._barriers.settle(step.identity)
        self._advance(ts, step.positions_done)
        self._rows.changed(touches)

    def saved(self, step: SaveProgress) -> None:
        """The positions are durable."""
        self._open.close(step)
        self._rejected.drop(len(step.rejected_events))
        self._advance(self.checkpoint_ts, step.positions)

    def answer_names(self, step: NeedNames, existing: Collection[FoldedName]) -> None:
        """Answer NeedNames: which of the tables exist."""
        self._open.close(step)
        self._barriers.answer_names(existing)

    def evicted(self, step: Evict) -> None:
        """The ranges are released."""
        self._open.close(step)
        self._cache.remove(step.ranges)

    def withdraw(self, step: Step) -> None:
        """Withdraw a step: it was certainly not performed."""
        self._open.close(step)

    def _advance(self, checkpoint_ts: Ts, stored: Mapping[Stream, StreamPosition]) -> None:
        self._window.checkpoint_ts = checkpoint_ts
        self._streams.store(checkpoint_ts, stored)
        self._rows.moved()
