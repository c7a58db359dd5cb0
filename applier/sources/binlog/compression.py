"""Events that a server has compressed, as they were before: MariaDB's single events (zlib), MySQL's whole transactions (Zstandard)."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import zstandard

from applier.sources.binlog.event import (
    HEADER_BYTES,
    MARIADB_QUERY_COMPRESSED,
    MARIADB_ROWS,
    QUERY,
    TRANSACTION_PAYLOAD,
    BinlogEvent,
    unreadable,
)

_SIZE: Final = struct.Struct("<I")
_FIELD_END, _FIELD_SIZE, _FIELD_COMPRESSION, _FIELD_PLAIN_SIZE = range(4)
_ZSTD, _NONE = 0, 255
_CHUNK_BYTES: Final = 1 << 20


def plain_event(event: BinlogEvent) -> BinlogEvent:
    """Return an event of MariaDB without its compression; others as they are. SourceError if it cannot be read."""
    data = event.data
    if data is None or not MARIADB_QUERY_COMPRESSED <= event.kind <= max(MARIADB_ROWS):
        return event
    try:
        first = _query_head(data) if event.kind == MARIADB_QUERY_COMPRESSED else _rows_head(data, MARIADB_ROWS[event.kind])
        plain = _inflated(data, first)
    except (zlib.error, struct.error, IndexError, ValueError) as error:
        raise unreadable(event, "a compressed event of the binlog cannot be read", cause=str(error)) from error
    kind = QUERY if event.kind == MARIADB_QUERY_COMPRESSED else MARIADB_ROWS[event.kind]
    size = first + len(plain)
    return event._replace(kind=kind, data=b"".join((data[:4], bytes((kind,)), data[5:9], _SIZE.pack(size), data[13:first], plain)))


def _query_head(data: bytes) -> int:
    schema_bytes, status_bytes = data[HEADER_BYTES + 8], int.from_bytes(data[HEADER_BYTES + 11 : HEADER_BYTES + 13], "little")
    return HEADER_BYTES + 13 + status_bytes + schema_bytes + 1


def _rows_head(data: bytes, plain_kind: int) -> int:
    """Return where the rows begin: behind table, flags, extra data, number of columns and the bitmaps of the columns that are there."""
    place = HEADER_BYTES + 8
    if plain_kind >= 30:
        place += int.from_bytes(data[place : place + 2], "little")
    columns, place = _length(data, place)
    bitmaps = 2 if plain_kind in {24, 31} else 1
    return place + bitmaps * ((columns + 7) // 8)


def _inflated(data: bytes, first: int) -> bytes:
    # A byte: 0x80, the algorithm (0: zlib) << 4, how many bytes the plain size has; then that size, the highest byte first.
    head = data[first]
    if head & 0xF0 != 0x80:
        message = f"unknown compression {head:#x}"
        raise ValueError(message)
    place = first + 1 + (head & 0x07)
    size = int.from_bytes(data[first + 1 : place], "big")
    plain = zlib.decompress(data[place:], bufsize=max(1, size))
    if len(plain) != size:
        message = f"{size} bytes are named, {len(plain)} came"
        raise ValueError(message)
    return plain


def _length(data: bytes, place: int) -> tuple[int, int]:
    """Read an integer of 1, 3, 4 or 9 bytes; return it and where it ends."""
    first = data[place]
    if first < 251:
        return first, place + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[place + 1 : place + 1 + size], "little"), place + 1 + size


def payload_events(event: BinlogEvent) -> Iterator[BinlogEvent]:
    """Yield the events of a compressed transaction of MySQL. Each has the place of the payload. SourceError if it cannot be read.

    A payload may be large: it is decompressed as it is taken.
    """
    if event.data is None or event.kind != TRANSACTION_PAYLOAD:
        yield event
        return
    try:
        yield from _split(event, _payload_chunks(event.data))
    except (zstandard.ZstdError, struct.error, IndexError, KeyError, ValueError) as error:
        raise unreadable(event, "a compressed transaction of the binlog cannot be read", cause=str(error)) from error


def _payload_chunks(data: bytes) -> Iterator[bytes]:
    place, compression = HEADER_BYTES, _NONE
    while True:
        field, place = _length(data, place)
        if field == _FIELD_END:
            break
        size, place = _length(data, place)
        if field == _FIELD_COMPRESSION:
            compression, _ = _length(data, place)
        place += size
    if compression == _NONE:
        yield data[place:]
    elif compression == _ZSTD:
        yield from zstandard.ZstdDecompressor().read_to_iter(memoryview(data)[place:], write_size=_CHUNK_BYTES)
    else:
        message = f"unknown compression {compression}"
        raise ValueError(message)


def _split(event: BinlogEvent, chunks: Iterator[bytes]) -> Iterator[BinlogEvent]:
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        first = 0
        while len(rest) - first >= HEADER_BYTES:
            size = _SIZE.unpack_from(rest, first + 9)[0]
            if size < HEADER_BYTES:
                message = "an event is shorter than its header"
                raise ValueError(message)
            if len(rest) - first < size:
                break
            data = bytes(memoryview(rest)[first : first + size])
            yield BinlogEvent(data[4], event.begin, event.end, event.time_s, int.from_bytes(data[17:19], "little"), data)
            first += size
        del rest[:first]
    if rest:
        message = "it ends inside of an event"
        raise ValueError(message)
