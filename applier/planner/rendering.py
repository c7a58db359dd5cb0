"""Rows of one table to literal texts. What a shape needs is worked out once, not per row.

Hot: a row of five columns costs about 4.2 µs in a plan (tests/bench/planner_bench.py), and what is added here is added to that. Hence
closures, ``operator.call`` and tuples by index instead of methods and attributes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import call, itemgetter
from typing import Any, TypeAlias

from applier.model.errors import ApplierError, ProtocolError
from applier.model.events import FoldedName, Value
from applier.planner.catalogue import TableDescription
from applier.planner.column_match import MatchedColumn, Origin, check_unique_indexes, key_names, match_columns, match_row, with_binary_flags
from applier.planner.compaction import COMMIT_TS, OFFSET, Key, KeyReader, KeyReaders, Version
from applier.planner.port import Dialect, ImageDecoder, ImageDecoders, Literal, RowDialect, RowLiteral, WireColumn
from applier.planner.rejected_rows import RejectedRows

KeyDecoder: TypeAlias = Callable[[bytes], Sequence[Value]]
KeyText: TypeAlias = Callable[[Version], list[str]]
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


def row_literal(columns: Sequence[MatchedColumn], dialect: Dialect) -> RowLiteral:
    """Return the function that renders a row: the dialect's own, or one made of its columns' functions."""
    if isinstance(dialect, RowDialect):
        return dialect.row_literal([WireColumn(column.sink, column.wire.mysql_type, column.wire.flags) for column in columns])
    functions = literals(columns, dialect)
    return lambda values: f"({','.join(map(call, functions, values))})"


def with_place(error: Exception, facts: Mapping[str, Any]) -> ApplierError:
    """Return the error of a row with the row's place. A value that is not of its column's type is a ProtocolError."""
    if isinstance(error, ApplierError):
        return type(error)(error.message, remedy=error.remedy, **{**error.facts, **facts})
    return ProtocolError("a value does not fit its column's type", kind="value_type", **facts)


class TableRenderer:
    """Renders the final versions of one table. Rows of all its shapes come out alike, so that they share statements."""

    def __init__(
        self,
        description: TableDescription,
        key: tuple[str, ...] | None,
        dialect: Dialect,
        decoders: ImageDecoders,
        rejected_rows: RejectedRows,
    ) -> None:
        """Take the sink's table and, if the table was rekeyed, its ``key``. ``rejected_rows`` takes rows that cannot be rendered."""
        self.description = description
        self._key = key
        self.dialect = dialect
        self._decoders = decoders
        self._rejected_rows = rejected_rows

    def row_texts(self, versions: Sequence[Version], origins: Sequence[Origin]) -> Iterator[str]:
        """Yield ``(literal,literal,…)`` per upsert, columns in the order of the sink's table without generated ones."""
        # Per shape, by number: a lookup by the shape itself would hash its columns once per row.
        renderers: dict[int, tuple[ImageDecoder, Pick, RowLiteral]] = {}
        for version in versions:
            origin = version[6]
            try:
                renderer = renderers.get(origin)
                if renderer is None:
                    renderer = renderers[origin] = self._row_renderer(origins[origin], version)
                decode, take, literal = renderer
                yield literal(take(decode(version[5])))
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                self._refuse(origins[origin], version, error)

    def _row_renderer(self, origin: Origin, version: Version) -> tuple[ImageDecoder, Pick, RowLiteral]:
        shape = with_binary_flags(origin.shape, self.description)
        facts = origin.facts(COMMIT_TS(version), OFFSET(version))
        check_unique_indexes(shape, self.description, facts)
        columns = match_row(shape, self.description, facts)
        indexes = [column.index for column in columns]
        # Where the sink's columns are those of the wire in its order, there is nothing to pick.
        take: Pick = tuple if indexes == list(range(len(shape.columns))) else pick(indexes)
        return self._decoders(shape), take, row_literal(columns, self.dialect)

    def key_texts(self, versions: Sequence[Version], origins: Sequence[Origin]) -> Iterator[list[str]]:
        """Yield the literals of each row's key."""
        renderers: dict[int, KeyText] = {}
        for version in versions:
            origin = version[6]
            try:
                if (render := renderers.get(origin)) is None:
                    render = renderers[origin] = self._key_text(origins[origin], version)
                yield render(version)
            except (ApplierError, TypeError, ValueError, AttributeError) as error:
                self._refuse(origins[origin], version, error)

    def _refuse(self, origin: Origin, version: Version, cause: Exception) -> None:
        error = with_place(cause, origin.facts(COMMIT_TS(version), OFFSET(version)))
        error.__cause__ = cause
        self._rejected_rows.refuse(origin, version, error, self._key)

    def _key_text(self, origin: Origin, version: Version) -> KeyText:
        decode_key = self._rejected_rows.decode_key
        names = self._key or key_names(origin.shape)
        shape = with_binary_flags(origin.shape, self.description)
        columns = match_columns(shape, self.description, names, origin.facts(COMMIT_TS(version), OFFSET(version)))
        functions = literals(columns, self.dialect)
        if self._key is None and shape.handle_key != origin.shape.handle_key:
            # Stale flags on a key column: the packed key holds the escaped text, the image, decoded as bytes, holds the bytes.
            decode, take = self._decoders(shape), pick([column.index for column in columns])
            return lambda version: list(map(call, functions, take(decode(version[5]))))
        return lambda version: list(map(call, functions, _values(version[4], decode_key)))


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

        def key_of(version: Version) -> Key:
            nonlocal read
            facts = origin.facts(COMMIT_TS(version), OFFSET(version))
            read = read or _key_values(origin, description, key, decoders, facts)
            try:
                return tuple(read(version[5]))
            except ApplierError as error:
                raise with_place(error, facts) from error

        return key_of

    return reader_of


def _key_values(
    origin: Origin, description: TableDescription, key: tuple[str, ...], decoders: ImageDecoders, facts: Mapping[str, Any]
) -> ImageDecoder:
    shape = with_binary_flags(origin.shape, description)
    take = pick([column.index for column in match_columns(shape, description, key, facts)])
    decode = decoders(shape)
    return lambda image: take(decode(image))
