"""TABLE_MAP events: the table that rows events belong to, with its columns, as ``binlog_row_metadata = FULL`` describes them.

Source: MySQL's ``rows_event.h`` (Table_map_event, optional metadata). MariaDB writes the same, and types of its own.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from applier.model.errors import NeedsOperator, ProtocolError
from applier.model.events import TableName
from applier.model.remedy import Remedy
from applier.sources.binlog.charset import charset_of
from applier.sources.binlog.column_code import BLOBS, ColumnCode, TypeCode, real_type

TABLE_ID_BYTES: Final = 6
_FLAG_BYTES: Final = 2

METADATA_REMEDY: Final = Remedy(
    "binlog.set-row-metadata",
    "Run on the primary: SET GLOBAL binlog_row_metadata = FULL. Rows written before cannot be read: create the replica from a dump",
)


class _Field(IntEnum):
    """Kinds of optional metadata."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9


_NUMERIC: Final = frozenset({0, 1, 2, 3, 4, 5, 8, 9, 13, 246})
"""DECIMAL, TINYINT, SMALLINT, INT, FLOAT, DOUBLE, BIGINT, MEDIUMINT, YEAR, NEWDECIMAL: the types that have a sign, for both servers."""
_CHARACTER: Final = frozenset({15, 253, 254, TypeCode.BLOB_COMPRESSED, TypeCode.VARCHAR_COMPRESSED} | BLOBS)
_CHARACTER_OF_MARIADB: Final = _CHARACTER | {TypeCode.GEOMETRY}
"""Types that the character sets are listed of."""
_TWO_BYTES: Final = frozenset({15, TypeCode.VARCHAR_COMPRESSED, TypeCode.BIT, 246, 247, 248, 253, 254})
_ONE_BYTE: Final = frozenset({4, 5, 17, 18, 19, 242, 245, 255, TypeCode.BLOB_COMPRESSED} | BLOBS)
"""Types with metadata of so many bytes."""


class MapColumn(NamedTuple):
    """A column of a table map."""

    name: str
    code: ColumnCode
    is_nullable: bool
    is_primary: bool


class TableMap(NamedTuple):
    """What a TABLE_MAP event says. ``columns`` in the order of the table."""

    name: TableName
    columns: tuple[MapColumn, ...]


def read_table_map(body: bytes, *, is_mariadb: bool) -> TableMap:
    """Read the body of a TABLE_MAP event, without the table's number. NeedsOperator: its metadata is not FULL. ProtocolError."""
    try:
        return _read(body, _CHARACTER_OF_MARIADB if is_mariadb else _CHARACTER)
    except (IndexError, ValueError) as cause:
        raise ProtocolError.at(None, "table_map", "a table map cannot be read") from cause


def read_map_name(body: bytes) -> TableName:
    """Read the name alone, which is there whatever the metadata are. ProtocolError: the body is cut."""
    try:
        return _name(_Bytes(body, _FLAG_BYTES))
    except IndexError as cause:
        raise ProtocolError.at(None, "table_map", "a table map cannot be read") from cause


class _Bytes:
    """Reads on. IndexError where too few bytes are left."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._at = data, at

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise IndexError
        self._at += count
        return found

    def number(self, size: int = 1) -> int:
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Read a number of 1, 3, 4 or 9 bytes."""
        first = self.number()
        if first < 251:
            return first
        return self.number({252: 2, 253: 3, 254: 8}[first] if first in {252, 253, 254} else 0)

    def text(self) -> str:
        return self.take(self.packed()).decode("utf-8", "surrogateescape")

    def packed_numbers(self) -> Iterator[int]:
        while self:
            yield self.packed()


def _read(body: bytes, character: frozenset[int]) -> TableMap:
    data = _Bytes(body, _FLAG_BYTES)
    name = _name(data)
    types = data.take(data.packed())
    meta_data = _Bytes(data.take(data.packed()))
    metas = [_meta(kind, meta_data) for kind in types]
    nullable = _bits_from_low(data.take((len(types) + 7) // 8))
    fields: dict[int, bytes] = {}
    while data:
        kind = data.number()
        fields[kind] = data.take(data.packed())
    if _Field.COLUMN_NAME not in fields and types:
        raise NeedsOperator(
            "the binlog does not have the names of a table's columns: binlog_row_metadata is not FULL",
            remedy=METADATA_REMEDY,
            schema=name.schema,
            table=name.table,
        )
    real = [real_type(kind, meta) for kind, meta in zip(types, metas, strict=True)]
    names = _names(fields.get(_Field.COLUMN_NAME, b""), len(types))
    primary = _primary(fields)
    unsigned, charsets = _unsigned(real, fields), _charsets(name, [kind in character for kind in real], fields)
    codes = [ColumnCode(kind, meta, unsigned[at], charsets[at]) for at, (kind, meta) in enumerate(zip(real, metas, strict=True))]
    return TableMap(name, tuple(MapColumn(names[at], code, nullable[at], at in primary) for at, code in enumerate(codes)))


def _name(data: _Bytes) -> TableName:
    schema = data.take(data.number()).decode("utf-8", "surrogateescape")
    data.take(1)
    table = data.take(data.number()).decode("utf-8", "surrogateescape")
    data.take(1)
    return TableName(schema, table)


def _meta(kind: int, data: _Bytes) -> int:
    """Read a type's metadata as one number, the first byte lowest."""
    if kind in _TWO_BYTES:
        return data.number(2)
    return data.number() if kind in _ONE_BYTE else 0


def _bits_from_low(data: bytes) -> list[bool]:
    return [bool(byte >> bit & 1) for byte in data for bit in range(8)]


def _names(field: bytes, count: int) -> list[str]:
    data = _Bytes(field)
    return [data.text() for _ in range(count)]


def _primary(fields: dict[int, bytes]) -> frozenset[int]:
    if (simple := fields.get(_Field.SIMPLE_PRIMARY_KEY)) is not None:
        return frozenset(_Bytes(simple).packed_numbers())
    # Pairs of a column and the length of its prefix.
    return frozenset(list(_Bytes(fields.get(_Field.PRIMARY_KEY_WITH_PREFIX, b"")).packed_numbers())[::2])


def _unsigned(types: Sequence[int], fields: dict[int, bytes]) -> list[bool]:
    """Return which columns are unsigned: a bit for each numeric one, the highest bit of a byte first."""
    bits = iter([bool(byte >> bit & 1) for byte in fields.get(_Field.SIGNEDNESS, b"") for bit in range(7, -1, -1)])
    return [next(bits, False) if kind in _NUMERIC else False for kind in types]


def _charsets(name: TableName, are_characters: Sequence[bool], fields: dict[int, bytes]) -> list[str]:
    places = [at for at, has_charset in enumerate(are_characters) if has_charset]
    collations = dict(enumerate(_Bytes(fields[_Field.COLUMN_CHARSET]).packed_numbers())) if _Field.COLUMN_CHARSET in fields else {}
    if _Field.DEFAULT_CHARSET in fields:
        default, *rest = _Bytes(fields[_Field.DEFAULT_CHARSET]).packed_numbers()
        collations = dict.fromkeys(range(len(places)), default) | dict(zip(rest[::2], rest[1::2], strict=True))
    found = [""] * len(are_characters)
    for number, place in enumerate(places):
        collation = collations.get(number)
        charset = None if collation is None else charset_of(collation)
        if charset is None:
            message = "the character set of a column is not known"
            raise ProtocolError.at(None, "charset", message, schema=name.schema, table=name.table, collation=collation)
        found[place] = charset
    return found
