"""WRITE: the prepared statements of one segment, in one transaction. Runs as one task: one connection is what makes a segment atomic.

No statement runs before every reducer's marker is there, and no COMMIT before everything is there that the markers announce
(``handover``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from applier.model.errors import ApplierError, IncompleteInput, InvariantViolation, JobAborted, RangeChanged
from applier.model.rejected_event import RejectedEvent
from applier.planner import TransactionSet, count_transactions
from applier.planner.statement import Statement
from applier.sinks.quarantine import Quarantined
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import RangeReader
from applier.tasks.handover import Arrival, Failure, Rendered
from applier.tasks.plan import ApplyPlan
from applier.tasks.prepare import Planned
from applier.tasks.quarantined_record import record_of


@dataclass(slots=True)
class _Head:
    """What sorts in front of the statements, and the first of them."""

    first: Statement | None = None
    rejected: list[RejectedEvent] = field(default_factory=list)
    transactions: list[TransactionSet] = field(default_factory=list)
    failures: list[ApplierError] = field(default_factory=list)


def write(plan: ApplyPlan, planned: Iterable[Planned], reader: RangeReader) -> WriteOutcome:
    """Write the sorted statements of a segment in one transaction. ``reader`` reads the records of rows that are quarantined."""
    rest = iter(planned)
    arrival = Arrival(plan.reducers)
    head = _read_head(rest, arrival)
    # Everything up to the first statement was read: from here on a failure of another task cannot come any more.
    try:
        _check(head.failures, arrival)
    except ApplierError as error:
        return _not_written(error)
    quarantined = Quarantined(partial(record_of, reader), tuple(head.rejected), takes_refused=plan.policy.refused)
    outcome = plan.writer.write(plan.fence, arrival.counted(_statements(head.first, rest)), plan.commit, quarantined)
    # Raised inside of the writer's transaction by ``counted``, and so rolled back there: nothing is durable.
    if isinstance(outcome.error, IncompleteInput):
        return _not_written(outcome.error)
    return replace(outcome, transactions=count_transactions(head.transactions)) if outcome.state is WriteState.COMMITTED else outcome


def _read_head(rest: Iterator[Planned], arrival: Arrival) -> _Head:
    head = _Head()
    for _, item in rest:
        match item:
            case Statement():
                head.first = item
                break
            case Failure():
                head.failures.append(item.error)
            case Rendered():
                arrival.mark(item)
            case TransactionSet():
                arrival.other()
                head.transactions.append(item)
            case RejectedEvent():
                arrival.other()
                head.rejected.append(item)
    return head


def _check(failures: list[ApplierError], arrival: Arrival) -> None:
    """Raise why the segment cannot be written. The early end of one input has another cause: any other failure says more, and wins."""
    if failures:
        raise min(failures, key=lambda error: isinstance(error, IncompleteInput))
    arrival.check_markers()


def _not_written(error: ApplierError) -> WriteOutcome:
    """Report a segment of which nothing was written: what was lost on the way to the writer is read again, from the sink's progress."""
    # Another reading may succeed where content was lost or has changed. Any other error would come again.
    is_lost = isinstance(error, RangeChanged | JobAborted)
    return WriteOutcome(state=WriteState.RELOAD if is_lost else WriteState.FAILED, error=error)


def _statements(first: Statement | None, rest: Iterator[Planned]) -> Iterator[Statement]:
    if first is not None:
        yield first
    for _, item in rest:
        if not isinstance(item, Statement):
            message = "the statements of a segment are not sorted"
            raise InvariantViolation(message)
        yield item
