"""Prepared segments: what those who prepare announce of each, and the writer's check that all of it has arrived."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from applier.model.errors import ApplierError, IncompleteInput
from applier.model.rejected_event import RejectedEvent
from applier.planner import TransactionSet
from applier.planner.equal_rows import AmbiguousRows, earliest
from applier.planner.statement import Phase, Statement
from applier.sinks.held_statements import HeldStatements
from applier.tasks.handover import incomplete_segment, received


class Rendered(NamedTuple):
    """The end of what one reducer has rendered of one segment. ``size``: bytes of its statements, bulk data included."""

    segment: int
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
    """Why the segment could not be rendered. Then nothing of it is written."""


Element: TypeAlias = Statement | TransactionSet | Rendered


@dataclass(frozen=True, slots=True)
class PreparedSegment:
    """One segment as all of its reducers have announced it."""

    parts: tuple[Rendered, ...]

    @property
    def error(self) -> ApplierError | None:
        """Why it cannot be written. The early end of one input has another cause: any other failure says more, and wins."""
        errors = [part.error for part in self.parts if part.error is not None]
        ambiguous = [error for error in errors if isinstance(error, AmbiguousRows)]
        if ambiguous:
            return earliest(ambiguous)
        return min(errors, key=lambda error: isinstance(error, IncompleteInput), default=None)

    @property
    def rejected(self) -> tuple[RejectedEvent, ...]:
        """The rows that the planner has taken out."""
        return tuple(event for part in self.parts for event in part.rejected)

    @property
    def reads(self) -> int:
        """The number of its statements that read the sink's rows."""
        return sum(part.reads for part in self.parts)

    @property
    def deletes(self) -> int:
        """The number of its DELETE statements."""
        return sum(part.deletes for part in self.parts)


@dataclass(slots=True)
class Arrival:
    """Compares what reaches the writer with what was announced.

    Statements run while others still arrive. To hold all of them only to count them earlier would make no difference: a segment that
    is not whole is rolled back.
    """

    segment: PreparedSegment
    sets: list[TransactionSet] = field(default_factory=list)
    _markers: list[Rendered] = field(default_factory=list)

    def statements(self, elements: Iterable[Element]) -> Iterator[Statement]:
        """Yield the statements by phase; raise IncompleteInput at their end unless everything is there that was announced."""
        reads_left, deletes_left = self.segment.reads, self.segment.deletes
        deletes, replaces = HeldStatements(), HeldStatements()
        statements = rows = size = 0
        for element in received(elements):
            if isinstance(element, Statement):
                statements, rows, size = statements + 1, rows + element.rows, size + element.size
                # Reducers arrive one after the other, in any order. What another one reads must still be there, and its deletes must come
                # first: two spellings of one key under a `_ci` collation are one row of the sink (DESIGN.md section 3).
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
        parts = self.segment.parts
        announced = (
            sum(part.statements for part in parts), sum(part.rows for part in parts),
            sum(part.size for part in parts), sum(part.sets for part in parts),
        )  # fmt: skip
        ended = sorted(marker.reducer for marker in self._markers)
        if not is_complete or (statements, rows, size, len(self.sets)) != announced or ended != sorted(part.reducer for part in parts):
            raise incomplete_segment(
                statements=statements,
                rows=rows,
                announced_statements=announced[0],
                announced_rows=announced[1],
                reducers=len(ended),
                of=len(parts),
            )
