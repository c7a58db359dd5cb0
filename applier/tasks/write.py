"""WRITE: the prepared statements of one segment, in one transaction. Runs as one task: one connection is what makes a segment atomic.

No COMMIT before everything is there that was announced (``prepared``). A small segment is prepared and written by the same task.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, JobAborted, RangeChanged, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream
from applier.model.rejected_event import KeptRecord, RejectedEvent
from applier.planner import count_transactions
from applier.sinks.progress import WriteOutcome, WriteState
from applier.sinks.quarantine import Quarantined
from applier.sources.port import Decoder, RangeReader, Record
from applier.tasks.handover import Failure, RangesEnd
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.prepare import ANNOUNCED, Arrival, Element, NumberedElement, PreparedPart, Rendered, render, selected_chunks

# --- quarantined record ----------------------------------------------------------------------------------------------
# Reads the record of a rejected event from the source once more, for the transaction that stores it in the quarantine.
#
# Reports and statements carry the position of such an event only: its record may have megabytes, and few events are rejected.


class RecordFetcher:
    """Returns the records of rejected events. The events of one offset come in ascending order, so each record is read once."""

    def __init__(self, reader: RangeReader) -> None:
        self._reader = reader
        self._position: tuple[Stream, Offset] | None = None
        self._current: Record | None = None
        self._later: Iterator[tuple[int, Record]] = iter(())
        self._next: tuple[int, Record] | None = None

    def __call__(self, event: RejectedEvent) -> KeptRecord:
        """Return the record that holds an event. SourceError if it is gone, or the source does not answer."""
        stream, offset, index = event.position
        if self._position != (stream, offset):
            self._position, self._current = (stream, offset), None
            self._later = self._reader.records_at(stream, offset)
            self._next = next(self._later, None)
        # Of several records the last one that begins at the event or before it.
        while self._next is not None and (self._current is None or self._next[0] <= index):
            self._current, self._next = self._next[1], next(self._later, None)
        if self._current is None:
            raise SourceError(
                "a record for the quarantine is gone from the source",
                remedy=Remedy("tasks.keep-topics-longer", "Retention or compaction has removed it: keep topics and binlogs longer"),
                kind=FailureKind.RETENTION,
                topic=stream.topic,
                partition=stream.partition,
                offset=offset,
            )
        return KeptRecord(self._current.key, self._current.value)


# --- write -----------------------------------------------------------------------------------------------------------


def write(plan: WritePlan, part: PreparedPart, elements: Iterable[Element], reader: RangeReader) -> WriteOutcome:
    """Write the elements of a prepared segment in one transaction. ``reader`` reads the records of rows that are quarantined."""
    if part.error is not None:
        return not_written(part.error)
    arrival = Arrival(part)
    quarantined = Quarantined(RecordFetcher(reader), part.rejected, takes_refused=plan.takes_refused)
    outcome = plan.writer.write(plan.fence, arrival.statements(elements), plan.commit, quarantined)
    # Raised inside of the writer's transaction by ``statements``, and so rolled back there: nothing is durable.
    if isinstance(outcome.error, JobAborted):
        return not_written(outcome.error)
    return replace(outcome, transactions=count_transactions(arrival.sets)) if outcome.state is WriteState.COMMITTED else outcome


def apply_small(
    plan: PreparePlan, write_plan: WritePlan, elements: Iterable[PackedChunk | RangesEnd | Failure], reader: RangeReader, decoder: Decoder
) -> WriteOutcome:
    """Prepare and write the one window of ``plan`` from the elements of all buckets: of whole batches, or of its slice of them."""
    planned = list(render(plan, 0, selected_chunks(plan, elements, plan.buckets), decoder))
    announced = tuple(item for at, item in planned if at == ANNOUNCED and isinstance(item, Rendered))
    if plan.writers:
        return _write_small_rows(write_plan, [PreparedPart((one,)) for one in announced], planned)
    return write(write_plan, PreparedPart(announced), (item for at, item in planned if at != ANNOUNCED), reader)


def not_written(error: ApplierError) -> WriteOutcome:
    """Report a segment that was not written at all: what was lost on the way to the writer is read again, from the sink's progress."""
    # Another reading may succeed where content was lost or has changed. Any other error would come again.
    is_lost = isinstance(error, RangeChanged | JobAborted)
    return WriteOutcome(state=WriteState.RELOAD if is_lost else WriteState.FAILED, error=error)


# --- write rows ------------------------------------------------------------------------------------------------------
# WRITE of rows ahead of W: several tasks, each with a part of the prepared statements, in transactions of their own.
#
# The first parts hold all DELETEs, the others all REPLACEs, and no REPLACE runs before the last DELETE is durable: two spellings of one key
# may be one row of the sink (trailing spaces under PAD SPACE). A task may run twice, and the copy may end late: the caller moves the window
# between the two phases, so that a late DELETE finds another fence. Few rows are one transaction, which may be repeated as a whole.
# Nothing is lost where a part ends early: the progress does not move.

_WORST: Final = (WriteState.FENCED, WriteState.RELOAD, WriteState.FAILED)


def write_part(plan: WritePlan, part: PreparedPart, elements: Iterable[Element]) -> WriteOutcome:
    """Write the elements of one part."""
    arrival = Arrival(part)
    try:
        return plan.writer.write_rows(plan.fence, arrival.statements(elements))
    except ApplierError as error:  # what was announced has not arrived
        return not_written(error)


def joined(outcomes: Sequence[WriteOutcome]) -> WriteOutcome:
    """Return the outcome of several parts: the worst, or the rows of all."""
    for state in _WORST:
        for outcome in outcomes:
            if outcome.state is state:
                return outcome
    return WriteOutcome(state=WriteState.COMMITTED, rows=sum(outcome.rows for outcome in outcomes))


def phases(parts: Sequence[PreparedPart]) -> tuple[list[int], list[int]]:
    """Return the numbers of the parts that delete rows, and of the parts that write others, without empty ones."""
    filled = [number for number, part in enumerate(parts) if any(one.statements for one in part.rendered)]
    return [number for number in filled if number < len(parts) // 2], [number for number in filled if number >= len(parts) // 2]


def error_of(parts: Iterable[PreparedPart]) -> ApplierError | None:
    """Return why the rows cannot be written."""
    return PreparedPart(tuple(one for part in parts for one in part.rendered)).error


def _write_small_rows(plan: WritePlan, parts: Sequence[PreparedPart], planned: Sequence[NumberedElement]) -> WriteOutcome:
    """Write rows ahead of W one part after the other in one transaction."""
    if (unrendered := error_of(parts)) is not None:
        return not_written(unrendered)
    arriving = (Arrival(part).statements([item for at, item in planned if at == number]) for number, part in enumerate(parts, 1))
    try:
        return plan.writer.write_rows(plan.fence, chain.from_iterable(arriving), at_once=True)
    except ApplierError as error:  # what was announced has not arrived
        return not_written(error)
