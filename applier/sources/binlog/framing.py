"""Finds the events in the bytes that a server sends for a dump, and checks that none is missing and none is damaged. Does no I/O.

Each event is a packet, or several where it is larger than one can be. It names the position of its end, so a lost or repeated one shows
at once; its checksum is compared where its content is wanted. What the server makes up for the replica (a rotation and a format
description at the beginning, heartbeats) takes no place in a file: such an event begins where it ends. The comments of rows are passed.
"""

import struct
from functools import partial
from typing import Final
from zlib import crc32

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
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
from applier.sources.binlog.position import FILE_BITS, GENERATION_BITS, MAX_POSITION, BinlogPosition, split_file_name
from applier.sources.binlog.refusal import ended, is_refusal, refused, wrong

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
        """Return the events that the buffer holds whole. What is wrong behind them is raised by the next call (SourceError)."""
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
            raise wrong("an event of the binlog has not the size that it names", self.at, size=size, came=len(data))
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
            raise wrong("the server goes on with another file", self.at, file=name, position=position)
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
            # In its place: such an event may have a gigabyte.
            _SIZE.pack_into(data, _SIZE_AT, len(data) - CHECKSUM_BYTES)
            del data[-CHECKSUM_BYTES:]
        return bytes(data)

    def _damaged(self) -> SourceError:
        return wrong("an event of the binlog is damaged: its checksum is wrong", self.at, kind=FailureKind.CHECKSUM, remedy=_DAMAGED)
