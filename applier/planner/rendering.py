"""Rows of one table to literal texts, row by row: the exact way, which knows for each row why it cannot be written.

What most rows take is ``GroupRenderer``. This way is for keys, for rows that the other one does not render, and where a statement must know
its rows. What a shape needs is computed once, not per row.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import call, itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from applier.model.errors import ApplierError, InvariantViolation
from applier.model.events import FoldedName, Shape, Value
from applier.planner.column_match import (
    MatchedColumn,
    Origin,
    check_generated,
    check_unique_indexes,
    key_names,
    match_columns,
    match_part,
    match_row,
    with_bytes_of_sink,
)
from applier.planner.compaction import KeyReader, KeyReaders
from applier.planner.final_rows import Key, PlannedRows, RowPosition, picked, with_position
from applier.planner.port import (
    BulkDialect,
    Dialect,
    ImageDecoder,
    ImageDecoders,
    ImagesDecoder,
    Literal,
    RowDecoder,
    RowsDialect,
    RowsText,
    TableDescription,
    WireColumn,
)

KeyDecoder: TypeAlias = Callable[[bytes], Sequence[Value]]
KeyText: TypeAlias = Callable[[Key, bytes], list[str]]
"""Key and image of a row -> the literals of its key."""
Pick: TypeAlias = Callable[[Sequence[Value]], tuple[Value, ...]]


def pick(indexes: Sequence[int]) -> Pick:
    """Return the function that takes the values at ``indexes``, in their order."""
    # itemgetter returns a bare value for one index, and a key of one column is the usual one.
    if len(indexes) == 1:
        only = indexes[0]
        return lambda values: (values[only],)
    return itemgetter(*indexes)


def literals(columns: Sequence[MatchedColumn], dialect: Dialect) -> tuple[Literal, ...]:
    """Return the function of each column."""
    return tuple(dialect.literal(column.sink, column.wire.mysql_type, is_bytes=column.wire.is_bytes) for column in columns)


class MatchedShape(NamedTuple):
    """A shape whose images are read, and the columns that a whole row of it writes, in the order of the sink's table."""

    shape: Shape
    columns: tuple[MatchedColumn, ...]


class TableRenderer:
    """Renders the final rows of one table. Rows of all its shapes come out alike, so that they share statements."""

    def __init__(self, description: TableDescription, key: tuple[str, ...] | None, dialect: Dialect, decoder: RowDecoder) -> None:
        """Take the sink's table and, if the table was rekeyed, its ``key``."""
        self.description, self.dialect, self.decoder = description, dialect, decoder
        self._key = key
        self._matched: dict[Shape, MatchedShape] = {}
        self._literals: dict[Shape, Callable[[bytes], str]] = {}
        self._keys: dict[Shape, KeyText] = {}

    def matched(self, origin: Origin, facts: Mapping[str, Any]) -> MatchedShape:
        """Match a shape with the sink's table, once. ``facts`` name its first row in errors: see ``match_row``."""
        found = self._matched.get(origin.shape)
        if found is None:
            shape = with_bytes_of_sink(origin.shape, self.description)
            check_unique_indexes(shape, self.description, facts)
            check_generated(shape, self.description, facts)
            found = self._matched[origin.shape] = MatchedShape(shape, match_row(shape, self.description, facts))
        return found

    def row_texts(self, rows: PlannedRows, chosen: Sequence[int]) -> Iterator[str]:
        """Yield ``(literal,literal,…)`` per upsert, columns in the order of the sink's table without generated ones."""
        # Per origin, by number: a lookup by the shape itself would hash its columns once per row.
        renderers: dict[int, Callable[[bytes], str]] = {}
        for row in chosen:
            number = rows.final.origin[row]
            try:
                if (render := renderers.get(number)) is None:
                    render = renderers[number] = self._row_text(rows.position(row))
                yield render(rows.final.image[row])
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                rows.refuse(row, error)

    def _row_text(self, row: RowPosition) -> Callable[[bytes], str]:
        shape, columns = self.matched(row.origin, row.facts)
        decode, take = self.decoder.image_decoder(shape), pick([column.index for column in columns])
        functions = literals(columns, self.dialect)
        return lambda image: f"({','.join(map(call, functions, take(decode(image))))})"

    def part_texts(self, row: RowPosition) -> Callable[[bytes], Iterator[tuple[str, str]]]:
        """Return the function from the image of a row of this shape to the columns that it writes, with their literals."""
        shape = with_bytes_of_sink(row.origin.shape, self.description)
        check_unique_indexes(shape, self.description, row.facts)
        check_generated(shape, self.description, row.facts)
        columns = match_part(shape, self.description, row.facts)
        decode, take = self.decoder.image_decoder(shape), pick([column.index for column in columns])
        names, functions = [column.sink.name for column in columns], literals(columns, self.dialect)
        return lambda image: zip(names, map(call, functions, take(decode(image))), strict=True)

    def whole_row(self, row: RowPosition) -> Callable[[bytes], tuple[str, ...]]:
        """Return the function from the image of a row like ``row`` to the literals of all columns that it writes."""
        shape, columns = self.matched(row.origin, row.facts)
        decode, take = self.decoder.image_decoder(shape), pick([column.index for column in columns])
        functions = literals(columns, self.dialect)
        return lambda image: tuple(map(call, functions, take(decode(image))))

    def key_texts(self, rows: PlannedRows, chosen: Sequence[int]) -> Iterator[list[str]]:
        """Yield the literals of each row's key."""
        final = rows.final
        renderers: dict[int, KeyText] = {}
        for row in chosen:
            number = final.origin[row]
            try:
                if (render := renderers.get(number)) is None:
                    render = renderers[number] = self.key_text(rows.position(row))
                yield render(final.keys[row], final.image[row])
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                rows.refuse(row, error)

    def key_text(self, row: RowPosition) -> KeyText:
        """Return the function that renders the keys of rows of this shape."""
        decode_key = self.decoder.decode_key
        names = self._key or key_names(row.origin.shape)
        shape = with_bytes_of_sink(row.origin.shape, self.description)
        columns = match_columns(shape, self.description, names, row.facts)
        functions = literals(columns, self.dialect)
        if self._key is None and shape.handle_key != row.origin.shape.handle_key:
            # Stale flags on a key column: the packed key holds the escaped text, the image, decoded as bytes, holds the bytes.
            decode, take = self.decoder.image_decoder(shape), pick([column.index for column in columns])
            return lambda _, image: list(map(call, functions, take(decode(image))))
        return lambda key, _: list(map(call, functions, _values(key, decode_key)))


def _values(key: Key, decode_key: KeyDecoder) -> Sequence[Value]:
    return key if isinstance(key, tuple) else decode_key(key)


def image_keys(
    rekeyed: Mapping[FoldedName, tuple[str, ...]], tables: Mapping[FoldedName, TableDescription], decoders: ImageDecoders
) -> dict[FoldedName, KeyReaders]:
    """Return how the keys of rekeyed tables are read from images. Tables that the sink lacks are skipped: the plan reports them."""
    return {table: _key_readers(tables[table], key, decoders) for table, key in rekeyed.items() if table in tables}


def _key_readers(description: TableDescription, key: tuple[str, ...], decoders: ImageDecoders) -> KeyReaders:
    def reader_of(origin: Origin) -> KeyReader:
        read: ImageDecoder | None = None

        def key_of(row: RowPosition, image: bytes) -> Key:
            nonlocal read
            read = read or _key_values(origin, description, key, decoders, row.facts)
            try:
                return tuple(read(image))
            except ApplierError as error:
                raise with_position(error, row.facts) from error

        return key_of

    return reader_of


def _key_values(
    origin: Origin, description: TableDescription, key: tuple[str, ...], decoders: ImageDecoders, facts: Mapping[str, Any]
) -> ImageDecoder:
    shape = with_bytes_of_sink(origin.shape, description)
    take = pick([column.index for column in match_columns(shape, description, key, facts)])
    decode = decoders(shape)
    return lambda image: take(decode(image))


# --- group rendering -------------------------------------------------------------------------------------------------
# Rows of one shape to text, many at a time: the way for nearly all rows. What it cannot write is left to ``rendering``.
#
# All work on a row is done in C, over columns: one call decodes the images of a group, one ``%`` formats their values. So a group is all or
# nothing: where one image cannot be read, or one value cannot be written, the whole group is left, and the exact way finds the row.

T = TypeVar("T")

GROUP_ROWS: Final = 250
"""Rows that are decoded and rendered at once. More gain nothing: their values leave the processor's cache."""
GROUP_BYTES: Final = 256 * 1024
"""Bytes of images in a group of more than one row. A literal takes at most twice the bytes of its value's JSON."""

Columns: TypeAlias = Sequence[Sequence[Value]]
RowsTextOf: TypeAlias = Callable[[Sequence[WireColumn]], RowsText | None]
"""Columns of the sink -> how rows of them are rendered; None: this way cannot."""


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
                found = self._shapes[origin.shape] = self._shape(self._renderer.matched(origin, rows.position(group[0]).facts))
            if found.text is None:
                return None
            columns = found.decode(picked(rows.final.image, group))
            return found.text([columns[index] for index in found.indexes])
        # The exact way finds the row, and names it.
        except (ApplierError, TypeError, ValueError, AttributeError):
            return None

    def _shape(self, matched: MatchedShape) -> _ShapeRenderer:
        wire = [WireColumn(column.sink, column.wire.mysql_type, column.wire.is_bytes) for column in matched.columns]
        decode = self._renderer.decoder.images_decoder(matched.shape)
        return _ShapeRenderer(decode, [column.index for column in matched.columns], self._text_of(wire))


class Renderers:
    """The ways to render rows of some tables. They serve all segments of a pass: what a table or a shape needs is computed once."""

    def __init__(self, decoder: RowDecoder, dialect: Dialect, *, bulk: bool) -> None:
        self._decoder, self._dialect = decoder, dialect
        # Once per pass: to compare a class with a protocol takes as long as to render 50 rows.
        self._rows_dialect = dialect if isinstance(dialect, RowsDialect) else None
        self._bulk_dialect = dialect if bulk and isinstance(dialect, BulkDialect) else None

    def of(self, description: TableDescription, key: tuple[str, ...] | None) -> "TableRenderers":
        """Return the renderers of one table. ``key``: the sink's key columns, if the table was rekeyed."""
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
    """The ways to render rows of one table. ``columns``: what a whole row writes."""

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
