"""WRITE of rows ahead of W: several tasks, each with a part of the prepared statements, in transactions of their own.

The first parts hold all DELETEs, the others all REPLACEs, and no REPLACE runs before the last DELETE is durable: two spellings of one key
may be one row of the sink (trailing spaces under PAD SPACE). Nothing is lost where a part ends early: the progress does not move.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Decoder
from applier.tasks.handover import RangesEnd
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.prepare import ANNOUNCED, render, selected_chunks
from applier.tasks.prepared import Arrival, Element, PreparedSegment, Rendered
from applier.tasks.write import not_written

_WORST: Final = (WriteState.FENCED, WriteState.RELOAD, WriteState.FAILED)


def write_part(plan: WritePlan, part: PreparedSegment, elements: Iterable[Element]) -> WriteOutcome:
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


def error_of(parts: Iterable[PreparedSegment]) -> ApplierError | None:
    """Return why the rows cannot be written."""
    return PreparedSegment(tuple(rendered for part in parts for rendered in part.parts)).error


def apply_small_rows(
    plan: PreparePlan, write_plan: WritePlan, elements: Iterable[PackedChunk | RangesEnd], decoder: Decoder
) -> WriteOutcome:
    """Prepare and write the rows of ``plan`` from the elements of all buckets, one part after the other."""
    planned = list(render(plan, 0, selected_chunks(plan, elements, plan.buckets), decoder))
    outcomes: list[WriteOutcome] = []
    parts = [PreparedSegment((item,)) for at, item in planned if at == ANNOUNCED and isinstance(item, Rendered)]
    if (error := error_of(parts)) is not None:
        return not_written(error)
    for number, part in enumerate(parts):
        outcomes.append(write_part(write_plan, part, [item for at, item in planned if at == number + 1]))
        if outcomes[-1].state is not WriteState.COMMITTED:
            break
    return joined(outcomes)
