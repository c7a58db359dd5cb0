"""Reads the events of a binlog from a position on: a dump and its framing. Never goes back, and never reconnects without being asked.

``Framing`` does no I/O. Each event is one packet, or several if it is larger than a packet can be. It names the position of its end, so a
lost or repeated event shows at once; its checksum is compared where its content is wanted. Events that the server adds for a replica (a
rotation and a format description at the beginning, heartbeats) are not in the file: such an event begins where it ends.
"""

import random
import struct
import time
from functools import partial
from typing import Any, Final, Self
from zlib import crc32

import pymysql
from pymysql.constants.COMMAND import COM_BINLOG_DUMP, COM_REGISTER_SLAVE

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
from applier.mysql.session import discard, driver_of
from applier.sources.binlog.event import (
    BULKY,
    CHECKSUM_BYTES,
    FORMAT_DESCRIPTION,
    HEADER_BYTES,
    HEARTBEATS,
    IN_USE_FLAG,
    MARIADB_GTID_LIST,
    MARIADB_START_ENCRYPTION,
    ROTATE,
    TEXTS,
    BinlogEvent,
)
from applier.sources.binlog.position import FILE_BITS, GENERATION_BITS, MAX_POSITION, BinlogPosition, file_name, split_file_name
from applier.sources.binlog.refusal import ended, is_refusal, refused, wrong
from applier.sources.binlog.server import address_of, connect, failed
from applier.sources.binlog.settings import BinlogSettings

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
    """A dump from a position on. Events come until it is closed, or the server ends it.

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
        """Read what has come into ``room``; return how much; 0: nothing came in time. ``at``: behind what.

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
    """The bytes of one dump, from the number ``place`` on. ``bodies``: whether the content of rows is wanted."""

    def __init__(self, base_name: str, place: int, *, bodies: bool) -> None:
        self.buffer = PacketBuffer()
        self.place = place
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
        data, first, last, sequence, place = buffer.data, buffer.first, buffer.last, self._sequence, self.place
        view, file = memoryview(data), place & ~MAX_POSITION
        last_start = last - PACKET_HEAD_BYTES - HEADER_BYTES
        while first < last_start:
            head, status, time_s, kind, size, log_pos, flags = unpack(data, first)
            end = place + size
            if head != size + 1 + (sequence << 24) or status or log_pos + file != end or kind in _SPECIAL:
                break
            start = first + 5
            stop = start + size
            if stop > last:
                break
            if kind in unwanted:
                if kind not in TEXTS:
                    append(as_event((kind, place, end, time_s, flags, None)))
            elif not self._checksum_bytes:
                append(as_event((kind, place, end, time_s, flags, bytes(view[start:stop]))))
            elif crc32(view[start:stop]) == _RESIDUE:
                patch_size(data, start + _SIZE_AT, size - CHECKSUM_BYTES)
                append(as_event((kind, place, end, time_s, flags, bytes(view[start : stop - CHECKSUM_BYTES]))))
            else:
                break
            first, place, sequence = stop, end, sequence + 1 & 0xFF
        buffer.first, self.place, self._sequence = first, place, sequence

    def _take_packet(self, events: list[BinlogEvent]) -> bool:
        """Take one packet that the loop does not know what to do with, or that is wrong. False: more bytes are needed."""
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
        return BinlogPosition.of(self.place).text(self._base_name)

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
        begin = self.place
        if kind in HEARTBEATS:
            self._check_heartbeat(kind, log_pos)
        elif kind == ROTATE:
            begin = self._rotated(content, is_real=bool(time_s and log_pos), end=log_pos)
        elif log_pos or kind not in _REPEATED:
            self._pass(size, log_pos)
        if kind not in TEXTS:
            events.append(BinlogEvent(kind, begin, self.place, time_s, flags, None if kind in self._unwanted else content))

    def _pass(self, size: int, log_pos: int) -> None:
        end = self.place + size
        if end >> FILE_BITS != self.place >> FILE_BITS:
            raise wrong("a file of the binlog has 4 GiB or more", self.at, kind=FailureKind.POSITION, remedy=_SMALLER)
        if log_pos != end & MAX_POSITION:
            raise wrong("an event of the binlog does not follow the one before it", self.at, ends=log_pos, size=size)
        self.place = end

    def _check_heartbeat(self, kind: int, log_pos: int) -> None:
        if kind in HEARTBEATS and log_pos not in {0, self.place & MAX_POSITION}:
            raise wrong("the server has passed events that did not come", self.at, server_position=log_pos)

    def _rotated(self, data: bytes, *, is_real: bool, end: int) -> int:
        """Go to the file that a rotation names; return where the rotation itself begins."""
        position = int.from_bytes(data[HEADER_BYTES : HEADER_BYTES + 8], "little")
        name = data[HEADER_BYTES + 8 :].decode(errors="replace")
        try:
            base_name, file = split_file_name(name)
        except ValueError as error:
            raise wrong("the server names no file of a binlog", self.at, file=name) from error
        target = BinlogPosition(self.place >> GENERATION_BITS, file, position).number
        if base_name != self._base_name or target < self.place or (target != self.place and target & MAX_POSITION != 4):
            raise wrong("the server continues with another file", self.at, file=name, position=position)
        begin = self.place
        if is_real:
            self._pass(len(data) + self._checksum_bytes, end)
        elif target != begin:
            begin = target
        self.place = target
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
    """Reads from the number ``place`` on; connects when it is made. Not thread-safe.

    ``bodies``: whether the content of rows is wanted. Without, ``data`` is None for events that do not concern groups, and their
    checksums are not compared. ``server``: its identity; SourceError "other_server" if another one answers.
    """

    def __init__(self, settings: BinlogSettings, base_name: str, place: int, *, bodies: bool, server: str = "") -> None:
        position = BinlogPosition.of(place)
        self._patience_s = settings.unreachable_after_s
        self._framing = Framing(base_name, place, bodies=bodies)
        self._dump = Dump(settings, server, file_name(base_name, position.file), position.position)
        self._heard_s = time.monotonic()
        self._given_back: list[BinlogEvent] = []

    @property
    def place(self) -> int:
        """The number behind the last event that ``read`` has returned and that was not given back."""
        return self._given_back[0].begin if self._given_back else self._framing.place

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
