"""PREPARE: from cached chunks to the statements of one segment. Plain functions over iterators.

``select`` takes the chunks that overlap the segment and routes them to reducers; ``render`` compacts the rows of one reducer and renders
their statements. Failures travel as values and sort in front of everything else, so that nothing is written after one. Each function
proves that its input is whole (``handover``).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, InvariantViolation, JobAborted, RangeChanged
from applier.model.range_report import RangeId, RangeReport
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, TransactionSet, plan_bucket, route
from applier.planner.statement import Statement
from applier.sources.port import Decoder
from applier.tasks.handover import Distribution, DistributionEnd, Failure, RangeContent, Rendered, received, whole_bucket
from applier.tasks.listen import RangeFailure
from applier.tasks.plan import ApplyPlan

Bucketed: TypeAlias = tuple[int, bytes | DistributionEnd | Failure]
Planned: TypeAlias = tuple[int, Statement | TransactionSet | RejectedEvent | Rendered | Failure]

FAILED: Final = -4
RENDERED: Final = -3
REJECTED: Final = -2
TRANSACTIONS: Final = -1
"""Sort keys in front of the statements' phases: a failure, and a reducer that is missing, are seen before anything is written."""


def select(plan: ApplyPlan, cached: Iterable[PackedChunk | RangeReport | RangeFailure]) -> Iterator[Bucketed]:
    """Yield (reducer, chunk bytes) of the chunks that overlap the segment, and what each reducer was sent.

    Check that each range is what was reported. A range whose report does not arrive is not announced to the reducers, which miss it.
    """
    window = plan.window
    distribution = Distribution(plan.reducers)
    numbers = {range_id: number for number, range_id in enumerate(plan.ranges)}
    whole: list[int] = []
    rows = 0
    for element in received(cached):
        if isinstance(element, RangeReport):
            # The cache may hold another copy than the one that was reported: an executor was lost, and Spark read the range again. Only
            # the same content may be applied, since the coordinator has planned with the first report.
            # A report is cached with its chunks: what it says of their bytes is what the copy holds, if all of its rows are there.
            found = RangeContent.of(element)._replace(rows=rows)
            if (failure := _wrong_range(plan, element.range, found)) is not None:
                yield from distribution.fail(failure)
                return
            whole.append(numbers[element.range])
            rows = 0
        elif isinstance(element, RangeFailure):
            yield from distribution.fail(_cached_failure(element))
            return
        else:
            packed = PackedChunk(*element)
            rows += packed.rows
            if window.may_select(packed.min_ts, packed.max_ts):
                for bucket, data in route(packed, plan.rekeyed, plan.buckets, plan.bucket_splits):
                    yield distribution.send(bucket, data)
    yield from distribution.end(whole)


def _wrong_range(plan: ApplyPlan, range_id: RangeId, found: RangeContent) -> ApplierError | None:
    """Return the error of a range that is not what its listener had reported; None if it is."""
    facts: dict[str, Any] = {"topic": range_id.stream.topic, "partition": range_id.stream.partition, "offset": range_id.start}
    expected = plan.ranges.get(range_id)
    if expected is None:
        return InvariantViolation("a cached range does not belong to the segment", **facts)
    if found == expected:
        return None
    return RangeChanged(
        "a range has other content than when it was first read",
        remedy="The range is read again. If this repeats, something changes the topic's records while the applier reads them",
        **facts,
        expected=expected,
        found=found,
    )


def _cached_failure(failure: RangeFailure) -> JobAborted:
    """Return the error of a range whose cached content is a failure to read it.

    A listener had reported the range as read. The failure comes from a copy of its task: a slower speculative one, or one that read the
    range again after an executor was lost. It proves nothing against the range, which is read again from the stored progress.
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
    target = PlanTarget(plan.tables, plan.rekeyed, plan.dialect)
    try:
        chunks = whole_bucket(bucketed, list(plan.ranges))
        for item in plan_bucket(chunks, plan.window, target, decoder, plan.policy):
            if isinstance(item, Statement):
                statements, rows = statements + 1, rows + item.rows
            else:
                others += 1
            yield _sort_key(item), item
    # Statements may have been yielded already. FAILED sorts in front of them, so the writer sees it before it runs any.
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
            return REJECTED
