"""APPLY: from cached chunks to one committed segment. Plain functions over iterators.

``select`` filters by commit_ts and routes chunks to their reducers; ``render`` compacts the buckets of one reducer and renders their
statements; ``write`` hands them to the one writer. Failures travel as values, in front of everything else, so that nothing is written
after one. Each function proves that its input is whole (``handover``) before anything of it can become durable.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, IncompleteInput, InvariantViolation, JobAborted, RangeChanged
from applier.model.events import FoldedName
from applier.model.range_report import RangeId, RangeReport
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import SegmentWindow
from applier.planner import STOP, QuarantinePolicy, TransactionSet, count_transactions, plan_bucket, route
from applier.planner.catalogue import TableDescription
from applier.planner.port import Dialect
from applier.planner.statement import Statement
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.quarantine import Quarantined
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Decoder, RangeReader
from applier.tasks.handover import Arrival, Dealing, Dealt, Failure, RangeContent, Rendered, received, whole_bucket
from applier.tasks.listen import RangeFailure
from applier.tasks.record import record_of

SMALL_SEGMENT_ROWS: Final = 5_000
"""Below it, one task does everything: two shuffles cost more than the parallelism gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPlan:
    """One segment to write. ``ranges`` are the cached ranges that may hold its rows, with what they must contain."""

    window: SegmentWindow
    ranges: Mapping[RangeId, RangeContent]
    tables: Mapping[FoldedName, TableDescription]
    rekeyed: Mapping[FoldedName, tuple[str, ...]]
    rows: int
    """Rows of the segment at most, before compaction: the measure of how much parallelism pays."""
    buckets: int
    parts: int = 1
    """Into how many parts each bucket is divided, so that a task can hold the rows of one in memory."""
    dialect: Dialect
    writer: Writer
    fence: Fence
    commit: ProgressCommit
    policy: QuarantinePolicy = STOP

    @property
    def is_small(self) -> bool:
        """Whether one task does everything."""
        return self.rows <= SMALL_SEGMENT_ROWS

    @property
    def reducers(self) -> int:
        """How many times ``render`` runs: once per part of a bucket, or once for all."""
        return 1 if self.is_small else self.buckets * self.parts


Bucketed: TypeAlias = tuple[int, bytes | Dealt | Failure]
Planned: TypeAlias = tuple[int, Statement | TransactionSet | RejectedEvent | Rendered | Failure]

FAILED, RENDERED, SET_ASIDE, TRANSACTIONS = -4, -3, -2, -1
"""Sort keys in front of the statements' phases: a failure, and a reducer that is missing, are seen before anything is written."""


def select(plan: ApplyPlan, cached: Iterable[PackedChunk | RangeReport | RangeFailure]) -> Iterator[Bucketed]:
    """Yield (reducer, chunk bytes) of the chunks that overlap the segment, and what each reducer was sent.

    Check that each range is what was reported. A range whose report does not arrive is not announced to the reducers, which miss it.
    """
    window = plan.window
    dealing = Dealing(plan.reducers)
    numbers = {range_id: number for number, range_id in enumerate(plan.ranges)}
    whole: list[int] = []
    rows = chunks = size = 0
    for element in received(cached):
        if isinstance(element, RangeReport):
            found = RangeContent(rows, chunks, size)
            if (failure := _wrong_range(plan, element.range, found)) is not None:
                yield from dealing.fail(failure)
                return
            whole.append(numbers[element.range])
            rows = chunks = size = 0
        elif isinstance(element, RangeFailure):
            yield from dealing.fail(_unread(element))
            return
        else:
            packed = PackedChunk(*element)
            rows, chunks, size = rows + packed.rows, chunks + 1, size + len(packed.data)
            if window.may_select(packed.min_ts, packed.max_ts):
                for bucket, data in route(packed, plan.rekeyed, plan.buckets, plan.parts):
                    yield dealing.deal(bucket, data)
    yield from dealing.end(whole)


def _wrong_range(plan: ApplyPlan, range_id: RangeId, found: RangeContent) -> ApplierError | None:
    """Return the error of a range that is not what its listener had reported; None if it is."""
    facts: dict[str, Any] = {"topic": range_id.stream.topic, "partition": range_id.stream.partition, "offset": range_id.start}
    expected = plan.ranges.get(range_id)
    if expected is None:
        return InvariantViolation("a cached range is none of the segment's", **facts)
    if found == expected:
        return None
    return RangeChanged(
        "a cached range was read again and is not what it was",
        remedy="The topic's content changed under the applier",
        **facts,
        expected=expected,
        found=found,
    )


def _unread(failure: RangeFailure) -> JobAborted:
    """Return the error of a range whose cached content is a failure to read it.

    A listener had reported the range as read: this comes from a copy of its task that lost the race, or that read the range again after
    an executor was lost. Such a failure is no content, and proves nothing against the range: it is read again, from the sink's progress.
    """
    return JobAborted(
        "the cache holds a failed read of a range",
        remedy="The range is read again",
        topic=failure.range.stream.topic,
        partition=failure.range.stream.partition,
        offset=failure.range.start,
        cause=failure.error.message,
    )


def render(plan: ApplyPlan, reducer: int, bucketed: Iterable[Bucketed], decoder: Decoder) -> Iterator[Planned]:
    """Compact the chunks of one reducer (rows of one key are together); yield its statements under their sort keys, then their count."""
    statements = rows = others = 0
    try:
        chunks = whole_bucket(bucketed, list(plan.ranges))
        decoders = decoder.image_decoder, decoder.decode_key
        for item in plan_bucket(chunks, plan.window, plan.tables, plan.rekeyed, plan.dialect, *decoders, plan.policy):
            if isinstance(item, Statement):
                statements, rows = statements + 1, rows + item.rows
            else:
                others += 1
            yield _sort_key(item), item
    except ApplierError as error:
        yield FAILED, Failure(error)
        return
    yield RENDERED, Rendered(reducer, statements, rows, others)


def _sort_key(item: Statement | TransactionSet | RejectedEvent) -> int:
    match item:
        case Statement():
            return int(item.phase)
        case TransactionSet():
            return TRANSACTIONS
        case RejectedEvent():
            return SET_ASIDE


def write(plan: ApplyPlan, planned: Iterable[Planned], reader: RangeReader) -> WriteOutcome:
    """Write the sorted statements of a segment in one transaction. ``reader`` reads the records of rows that are set aside.

    No statement runs before every reducer's marker is there, and no COMMIT before everything is there that the markers announce.
    """
    rest = iter(planned)
    arrival = Arrival(plan.reducers)
    bad: list[RejectedEvent] = []
    sets: list[TransactionSet] = []
    failures: list[ApplierError] = []
    first: Statement | None = None
    for _, item in rest:
        match item:
            case Statement():
                first = item
                break
            case Failure():
                failures.append(item.error)
            case Rendered():
                arrival.mark(item)
            case TransactionSet():
                arrival.other()
                sets.append(item)
            case RejectedEvent():
                arrival.other()
                bad.append(item)
    try:
        _check(failures, arrival)
    except ApplierError as error:
        return _not_written(error)
    quarantined = Quarantined(partial(record_of, reader), tuple(bad), takes_refused=plan.policy.refused)
    outcome = plan.writer.write(plan.fence, arrival.counted(_statements(first, rest)), plan.commit, quarantined)
    if isinstance(outcome.error, IncompleteInput):
        return _not_written(outcome.error)
    return replace(outcome, transactions=count_transactions(sets)) if outcome.state is WriteState.COMMITTED else outcome


def _check(failures: list[ApplierError], arrival: Arrival) -> None:
    """Raise what keeps the segment from being written. What another input's early end has caused says least, and comes last."""
    if failures:
        raise min(failures, key=lambda error: isinstance(error, IncompleteInput))
    arrival.check_markers()


def _not_written(error: ApplierError) -> WriteOutcome:
    """Report a segment of which nothing was written: what was lost on the way to the writer is read again, from the sink's progress."""
    is_lost = isinstance(error, RangeChanged | JobAborted)
    return WriteOutcome(state=WriteState.REBUILD if is_lost else WriteState.FAILED, error=error)


def _statements(first: Statement | None, rest: Iterator[Planned]) -> Iterator[Statement]:
    if first is not None:
        yield first
    for _, item in rest:
        if not isinstance(item, Statement):
            message = "the statements of a segment came out of order"
            raise InvariantViolation(message)
        yield item
