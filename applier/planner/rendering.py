"""Rows of one table to literal texts, row by row: the exact way, which knows for each row why it cannot be written.

What most rows take is ``group_rendering``. This way is for keys, for rows that the other one leaves, and where a statement must know
its rows. What a shape needs is worked out once, not per row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import call, itemgetter
from typing import Any, NamedTuple, TypeAlias

from applier.model.errors import ApplierError
from applier.model.events import FoldedName, Shape, Value
from applier.planner.catalogue import TableDescription
from applier.planner.column_match import (
    MatchedColumn,
    Origin,
    check_generated,
    check_unique_indexes,
    key_names,
    match_columns,
    match_part,
    match_row,
    with_binary_flags,
)
from applier.planner.compaction import KeyReader, KeyReaders
from applier.planner.final_rows import Key, RowPlace
from applier.planner.port import Dialect, ImageDecoder, ImageDecoders, Literal, RowDecoder
from applier.planner.rejected_rows import PlannedRows, with_place

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
    return tuple(dialect.literal(column.sink, column.wire.mysql_type, column.wire.flags) for column in columns)


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
            shape = with_binary_flags(origin.shape, self.description)
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
                    render = renderers[number] = self._row_text(rows.place(row))
                yield render(rows.final.image[row])
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                rows.refuse(row, error)

    def _row_text(self, row: RowPlace) -> Callable[[bytes], str]:
        shape, columns = self.matched(row.origin, row.facts)
        decode, take = self.decoder.image_decoder(shape), pick([column.index for column in columns])
        functions = literals(columns, self.dialect)
        return lambda image: f"({','.join(map(call, functions, take(decode(image))))})"

    def part_texts(self, row: RowPlace) -> Callable[[bytes], Iterator[tuple[str, str]]]:
        """Return the function from the image of a row of this shape to the columns that it writes, with their literals."""
        shape = with_binary_flags(row.origin.shape, self.description)
        check_unique_indexes(shape, self.description, row.facts)
        check_generated(shape, self.description, row.facts)
        columns = match_part(shape, self.description, row.facts)
        decode, take = self.decoder.image_decoder(shape), pick([column.index for column in columns])
        names, functions = [column.sink.name for column in columns], literals(columns, self.dialect)
        return lambda image: zip(names, map(call, functions, take(decode(image))), strict=True)

    def whole_row(self, row: RowPlace) -> Callable[[bytes], tuple[str, ...]]:
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
                    render = renderers[number] = self.key_text(rows.place(row))
                yield render(final.keys[row], final.image[row])
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                rows.refuse(row, error)

    def key_text(self, row: RowPlace) -> KeyText:
        """Return the function that renders the keys of rows of this shape."""
        decode_key = self.decoder.decode_key
        names = self._key or key_names(row.origin.shape)
        shape = with_binary_flags(row.origin.shape, self.description)
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
    """Return how the keys of rekeyed tables are read from images. Tables that the sink lacks are left out: the plan reports them."""
    return {table: _key_readers(tables[table], key, decoders) for table, key in rekeyed.items() if table in tables}


def _key_readers(description: TableDescription, key: tuple[str, ...], decoders: ImageDecoders) -> KeyReaders:
    def reader_of(origin: Origin) -> KeyReader:
        read: ImageDecoder | None = None

        def key_of(row: RowPlace, image: bytes) -> Key:
            nonlocal read
            read = read or _key_values(origin, description, key, decoders, row.facts)
            try:
                return tuple(read(image))
            except ApplierError as error:
                raise with_place(error, row.facts) from error

        return key_of

    return reader_of


def _key_values(
    origin: Origin, description: TableDescription, key: tuple[str, ...], decoders: ImageDecoders, facts: Mapping[str, Any]
) -> ImageDecoder:
    shape = with_binary_flags(origin.shape, description)
    take = pick([column.index for column in match_columns(shape, description, key, facts)])
    decode = decoders(shape)
    return lambda image: take(decode(image))
