"""The statements of the partial rows of one table in one segment.

A key's partial rows are laid over its latest whole row, or over nothing where the key was deleted before: what is then missing takes the
sink's defaults. Where the segment holds neither, it is read from the sink's row (``Phase.READ``), and the writer makes the row whole. So a
partial image never resets a column that it does not list, and every row that is written is whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from applier.model.errors import ApplierError, ProtocolError, RowRefused
from applier.model.events import MARKER_IMAGE, RowKind
from applier.model.rejected_event import RejectedEvent
from applier.planner.column_match import key_names, written_columns
from applier.planner.final_rows import Key
from applier.planner.group_rendering import TableRenderers
from applier.planner.partial_rows import Part, PartialRows
from applier.planner.reading import LaidRow, LaidRows
from applier.planner.rejected_rows import PlannedRows
from applier.planner.rendering import KeyText
from applier.planner.statement import Statement

ROWS_AT_ONCE: Final = 2_000
BYTES_AT_ONCE: Final = 16 << 20
"""Rows whose statements are made together: so many, or images of so many bytes. A READ carries the literals of its rows."""
MOST_READ: Final = 1_000
"""Rows of a READ at most. The writer holds what it returns: few of large values."""
MOST_LARGE_READ: Final = 10
_LARGE: Final = ("blob", "text", "json", "long", "medium", "geometry", "vector")

PartTexts = Callable[[bytes], Iterator[tuple[str, str]]]


class PartialPlan:
    """The statements of some partial rows. ``superseded`` are the whole rows that others lie over: they are not written themselves."""

    def __init__(self, renderers: TableRenderers, whole: PlannedRows, partial: PartialRows) -> None:
        self._exact = renderers.exact
        self._whole, self._partial = whole, partial
        self._description = renderers.exact.description
        self._columns = written_columns(self._description)
        self._texts: dict[int, PartTexts] = {}
        self._key_texts: dict[int, KeyText] = {}
        self._places = {name: place for place, name in enumerate(self._columns)}
        self._read: dict[tuple[int, ...], list[LaidRow]] = {}
        self._written: list[LaidRow] = []
        self._size = 0
        self.superseded: set[int] = set()

    def statements(self) -> Iterator[Statement]:
        """Yield READs; DELETEs where no unique index is exactly the key; REPLACEs of the rows that need no reading."""
        how: LaidRows | None = None
        for number, (key, base, parts) in enumerate(self._partial.laid_over(self._whole.final), 1):
            how = how or self._how(self._whole.of(parts[0].final), parts[0].row)
            self._lay(how, key, base, parts)
            # As they come: a row with its literals and events takes several times the memory of its images.
            if number % ROWS_AT_ONCE == 0 or self._size > BYTES_AT_ONCE:
                yield from self._taken(how)
        if how is not None:
            yield from self._taken(how)

    def _taken(self, how: LaidRows) -> Iterator[Statement]:
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

    def _how(self, rows: PlannedRows, row: int) -> LaidRows:
        shape = rows.origin(row).shape
        names = rows.key or key_names(shape)
        spelling = {column.name.casefold(): column.name for column in self._description.columns}
        return LaidRows(
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

    def _lay(self, how: LaidRows, key: Key, base: int | None, parts: Sequence[Part]) -> None:
        """Lay the parts of one key over its base, and decide how the row is written."""
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
        events = tuple(rows.rejected.described(rows.place(row), rows.key) for rows, row in reversed(layers))
        laid = LaidRow(tuple(texts), literals, events)
        wanted = tuple(place for place, text in enumerate(texts) if text is None)
        if wanted and not is_new:
            self._read.setdefault(wanted, []).append(laid)
        else:
            self._written.append(how.with_defaults(laid))

    def _texts_of(self, rows: PlannedRows, row: int) -> Iterator[tuple[str, str]]:
        number = rows.final.origin[row]
        if (render := self._texts.get(number)) is None:
            render = self._texts[number] = self._exact.part_texts(rows.place(row))
        return render(rows.final.image[row])

    def _key_of(self, rows: PlannedRows, row: int, key: Key) -> list[str]:
        number = rows.final.origin[row]
        if (render := self._key_texts.get(number)) is None:
            render = self._key_texts[number] = self._exact.key_text(rows.place(row))
        return render(key, rows.final.image[row])

    def _refuse(self, layers: Sequence[tuple[PlannedRows, int]], number: int, error: Exception) -> None:
        """Quarantine the row whose image is at fault, and with it all that it consists of: none of them may be lost, or raise why."""
        rows, row = layers[number]
        rows.refuse(row, error)
        message = "another part of the row cannot be written"
        for other, (rest, at) in enumerate(layers):
            if other != number:
                rest.refuse(at, RowRefused(message) if isinstance(error, RowRefused) else ProtocolError(message, kind="partial_row"))
