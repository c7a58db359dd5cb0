"""Rows that are laid over others, and those of them that need columns of the sink's row: what a READ carries to the writer.

The writer runs the READ, and gets REPLACEs of whole rows from ``SinkReading.replaces``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator, RowRefused
from applier.model.rejected_event import RejectedEvent, error_of_event
from applier.planner.catalogue import TableDescription
from applier.planner.port import Dialect
from applier.planner.statement import Phase, Statement, StatementRows


class LaidRow(NamedTuple):
    """One row: the literal of each written column (None: not in any image), and the events that it consists of, the last one first."""

    texts: tuple[str | None, ...]
    key: tuple[str, ...]
    """The literals of its key."""
    events: tuple[RejectedEvent, ...]


Refuse: TypeAlias = Callable[[Sequence[RejectedEvent], Sequence[str], ApplierError], None]
"""Takes a row that cannot be written out, or raises why. It gets the row's events, the last one first, and the columns of its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidRows:
    """How rows of one table are written. ``key``: its columns; ``is_traced``: statements carry their rows (``StatementRows``)."""

    table: TableDescription
    columns: tuple[str, ...]
    key: tuple[str, ...]
    dialect: Dialect
    is_traced: bool

    def deletes(self, rows: Sequence[LaidRow], refuse: Refuse) -> Iterator[Statement]:
        """Render DELETEs by key."""
        return self._rendered(Phase.DELETE, self.key, [(row, row.key) for row in rows], refuse)

    def replaces(self, rows: Sequence[LaidRow], refuse: Refuse) -> Iterator[Statement]:
        """Render REPLACEs of whole rows."""
        return self._rendered(Phase.REPLACE, self.columns, [(row, f"({','.join(map(str, row.texts))})") for row in rows], refuse)

    def reads(self, rows: Sequence[LaidRow], wanted: tuple[int, ...], most_rows: int) -> Iterator[Statement]:
        """Render READs of rows that all lack the columns at the places ``wanted``."""
        names = [self.columns[place] for place in wanted]
        for first in range(0, len(rows), most_rows):
            group = rows[first : first + most_rows]
            done = 0
            for text, number in self.dialect.reads(self.table, self.key, [row.key for row in group], names):
                part = tuple(group[done : done + number])
                commits = _commits(part)
                reading = SinkReading(how=self, wanted=wanted, rows=part, first=done)
                done += number
                yield Statement(Phase.READ, str(self.table.folded), text.encode(), number, min(commits), max(commits), reading=reading)

    def with_defaults(self, row: LaidRow) -> LaidRow:
        """Return a row whose missing columns take the sink's defaults. NeedsOperator if a column has none."""
        texts = [self._default(place, row) if text is None else text for place, text in enumerate(row.texts)]
        return row._replace(texts=tuple(texts))

    def _default(self, place: int, row: LaidRow) -> str:
        column = next(column for column in self.table.columns if column.name == self.columns[place])
        if column.default is None:
            error = NeedsOperator(
                "the row lacks a column that has no default in the sink",
                remedy="Let upstream send the column (column-selectors of a changefeed, binlog_row_image = FULL of a server), or give the "
                "sink's column a constant default. A row that is new, or was deleted before, needs it. With a changefeed's "
                "output-raw-change-event = true, an update of a unique key deletes no row",
                column=column.name,
            )
            raise error_of_event(error, row.events[0], self.key)
        return column.default

    def _rendered(self, phase: Phase, columns: tuple[str, ...], rows: Sequence[tuple[LaidRow, Any]], refuse: Refuse) -> Iterator[Statement]:
        render = self.dialect.deletes if phase is Phase.DELETE else self.dialect.replaces
        done = 0
        while done < len(rows):
            try:
                for text, number in render(self.table, columns, [text for _, text in rows[done:]]):
                    part = rows[done : done + number]
                    done += number
                    commits = _commits([row for row, _ in part])
                    source = self._source(phase, columns, part) if self.is_traced else None
                    yield Statement(phase, str(self.table.folded), text.encode(), number, min(commits), max(commits), source)
            # From the dialect, after the statements of all rows before: the next row is too large.
            except FatalSinkError as error:
                refuse(rows[done][0].events, self.key, error)
                done += 1

    def _source(self, phase: Phase, columns: tuple[str, ...], part: Sequence[tuple[LaidRow, Any]]) -> StatementRows:
        return StatementRows(
            phase=phase,
            table=self.table,
            columns=columns,
            key=self.key,
            dialect=self.dialect,
            texts=tuple(text for _, text in part),
            rows=tuple(row.events[0] for row, _ in part),
            earlier=tuple(row.events[1:] for row, _ in part),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkReading:
    """The rows of one READ, in the order of its keys. ``wanted``: the places of the columns that it reads."""

    how: LaidRows
    wanted: tuple[int, ...]
    rows: tuple[LaidRow, ...]
    first: int
    """The number of the first key."""

    @property
    def size(self) -> int:
        """Bytes of the rows' literals."""
        return sum(len(text) for row in self.rows for text in (*row.texts, *row.key) if text is not None)

    def replaces(self, found: Mapping[int, Sequence[Any]], refuse: Refuse) -> Iterator[Statement]:
        """Render REPLACEs of whole rows; ``found``: the values that the READ has returned, by the number of the key.

        A row that the sink lacks takes defaults: it is new. NeedsOperator if a column has none.
        """
        whole: list[LaidRow] = []
        for number, row in enumerate(self.rows, self.first):
            try:
                whole.append(self._laid_over(row, found[number]) if number in found else self.how.with_defaults(row))
            except RowRefused as error:
                refuse(row.events, self.how.key, error)
        return self.how.replaces(whole, refuse)

    def _laid_over(self, row: LaidRow, values: Sequence[Any]) -> LaidRow:
        texts = list(row.texts)
        for place, value in zip(self.wanted, values, strict=True):
            texts[place] = self.how.dialect.read_literal(value)
            if texts[place] is None:
                raise RowRefused(
                    "a column that the row lacks is too large to be read from the sink",
                    remedy="Raise max_allowed_packet of the sink's server to three times the column's bytes, and start again",
                    table=str(self.how.table.folded),
                    column=self.how.columns[place],
                )
        return row._replace(texts=tuple(texts))


def _commits(rows: Sequence[LaidRow]) -> list[int]:
    return [event.commit_ts for row in rows for event in row.events]
