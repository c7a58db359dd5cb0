"""APPLY: from cached chunks to one committed segment. Plain functions over iterators.

``select`` filters by commit_ts and routes chunks to their buckets; ``render`` compacts a bucket and renders its statements;
``write`` hands them to the one writer. Failures travel as values, in front of everything else, so that nothing is written after one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from applier.bad_event import BadEvent
from applier.chunk import PackedChunk
from applier.coordinator.messages import RangeId, RangeReport
from applier.errors import ApplierError, InvariantViolation, RangeChanged
from applier.events import FoldedName
from applier.kafka.port import RangeReader
from applier.planner import STOP, AsidePolicy, SegmentWindow, TransactionSet, count_transactions, plan_bucket, route
from applier.planner.catalogue import TableDescription
from applier.planner.port import Dialect, Statement
from applier.protocol import decode_key, image_decoder
from applier.sinks.port import Aside, Fence, ProgressCommit, WriteOutcome, Writer, WriteState
from applier.spark.kept import record_of
from applier.spark.listen import RangeFailure


class RangeContent(NamedTuple):
    """What a cached range must hold: recomputing it from Kafka must give the same again."""

    rows: int
    chunks: int
    bytes: int

    @classmethod
    def of(cls, report: RangeReport) -> "RangeContent":
        """Take it from the report."""
        return cls(report.rows, report.chunks, report.bytes)


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
    policy: AsidePolicy = STOP


class Failure(NamedTuple):
    """What kept a task from its work."""

    error: ApplierError


Bucketed: TypeAlias = tuple[int, bytes | Failure]
Planned: TypeAlias = tuple[int, Statement | TransactionSet | BadEvent | Failure]

FAILED, SET_ASIDE, TRANSACTIONS = -3, -2, -1
"""Sort keys in front of the statements' phases: a failure is seen before anything is written."""


def select(plan: ApplyPlan, cached: Iterable[PackedChunk | RangeReport | RangeFailure]) -> Iterator[Bucketed]:
    """Yield (bucket, chunk bytes) of the chunks that overlap the segment; check that the range is what was reported."""
    window = plan.window
    rows = chunks = size = 0
    for element in cached:
        if isinstance(element, RangeReport):
            if (found := RangeContent(rows, chunks, size)) != (expected := plan.ranges[element.range]):
                yield 0, Failure(_changed(element.range, expected, found))
            rows = chunks = size = 0
        elif isinstance(element, RangeFailure):
            yield 0, Failure(element.error)
        else:
            packed = PackedChunk(*element)
            rows, chunks, size = rows + packed.rows, chunks + 1, size + len(packed.data)
            if packed.min_ts <= window.upto_ts and (packed.max_ts > window.after_ts or (window.again and packed.max_ts == window.after_ts)):
                yield from route(packed, plan.rekeyed, plan.buckets, plan.parts)


def _changed(range_id: RangeId, expected: RangeContent, found: RangeContent) -> ApplierError:
    return RangeChanged(
        "a cached range was read again and is not what it was",
        remedy="The topic's content changed under the applier",
        topic=range_id.stream.topic,
        partition=range_id.stream.partition,
        offset=range_id.start,
        expected=expected,
        found=found,
    )


def render(plan: ApplyPlan, bucketed: Iterable[Bucketed]) -> Iterator[Planned]:
    """Compact the chunks of one bucket (or of all: rows of one key are together) and yield its statements under their sort keys."""
    chunks: list[bytes] = []
    for _, data in bucketed:
        if isinstance(data, Failure):
            yield FAILED, data
            return
        chunks.append(data)
    try:
        for item in plan_bucket(chunks, plan.window, plan.tables, plan.rekeyed, plan.dialect, image_decoder, decode_key, plan.policy):
            yield _sort_key(item), item
    except ApplierError as error:
        yield FAILED, Failure(error)


def _sort_key(item: Statement | TransactionSet | BadEvent) -> int:
    match item:
        case Statement():
            return int(item.phase)
        case TransactionSet():
            return TRANSACTIONS
        case BadEvent():
            return SET_ASIDE


def write(plan: ApplyPlan, planned: Iterable[Planned], reader: RangeReader) -> WriteOutcome:
    """Write the sorted statements of a segment in one transaction. ``reader`` reads the records of rows that are set aside."""
    rest = iter(planned)
    bad: list[BadEvent] = []
    sets: list[TransactionSet] = []
    first: Statement | None = None
    for _, item in rest:
        if isinstance(item, Failure):
            changed = isinstance(item.error, RangeChanged)
            return WriteOutcome(state=WriteState.REBUILD if changed else WriteState.FAILED, error=item.error)
        if isinstance(item, TransactionSet):
            sets.append(item)
        elif isinstance(item, BadEvent):
            bad.append(item)
        else:
            first = item
            break
    aside = Aside(partial(record_of, reader), tuple(bad), takes_refused=plan.policy.refused)
    outcome = plan.writer.write(plan.fence, _statements(first, rest), plan.commit, aside)
    return replace(outcome, transactions=count_transactions(sets)) if outcome.state is WriteState.COMMITTED else outcome


def _statements(first: Statement | None, rest: Iterator[Planned]) -> Iterator[Statement]:
    if first is not None:
        yield first
    for _, item in rest:
        if not isinstance(item, Statement):
            message = "the statements of a segment came out of order"
            raise InvariantViolation(message)
        yield item
