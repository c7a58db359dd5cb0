"""The hot way of rows in Avro: finds the table by the bytes that a row begins with, and copies its images without reading their values.

``read_avro`` decides what a record is. Here are only plain rows of a table that it has read before: no large row, no checksum that TiCDC
found wrong, maps in one block, names and texts whose sizes take one byte or two. Anything else is None, and takes the exact way: a refusal
costs time and never decides anything.

An image becomes the msgpack map that ``pack_values`` writes for the values that ``read_avro`` reads, byte for byte. A text is copied
and its head translated: whether it is UTF-8 is seen when the images of a run are read together. A name that comes twice is, too: the
caller compares the number of entries with the number of columns, and each column must be there.

Measured with 5 columns and 148 bytes: 4.3 us a row instead of 12; fastavro's compiled reader takes 9.4 us, without writing the map.
"""

import re
from collections.abc import Callable, Container, Iterable
from struct import error
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from applier.model.events import TableName
from applier.sources.simple.avro import MAX_UINT64, nearest_float32, read_float32

T = TypeVar("T")
TableHead: TypeAlias = tuple[bytes, bytes, bytes]
"""What rows of one version of a table have in common: the names, the id of the table and the version, as they are written."""

_NAMES_AT: Final = len(b"\x16\6\6\2")
_LONG: Final = {b"long": rb"[\x80-\xff]{0,8}[\x00-\x7f]"}
_FIELDS: Final = re.compile(
    rb"(%(long)b)([\x00\x02\x04])([\x80-\xff]{8}[\x00-\x7f])%(long)b(%(long)b)" % _LONG
    + rb"\x00\x00(?:\x00|\x02%(long)b\x00%(long)b%(long)b)" % _LONG
)
"""After the names: id, operation, timestamp (9 bytes: after 1973), time of building, version; no claim check, whole, no wrong checksum."""
_UPDATE, _DELETE = b"\2", b"\4"
_ABSENT, _MAP = 0, 2
_ONE_BYTE: Final = 128
_MAX_NAMES: Final = 65_536

_pack: Final = msgspec.msgpack.Encoder().encode


def _length_head(size: int, packed: bytes) -> bytes:
    return packed[: len(packed) - (size >> 1)]


_TEXTS: Final[list[Any]] = [None if size & 1 else _length_head(size, _pack("x" * (size >> 1))) for size in range(_ONE_BYTE)]
"""By the byte that is a text's size in Avro, doubled: how msgpack begins the text. Odd ones are negative: joining them fails."""
_BYTES: Final = [_length_head(size, _pack(bytes(size >> 1))) for size in range(_ONE_BYTE)]
_SMALL: Final = [_pack((number >> 1) ^ -(number & 1)) for number in range(_ONE_BYTE)]
"""By a long of one byte: the integer in msgpack."""


class _PackedNames(dict[bytes, bytes]):
    """Size and bytes of a name -> the name in msgpack. A process sees the same names again and again."""

    def __missing__(self, written: bytes) -> bytes:
        if len(written) != 1 + (written[0] >> 1) or written[0] & 0x81:
            raise _Unusual
        if len(self) >= _MAX_NAMES:
            self.clear()
        found = self[written] = _pack(written[1:].decode())
        return found


_names: Final = _PackedNames()


class _Unusual(Exception):
    """The row needs the exact way."""


CutRow: TypeAlias = tuple[T, int, bool, bytes, bytes, int]
"""A row as bytes: table, commit_ts, whether it is deleted; the new image (of a delete the old one), the one that an update replaces (b"":
none was sent), and how many entries each image has. A plain tuple: a named one takes 0.2 us more."""


class RowCutter(Generic[T]):
    """Cuts rows of known tables. Remembers the last timestamp: rows of a transaction follow one another."""

    __slots__ = ("_high", "_tables", "_written", "_zones")

    def __init__(self) -> None:
        self._tables: dict[TableHead, T] = {}
        self._zones: set[bytes] = set()
        self._written, self._high = b"", 0

    def learn(self, name: TableName, table_id: int, version: int, table: T) -> None:
        """Take rows of this version for rows of ``table``."""
        self._tables[b"".join(map(_written_text, name)), _long(table_id), _long(version)] = table

    def accept(self, zones: Iterable[str]) -> None:
        """Take TIMESTAMP values that name one of these zones."""
        self._zones.update(_written_text(zone) for zone in zones)

    def cut(self, value: bytes) -> CutRow[T] | None:
        """Return the row of a record that begins as a row does; None: it is unusual, or of no known table."""
        try:
            names_end = _NAMES_AT + 1 + (value[_NAMES_AT] >> 1)
            names_end += 1 + (value[names_end] >> 1)
            fields = _FIELDS.match(value, names_end)
            if fields is None:
                return None
            table_id, kind, written, version = fields.groups()
            table = self._tables.get((value[_NAMES_AT:names_end], table_id, version))
            if table is None or written[0] & 1:
                return None
            if written[2:] != self._written:
                self._written, self._high = written[2:], _high_part(written)
            at = fields.end()
            is_delete, before = kind == _DELETE, b""
            if is_delete and value[at] == _ABSENT:
                at += 1
            elif is_delete:
                return None
            if value[at] != _MAP:
                return None
            image, width, at = _copied(value, at + 1, self._zones)
            if not is_delete:
                if kind == _UPDATE and value[at] == _MAP:
                    before, width_before, at = _copied(value, at + 1, self._zones)
                    width = width if width == width_before else 0
                else:
                    at += value[at] == _ABSENT
                    # The exact way refuses an update without its old image.
                    width = 0 if kind == _UPDATE else width
            commit_ts = self._high + ((written[0] & 0x7F) >> 1 | (written[1] & 0x7F) << 6)
        except (IndexError, TypeError, UnicodeDecodeError, error, _Unusual):
            return None
        return (table, commit_ts, is_delete, image, before, width) if at == len(value) and commit_ts else None


def _high_part(written: bytes) -> int:
    """Return a timestamp of nine bytes without what the first two of them tell."""
    bits = int.from_bytes(b"\0\0" + written[2:], "little") & 0x7F7F7F7F7F7F7F7F7F
    # Seven bits of each byte move together: two bytes, four, eight, and the ninth.
    bits = (bits & 0x7F007F007F007F007F) | (bits & 0x007F007F007F007F00) >> 1
    bits = (bits & 0x3FFF00003FFF) | (bits & 0x3FFF00003FFF0000) >> 2 | bits & (0x7F << 64)
    return (bits & 0xFFFFFFF | (bits >> 4) & 0xFFFFFFF0000000 | (bits >> 8) & (0x7F << 56)) >> 1


def _copied(data: bytes, at: int, zones: Container[bytes]) -> tuple[bytes, int, int]:
    """Return the map that begins here in msgpack, the number of its entries, and where it ends. Nearly all of the time is spent here."""
    count = data[at]
    at += 1
    if count >= _ONE_BYTE:
        count = _two_bytes(count, data[at])
        at += 1
    if count & 1 or not count:
        raise _Unusual
    count >>= 1
    parts = [_map_head(count)]
    texts, names = _TEXTS, _names
    # Written out: a call for each entry would cost as much as what it does.
    for _ in range(count):
        end = at + 1 + (data[at] >> 1)
        name = names[data[at:end]]
        kind, size = data[end], data[end + 1]
        at = end + 2
        if kind == 8 and size < 128:  # a text; the numbers are the positions in the union, doubled
            end = at + (size >> 1)
            parts += name, texts[size], data[at:end]
            at = end
        elif kind == 2 and size < 128:  # a long
            parts += name, _SMALL[size]
        elif kind == 0:  # null, and the byte behind it is the next entry's
            parts += name, b"\xc0"
            at -= 1
        elif kind == 12:  # a TIMESTAMP: its zone, and a text
            zone_end = at + (size >> 1)
            size = data[zone_end]
            if size >= 128 or data[at - 1 : zone_end] not in zones:
                raise _Unusual
            at = zone_end
            end = at + 1 + (size >> 1)
            parts += name, texts[size], data[at + 1 : end]
            at = end
        else:
            value, at = _rare(data, kind, at - 1)
            parts += name, value
    if data[at]:
        raise _Unusual
    return b"".join(parts), count, at + 1


def _map_head(count: int) -> bytes:
    return bytes((0x80 | count,)) if count < 16 else b"\xde" + count.to_bytes(2, "big")


def _rare(data: bytes, kind: int, at: int) -> tuple[bytes, int]:
    """Return the value of a kind that begins here, in msgpack, and where it ends."""
    found = _RARE.get(kind)
    if found is None:
        raise _Unusual
    return found(data, at)


def _copied_long(data: bytes, at: int) -> tuple[bytes, int]:
    number, at = _long_at(data, at)
    return _pack((number >> 1) ^ -(number & 1)), at


def _copied_unsigned(data: bytes, at: int) -> tuple[bytes, int]:
    number, at = _long_at(data, at)
    return _pack(((number >> 1) ^ -(number & 1)) & MAX_UINT64), at


def _copied_float32(data: bytes, at: int) -> tuple[bytes, int]:
    return _pack(nearest_float32(read_float32(data, at))), at + 4


def _copied_float64(data: bytes, at: int) -> tuple[bytes, int]:
    return b"\xcb" + data[at : at + 8][::-1], at + 8


def _copied_text(data: bytes, at: int) -> tuple[bytes, int]:
    size, first = _size_at(data, at)
    end = first + size
    head = _TEXTS[size << 1] if size < _ONE_BYTE >> 1 else _head_of(size, b"\xd9\xda")
    return head + data[first:end], end


def _copied_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, first = _size_at(data, at)
    end = first + size
    head = _BYTES[size << 1] if size < _ONE_BYTE >> 1 else _head_of(size, b"\xc4\xc5")
    return head + data[first:end], end


def _head_of(size: int, kinds: bytes) -> bytes:
    return bytes((kinds[0], size)) if size < 256 else kinds[1:] + size.to_bytes(2, "big")


def _size_at(data: bytes, at: int) -> tuple[int, int]:
    """Return a size that takes one byte or two, and where its content begins."""
    size = data[at]
    at += 1
    if size >= _ONE_BYTE:
        size = _two_bytes(size, data[at])
        at += 1
    if size & 1:
        raise _Unusual
    return size >> 1, at


def _two_bytes(low: int, high: int) -> int:
    if high >= _ONE_BYTE:
        raise _Unusual
    return low & 0x7F | high << 7


def _long_at(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < _ONE_BYTE:
            break
        shift += 7
        if shift > 63:
            raise _Unusual
    if number > MAX_UINT64:
        raise _Unusual
    return number, at


_RARE: Final[dict[int, Callable[[bytes, int], tuple[bytes, int]]]] = {
    2: _copied_long,
    4: _copied_float32,
    6: _copied_float64,
    8: _copied_text,
    10: _copied_bytes,
    14: _copied_unsigned,
}


def _written_text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return _long(len(data)) + data


def _long(number: int) -> bytes:
    """Write a long, as a part of what rows begin with."""
    signed = number - MAX_UINT64 - 1 if number > MAX_UINT64 >> 1 else number
    left = (signed << 1) ^ (signed >> 63)
    found = bytearray()
    while left >= _ONE_BYTE:
        found.append(left & 0x7F | _ONE_BYTE)
        left >>= 7
    found.append(left)
    return bytes(found)
