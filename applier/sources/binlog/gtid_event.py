"""What the GTID events say that begin groups: the name of the transaction, MySQL's time, MariaDB's flags."""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from applier.sources.binlog.event import ANONYMOUS_GTID, GTID_TAGGED, HEADER_BYTES, MARIADB_GTID, BinlogEvent

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
