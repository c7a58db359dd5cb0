"""What one group holds, gathered until its end: only the end says whether it counts and under which timestamp. Then cut into records.

A small group stays in memory, a large one goes to a temporary file. What ROLLBACK TO has undone is removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import IO, Final, Self

import msgspec

from applier.model.position import Offset
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.event_stream import HEADER_BYTES, ROWS, BinlogEvent, payload_events, plain_event, sql_of, unreadable
from applier.sources.binlog.group import Group
from applier.sources.binlog.part import PART_BYTES, PartHead, PartKind, encode_head
from applier.sources.port import Record

MEMORY_BYTES: Final = 16 << 20
"""What a group may take in memory."""
PIECE_BYTES: Final = 256 << 10
"""What a sink is given at once of a transaction that it keeps: every server takes a statement of this size, escaped."""
_OBJECT_BYTES: Final = 50
"""Memory that an event takes in addition to its bytes."""
_CONTROL: Final = frozenset({b"BEGIN", b"COMMIT", b"ROLLBACK", b"XA", b"SAVEPOINT", b"RELEASE"})
_VARIABLES: Final = frozenset({kinds.INTVAR, kinds.RAND, kinds.USER_VAR})
_LONGEST_CONTROL: Final = 400
"""No statement of control is longer: a name has 64 characters, an xid 270 bytes."""
_LENGTH_BYTES: Final = 4
_SIZE_AT: Final = 9
"""Where the header of an event says how long it is."""
_TABLE_ID: Final = slice(HEADER_BYTES, HEADER_BYTES + 6)
_NO_TABLE: Final = frozenset({0xFFFFFF.to_bytes(6, "little"), 0xFFFFFFFF.to_bytes(6, "little"), b"\xff" * 6})
"""An event of this table ends a statement and holds no rows."""


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    """What a stored transaction begins with."""

    rows_events: int
    statements: list[tuple[int, bytes, bool]]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Kept)


class GroupContent:
    """The events of a group with rows or statements."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None
        self._filed = 0
        self._statements: list[tuple[int, bytes, bool]] = []
        """Where each ends, its event, and whether it needs variables of its session."""
        self._has_variables = False
        self._savepoints: list[tuple[bytes, int, int]] = []
        self._tables: set[bytes] = set()
        self._rows_events = 0

    def add(self, event: BinlogEvent) -> None:
        """Take the next event of the group; those without content are skipped. SourceError: it cannot be read."""
        kind, _, _, _, _, data = event
        if data is None:
            return
        if kind in ROWS:
            if data[_TABLE_ID] not in self._tables:
                self._check_empty(event, data)
                return
            self._rows_events += 1
        elif kind == kinds.TABLE_MAP:
            self._tables.add(data[_TABLE_ID])
        elif kind == kinds.EXECUTE_LOAD_QUERY:
            data = _as_query(data)
        elif kind != kinds.INCIDENT:
            self._add_other(event)
            return
        self._keep(data)

    def _add_other(self, event: BinlogEvent) -> None:
        if event.kind in kinds.MARIADB_ROWS:
            self.add(plain_event(event))
        elif event.kind in {kinds.QUERY, kinds.MARIADB_QUERY_COMPRESSED}:
            self._add_query(plain_event(event))
        elif event.kind in _VARIABLES:
            self._has_variables = True
        elif event.kind == kinds.TRANSACTION_PAYLOAD:
            for inner in payload_events(event):
                self.add(inner)

    @property
    def memory_bytes(self) -> int | None:
        """The approximate memory that it takes; None: it is in a file, which ``close`` removes."""
        events = len(self._events) + len(self._statements)
        return None if self._file is not None else self._size + sum(len(data) for _, data, _ in self._statements) + events * _OBJECT_BYTES

    @property
    def size(self) -> int:
        """How many bytes its events have, statements included."""
        return self._filed + self._size + sum(len(data) for _, data, _ in self._statements)

    def pieces(self) -> Iterator[bytes]:
        """Yield what ``restored`` makes it from, in pieces of ``PIECE_BYTES``: its statements, then its events."""
        head = _ENCODER.encode(_Kept(self._rows_events, self._statements))
        buffer = bytearray(len(head).to_bytes(_LENGTH_BYTES, "little") + head)
        for data in self._stored():
            buffer += data
            while len(buffer) >= PIECE_BYTES:
                yield bytes(buffer[:PIECE_BYTES])
                del buffer[:PIECE_BYTES]
        yield bytes(buffer)

    @classmethod
    def restored(cls, pieces: Iterable[bytes]) -> Self | None:
        """Make it from what ``pieces`` gave; None: there are none. Its end is known: nothing is added to it."""
        content, buffer = cls(), bytearray()
        try:
            is_there = content._restore(pieces, buffer)
        except BaseException:
            content.close()
            raise
        return content if is_there else None

    def _restore(self, pieces: Iterable[bytes], buffer: bytearray) -> bool:
        has_head = False
        for piece in pieces:
            buffer += piece
            if not has_head and len(buffer) >= _LENGTH_BYTES and len(buffer) >= (end := _LENGTH_BYTES + _number(buffer, 0)):
                head = _DECODER.decode(bytes(buffer[_LENGTH_BYTES:end]))
                self._rows_events, self._statements, has_head = head.rows_events, head.statements, True
                del buffer[:end]
            at = 0
            while has_head and len(buffer) - at >= HEADER_BYTES and len(buffer) - at >= (size := _number(buffer, at + _SIZE_AT)):
                self._keep(bytes(buffer[at : at + size]))
                at += size
            del buffer[:at]
        return has_head

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file is not None:
            self._file.close()

    def records(self, group: Group, end: int, *, is_mariadb: bool) -> Iterable[Record]:
        """Return the records of a transaction that begins and ends as ``group``: the statements before its rows, then its rows.

        ``end``: the timestamp of its rows.
        """
        if not self._statements and not self._filed and self._size <= PART_BYTES:
            # Nearly every transaction: 1 µs instead of 3.
            if not self._rows_events and all(data[4] == kinds.TABLE_MAP for data in self._events):
                return ()
            head = PartHead(PartKind.ROWS, end, 0, group.time_us, is_mariadb, group.gtid)
            return (Record(Offset(group.begin), encode_head(head), b"".join(self._events)),)
        return self._several(group, end, is_mariadb=is_mariadb)

    def _several(self, group: Group, end: int, *, is_mariadb: bool) -> Iterator[Record]:
        offset = Offset(group.begin)
        for its_end, data, has_variables in self._statements:
            head = PartHead(PartKind.QUERY, its_end - 1, 0, group.time_us, is_mariadb, group.gtid, has_variables)
            yield Record(offset, encode_head(head), data)
        for first_event, value in _divided(self._stored()):
            head = PartHead(PartKind.ROWS, end, first_event, group.time_us, is_mariadb, group.gtid)
            yield Record(offset, encode_head(head), value)

    def statement(self, group: Group, *, is_mariadb: bool) -> Iterator[Record]:
        """Yield the record of a group that is one statement, or an incident."""
        for data, has_variables in (*(statement[1:] for statement in self._statements), *((data, False) for data in self._events)):
            head = PartHead(PartKind.QUERY, group.end - 1, 0, group.time_us, is_mariadb, group.gtid, has_variables)
            yield Record(Offset(group.begin), encode_head(head), data)

    def _add_query(self, event: BinlogEvent) -> None:
        data = event.data or b""
        sql = sql_of(data)
        words = sql.split(None, 3) if len(sql) <= _LONGEST_CONTROL else [sql[:1]]
        first = words[0].upper() if words else b""
        if first == b"SAVEPOINT":
            self._savepoints.append((_name(words[1:]), self._filed + self._size, self._rows_events))
        elif first == b"ROLLBACK" and len(words) > 2 and words[1].upper() == b"TO":
            self._roll_back(event, _name(words[2:]))
        elif first not in _CONTROL:
            if self._size or self._filed:
                self._keep(data)
            else:
                self._statements.append((event.end, data, self._has_variables))
            self._has_variables = False

    def _keep(self, data: bytes) -> None:
        self._events.append(data)
        self._size += len(data)
        if self._size > MEMORY_BYTES:
            if self._file is None:
                self._file = TemporaryFile(prefix="applier-binlog-")  # noqa: SIM115 - lives as long as the group
            self._file.writelines(self._events)
            self._filed += self._size
            self._events, self._size = [], 0

    def _check_empty(self, event: BinlogEvent, data: bytes) -> None:
        if data[_TABLE_ID] not in _NO_TABLE:
            raise unreadable(event, "rows of the binlog come without the definition of their table")

    def _roll_back(self, event: BinlogEvent, name: bytes) -> None:
        while self._savepoints and self._savepoints[-1][0] != name:
            self._savepoints.pop()
        if not self._savepoints:
            raise unreadable(event, "a transaction of the binlog goes back to a savepoint that it has not")
        _, size, self._rows_events = self._savepoints[-1]
        while self._events and self._filed + self._size > size:
            self._size -= len(self._events.pop())
        if self._file is not None and self._filed > size:
            self._file.truncate(size)
            self._file.seek(size)
            self._filed = size

    def _stored(self) -> Iterator[bytes]:
        if self._file is not None:
            self._file.seek(0)
            while head := self._file.read(HEADER_BYTES):
                yield head + self._file.read(_number(head, _SIZE_AT) - HEADER_BYTES)
        yield from self._events


def _divided(events: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield parts of about PART_BYTES, each with the number of its first rows event and with the tables that its rows need."""
    tables: dict[bytes, bytes] = {}
    part: list[bytes] = []
    known: set[bytes] = set()
    size = number = first = 0
    for data in events:
        kind, table = data[4], data[_TABLE_ID]
        if kind == kinds.TABLE_MAP:
            tables[table] = data
            known.discard(table)
            continue
        if part and size + len(data) > PART_BYTES:
            yield first, b"".join(part)
            part, size, first = [], 0, number
            known.clear()
        if kind in ROWS:
            number += 1
            if table not in known:
                known.add(table)
                part.append(tables[table])
        part.append(data)
        size += len(data)
    if part:
        yield first, b"".join(part)


def _number(data: bytes | bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + _LENGTH_BYTES], "little")


def _as_query(data: bytes) -> bytes:
    """Return LOAD DATA that is in the log as a statement as other statements are: without the positions of the file's name."""
    head, rest = data[: HEADER_BYTES + 13], data[HEADER_BYTES + 26 :]
    size = (len(head) + len(rest)).to_bytes(4, "little")
    return b"".join((head[:4], bytes((kinds.QUERY,)), head[5:9], size, head[13:], rest))


def _name(words: Sequence[bytes]) -> bytes:
    return b" ".join(words).strip(b"`").lower()
