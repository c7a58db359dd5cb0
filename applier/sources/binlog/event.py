"""Events of a binlog: their types, their header, the bodies that say where groups begin and end, and compressed events.

MariaDB compresses single events (zlib), MySQL whole transactions (Zstandard).
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

import zstandard

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy

HEADER_BYTES: Final = 19
CHECKSUM_BYTES: Final = 4

QUERY: Final = 2
STOP: Final = 3
ROTATE: Final = 4
INTVAR: Final = 5
APPEND_BLOCK: Final = 9
DELETE_FILE: Final = 11
RAND: Final = 13
USER_VAR: Final = 14
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
BEGIN_LOAD_QUERY: Final = 17
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
INCIDENT: Final = 26
HEARTBEAT: Final = 27
IGNORABLE: Final = 28
ROWS_QUERY: Final = 29
GTID: Final = 33
ANONYMOUS_GTID: Final = 34
PREVIOUS_GTIDS: Final = 35
TRANSACTION_CONTEXT: Final = 36
VIEW_CHANGE: Final = 37
XA_PREPARE: Final = 38
PARTIAL_UPDATE_ROWS: Final = 39
TRANSACTION_PAYLOAD: Final = 40
HEARTBEAT_V2: Final = 41
GTID_TAGGED: Final = 42
MARIADB_ANNOTATE_ROWS: Final = 160
MARIADB_BINLOG_CHECKPOINT: Final = 161
MARIADB_GTID: Final = 162
MARIADB_GTID_LIST: Final = 163
MARIADB_START_ENCRYPTION: Final = 164
MARIADB_QUERY_COMPRESSED: Final = 165

MARIADB_ROWS: Final = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""MariaDB's compressed rows events (versions 1 and 2), and the types that they are without compression."""
ROWS: Final = frozenset({23, 24, 25, 30, 31, 32, PARTIAL_UPDATE_ROWS})
"""WRITE, UPDATE and DELETE of versions 1 and 2, and updates of parts of a JSON value."""
TEXTS: Final = frozenset({ROWS_QUERY, MARIADB_ANNOTATE_ROWS})
"""Statements as a comment on the rows that they have changed: no one gets them."""
BULKY: Final = ROWS | TEXTS | frozenset(MARIADB_ROWS) | {TABLE_MAP}
"""Types whose content does not tell where a group ends."""
HEARTBEATS: Final = frozenset({HEARTBEAT, HEARTBEAT_V2})

IGNORABLE_FLAG: Final = 0x80
"""A replica that does not know the type may pass the event."""
IN_USE_FLAG: Final = 0x01
"""Of a format description: the file is not closed. Its checksum is that without the flag."""


class BinlogEvent(NamedTuple):
    """One event. ``begin`` and ``end`` are numbers (``position``); equal where the event is in no file, as a heartbeat.

    ``data`` is header and body without checksum. None: the stream was not asked for it.
    """

    kind: int
    begin: int
    end: int
    time_s: int
    flags: int
    data: bytes | None


_QUERY_HEAD: Final = struct.Struct("<8xBxxH")


def sql_of(data: bytes) -> bytes:
    """Return the statement of a QUERY event."""
    schema_bytes, status_bytes = _QUERY_HEAD.unpack_from(data, HEADER_BYTES)
    return data[HEADER_BYTES + 13 + status_bytes + schema_bytes + 1 :]


def xid_text(data: bytes) -> tuple[str, bool]:
    """Return the xid of an XA_PREPARE event, as servers write it in statements, and whether it is a commit in one phase."""
    one_phase, format_id, branch, qualifier = struct.unpack_from("<Biii", data, HEADER_BYTES)
    first = HEADER_BYTES + 13
    middle = first + branch
    return f"X'{data[first:middle].hex()}',X'{data[middle : middle + qualifier].hex()}',{format_id}", bool(one_phase)


def unreadable(event: BinlogEvent, message: str, **facts: object) -> SourceError:
    """Make the error for an event that the applier cannot follow."""
    return SourceError(
        message,
        remedy=Remedy("binlog.report-unknown-event", "Look at the event: `applier inspect`. Report it with the server's version"),
        kind=FailureKind.EVENT,
        offset=event.begin,
        event_type=event.kind,
        **facts,
    )


_MYSQL: Final = struct.Struct("<B16sq")
_TIME: Final = slice(HEADER_BYTES + 42, HEADER_BYTES + 49)
"""Behind flags, UUID, number and the logical clock: microseconds, in 55 bits."""
_TIME_MASK: Final = (1 << 55) - 1

_MARIADB: Final = struct.Struct("<QIB")
_STANDALONE, _GROUP_COMMIT, _PREPARED_XA, _COMPLETED_XA = 1, 2, 64, 128
_START_ALTER, _ROLLBACK_ALTER = 2, 8


class GroupStart(NamedTuple):
    """The beginning of a group. ``is_statement``: one statement follows; None: the statement itself tells (MySQL)."""

    gtid: str
    time_us: int
    is_statement: bool | None
    is_ignored: bool = False


def group_start(event: BinlogEvent, data: bytes) -> GroupStart:
    """Read a GTID event of either server. struct.error or IndexError if it is cut."""
    if event.kind == MARIADB_GTID:
        return _mariadb(event, data)
    if event.kind == GTID_TAGGED:
        return _tagged(data)
    time_us = int.from_bytes(data[_TIME], "little") & _TIME_MASK or event.time_s * 1_000_000
    if event.kind == ANONYMOUS_GTID:
        return GroupStart("", time_us, None)
    _, uuid, number = _MYSQL.unpack_from(data, HEADER_BYTES)
    return GroupStart(f"{UUID(bytes=uuid)}:{number}", time_us, None)


def _mariadb(event: BinlogEvent, data: bytes) -> GroupStart:
    number, domain, flags = _MARIADB.unpack_from(data, HEADER_BYTES)
    server_id = int.from_bytes(data[5:9], "little")
    place = HEADER_BYTES + _MARIADB.size
    if flags & _GROUP_COMMIT:
        place += 8
    if flags & (_PREPARED_XA | _COMPLETED_XA):
        place += 6 + data[place + 4] + data[place + 5]
    extra = data[place] if place < len(data) else 0
    return GroupStart(
        f"{domain}-{server_id}-{number}",
        event.time_s * 1_000_000,
        bool(flags & _STANDALONE),
        bool(extra & (_START_ALTER | _ROLLBACK_ALTER)),
    )


def _tagged(data: bytes) -> GroupStart:
    """Read MySQL's GTID with a tag: numbered fields, in ascending order, some of them optional."""
    place = HEADER_BYTES
    for _ in range(3):  # version, size, last field that a reader must know
        _, place = _integer(data, place)
    uuid, number, tag, time_us = b"", 0, "", 0
    while place < len(data):
        field, place = _integer(data, place)
        if field == 1:
            octets = bytearray()
            for _ in range(16):
                octet, place = _integer(data, place)
                octets.append(octet)
            uuid = bytes(octets)
            continue
        value, place = _integer(data, place)
        if field == 2:
            number = value >> 1  # signed: its lowest bit is the sign
        elif field == 3:
            tag = data[place : place + value].decode()
            place += value
        elif field == 6:
            time_us = value
            break
    return GroupStart(f"{UUID(bytes=uuid)}:{tag}:{number}" if tag else f"{UUID(bytes=uuid)}:{number}", time_us, None)


def _integer(data: bytes, place: int) -> tuple[int, int]:
    """Read an integer; the lowest bits of its first byte that are 1 count the bytes that follow."""
    first = data[place]
    more = (~first & (first + 1)).bit_length() - 1 if first != 0xFF else 8
    value = int.from_bytes(data[place : place + more + 1], "little") >> min(more + 1, 8)
    return value, place + more + 1


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
    """Yield the events of a compressed transaction of MySQL. Each has the position of the payload. SourceError if it cannot be read.

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
