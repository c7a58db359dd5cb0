"""What the planner yields: a statement, which may still know its rows.

Where refused rows are looked for, a writer halves a statement until it has found the rows that the database refuses. So a statement can
carry what it was rendered from, and render parts of it again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from applier.model.errors import ApplierError
from applier.model.rejected_event import RejectedEvent
from applier.planner.catalogue import TableDescription
from applier.planner.port import WritingDialect


class Phase(IntEnum):
    """The order of a segment's statements on one table.

    READ: rows of the sink of which a partial image needs columns. They are read, locked, before anything of the segment is deleted or
    replaced: a REPLACE may delete, through a secondary unique key, the very row that is read. Then all deletes, then the first REPLACE.
    ORDERED: of tables whose rows are written in their order. All of them come from one place, and keep the order in which it made them.
    """

    READ = 0
    DELETE = 1
    REPLACE = 2
    ORDERED = 3


class Statement(NamedTuple):
    """One statement of a segment, whole text without parameters, in UTF-8: encoded once, where it is rendered."""

    phase: Phase
    table: str
    text: bytes
    rows: int
    min_ts: int
    max_ts: int
    source_rows: "StatementRows | None" = None
    """What it was rendered from, where a writer must find the rows that the database refuses; else None."""
    data: bytes = b""
    """Of a statement that loads rows in bulk: the rows that the database asks for. Empty for any other."""
    reading: "RowsToRead | None" = None
    """Of a READ: the rows that are written once the sink's rows are read. None for any other."""
    deletes_exactly: bool = False
    """Whether it must delete exactly ``rows`` rows. A DELETE by key may find fewer: one segment may insert and delete a row."""
    present: int = 0
    """Of a DELETE by key: how many of its rows upstream had when the segment began: the segment has nothing of them before the delete."""
    checks_keys: bool = False
    """Whether the database checks foreign keys and executes their actions."""

    @property
    def size(self) -> int:
        """Bytes that are sent for it, bulk data included."""
        return len(self.text) + len(self.data) + (0 if self.reading is None else self.reading.size)


class RowsToRead(Protocol):
    """The rows of a READ (``partial_plan.SinkReading``)."""

    @property
    def size(self) -> int:
        """Bytes of the rows' literals."""
        ...

    def replaces(
        self, found: Mapping[int, Sequence[Any]], refuse: Callable[[Sequence[RejectedEvent], Sequence[str], ApplierError], None]
    ) -> Iterator[Statement]:
        """Render REPLACEs of whole rows from the values that the READ has returned, by the number of the key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRows:
    """What a statement was rendered from; ``texts`` (row texts, or texts of keys) and ``rows`` run in parallel."""

    phase: Phase
    table: TableDescription
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The names of the key's columns, in the sink's spelling."""
    dialect: WritingDialect
    texts: tuple[Any, ...]
    rows: tuple[RejectedEvent, ...]
    earlier: tuple[tuple[RejectedEvent, ...], ...] = ()
    """Of each row, the other events that it consists of, where rows are laid over one another; empty where none is."""

    def halves(self) -> Iterator[Statement]:
        """Render the two halves of the rows."""
        middle = len(self.rows) // 2
        for begin, end in ((0, middle), (middle, len(self.rows))):
            yield from self._rendered(self.texts[begin:end], self.rows[begin:end], self.earlier[begin:end])

    def _rendered(
        self, texts: Sequence[Any], rows: Sequence[RejectedEvent], earlier: tuple[tuple[RejectedEvent, ...], ...]
    ) -> Iterator[Statement]:
        render = self.dialect.deletes if self.phase is Phase.DELETE else self.dialect.replaces
        done = 0
        # A half may still be several statements: the dialect cuts by bytes, too.
        for text, number in render(self.table, self.columns, texts):
            half = replace(
                self,
                texts=tuple(texts[done : done + number]),
                rows=tuple(rows[done : done + number]),
                earlier=earlier[done : done + number],
            )
            commits = [row.commit_ts for row in half.rows]
            # Only whole rows are deleted exactly, and those one by one: there are no halves of them.
            yield Statement(self.phase, str(self.table.folded), text.encode(), number, min(commits), max(commits), half)
            done += number
