"""The statements of the partial rows of one table in one segment.

A key's partial rows are laid over its latest whole row, or over nothing where the key was deleted before: what is then missing takes the
sink's defaults. Where the segment holds neither, it is read from the sink's row (``Phase.READ``), and the writer makes the row whole. So a
partial image never resets a column that it does not list, and every row that is written is whole.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator, ProtocolError, Remedy, RowRefused
from applier.model.events import MARKER_IMAGE, RowKind
from applier.model.rejected_event import RejectedEvent, error_of_event
from applier.planner.column_match import key_names, written_columns
from applier.planner.final_rows import Key, PlannedRows
from applier.planner.ordered_rows import Part, PartialRows
from applier.planner.port import Dialect, Phase, Statement, StatementRows, TableDescription
from applier.planner.rendering import KeyText, TableRenderers

# --- reading ---------------------------------------------------------------------------------------------------------
# Rows that are laid over others, and rows that need columns of the sink's row: what a READ carries to the writer.
#
# The writer runs the READ, and gets REPLACEs of whole rows from ``SinkReading.replaces``.


class MergedRow(NamedTuple):
    """One row: the literal of each written column (None: not in any image), and the events that it consists of, the last one first."""

    texts: tuple[str | None, ...]
    key: tuple[str, ...]
    """The literals of its key."""
    events: tuple[RejectedEvent, ...]


Refuse: TypeAlias = Callable[[Sequence[RejectedEvent], Sequence[str], ApplierError], None]
"""Removes a row that cannot be written, or raises the reason. It gets the row's events, the last one first, and the columns of its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRows:
    """How rows of one table are written. ``key``: its columns; ``is_traced``: statements carry their rows (``StatementRows``)."""

    table: TableDescription
    columns: tuple[str, ...]
    key: tuple[str, ...]
    dialect: Dialect
    is_traced: bool

    def deletes(self, rows: Sequence[MergedRow], refuse: Refuse) -> Iterator[Statement]:
        """Render DELETEs by key."""
        return self._rendered(Phase.DELETE, self.key, [(row, row.key) for row in rows], refuse)

    def replaces(self, rows: Sequence[MergedRow], refuse: Refuse) -> Iterator[Statement]:
        """Render REPLACEs of whole rows."""
        return self._rendered(Phase.REPLACE, self.columns, [(row, f"({','.join(map(str, row.texts))})") for row in rows], refuse)

    def reads(self, rows: Sequence[MergedRow], wanted: tuple[int, ...], most_rows: int) -> Iterator[Statement]:
        """Render READs of rows that all lack the columns at the positions ``wanted``."""
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

    def with_defaults(self, row: MergedRow) -> MergedRow:
        """Return a row whose missing columns take the sink's defaults. NeedsOperator if a column does not have one."""
        texts = [self._default(place, row) if text is None else text for place, text in enumerate(row.texts)]
        return row._replace(texts=tuple(texts))

    def _default(self, place: int, row: MergedRow) -> str:
        column = next(column for column in self.table.columns if column.name == self.columns[place])
        if column.default is None:
            error = NeedsOperator(
                "the row lacks a column that has no default in the sink",
                remedy=Remedy(
                    "planner.send-column",
                    "Let upstream send the column (column-selectors of a changefeed, binlog_row_image = FULL of a server), or give the "
                    "sink's column a constant default. A row that is new, or was deleted before, needs it. With a changefeed's "
                    "output-raw-change-event = true, an update of a unique key deletes no row",
                ),
                column=column.name,
            )
            raise error_of_event(error, row.events[0], self.key)
        return column.default

    def _rendered(
        self, phase: Phase, columns: tuple[str, ...], rows: Sequence[tuple[MergedRow, Any]], refuse: Refuse
    ) -> Iterator[Statement]:
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

    def _source(self, phase: Phase, columns: tuple[str, ...], part: Sequence[tuple[MergedRow, Any]]) -> StatementRows:
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
    """The rows of one READ, in the order of its keys. ``wanted``: the positions of the columns that it reads."""

    how: MergedRows
    wanted: tuple[int, ...]
    rows: tuple[MergedRow, ...]
    first: int
    """The number of the first key."""

    @property
    def size(self) -> int:
        """Bytes of the rows' literals."""
        return sum(len(text) for row in self.rows for text in (*row.texts, *row.key) if text is not None)

    def replaces(self, found: Mapping[int, Sequence[Any]], refuse: Refuse) -> Iterator[Statement]:
        """Render REPLACEs of whole rows; ``found``: the values that the READ has returned, by the number of the key.

        A row that the sink lacks takes defaults: it is new. NeedsOperator if a column does not have one.
        """
        whole: list[MergedRow] = []
        for number, row in enumerate(self.rows, self.first):
            try:
                whole.append(self._laid_over(row, found[number]) if number in found else self.how.with_defaults(row))
            except RowRefused as error:
                refuse(row.events, self.how.key, error)
        return self.how.replaces(whole, refuse)

    def _laid_over(self, row: MergedRow, values: Sequence[Any]) -> MergedRow:
        texts = list(row.texts)
        for place, value in zip(self.wanted, values, strict=True):
            texts[place] = self.how.dialect.read_literal(value)
            if texts[place] is None:
                raise RowRefused(
                    "a column that the row lacks is too large to be read from the sink",
                    remedy=Remedy(
                        "planner.raise-max-allowed-packet",
                        "Raise max_allowed_packet of the sink's server to three times the column's bytes, and start again",
                    ),
                    table=str(self.how.table.folded),
                    column=self.how.columns[place],
                )
        return row._replace(texts=tuple(texts))


def _commits(rows: Sequence[MergedRow]) -> list[int]:
    return [event.commit_ts for row in rows for event in row.events]


# --- partial plan ----------------------------------------------------------------------------------------------------


ROWS_AT_ONCE: Final = 2_000
BYTES_AT_ONCE: Final = 16 << 20
"""Rows whose statements are made together: so many, or images of so many bytes. A READ carries the literals of its rows."""
MOST_READ: Final = 1_000
"""Rows of a READ at most. The writer holds what it returns: few of large values."""
MOST_LARGE_READ: Final = 10
_LARGE: Final = ("blob", "text", "json", "long", "medium", "geometry", "vector")

PartTexts = Callable[[bytes], Iterator[tuple[str, str]]]


class PartialPlan:
    """The statements of some partial rows. ``superseded`` are the whole rows that later ones replace: they are not written themselves."""

    def __init__(self, renderers: TableRenderers, whole: PlannedRows, partial: PartialRows) -> None:
        self._exact = renderers.exact
        self._whole, self._partial = whole, partial
        self._description = renderers.exact.description
        self._columns = written_columns(self._description)
        self._texts: dict[int, PartTexts] = {}
        self._key_texts: dict[int, KeyText] = {}
        self._places = {name: place for place, name in enumerate(self._columns)}
        self._read: dict[tuple[int, ...], list[MergedRow]] = {}
        self._written: list[MergedRow] = []
        self._size = 0
        self.superseded: set[int] = set()

    def statements(self) -> Iterator[Statement]:
        """Yield READs; DELETEs where no unique index is exactly the key; REPLACEs of the rows that need no reading."""
        how: MergedRows | None = None
        for number, (key, base, parts) in enumerate(self._partial.laid_over(self._whole.final), 1):
            how = how or self._how(self._whole.of(parts[0].final), parts[0].row)
            self._lay(how, key, base, parts)
            # As they come: a row with its literals and events takes several times the memory of its images.
            if number % ROWS_AT_ONCE == 0 or self._size > BYTES_AT_ONCE:
                yield from self._taken(how)
        if how is not None:
            yield from self._taken(how)

    def _taken(self, how: MergedRows) -> Iterator[Statement]:
        """Yield the statements of the rows that were laid since the last call."""
        written, read = self._written, self._read
        self._written, self._read, self._size = [], {}, 0
        dropped: list[Sequence[RejectedEvent]] = []

        def refuse(events: Sequence[RejectedEvent], key: Sequence[str], error: ApplierError) -> None:
            self._whole.rejected.refuse_described(events, key, error)
            dropped.append(events)

        if not self._description.has_unique_key(how.key):
            yield from how.deletes([*written, *(row for rows in read.values() for row in rows)], refuse)
        yield from how.replaces([row for row in written if row.events not in dropped], refuse)
        for wanted, rows in read.items():
            kept = [row for row in rows if row.events not in dropped]
            yield from how.reads(kept, wanted, self._most(wanted))

    def _how(self, rows: PlannedRows, row: int) -> MergedRows:
        shape = rows.origin(row).shape
        names = rows.key or key_names(shape)
        spelling = {column.name.casefold(): column.name for column in self._description.columns}
        return MergedRows(
            table=self._description,
            columns=self._columns,
            key=tuple(spelling.get(name.casefold(), name) for name in names),
            dialect=self._exact.dialect,
            is_traced=self._whole.rejected.policy.trace_rows,
        )

    def _most(self, wanted: Iterable[int]) -> int:
        types = {column.name: column.sql_type.casefold() for column in self._description.columns}
        is_large = any(word in types[self._columns[place]] for place in wanted for word in _LARGE)
        return MOST_LARGE_READ if is_large else MOST_READ

    def _lay(self, how: MergedRows, key: Key, base: int | None, parts: Sequence[Part]) -> None:
        """Apply the parts of one key to its base, and decide how the row is written."""
        final = self._whole.final
        layers = [(self._whole.of(part.final), part.row) for part in parts]
        is_new = base is not None and final.kind[base] == RowKind.DELETE
        if base is not None and not is_new:
            self.superseded.add(base)
            # Unreadable, or a placeholder whose row upstream lacks.
            if final.image[base] == MARKER_IMAGE or base in self._whole.dropped:
                self._refuse(layers, 0, ProtocolError("another version of the row cannot be read", kind="partial_row"))
                return
            layers.insert(0, (self._whole, base))
        texts: list[str | None] = [None] * len(self._columns)
        literals: tuple[str, ...] = ()
        self._size += sum(len(rows.final.image[row]) for rows, row in layers)
        for number, (rows, row) in enumerate(layers):
            try:
                for name, text in self._texts_of(rows, row):
                    texts[self._places[name]] = text
                literals = tuple(self._key_of(rows, row, key))
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                self._refuse(layers, number, error)
                return
        events = tuple(rows.rejected.described(rows.position(row), rows.key) for rows, row in reversed(layers))
        laid = MergedRow(tuple(texts), literals, events)
        wanted = tuple(place for place, text in enumerate(texts) if text is None)
        if wanted and not is_new:
            self._read.setdefault(wanted, []).append(laid)
        else:
            self._written.append(how.with_defaults(laid))

    def _texts_of(self, rows: PlannedRows, row: int) -> Iterator[tuple[str, str]]:
        number = rows.final.origin[row]
        if (render := self._texts.get(number)) is None:
            render = self._texts[number] = self._exact.part_texts(rows.position(row))
        return render(rows.final.image[row])

    def _key_of(self, rows: PlannedRows, row: int, key: Key) -> list[str]:
        number = rows.final.origin[row]
        if (render := self._key_texts.get(number)) is None:
            render = self._key_texts[number] = self._exact.key_text(rows.position(row))
        return render(key, rows.final.image[row])

    def _refuse(self, layers: Sequence[tuple[PlannedRows, int]], number: int, error: Exception) -> None:
        """Quarantine the row whose image is at fault, and with it all of its events: none may be lost. Or raise the reason."""
        rows, row = layers[number]
        rows.refuse(row, error)
        message = "another part of the row cannot be written"
        for other, (rest, at) in enumerate(layers):
            if other != number:
                rest.refuse(at, RowRefused(message) if isinstance(error, RowRefused) else ProtocolError(message, kind="partial_row"))
