"""Prepared segments: what those who prepare announce of each, and the writer's check that all of it has arrived."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple, TypeAlias

from applier.model.errors import ApplierError, IncompleteInput
from applier.model.rejected_event import RejectedEvent
from applier.planner import TransactionSet
from applier.planner.statement import Phase, Statement
from applier.tasks.handover import incomplete_segment, received

HELD_BYTES: Final = 64 << 20
"""Statements that wait for deletes are held in memory up to here, and in a file of the task beyond it."""


class Rendered(NamedTuple):
    """The end of what one reducer has rendered of one segment. ``size``: bytes of its statements, bulk data included."""

    segment: int
    reducer: int
    statements: int = 0
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
        return min(errors, key=lambda error: isinstance(error, IncompleteInput), default=None)

    @property
    def rejected(self) -> tuple[RejectedEvent, ...]:
        """The rows that the planner has taken out."""
        return tuple(event for part in self.parts for event in part.rejected)

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
        """Yield the statements, deletes first; raise IncompleteInput at their end unless everything is there that was announced."""
        deletes_left = self.segment.deletes
        held = HeldStatements()
        statements = rows = size = 0
        for element in received(elements):
            if isinstance(element, Statement):
                statements, rows, size = statements + 1, rows + element.rows, size + element.size
                if element.phase is Phase.DELETE:
                    deletes_left -= 1
                    yield element
                # Reducers arrive one after the other, in any order. Another one's deletes must still come first: two spellings of one key
                # under a `_ci` collation are one row of the sink (DESIGN.md section 3).
                elif deletes_left:
                    held.add(element)
                else:
                    yield element
            elif isinstance(element, Rendered):
                self._markers.append(element)
            else:
                self.sets.append(element)
        if deletes_left == 0:
            yield from held
        self._check(statements, rows, size, is_complete=deletes_left == 0)

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


class HeldStatements:
    """Statements that wait until all deletes have run; many of them wait in a file."""

    def __init__(self) -> None:
        self._held: list[Statement] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def add(self, statement: Statement) -> None:
        """Hold one more."""
        self._held.append(statement)
        self._size += statement.size
        if self._size > HELD_BYTES:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by __iter__, or with the task
        for statement in self._held:
            pickle.dump(statement, self._file, pickle.HIGHEST_PROTOCOL)
        self._held, self._size = [], 0

    def __iter__(self) -> Iterator[Statement]:
        """Yield them, once, in the order in which they came."""
        if self._file is not None:
            with self._file as file:
                end = file.tell()
                file.seek(0)
                while file.tell() < end:
                    yield pickle.load(file)  # noqa: S301 - our own bytes
        yield from self._held
