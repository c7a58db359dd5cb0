"""What is compiled of a table map: readers of its row images and of their keys, and decoders of many images, column by column.

An image is a bitmap of NULLs and the values that are not, one after the other: where one begins depends on all before it. A reader walks
over them, and takes the wanted ones. It is Python made for exactly these columns: of 9 columns it takes 0.7 us to take all, and
2.5 us by a loop over descriptions of them. It is compiled when rows with these NULLs come first; where they come with very many sets of
NULLs, the rest is read by a loop.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import starmap
from struct import Struct, calcsize
from struct import error as StructError  # noqa: N812 - a class
from typing import Any, Final, TypeAlias

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import ColumnShape, KnownKeys, Shape, Value
from applier.planner.port import ImageDecoder, ImagesDecoder
from applier.sources.binlog.table_map import ColumnCode, MapColumn, TableMap, read_table_map
from applier.sources.binlog.value.format import ColumnRead, ValueFormat, value_format
from applier.sources.column_flags import Flag, column_of, keys_of
from applier.sources.row_key import KEYLESS, encode_key, encode_plain

Width: TypeAlias = tuple[str, int]
"""What a reader must know of a column: ``code`` and ``prefix`` of its ``ValueFormat``."""
RowReader: TypeAlias = Callable[[bytes, int], tuple[int, tuple[Any, ...]]]
"""Data, and where the values of an image begin -> where they end, and the wanted ones as they are written. NULL is None."""

UNREADABLE: Final = (IndexError, StructError, ValueError)
"""What a reader raises if the data are too short or invalid."""

MAX_KEPT: Final = 4096
"""Sets of columns whose readers are kept."""
MAX_READERS: Final = 512
"""Readers compiled for one set of columns. One takes some 0.2 ms and 4 KB."""

_LENGTHS: Final = {1: ("B", "n0"), 2: ("H", "n0"), 3: ("HB", "n0 | n1 << 16"), 4: ("I", "n0")}


class RowReaders(dict[bytes, RowReader]):
    """Bitmap of NULLs -> reader of the images that have it. ``wanted``: positions of columns."""

    def __init__(self, widths: Sequence[Width], wanted: Sequence[int]) -> None:
        super().__init__()
        self._widths, self._wanted = widths, wanted
        self.null_bytes = (len(widths) + 7) // 8

    def __missing__(self, nulls: bytes) -> RowReader:
        if len(nulls) != self.null_bytes:
            raise ValueError("an image ends within its bitmap")
        absent = frozenset(place for place in range(len(self._widths)) if nulls[place >> 3] >> (place & 7) & 1)
        if len(self) >= MAX_READERS:
            return _looping(self._widths, self._wanted, absent)
        reader = self[nulls] = _compiled(self._widths, self._wanted, absent)
        return reader


def row_readers(formats: Sequence[ValueFormat], wanted: Sequence[int] | None = None) -> RowReaders:
    """Return the readers of images with these columns; ``wanted``: positions of columns, None: all of them.

    Tables of one structure, as each tenant has them, share their readers: compiling one takes 0.2 ms.
    """
    return _shared(tuple((one.code, one.prefix) for one in formats), tuple(range(len(formats)) if wanted is None else wanted))


@lru_cache(maxsize=MAX_KEPT)
def _shared(widths: tuple[Width, ...], wanted: tuple[int, ...]) -> RowReaders:
    return RowReaders(widths, wanted)


class _Source:
    """The text of a reader, as it grows: values of fixed size that follow one another are taken by one ``unpack``."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines = ["def read(data, at):"]
        self._codes: list[str] = []
        self._targets: list[str] = []

    def fixed(self, code: str, target: str | None) -> None:
        """Take a value of fixed size, or pass over it."""
        self._codes.append(code if target is not None else f"{calcsize('<' + code)}x")
        if target is not None:
            self._targets.append(target)

    def counted(self, prefix: int, target: str | None) -> None:
        """Take a value that its length precedes, or pass over it."""
        code, length = _LENGTHS[prefix]
        self._codes.append(code)
        self._targets += ["n0", "n1"][: len(code)]
        self.flush()
        if target is None:
            self.lines.append(f" at += {length}")
        else:
            self.lines += [f" end = at + ({length})", f" {target} = data[at:end]", " at = end"]

    def flush(self) -> None:
        """Write what takes the values of fixed size up to here."""
        form = "<" + "".join(self._codes)
        size = calcsize(form)
        if self._targets:
            name = f"unpack{len(self.names)}"
            self.names[name] = Struct(form).unpack_from
            self.lines.append(f" {', '.join(self._targets)}, = {name}(data, at)")
        if size:
            self.lines.append(f" at += {size}")
        self._codes, self._targets = [], []


def _compiled(widths: Sequence[Width], wanted: Sequence[int], absent: frozenset[int]) -> RowReader:
    source = _Source()
    taken = frozenset(wanted)
    for place, (code, prefix) in enumerate(widths):
        if place in absent:
            continue
        target = f"v{place}" if place in taken else None
        if code:
            source.fixed(code, target)
        else:
            source.counted(prefix, target)
    source.flush()
    values = "".join(f"{'None' if place in absent else f'v{place}'}, " for place in wanted)
    source.lines.append(f" return at, ({values})")
    # Nothing of the stream is a part of this text: it consists of numbers and of the names above.
    exec("\n".join(source.lines), source.names)  # noqa: S102
    reader: RowReader = source.names["read"]
    return reader


def _looping(widths: Sequence[Width], wanted: Sequence[int], absent: frozenset[int]) -> RowReader:
    structs = [Struct("<" + (code or _LENGTHS[prefix][0])) for code, prefix in widths]

    def read(data: bytes, at: int) -> tuple[int, tuple[Any, ...]]:
        values: list[Any] = []
        for place, (code, _) in enumerate(widths):
            if place in absent:
                values.append(None)
                continue
            first, *rest = structs[place].unpack_from(data, at)
            at += structs[place].size
            if not code:
                length = first | rest[0] << 16 if rest else first
                first, at = data[at : at + length], at + length
            values.append(first)
        return at, tuple(values[place] for place in wanted)

    return read


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

    # Not before a row needs them: a table that is skipped may have columns of any type.
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
            return Shape(schema, table, columns, _keys(columns), encoding=encode_encoding(ShapeEncoding(first.codes)))
        # A column that both have is taken from the new image.
        number = {place: at for at, place in enumerate(first.places)}
        number |= {place: at for at, place in enumerate(second.places, len(first.places))}
        places = sorted(number)
        encoding = ShapeEncoding(first.codes, second.codes, [number[place] for place in places])
        columns = tuple(self.columns[place] for place in places)
        return Shape(schema, table, columns, _keys(columns), encoding=encode_encoding(encoding))


def _keys(columns: Sequence[ColumnShape]) -> KnownKeys:
    # A table map names the members of the primary key, and no other index.
    return keys_of([column[:3] for column in columns], shows_unique=False)


def _column(column: MapColumn, *, is_mariadb: bool) -> ColumnShape:
    code = column.code
    flags = code.flags | (Flag.PRIMARY_KEY | Flag.HANDLE_KEY if column.is_primary else 0) | (Flag.NULLABLE if column.is_nullable else 0)
    if is_mariadb and code.mysql_type == _BIGINT and column.name.startswith(_HASH):
        flags |= Flag.GENERATED
    # Its VIRTUAL columns are in a binlog too, and nothing tells which they are: only the server's is named.
    return column_of(column.name, code.mysql_type, int(flags))


def _key_read(form: ValueFormat, code: ColumnCode) -> ColumnRead | None:
    if code.type not in _FLOATS:
        return form.read
    read = form.read

    # -0.0 and 0.0 are the same key.
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
    """Return the values of a column, some of which may be NULL."""
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


MAX_SHAPES: Final = 4096
"""Shapes whose decoders are kept."""

_Rows: TypeAlias = Callable[[Sequence[bytes]], Sequence[tuple[Any, ...]]]
"""Images -> the values of each, as they are written."""


@lru_cache(maxsize=MAX_SHAPES)
def images_decoder(shape: Shape) -> ImagesDecoder:
    """Return the function that decodes many images of ``shape``: for each column of it, the values of all images.

    ProtocolError, without a position, if one of them cannot be read.
    """
    rows_of, formats = _compiled_decoder(shape)
    reads: list[ColumnRead | None] = [form.read for form in formats]

    def decode_images(images: Sequence[bytes]) -> Sequence[Sequence[Value]]:
        if not images:
            return [[] for _ in reads]
        try:
            columns = zip(*rows_of(images), strict=True)
            return [read_column(read, column) for read, column in zip(reads, columns, strict=True)]
        except UNREADABLE as cause:
            facts = {"schema": shape.schema, "table": shape.table, "reason": str(cause) or type(cause).__name__}
            raise ProtocolError.at(None, "row_image", "an image cannot be read", **facts) from cause

    return decode_images


@lru_cache(maxsize=MAX_SHAPES)
def image_decoder(shape: Shape) -> ImageDecoder:
    """Return the function that decodes one image of ``shape`` into values in the order of its columns; it raises as ``images_decoder``."""
    decode = images_decoder(shape)
    return lambda image: [column[0] for column in decode((image,))]


def _compiled_decoder(shape: Shape) -> tuple[_Rows, Sequence[ValueFormat]]:
    try:
        encoding = decode_encoding(shape.encoding)
    except msgspec.DecodeError as cause:
        raise ProtocolError.at(None, "row_image", "a shape is not one of a binlog", schema=shape.schema, table=shape.table) from cause
    codes = [*encoding.first, *encoding.second]
    taken = encoding.taken or list(range(len(codes)))
    formats = {at: _format(codes[at], column) for at, column in zip(taken, shape.columns, strict=True)}
    every = [formats.get(at) or value_format(code, is_bytes=True) for at, code in enumerate(codes)]
    first = row_readers(every[: len(encoding.first)])
    chosen = [every[at] for at in taken]
    if not encoding.second:
        return _rows_of(first), chosen
    return _pairs_of(first, row_readers(every[len(encoding.first) :]), taken), chosen


def _format(code: ColumnCode, column: ColumnShape) -> ValueFormat:
    # The planner sets the flag where the sink's column holds bytes.
    return value_format(code, is_bytes=column.is_bytes)


def _rows_of(readers: RowReaders) -> _Rows:
    size = readers.null_bytes

    def rows_of(images: Sequence[bytes]) -> Sequence[tuple[Any, ...]]:
        rows = []
        for image in images:
            end, row = readers[image[:size]](image, size)
            if end != len(image):
                raise ValueError("an image is too short or too long")
            rows.append(row)
        return rows

    return rows_of


def _pairs_of(first: RowReaders, second: RowReaders, taken: Sequence[int]) -> _Rows:
    def rows_of(images: Sequence[bytes]) -> Sequence[tuple[Any, ...]]:
        rows = []
        for image in images:
            middle, old = _read(first, image, 0)
            end, new = _read(second, image, middle)
            if end != len(image):
                raise ValueError("an image is too short or too long")
            both = old + new
            rows.append(tuple(both[at] for at in taken))
        return rows

    return rows_of


def _read(readers: RowReaders, image: bytes, at: int) -> tuple[int, tuple[Any, ...]]:
    begin = at + readers.null_bytes
    reader: RowReader = readers[image[at:begin]]
    return reader(image, begin)
