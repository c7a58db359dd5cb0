"""Rows of one shape to text, many at a time: the way for nearly all rows. What it cannot write is left to ``rendering``.

All work on a row is done in C, over columns: one call decodes the images of a group, one ``%`` formats their values. So a group is all or
nothing: where one image cannot be read, or one value cannot be written, the whole group is left, and the exact way finds the row.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from applier.model.errors import ApplierError, InvariantViolation
from applier.model.events import Shape, Value
from applier.planner.catalogue import TableDescription
from applier.planner.final_rows import picked
from applier.planner.port import BulkDialect, Dialect, ImagesDecoder, RowDecoder, RowsDialect, RowsText, WireColumn
from applier.planner.rejected_rows import PlannedRows
from applier.planner.rendering import MatchedShape, TableRenderer

T = TypeVar("T")

GROUP_ROWS: Final = 250
"""Rows that are decoded and rendered at once. More gain nothing: their values leave the processor's cache."""
GROUP_BYTES: Final = 256 * 1024
"""Bytes of images in a group of more than one row. A literal takes at most twice the bytes of its value's JSON."""

Columns: TypeAlias = Sequence[Sequence[Value]]
RowsTextOf: TypeAlias = Callable[[Sequence[WireColumn]], RowsText | None]
"""Columns of the sink -> how rows of them are rendered; None: not this way."""


class _ShapeRenderer(NamedTuple):
    decode: ImagesDecoder
    indexes: Sequence[int]
    text: RowsText | None


class GroupRenderer:
    """Renders groups of one table in one way of the dialect: ``text_of``."""

    def __init__(self, renderer: TableRenderer, text_of: RowsTextOf) -> None:
        self.table = str(renderer.description.folded)
        self._renderer, self._text_of = renderer, text_of
        self._shapes: dict[Shape, _ShapeRenderer] = {}

    def render(self, rows: PlannedRows, group: Sequence[int]) -> bytes | None:
        """Return the joined texts of some rows of one shape; None if they are left."""
        origin = rows.origin(group[0])
        try:
            found = self._shapes.get(origin.shape)
            if found is None:
                found = self._shapes[origin.shape] = self._shape(self._renderer.matched(origin, rows.place(group[0]).facts))
            if found.text is None:
                return None
            columns = found.decode(picked(rows.final.image, group))
            return found.text([columns[index] for index in found.indexes])
        # The exact way finds the row, and names it.
        except (ApplierError, TypeError, ValueError, AttributeError):
            return None

    def _shape(self, matched: MatchedShape) -> _ShapeRenderer:
        wire = [WireColumn(column.sink, column.wire.mysql_type, column.wire.flags) for column in matched.columns]
        decode = self._renderer.decoder.images_decoder(matched.shape)
        return _ShapeRenderer(decode, [column.index for column in matched.columns], self._text_of(wire))


class Renderers:
    """The ways to render rows of some tables. They serve all segments of a pass: what a table or a shape needs is worked out once."""

    def __init__(self, decoder: RowDecoder, dialect: Dialect, *, bulk: bool) -> None:
        self._decoder, self._dialect = decoder, dialect
        # Once per pass: to compare a class with a protocol takes as long as to render 50 rows.
        self._rows_dialect = dialect if isinstance(dialect, RowsDialect) else None
        self._bulk_dialect = dialect if bulk and isinstance(dialect, BulkDialect) else None

    def of(self, description: TableDescription, key: tuple[str, ...] | None) -> "TableRenderers":
        """Return those of one table. ``key``: the sink's key columns, if the table was rekeyed."""
        exact = TableRenderer(description, key, self._dialect, self._decoder)
        columns = tuple(column.name for column in description.columns if not column.generated)
        replaces = loads = None
        if (rows := self._rows_dialect) is not None:
            render = GroupRenderer(exact, partial(rows.rows_text, description))
            replaces = GroupWay(render, rows.joined_replaces(description, columns), rows.most_rows(description))
        if (bulk := self._bulk_dialect) is not None:
            loads = GroupWay(GroupRenderer(exact, bulk.bulk_line), partial(bulk.bulk_loads, description, columns), GROUP_ROWS)
        return TableRenderers(exact, columns, replaces, loads)


class GroupWay(NamedTuple, Generic[T]):
    """A way of the dialect to render many rows of one table: groups to texts, texts to statements."""

    renderer: GroupRenderer
    statements: Callable[[Iterable[tuple[bytes, int]]], Iterator[T]]
    most_rows: int


class TableRenderers(NamedTuple):
    """The ways to render rows of one table. ``columns``: those that a whole row writes."""

    exact: TableRenderer
    columns: tuple[str, ...]
    replaces: GroupWay[tuple[bytes, int]] | None
    loads: GroupWay[tuple[bytes, bytes, int]] | None


class GroupPass:
    """One pass over rows of one table."""

    def __init__(self, way: GroupWay[Any], rows: PlannedRows) -> None:
        self._renderer, self._rows = way.renderer, rows
        self._most_rows = min(GROUP_ROWS, way.most_rows)
        self._rendered: deque[Sequence[int]] = deque()
        self._left: list[int] = []

    def texts(self, chosen: Sequence[int]) -> Iterator[tuple[bytes, int]]:
        """Yield the joined texts of each group, and the number of its rows."""
        for group in self._groups(chosen):
            text = self._renderer.render(self._rows, group)
            if text is None:
                self._left += group
            else:
                self._rendered.append(group)
                yield text, len(group)

    def _groups(self, chosen: Sequence[int]) -> Iterator[Sequence[int]]:
        final, origins = self._rows.final, self._rows.origins
        shapes: dict[Shape, int] = {}
        shape_of = {number: shapes.setdefault(origins[number].shape, len(shapes)) for number in set(picked(final.origin, chosen))}
        if len(shapes) == 1:
            yield from self._cut(chosen)
            return
        by_shape: list[list[int]] = [[] for _ in shapes]
        for row in chosen:
            by_shape[shape_of[final.origin[row]]].append(row)
        for rows in by_shape:
            yield from self._cut(rows)

    def _cut(self, rows: Sequence[int]) -> Iterator[Sequence[int]]:
        image = self._rows.final.image
        start = 0
        while start < len(rows):
            group = rows[start : start + self._most_rows]
            while len(group) > 1 and sum(map(len, picked(image, group))) > GROUP_BYTES:
                group = group[: len(group) // 2]
            yield group
            start += len(group)

    def take(self, rows: int) -> list[int]:
        """Return the rows of the next statement. InvariantViolation if the dialect rendered others than it received."""
        taken: list[int] = []
        while len(taken) < rows and self._rendered:
            taken += self._rendered.popleft()
        if len(taken) != rows:
            raise self._wrong(rows - len(taken))
        return taken

    def left_after(self) -> list[int]:
        """Return the rows that were not rendered, once all others were taken."""
        if self._rendered:
            raise self._wrong(sum(map(len, self._rendered)))
        return self._left

    def _wrong(self, missing: int) -> InvariantViolation:
        return InvariantViolation("the dialect rendered other rows than it received", table=str(self._renderer.table), rows=missing)
