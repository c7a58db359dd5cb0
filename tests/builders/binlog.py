"""A binlog's bytes, as a server sends them: events with checksums and positions, and the packets that carry them."""

import struct
import time
from collections.abc import Iterable
from zlib import crc32

from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.refusal import ended

BASE = "bin"
MAX_PACKET = 0xFFFFFF


class BinlogBytes:
    """Events of one file after another; ``end`` is the position behind the last one."""

    def __init__(self, *, is_mariadb=True, checksums=True):
        self.is_mariadb, self.checksums = is_mariadb, checksums
        self.events, self.placed, self.file, self.end = [], [], 1, 4

    @property
    def place(self):
        return BinlogPosition(0, self.file, self.end).number

    def add(self, kind, body=b"", *, time_s=1000, flags=0, is_in_file=True):
        extra = 4 if self.checksums or kind == kinds.FORMAT_DESCRIPTION else 0
        size = 19 + len(body) + extra
        at = self.file, self.end
        self.end += size if is_in_file else 0
        head = struct.pack("<IBIIIH", time_s, kind, 7, size, (self.end if is_in_file else 0), flags)
        data = head + body
        self.events.append(data + struct.pack("<I", crc32(data)) if extra else data)
        self.placed.append((at, self.events[-1]))
        return self

    def rotate(self, file, *, is_in_file=True):
        body = struct.pack("<Q", 4) + f"{BASE}.{file:06d}".encode()
        self.add(kinds.ROTATE, body, time_s=1000 if is_in_file else 0, is_in_file=is_in_file)
        self.file, self.end = file, 4
        return self

    def start(self, *, is_in_file=False):
        """What a dump begins with: the name of the file, and its description."""
        at = self.end
        self.rotate(self.file, is_in_file=False)
        self.end = at
        self.events[-1] = self._at(at)
        return self.description(is_in_file=is_in_file)

    def _at(self, position):
        data = struct.pack("<IBIIIH", 0, kinds.ROTATE, 7, 19 + 8 + len(f"{BASE}.{self.file:06d}") + 4, 0, 0)
        data += struct.pack("<Q", position) + f"{BASE}.{self.file:06d}".encode()
        return data + struct.pack("<I", crc32(data))

    def description(self, *, is_in_file=True):
        version = b"10.11.19-MariaDB-log" if self.is_mariadb else b"9.7.4"
        body = struct.pack("<H50sIB", 4, version, 0, 19) + bytes(40) + bytes((1 if self.checksums else 0,))
        return self.add(kinds.FORMAT_DESCRIPTION, body, is_in_file=is_in_file)

    def gtid(self, number, *, flags=0, more=b""):
        if self.is_mariadb:
            return self.add(kinds.MARIADB_GTID, struct.pack("<QIB", number, 0, flags) + more.ljust(6, b"\0"))
        body = struct.pack("<B16sqBqq", 1, bytes(15) + b"\1", number, 2, 0, 0) + (1_700_000_000_000_000 + number).to_bytes(7, "little")
        return self.add(kinds.GTID, body)

    def query(self, sql, *, schema="s"):
        body = struct.pack("<IIBHH", 1, 0, len(schema), 0, 0) + schema.encode() + b"\0" + sql.encode()
        return self.add(kinds.QUERY, body)

    def table_map(self, table_id, name="t"):
        return self.add(kinds.TABLE_MAP, table_id.to_bytes(6, "little") + bytes(2) + f"\1s\0\1{name}\0".encode() + bytes(10))

    def rows(self, table_id, content=b"row", *, kind=23):
        return self.add(kind, table_id.to_bytes(6, "little") + bytes(2) + content)

    def transaction(self, number, content=b"row"):
        self.gtid(number)
        if not self.is_mariadb:
            self.query("BEGIN")
        return self.table_map(9).rows(9, content).add(kinds.XID, bytes(8))

    def bytes(self):
        return packets(self.events)


def packets(events: Iterable[bytes], first_sequence=1):
    sent, sequence = bytearray(), first_sequence
    for event in events:
        payload = b"\0" + event
        while True:
            part, payload = payload[:MAX_PACKET], payload[MAX_PACKET:]
            sent += len(part).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + part
            sequence += 1
            if len(part) < MAX_PACKET:
                break
    return bytes(sent)


class LogInMemory:
    """Serves dumps of a ``BinlogBytes`` in place of a server.

    ``lost_after``: the first dumps end after so many bytes each. ``damaged_at``: a byte of each of the first dumps that is wrong.
    """

    def __init__(self, log: BinlogBytes, lost_after=(), damaged_at=()):
        self._log, self._lost_after, self._damaged_at = log, list(lost_after), list(damaged_at)
        self.dumps = []

    def __call__(self, _settings, _server, file, position):
        self.dumps.append((file, position))
        data = self._sent(int(file.rpartition(".")[2]), position)
        lost_after = self._lost_after.pop(0) if self._lost_after else None
        if self._damaged_at and (at := self._damaged_at.pop(0)) < len(data):
            data = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
            lost_after = len(data)  # a length that has grown would be waited for
        return _Dump(data, lost_after)

    def _sent(self, file, position):
        begin = BinlogBytes(is_mariadb=self._log.is_mariadb, checksums=self._log.checksums)
        begin.file, begin.end = file, position
        begin.start()
        place, rest = (file, position), []
        for at, event in self._log.placed:
            if at >= place:
                rest.append(event)
        return packets([*begin.events, *rest])


class _Dump:
    def __init__(self, data, lost_after):
        self._data, self._is_lost = data if lost_after is None else data[:lost_after], lost_after is not None

    def receive(self, room, timeout_s, at):
        size = min(len(room), len(self._data), 1000)
        if not size:
            if self._is_lost:
                raise ended("the connection was lost", at)
            time.sleep(timeout_s)
        room[:size], self._data = self._data[:size], self._data[size:]
        return size

    def close(self):
        self._data = b""
