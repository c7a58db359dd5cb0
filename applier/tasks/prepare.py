"""PREPARE: from cached chunks to the statements of segments. Plain functions over iterators.

``render`` compacts the rows of one bucket for several segments at once, and renders their statements. Where rows must change their bucket
first, ``reroute`` does it. Failures travel as values: a segment with any failure is not written. Each function proves that its
input is whole (``handover``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, IncompleteInput, NeedsOperator, Remedy
from applier.model.rejected_event import RejectedEvent
from applier.planner import Moved, Planned, PlanTarget, TransactionSet, plan_segments, route
from applier.planner.keyless import AmbiguousRows, earliest
from applier.planner.port import Phase, Statement
from applier.sinks.write_transaction import HeldStatements
from applier.sources.port import Decoder
from applier.tasks.handover import Failure, RangesEnd, RoutedEnd, Sent, chunks_of_ranges, incomplete_segment, received
from applier.tasks.plan import PreparePlan

# --- prepared --------------------------------------------------------------------------------------------------------


class Rendered(NamedTuple):
    """The end of what one reducer has rendered of one part. ``size``: bytes of its statements, bulk data included."""

    part: int
    reducer: int
    statements: int = 0
    reads: int = 0
    deletes: int = 0
    rows: int = 0
    size: int = 0
    sets: int = 0
    """Sets of transactions."""
    rejected: tuple[RejectedEvent, ...] = ()
    error: ApplierError | None = None
    """Why the part could not be rendered. Then no part of it is written."""


Element: TypeAlias = Statement | TransactionSet | Rendered


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """What one task writes, as all reducers have announced it: a segment, or a writer's share of rows ahead of W."""

    rendered: tuple[Rendered, ...]

    @property
    def error(self) -> ApplierError | None:
        """Why it cannot be written. The early end of one input has another cause: any other failure is reported instead."""
        errors = [one.error for one in self.rendered if one.error is not None]
        ambiguous = [error for error in errors if isinstance(error, AmbiguousRows)]
        if ambiguous:
            return earliest(ambiguous)
        return min(errors, key=lambda error: isinstance(error, IncompleteInput), default=None)

    @property
    def rejected(self) -> tuple[RejectedEvent, ...]:
        """The rows that the planner has taken out."""
        return tuple(event for one in self.rendered for event in one.rejected)

    @property
    def reads(self) -> int:
        """The number of its statements that read the sink's rows."""
        return sum(one.reads for one in self.rendered)

    @property
    def deletes(self) -> int:
        """The number of its DELETE statements."""
        return sum(one.deletes for one in self.rendered)


@dataclass(slots=True)
class Arrival:
    """Compares what reaches the writer with what was announced.

    Statements run while others still arrive. To hold all of them only to count them earlier would make no difference: a part that is
    not whole is rolled back.
    """

    part: PreparedPart
    sets: list[TransactionSet] = field(default_factory=list)
    _markers: list[Rendered] = field(default_factory=list)

    def statements(self, elements: Iterable[Element]) -> Iterator[Statement]:
        """Yield the statements by phase; raise IncompleteInput at their end unless everything is there that was announced."""
        reads_left, deletes_left = self.part.reads, self.part.deletes
        deletes, replaces = HeldStatements(), HeldStatements()
        statements = rows = size = 0
        for element in received(elements):
            if isinstance(element, Statement):
                statements, rows, size = statements + 1, rows + element.rows, size + element.size
                # Reducers arrive one after the other, in any order. What another one reads must still be there, and its deletes must come
                # first: two spellings of one key under a `_ci` collation are the same row of the sink (DESIGN.md section 3).
                if element.phase is Phase.READ:
                    reads_left -= 1
                    yield element
                    if not reads_left:
                        yield from deletes
                elif element.phase is Phase.DELETE:
                    deletes_left -= 1
                    if reads_left:
                        deletes.add(element)
                    else:
                        yield element
                elif reads_left or deletes_left:
                    replaces.add(element)
                else:
                    yield element
            elif isinstance(element, Rendered):
                self._markers.append(element)
            else:
                self.sets.append(element)
        is_complete = not reads_left and not deletes_left
        if is_complete:
            yield from replaces
        self._check(statements, rows, size, is_complete=is_complete)

    def _check(self, statements: int, rows: int, size: int, *, is_complete: bool) -> None:
        rendered = self.part.rendered
        announced = (
            sum(one.statements for one in rendered), sum(one.rows for one in rendered),
            sum(one.size for one in rendered), sum(one.sets for one in rendered),
        )  # fmt: skip
        ended = sorted(marker.reducer for marker in self._markers)
        if not is_complete or (statements, rows, size, len(self.sets)) != announced or ended != sorted(one.reducer for one in rendered):
            raise incomplete_segment(
                statements=statements,
                rows=rows,
                announced_statements=announced[0],
                announced_rows=announced[1],
                reducers=len(ended),
                of=len(rendered),
            )


# --- prepare ---------------------------------------------------------------------------------------------------------


Routed: TypeAlias = tuple[int, bytes | RoutedEnd | Failure]
NumberedElement: TypeAlias = tuple[int, Element]

LATER: Final = Remedy(
    "tasks.report-unwritten-rows", "The applier writes it later automatically. If a run ends with this message, report it as a defect"
)
ANNOUNCED: Final = 0
"""Where the announcements of all parts go, to be read by the driver; part number n goes to n + 1."""


def selected_chunks(plan: PreparePlan, elements: Iterable[PackedChunk | RangesEnd | Failure], buckets: int) -> Iterator[bytes]:
    """Return the bytes of the chunks that may hold rows of the segments. Raises as ``chunks_of_ranges``."""
    return (packed.data for packed in _selected(plan, elements, buckets))


def _selected(plan: PreparePlan, elements: Iterable[PackedChunk | RangesEnd | Failure], buckets: int) -> Iterator[PackedChunk]:
    span = plan.span
    for packed in chunks_of_ranges(elements, plan.ranges, buckets):
        if span.may_select(packed.min_ts, packed.max_ts):
            yield packed


def reroute(plan: PreparePlan, bucket: int, elements: Iterable[PackedChunk | RangesEnd]) -> Iterator[Routed]:
    """Yield (reducer, chunk bytes) of the chunks of one bucket, and what each reducer was sent."""
    sent = Sent()
    try:
        for packed in _selected(plan, elements, 1):
            for reducer, data in route(packed, Moved(plan.rekeyed, plan.ordered), plan.buckets, plan.bucket_splits):
                sent.count(reducer, data)
                yield reducer, data
    except ApplierError as error:
        # To every reducer: otherwise some would only report that something is missing.
        for reducer in range(plan.reducers):
            yield reducer, Failure(error)
        return
    for reducer in range(plan.reducers):
        yield reducer, RoutedEnd(bucket, sent.chunks[reducer], sent.size[reducer])


def render(plan: PreparePlan, reducer: int, chunks: Iterable[bytes], decoder: Decoder) -> Iterator[NumberedElement]:
    """Compact the chunks of one reducer (rows of one key are together); yield the statements of each segment, and what they are."""
    target = PlanTarget(plan.tables, plan.rekeyed, plan.dialect, plan.repeats, plan.equal_rows, plan.ordered)
    if plan.writers:
        yield from _render_rows(plan, reducer, plan_segments(chunks, plan.windows, target, decoder, plan.policy, bulk=plan.bulk))
        return
    part = _Part(0, reducer)
    try:
        for segment, item in plan_segments(chunks, plan.windows, target, decoder, plan.policy, bulk=plan.bulk):
            if isinstance(item, RejectedEvent):
                part.rejected.append(item)
                continue
            yield part.count(item)
            # The last item of its segment. An error of the next segment must not be this one's too.
            if isinstance(item, TransactionSet):
                yield from part.end()
                part = _Part(segment + 1, reducer)
    # Statements of the segment may have been yielded already. The driver gets its announcement before it is written.
    except ApplierError as error:
        for segment in range(part.number, len(plan.windows)):
            yield ANNOUNCED, Rendered(segment, reducer, error=error)


def _render_rows(plan: PreparePlan, reducer: int, items: Iterable[tuple[int, Planned]]) -> Iterator[NumberedElement]:
    """Divide the statements of rows ahead of W evenly among their writers; deletes are parts of their own, which are written first."""
    parts = [_Part(number, reducer) for number in range(plan.parts)]
    try:
        for number, (_, item) in enumerate(items):
            if isinstance(item, Statement):
                if item.phase is Phase.READ:
                    raise NeedsOperator("a row that lacks columns cannot be written ahead", remedy=LATER, table=item.table)
                # A bulk load is one statement per bucket: were each bucket dealt from the first writer on, the others would get none.
                at = (reducer + number) % plan.writers + (0 if item.phase is Phase.DELETE else plan.writers)
                yield parts[at].count(item)
        for part in parts:
            yield from part.end()
    except ApplierError as error:
        for part in parts:
            yield ANNOUNCED, Rendered(part.number, reducer, error=error)


class _Part:
    """Counts what one reducer renders of one part."""

    __slots__ = ("deletes", "number", "reads", "reducer", "rejected", "rows", "sets", "size", "statements")

    def __init__(self, number: int, reducer: int) -> None:
        self.number, self.reducer = number, reducer
        self.statements = self.reads = self.deletes = self.rows = self.size = self.sets = 0
        self.rejected: list[RejectedEvent] = []

    def count(self, item: Statement | TransactionSet) -> NumberedElement:
        """Address an item to its part."""
        if isinstance(item, Statement):
            self.statements += 1
            self.reads += item.phase is Phase.READ
            self.deletes += item.phase is Phase.DELETE
            self.rows += item.rows
            self.size += item.size
        else:
            self.sets += 1
        return self.number + 1, item

    def end(self) -> Iterator[NumberedElement]:
        """Announce the part to the driver and to the writer."""
        counts = (self.number, self.reducer, self.statements, self.reads, self.deletes, self.rows, self.size, self.sets)
        yield ANNOUNCED, Rendered(*counts, rejected=tuple(self.rejected))
        yield self.number + 1, Rendered(*counts)
