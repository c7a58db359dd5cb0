"""What is compiled of a table map: for each set of columns that images have, how their rows are walked over and their keys are made.

Table maps are compared by their bytes, so one that comes again, with each transaction, costs a lookup.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import starmap
from typing import Any, Final

import msgspec

from applier.model.events import ColumnShape, Flag, Shape, Value
from applier.sources.binlog.column_code import ColumnCode
from applier.sources.binlog.row_code import row_readers
from applier.sources.binlog.table_map import MapColumn, TableMap, read_table_map
from applier.sources.binlog.value.format import ColumnRead, ValueFormat, value_format
from applier.sources.row_key import KEYLESS, encode_key, encode_plain

MAX_TABLES: Final = 4096
"""Table maps kept per process; then all are forgotten. One of 12 columns takes 15 KB and 0.5 ms."""

_FLOATS: Final = frozenset({4, 5})
_BIGINT: Final = 8
_HASH: Final = "DB_ROW_HASH_"
"""How MariaDB begins the name of the column in which it keeps the hash of a long unique key: a VIRTUAL one that no statement shows."""


class ShapeEncoding(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """``Shape.encoding``: an image consists of the values of ``first``, and of ``second`` where an update's old image precedes the new one.

    ``taken``: which of all of these are the columns of the shape; [] for all of ``first``.
    """

    first: list[ColumnCode]
    second: list[ColumnCode] = []
    taken: list[int] = []


encode_encoding: Final = msgspec.msgpack.Encoder().encode
decode_encoding: Final = msgspec.msgpack.Decoder(ShapeEncoding).decode


class ImageCode:
    """Images with the columns at ``places`` of a table. ``key_places``: where in the image the key's columns are; -1: it lacks one."""

    def __init__(self, table: "TableCode", places: Sequence[int]) -> None:
        self.places = tuple(places)
        self.codes = [table.map.columns[place].code for place in places]
        number = {place: at for at, place in enumerate(places)}
        self.key_places = [number.get(place, -1) for place in table.key]
        self.readers = row_readers([table.formats[place] for place in places], [place for place in self.key_places if place >= 0])
        self.has_key = -1 not in self.key_places
        self.is_whole = len(self.places) == len(table.map.columns)


class TableCode:
    """A table map, and the images of its rows by the bitmap of the columns that they have."""

    def __init__(self, table: TableMap, *, is_mariadb: bool = False) -> None:
        self.map = table
        self.columns = tuple(_column(column, is_mariadb=is_mariadb) for column in table.columns)
        primary = [place for place, column in enumerate(table.columns) if column.is_primary]
        # The order of Shape.handle_key.
        self.key = sorted(primary, key=lambda place: table.columns[place].name.casefold())
        self._images: dict[bytes, ImageCode] = {}

    # Not before a row needs them: a table that is left out may have columns of any type.
    @cached_property
    def formats(self) -> list[ValueFormat]:
        """How its columns are written. ProtocolError: a type is not known."""
        return [value_format(column.code, is_bytes=column.code.charset == "binary") for column in self.map.columns]

    @cached_property
    def keys_of(self) -> Callable[[Sequence[tuple[Any, ...]]], list[bytes]]:
        """What makes row keys of the values of the key's columns, as images have them."""
        return _keys_of([_key_read(self.formats[place], self.map.columns[place].code) for place in self.key])

    def image(self, present: bytes) -> ImageCode:
        """Return what is known of images with these columns; the lowest bit of a byte first."""
        found = self._images.get(present)
        if found is None:
            places = [place for place in range(len(self.columns)) if present[place >> 3] >> (place & 7) & 1]
            found = self._images[present] = ImageCode(self, places)
        return found

    def shape(self, schema: str, table: str, first: ImageCode, second: ImageCode | None) -> Shape:
        """Return the shape of images of one kind, or of an old image that precedes a new one with other columns."""
        if second is None:
            columns = tuple(self.columns[place] for place in first.places)
            return Shape(schema, table, columns, encoding=encode_encoding(ShapeEncoding(first.codes)))
        # A column that both have is taken from the new image.
        number = {place: at for at, place in enumerate(first.places)}
        number |= {place: at for at, place in enumerate(second.places, len(first.places))}
        places = sorted(number)
        encoding = ShapeEncoding(first.codes, second.codes, [number[place] for place in places])
        return Shape(schema, table, tuple(self.columns[place] for place in places), encoding=encode_encoding(encoding))


def _column(column: MapColumn, *, is_mariadb: bool) -> ColumnShape:
    code = column.code
    flags = code.flags | (Flag.PRIMARY_KEY | Flag.HANDLE_KEY if column.is_primary else 0) | (Flag.NULLABLE if column.is_nullable else 0)
    if is_mariadb and code.mysql_type == _BIGINT and column.name.startswith(_HASH):
        flags |= Flag.GENERATED
    return ColumnShape(column.name, code.mysql_type, int(flags))


def _key_read(form: ValueFormat, code: ColumnCode) -> ColumnRead | None:
    if code.type not in _FLOATS:
        return form.read
    read = form.read

    # -0.0 and 0.0 are one key.
    def read_floats(values: Sequence[Any]) -> Sequence[Value]:
        return [value + 0.0 for value in (values if read is None else read(values))]  # type: ignore[operator] # floats

    return read_floats


def _keys_of(reads: Sequence[ColumnRead | None]) -> Callable[[Sequence[tuple[Any, ...]]], list[bytes]]:
    """Return what makes row keys of the values of their columns, as images have them."""
    if not reads:
        return lambda rows: [KEYLESS] * len(rows)
    if not any(reads):
        return lambda rows: list(map(encode_plain, rows))

    def keys_of(rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
        columns = zip(*rows, strict=True)
        values = list(zip(*starmap(read_column, zip(reads, columns, strict=True)), strict=True))
        try:
            return list(map(encode_plain, values))
        except UnicodeEncodeError:  # bytes that are not text
            return list(map(encode_key, values))

    return keys_of


def read_column(read: ColumnRead | None, values: Sequence[Any]) -> Sequence[Value]:
    """Return the values of a column, of which some may be NULL."""
    if read is None:
        return values
    if None not in values:
        return read(values)
    present = iter(read([value for value in values if value is not None]))
    return [None if value is None else next(present) for value in values]


_tables: Final[dict[tuple[bytes, bool], TableCode]] = {}


def table_code(body: bytes, *, is_mariadb: bool) -> TableCode:
    """Return what is compiled of a TABLE_MAP event. NeedsOperator, ProtocolError: as ``read_table_map``.

    ``body``: without the table's number, which is another one each time that the server opens the table.
    """
    identity = body, is_mariadb
    found = _tables.get(identity)
    if found is None:
        if len(_tables) >= MAX_TABLES:
            _tables.clear()
        found = _tables[identity] = TableCode(read_table_map(body, is_mariadb=is_mariadb), is_mariadb=is_mariadb)
    return found
