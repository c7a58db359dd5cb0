"""WRITE: the prepared statements of one segment, in one transaction. Runs as one task: one connection is what makes a segment atomic.

No COMMIT before everything is there that was announced (``prepared``). A small segment is prepared and written by the same task.
"""

from collections.abc import Iterable
from dataclasses import replace

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, JobAborted, RangeChanged
from applier.planner import count_transactions
from applier.sinks.quarantine import Quarantined
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Decoder, RangeReader
from applier.tasks.handover import Failure, RangesEnd
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.prepare import ANNOUNCED, render, selected_chunks
from applier.tasks.prepared import Arrival, Element, PreparedSegment, Rendered
from applier.tasks.quarantined_record import RecordFetcher


def write(plan: WritePlan, segment: PreparedSegment, elements: Iterable[Element], reader: RangeReader) -> WriteOutcome:
    """Write the elements of a prepared segment in one transaction. ``reader`` reads the records of rows that are quarantined."""
    if segment.error is not None:
        return not_written(segment.error)
    arrival = Arrival(segment)
    quarantined = Quarantined(RecordFetcher(reader), segment.rejected, takes_refused=plan.takes_refused)
    outcome = plan.writer.write(plan.fence, arrival.statements(elements), plan.commit, quarantined)
    # Raised inside of the writer's transaction by ``statements``, and so rolled back there: nothing is durable.
    if isinstance(outcome.error, JobAborted):
        return not_written(outcome.error)
    return replace(outcome, transactions=count_transactions(arrival.sets)) if outcome.state is WriteState.COMMITTED else outcome


def apply_small(
    plan: PreparePlan, write_plan: WritePlan, elements: Iterable[PackedChunk | RangesEnd | Failure], reader: RangeReader, decoder: Decoder
) -> WriteOutcome:
    """Prepare and write the one segment of ``plan`` from the elements of all buckets: of whole batches, or of its slice of them."""
    planned = list(render(plan, 0, selected_chunks(plan, elements, plan.buckets), decoder))
    parts = tuple(item for at, item in planned if at == ANNOUNCED and isinstance(item, Rendered))
    return write(write_plan, PreparedSegment(parts), (item for at, item in planned if at != ANNOUNCED), reader)


def not_written(error: ApplierError) -> WriteOutcome:
    """Report a segment of which nothing was written: what was lost on the way to the writer is read again, from the sink's progress."""
    # Another reading may succeed where content was lost or has changed. Any other error would come again.
    is_lost = isinstance(error, RangeChanged | JobAborted)
    return WriteOutcome(state=WriteState.RELOAD if is_lost else WriteState.FAILED, error=error)
