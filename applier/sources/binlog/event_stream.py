"""Reads the events of a binlog, starting at a position: a dump and its framing. Never goes back, and never reconnects on its own.

``Framing`` does no I/O. Each event is one packet, or several if it is larger than a packet can be. It names the position of its end, so a
lost or repeated event shows at once; its checksum is compared where its content is wanted. Events that the server adds for a replica (a
rotation and a format description at the beginning, heartbeats) are not in the file: such an event begins where it ends.

MariaDB compresses single events (zlib), MySQL whole transactions (Zstandard).
"""

import random
import struct
import time
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple, Self
from uuid import UUID
from zlib import crc32

import pymysql
import zstandard
from pymysql.constants.COMMAND import COM_BINLOG_DUMP, COM_REGISTER_SLAVE

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.mysql.session import discard, driver_of
from applier.sources.binlog.position import FILE_BITS, GENERATION_BITS, MAX_POSITION, BinlogPosition, file_name, split_file_name
from applier.sources.binlog.refusal import ended, is_refusal, refused, wrong
from applier.sources.binlog.server import address_of, connect, failed
from applier.sources.binlog.settings import BinlogSettings

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
"""After flags, UUID, number and the logical clock: microseconds, in 55 bits."""
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
    at = HEADER_BYTES + _MARIADB.size
    if flags & _GROUP_COMMIT:
        at += 8
    if flags & (_PREPARED_XA | _COMPLETED_XA):
        at += 6 + data[at + 4] + data[at + 5]
    extra = data[at] if at < len(data) else 0
    return GroupStart(
        f"{domain}-{server_id}-{number}",
        event.time_s * 1_000_000,
        bool(flags & _STANDALONE),
        bool(extra & (_START_ALTER | _ROLLBACK_ALTER)),
    )


def _tagged(data: bytes) -> GroupStart:
    """Read MySQL's GTID with a tag: numbered fields, in ascending order, some of them optional."""
    at = HEADER_BYTES
    for _ in range(3):  # version, size, last field that a reader must know
        _, at = _integer(data, at)
    uuid, number, tag, time_us = b"", 0, "", 0
    while at < len(data):
        field, at = _integer(data, at)
        if field == 1:
            octets = bytearray()
            for _ in range(16):
                octet, at = _integer(data, at)
                octets.append(octet)
            uuid = bytes(octets)
            continue
        value, at = _integer(data, at)
        if field == 2:
            number = value >> 1  # signed: its lowest bit is the sign
        elif field == 3:
            tag = data[at : at + value].decode()
            at += value
        elif field == 6:
            time_us = value
            break
    return GroupStart(f"{UUID(bytes=uuid)}:{tag}:{number}" if tag else f"{UUID(bytes=uuid)}:{number}", time_us, None)


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer; the lowest bits of its first byte that are 1 count the bytes that follow."""
    first = data[at]
    more = (~first & (first + 1)).bit_length() - 1 if first != 0xFF else 8
    value = int.from_bytes(data[at : at + more + 1], "little") >> min(more + 1, 8)
    return value, at + more + 1


_SIZE_FIELD: Final = struct.Struct("<I")
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
    return event._replace(kind=kind, data=b"".join((data[:4], bytes((kind,)), data[5:9], _SIZE_FIELD.pack(size), data[13:first], plain)))


def _query_head(data: bytes) -> int:
    schema_bytes, status_bytes = data[HEADER_BYTES + 8], int.from_bytes(data[HEADER_BYTES + 11 : HEADER_BYTES + 13], "little")
    return HEADER_BYTES + 13 + status_bytes + schema_bytes + 1


def _rows_head(data: bytes, plain_kind: int) -> int:
    """Return where the rows begin: after table, flags, extra data, number of columns and the bitmaps of the columns that are there."""
    at = HEADER_BYTES + 8
    if plain_kind >= 30:
        at += int.from_bytes(data[at : at + 2], "little")
    columns, at = _length(data, at)
    bitmaps = 2 if plain_kind in {24, 31} else 1
    return at + bitmaps * ((columns + 7) // 8)


def _inflated(data: bytes, first: int) -> bytes:
    # A byte: 0x80, the algorithm (0: zlib) << 4, how many bytes the plain size has; then that size, the highest byte first.
    head = data[first]
    if head & 0xF0 != 0x80:
        message = f"unknown compression {head:#x}"
        raise ValueError(message)
    at = first + 1 + (head & 0x07)
    size = int.from_bytes(data[first + 1 : at], "big")
    plain = zlib.decompress(data[at:], bufsize=max(1, size))
    if len(plain) != size:
        message = f"{size} bytes are named, {len(plain)} came"
        raise ValueError(message)
    return plain


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer of 1, 3, 4 or 9 bytes; return it and where it ends."""
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


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
    at, compression = HEADER_BYTES, _NONE
    while True:
        field, at = _length(data, at)
        if field == _FIELD_END:
            break
        size, at = _length(data, at)
        if field == _FIELD_COMPRESSION:
            compression, _ = _length(data, at)
        at += size
    if compression == _NONE:
        yield data[at:]
    elif compression == _ZSTD:
        yield from zstandard.ZstdDecompressor().read_to_iter(memoryview(data)[at:], write_size=_CHUNK_BYTES)
    else:
        message = f"unknown compression {compression}"
        raise ValueError(message)


def _split(event: BinlogEvent, chunks: Iterator[bytes]) -> Iterator[BinlogEvent]:
    rest = bytearray()
    for chunk in chunks:
        rest += chunk
        first = 0
        while len(rest) - first >= HEADER_BYTES:
            size = _SIZE_FIELD.unpack_from(rest, first + 9)[0]
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


HEARTBEAT_S: Final = 1
"""How long a server that has nothing to send is silent."""

_VARIABLES: Final = (
    # Both names: MySQL 8.4 asks for the new ones first. MariaDB and older servers of MySQL know the old ones only.
    f"SET @master_heartbeat_period = {HEARTBEAT_S * 10**9}, @source_heartbeat_period = {HEARTBEAT_S * 10**9}, "
    "@master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', "
    # 4: the replica knows MariaDB's GTID events. With less, the server would turn events into others.
    "@mariadb_slave_capability = 4"
)
_OWN_UUID: Final = "SET @slave_uuid = UUID(), @replica_uuid = @slave_uuid"
"""MySQL ends another dump of the same UUID, or, without one, of the same server id."""
_ANNOTATED: Final = 2
"""MariaDB: send the events that hold the text of statements too. Without them, positions would have gaps."""


class Dump:
    """A dump that begins at a position. Events come until it is closed, or the server ends it.

    ``server``: its identity as ``Server.identity`` gives it; '' is not compared. Errors as in ``connect``, and "other_server".
    """

    def __init__(self, settings: BinlogSettings, server: str, file_name: str, position: int) -> None:
        self._settings = settings
        self._session = connect(settings)
        try:
            driver = driver_of(self._session)
            is_mariadb = "mariadb" in str(driver.get_server_info()).lower()
            self.server_id = _begin_session(driver, settings, server, "@@server_id" if is_mariadb else "@@server_uuid")
            _register(driver, settings, self.server_id)
            head = struct.pack("<BIHI", COM_BINLOG_DUMP, position, _ANNOTATED if is_mariadb else 0, self.server_id)
            _send(driver, head + file_name.encode())
        except BaseException as error:
            self.close()
            if isinstance(error, (pymysql.MySQLError, OSError)):
                raise failed(settings, "beginning to read the binlog", error) from error
            raise
        self._socket = driver._sock  # noqa: SLF001 - PyMySQL has no words for a dump
        self._timeout_s = -1.0

    def receive(self, room: memoryview, timeout_s: float, at: str) -> int:
        """Read what has come into ``room``; return how much; 0: nothing came in time. ``at``: the position of the last event before it.

        SourceError "unreachable": the connection is lost.
        """
        try:
            if timeout_s != self._timeout_s:
                self._socket.settimeout(timeout_s)
                self._timeout_s = timeout_s
            size = self._socket.recv_into(room)
        except TimeoutError:
            return 0
        except OSError as error:
            raise failed(self._settings, "reading the binlog", error) from error
        if not size:
            raise ended("the connection to the server of the binlog was lost", at, address=address_of(self._settings))
        return int(size)

    def close(self) -> None:
        """End the dump. The server frees its id when it notices."""
        self._session.end()  # first: close() would send a command, which a dump takes none of
        discard(self._session)


def _begin_session(session: Any, settings: BinlogSettings, server: str, identity: str) -> int:
    """Check which server it is, and return a server id that is free; the session holds it until it ends."""
    first, last = settings.server_ids
    ids = list(range(first, last + 1))
    random.shuffle(ids)
    with session.cursor() as cursor:
        cursor.execute(_VARIABLES)
        cursor.execute(_OWN_UUID)
        for server_id in ids:
            cursor.execute(f"SELECT GET_LOCK(%s, 0), {identity}", (f"applier.server_id.{server_id}",))
            is_free, answering = cursor.fetchone()
            if server and str(answering) != server:
                raise SourceError(
                    "another server answers than the one whose binlog is read",
                    kind=FailureKind.OTHER_SERVER,
                    expected=server,
                    answers=str(answering),
                    address=address_of(settings),
                )
            if is_free == 1:
                return server_id
    raise SourceError(
        "all server ids for reading the binlog are in use",
        remedy=Remedy(
            "binlog.give-two-server-ids-per-task",
            "Give more in source.server_ids: two for each task that reads, and one for the driver. An id of a lost connection is free "
            "again when the server notices the loss",
        ),
        kind=FailureKind.UNREACHABLE,
        server_ids=f"{first}-{last}",
        address=address_of(settings),
    )


def _register(session: Any, settings: BinlogSettings, server_id: int) -> None:
    """Let the server list this connection among its replicas, under the name of ours."""
    host = f"applier-{settings.name}".encode()[:60]
    _send(session, struct.pack("<BIB", COM_REGISTER_SLAVE, server_id, len(host)) + host + struct.pack("<BBHII", 0, 0, 0, 0, 0))
    session._read_packet()  # noqa: SLF001 - PyMySQL has no words for this command


def _send(session: Any, command: bytes) -> None:
    session._next_seq_id = 0  # noqa: SLF001 - each command begins a sequence
    session.write_packet(command)


BUFFER_BYTES: Final = 1 << 20
MAX_PACKET_BYTES: Final = 0xFFFFFF
"""A packet of this size is continued by the next one."""
PACKET_HEAD_BYTES: Final = 4


class PacketBuffer:
    """What has come and is not taken yet: ``data[first:last]``."""

    def __init__(self) -> None:
        self.data = bytearray(BUFFER_BYTES)
        self.first = self.last = 0

    def room(self) -> memoryview:
        """Return where the next bytes go; never empty."""
        if self.first == self.last:
            self.first = self.last = 0
            if len(self.data) > BUFFER_BYTES:
                self.data = bytearray(BUFFER_BYTES)
        elif self.last == len(self.data):
            self._move(len(self.data))
        return memoryview(self.data)[self.last :]

    def took(self, size: int) -> None:
        """Say how many bytes the room got."""
        self.last += size

    def need(self, size: int) -> None:
        """Make the room large enough for a packet that begins at ``first`` and has ``size`` bytes."""
        if self.first + size > len(self.data):
            self._move(size)

    def _move(self, size: int) -> None:
        rest = self.data[self.first : self.last]
        if size > len(self.data) or len(rest) == len(self.data):
            self.data = bytearray(max(size, 2 * len(rest)))
        self.data[: len(rest)] = rest
        self.first, self.last = 0, len(rest)


_HEAD: Final = struct.Struct("<IBIB4xIIH")
"""Packet: length in 24 bits and sequence number, status. Event: timestamp, type, (server id,) size, end position, flags."""
_EVENT_HEAD: Final = struct.Struct("<IBIIIH")
_SIZE: Final = struct.Struct("<I")
_SIZE_AT: Final = 9
_RESIDUE: Final = 0x2144DF1C
"""CRC-32 of any bytes followed by their own CRC-32."""
_SMALLER: Final = Remedy(
    "binlog.set-max-binlog-size",
    "Set max_binlog_size to 1 GiB or less, and divide transactions of more than 3 GiB. Create the replica again from a dump",
)
_DAMAGED: Final = Remedy(
    "binlog.verify-binlog-file",
    "Examine the file on the server: `mysqlbinlog --verify-binlog-checksum FILE`. If it is damaged, create the replica again from a dump",
)
_REPEATED: Final = frozenset({FORMAT_DESCRIPTION, MARIADB_START_ENCRYPTION, MARIADB_GTID_LIST})
"""What a dump repeats of the beginning of its file, without a position."""
_SPECIAL: Final = frozenset({ROTATE, FORMAT_DESCRIPTION}) | HEARTBEATS

_as_event: Final = partial(tuple.__new__, BinlogEvent)  # a third of the cost of a call of the class, once per event


class Framing:
    """The bytes of one dump, from the number ``position``. ``bodies``: whether the content of rows is wanted."""

    def __init__(self, base_name: str, position: int, *, bodies: bool) -> None:
        self.buffer = PacketBuffer()
        self.position = position
        """The end of the last event, as a number."""
        self.is_mariadb = False
        """Whether MariaDB has written the file."""
        self._base_name, self._unwanted = base_name, TEXTS if bodies else BULKY
        self._sequence = 1
        # The replica says that it knows checksums: what comes before the file's own format description has one.
        self._checksum_bytes = CHECKSUM_BYTES
        self._large = bytearray()
        self._is_continued = False
        self._failure: SourceError | None = None

    def events(self) -> list[BinlogEvent]:
        """Return the events that the buffer holds whole. What is wrong after them is raised by the next call (SourceError)."""
        if self._failure is not None:
            raise self._failure
        events: list[BinlogEvent] = []
        try:
            self._take_run(events)
            while self._take_packet(events):
                self._take_run(events)
        except SourceError as error:
            if not events:
                raise
            self._failure = error
        return events

    def _take_run(self, events: list[BinlogEvent]) -> None:
        # The speed of the driver's scan. Everything in this one loop, in local names: half the cost of an event.
        buffer, append, unpack, patch_size = self.buffer, events.append, _HEAD.unpack_from, _SIZE.pack_into
        unwanted, as_event = self._unwanted, _as_event
        data, first, last, sequence, position = buffer.data, buffer.first, buffer.last, self._sequence, self.position
        view, file = memoryview(data), position & ~MAX_POSITION
        last_start = last - PACKET_HEAD_BYTES - HEADER_BYTES
        while first < last_start:
            head, status, time_s, kind, size, log_pos, flags = unpack(data, first)
            end = position + size
            if head != size + 1 + (sequence << 24) or status or log_pos + file != end or kind in _SPECIAL:
                break
            start = first + 5
            stop = start + size
            if stop > last:
                break
            if kind in unwanted:
                if kind not in TEXTS:
                    append(as_event((kind, position, end, time_s, flags, None)))
            elif not self._checksum_bytes:
                append(as_event((kind, position, end, time_s, flags, bytes(view[start:stop]))))
            elif crc32(view[start:stop]) == _RESIDUE:
                patch_size(data, start + _SIZE_AT, size - CHECKSUM_BYTES)
                append(as_event((kind, position, end, time_s, flags, bytes(view[start : stop - CHECKSUM_BYTES]))))
            else:
                break
            first, position, sequence = stop, end, sequence + 1 & 0xFF
        buffer.first, self.position, self._sequence = first, position, sequence

    def _take_packet(self, events: list[BinlogEvent]) -> bool:
        """Handle one packet that the loop cannot handle, or that is wrong. False: more bytes are needed."""
        buffer = self.buffer
        here = buffer.last - buffer.first
        if here < PACKET_HEAD_BYTES:
            return False
        length = int.from_bytes(buffer.data[buffer.first : buffer.first + 3], "little")
        if here < PACKET_HEAD_BYTES + length:
            buffer.need(PACKET_HEAD_BYTES + length)
            return False
        number = buffer.data[buffer.first + 3]
        start = buffer.first + PACKET_HEAD_BYTES
        payload = memoryview(buffer.data)[start : start + length]
        if not self._is_continued and is_refusal(payload):
            raise refused(bytes(payload), self.at)
        if number != self._sequence:
            raise ended("the packets of the dump are out of order", self.at)
        buffer.first, self._sequence = start + length, number + 1 & 0xFF
        if not self._is_continued and bytes(payload[:1]) != b"\0":
            raise ended("the server has ended the dump", self.at)
        self._large += payload if self._is_continued else payload[1:]
        self._is_continued = length == MAX_PACKET_BYTES
        if not self._is_continued:
            data, self._large = self._large, bytearray()
            self._take(data, events)
        return True

    @property
    def at(self) -> str:
        """The end of the last event, for people."""
        return BinlogPosition.of(self.position).text(self._base_name)

    def _take(self, data: bytearray, events: list[BinlogEvent]) -> None:
        """Take an event that is special, large, or wrong."""
        if len(data) < HEADER_BYTES:
            raise wrong("an event of the binlog is shorter than its header", self.at)
        time_s, kind, _, size, log_pos, flags = _EVENT_HEAD.unpack_from(data)
        if size != len(data):
            raise wrong("the size of an event of the binlog is not the one that it names", self.at, size=size, came=len(data))
        if kind == FORMAT_DESCRIPTION:
            self._take_format(data)
        content = self._without_checksum(data, is_certain=kind != ROTATE)
        begin = self.position
        if kind in HEARTBEATS:
            self._check_heartbeat(kind, log_pos)
        elif kind == ROTATE:
            begin = self._rotated(content, is_real=bool(time_s and log_pos), end=log_pos)
        elif log_pos or kind not in _REPEATED:
            self._pass(size, log_pos)
        if kind not in TEXTS:
            events.append(BinlogEvent(kind, begin, self.position, time_s, flags, None if kind in self._unwanted else content))

    def _pass(self, size: int, log_pos: int) -> None:
        end = self.position + size
        if end >> FILE_BITS != self.position >> FILE_BITS:
            raise wrong("a file of the binlog has 4 GiB or more", self.at, kind=FailureKind.POSITION, remedy=_SMALLER)
        if log_pos != end & MAX_POSITION:
            raise wrong("an event of the binlog does not follow the one before it", self.at, ends=log_pos, size=size)
        self.position = end

    def _check_heartbeat(self, kind: int, log_pos: int) -> None:
        if kind in HEARTBEATS and log_pos not in {0, self.position & MAX_POSITION}:
            raise wrong("the server has passed events that did not come", self.at, server_position=log_pos)

    def _rotated(self, data: bytes, *, is_real: bool, end: int) -> int:
        """Go to the file that a rotation names; return where the rotation itself begins."""
        position = int.from_bytes(data[HEADER_BYTES : HEADER_BYTES + 8], "little")
        name = data[HEADER_BYTES + 8 :].decode(errors="replace")
        try:
            base_name, file = split_file_name(name)
        except ValueError as error:
            raise wrong("the server names no file of a binlog", self.at, file=name) from error
        target = BinlogPosition(self.position >> GENERATION_BITS, file, position).number
        if base_name != self._base_name or target < self.position or (target != self.position and target & MAX_POSITION != 4):
            raise wrong("the server continues with another file", self.at, file=name, position=position)
        begin = self.position
        if is_real:
            self._pass(len(data) + self._checksum_bytes, end)
        elif target != begin:
            begin = target
        self.position = target
        return begin

    def _take_format(self, data: bytearray) -> None:
        if len(data) < HEADER_BYTES + 62 or data[HEADER_BYTES : HEADER_BYTES + 2] != b"\4\0":
            raise wrong("the binlog has another format than version 4", self.at)
        self.is_mariadb = b"MariaDB" in data[HEADER_BYTES + 2 : HEADER_BYTES + 52]
        # The last byte before the checksum says whether the events of the file have one; the description itself always has.
        self._checksum_bytes = CHECKSUM_BYTES if data[-CHECKSUM_BYTES - 1] == 1 else 0

    def _without_checksum(self, data: bytearray, *, is_certain: bool) -> bytes:
        """Return an event without its checksum, its size corrected. ``is_certain``: whether it has one where events of the file have."""
        has_one = crc32(data) == _RESIDUE
        if data[4] == FORMAT_DESCRIPTION:
            data[17] &= ~IN_USE_FLAG
            has_one = has_one or crc32(data) == _RESIDUE
        if is_certain and self._checksum_bytes and not has_one:
            raise self._damaged()
        if has_one and (self._checksum_bytes or not is_certain):
            # In the same buffer: such an event may have a gigabyte.
            _SIZE.pack_into(data, _SIZE_AT, len(data) - CHECKSUM_BYTES)
            del data[-CHECKSUM_BYTES:]
        return bytes(data)

    def _damaged(self) -> SourceError:
        return wrong("an event of the binlog is damaged: its checksum is wrong", self.at, kind=FailureKind.CHECKSUM, remedy=_DAMAGED)


class EventStream:
    """Reads from the number ``position``; connects when it is made. Not thread-safe.

    ``bodies``: whether the content of rows is wanted. Without, ``data`` is None for events that do not concern groups, and their
    checksums are not compared. ``server``: its identity; SourceError "other_server" if another one answers.
    """

    def __init__(self, settings: BinlogSettings, base_name: str, position: int, *, bodies: bool, server: str = "") -> None:
        begin = BinlogPosition.of(position)
        self._patience_s = settings.unreachable_after_s
        self._framing = Framing(base_name, position, bodies=bodies)
        self._dump = Dump(settings, server, file_name(base_name, begin.file), begin.position)
        self._heard_s = time.monotonic()
        self._given_back: list[BinlogEvent] = []

    @property
    def position(self) -> int:
        """The number after the last event that ``read`` has returned and that was not pushed back."""
        return self._given_back[0].begin if self._given_back else self._framing.position

    @property
    def is_mariadb(self) -> bool:
        """Whether MariaDB has written the file that the last event came from."""
        return self._framing.is_mariadb

    def read(self, timeout_s: float) -> list[BinlogEvent]:
        """Return the next events; none if none came in time.

        SourceError: "unreachable" (the connection was lost, or nothing came, not even a heartbeat, for unreachable_after_s), "purged",
        "other_log", "position", "checksum". The events before the position of an error have come.
        """
        if self._given_back:
            events, self._given_back = self._given_back, []
            return events
        give_up_s = time.monotonic() + timeout_s
        while not (events := self._framing.events()):
            left_s = give_up_s - time.monotonic()
            if left_s <= 0:
                self._check_silence()
                return []
            buffer = self._framing.buffer
            if size := self._dump.receive(buffer.room(), left_s, self._framing.at):
                buffer.took(size)
                self._heard_s = time.monotonic()
        return events

    def give_back(self, events: list[BinlogEvent]) -> None:
        """Push events back: the next ``read`` returns them. They are the last ones of the last call."""
        self._given_back = events

    def close(self) -> None:
        """End the dump."""
        self._dump.close()

    def _check_silence(self) -> None:
        silent_s = time.monotonic() - self._heard_s
        if silent_s >= self._patience_s:
            raise ended("the server of the binlog is silent", self._framing.at, silent_s=round(silent_s))

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
