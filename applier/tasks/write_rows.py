"""WRITE of rows ahead of W: several tasks, each with a part of the prepared statements, in transactions of their own.

The first parts hold all DELETEs, the others all REPLACEs, and no REPLACE runs before the last DELETE is durable: two spellings of one key
may be one row of the sink (trailing spaces under PAD SPACE). A task may run twice, and the copy may end late: the caller moves the window
between the two phases, so that a late DELETE finds another fence. Few rows are one transaction, which may be repeated as a whole.
Nothing is lost where a part ends early: the progress does not move.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
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


def phases(parts: Sequence[PreparedSegment]) -> tuple[list[int], list[int]]:
    """Return the numbers of the parts that delete rows, and of those that write others, without empty ones."""
    filled = [number for number, part in enumerate(parts) if any(rendered.statements for rendered in part.parts)]
    return [number for number in filled if number < len(parts) // 2], [number for number in filled if number >= len(parts) // 2]


def error_of(parts: Iterable[PreparedSegment]) -> ApplierError | None:
    """Return why the rows cannot be written."""
    return PreparedSegment(tuple(rendered for part in parts for rendered in part.parts)).error


def apply_small_rows(
    plan: PreparePlan, write_plan: WritePlan, elements: Iterable[PackedChunk | RangesEnd], decoder: Decoder
) -> WriteOutcome:
    """Prepare and write the rows of ``plan`` from the elements of all buckets, one part after the other in one transaction."""
    planned = list(render(plan, 0, selected_chunks(plan, elements, plan.buckets), decoder))
    parts = [PreparedSegment((item,)) for at, item in planned if at == ANNOUNCED and isinstance(item, Rendered)]
    if (unrendered := error_of(parts)) is not None:
        return not_written(unrendered)
    arriving = (Arrival(part).statements([item for at, item in planned if at == number]) for number, part in enumerate(parts, 1))
    try:
        return write_plan.writer.write_rows(write_plan.fence, chain.from_iterable(arriving), at_once=True)
    except ApplierError as error:  # what was announced has not arrived
        return not_written(error)
