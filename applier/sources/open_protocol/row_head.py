"""Event keys of plain rows, read without JSON where only the timestamp differs from one that was read before.

Producers write ``{"ts":458173202432000000,"scm":"shop","tbl":"orders","t":1}``: what follows 18 digits is the same for all rows of a
table, and stands for the members that it was parsed into. So JSON is parsed once per table and range, not once per transaction.
"""

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, TypeAlias

from applier.model.errors import ProtocolError
from applier.model.events import TableName
from applier.selection import EVERYTHING, TableSelection
from applier.sources.open_protocol.framing import VERSION
from applier.sources.open_protocol.head import ROW, Head, read_head
from applier.sources.open_protocol.row_run import KnownTable

MAX_TABLES: Final = 65_536
"""Tables whose shapes a placer remembers; the oldest is forgotten. Each takes some hundred bytes."""

_TS: Final = b'{"ts":'
_DIGITS: Final = 18
"""Of the timestamps of the years 2010 to 2085. Shorter and longer ones are read as JSON."""
_TAIL: Final = len(_TS) + _DIGITS
_LEAST: Final = 10 ** (_DIGITS - 1)

_VERSION: Final = len(VERSION)
_FRAME: Final = _VERSION + 8
_RECORD_TS: Final = _FRAME + len(_TS)
_RECORD_TAIL: Final = _FRAME + _TAIL


RowHead: TypeAlias = tuple[int, KnownTable]
"""What the event key of a plain row says: commit_ts and table. A plain tuple: a named one costs 0.2 us more, for each row."""


@lru_cache(maxsize=1024)
def _digits_of(size: int, count: int) -> Struct:
    """Return what cuts the timestamps out of ``count`` event keys of ``size`` bytes: 0.02 us each, 0.15 by slices."""
    before = _RECORD_TS - _VERSION
    return Struct(f"{_VERSION}x" + f"{before}x{_DIGITS}s{size - before - _DIGITS}x" * count)


class RowHeads:
    """Reads event keys of one range. What is no plain row (other events, reduced rows, anything wrong) is left to ``read_head``."""

    def __init__(self, selection: TableSelection = EVERYTHING) -> None:
        self._selection = selection
        self.has_left_out = False
        """Whether a table was met whose rows are left out."""
        self._tables: dict[tuple[str, str, bool], KnownTable] = {}
        self._known: dict[bytes, tuple[bytes, KnownTable]] = {}

    def of_record(self, key: bytes | None) -> RowHead | None:
        """Return the head of a record of one event, if that is a plain row."""
        if key is None:
            return None
        # The tail fixes the length of the whole, and the front holds that length and the version: a record of exactly one event.
        known = self._known.get(key[_RECORD_TAIL:])
        if known is not None and key[:_RECORD_TS] == known[0] and (digits := key[_RECORD_TS:_RECORD_TAIL]).isdigit():
            number = int(digits)
            if number >= _LEAST:
                return number, known[1]
        if key[:_FRAME] != VERSION + (len(key) - _FRAME).to_bytes(8, "big", signed=True):
            return None
        return self.of_event(key[_FRAME:])

    def of_rows(self, key: bytes | None) -> tuple[Sequence[int], Sequence[KnownTable]] | None:
        """Return commit_ts and table of each of a record's events, if all of them are plain rows, and their keys are equally long."""
        if key is None or len(key) <= _FRAME or key[:_VERSION] != VERSION:
            return None
        size = 8 + int.from_bytes(key[_VERSION:_FRAME], "big")
        count, rest = divmod(len(key) - _VERSION, size)
        if rest:
            return None
        first = key[_VERSION : _VERSION + size]
        # Most records hold rows of one transaction and table: one comparison is enough for all of their keys.
        if first * count == key[_VERSION:]:
            head = self.of_event(first[8:])
            return None if head is None else ([head[0]] * count, [head[1]] * count)
        return self._of_times(key, first, size) or self._one_by_one(key, first, size)

    def _of_times(self, key: bytes, first: bytes, size: int) -> tuple[Sequence[int], Sequence[KnownTable]] | None:
        """Return the heads of events of one table that differ in their timestamps only, if the table is known."""
        front, tail = first[: _RECORD_TS - _VERSION], first[_RECORD_TAIL - _VERSION :]
        known = self._known.get(tail)
        if known is None or known[0] != VERSION + front:
            return None
        digits = _digits_of(size, (len(key) - _VERSION) // size).unpack(key)
        if front + (tail + front).join(digits) + tail != key[_VERSION:] or not b"".join(digits).isdigit():
            return None
        times = list(map(int, digits))
        return (times, [known[1]] * len(times)) if min(times) >= _LEAST else None

    def _one_by_one(self, key: bytes, first: bytes, size: int) -> tuple[Sequence[int], Sequence[KnownTable]] | None:
        times: list[int] = []
        tables: list[KnownTable] = []
        for at in range(_VERSION, len(key), size):
            one = key[at : at + size]
            head = self.of_event(one[8:]) if one[:8] == first[:8] else None
            if head is None:
                return None
            times.append(head[0])
            tables.append(head[1])
        return times, tables

    def of_event(self, head_json: bytes) -> RowHead | None:
        """Return the head of an event, if that is a plain row."""
        tail = head_json[_TAIL:]
        known = self._known.get(tail)
        digits = head_json[len(_TS) : _TAIL]
        is_usual = head_json[: len(_TS)] == _TS and digits.isdigit() and digits[0] != ord("0")
        if known is not None and is_usual:
            return int(digits), known[1]
        try:
            head = read_head(head_json)
        except ProtocolError:
            return None
        if head.t != ROW or head.ohk or head.ccl:
            return None
        table = self.table(head)
        if table.ignored and not table.is_out:  # which of its rows are left out, only the full parse tells
            return None
        # A second "ts", however it is written, would count instead of the first one.
        if is_usual and len(digits) == _DIGITS and tail[:1] == b"," and b'"ts"' not in tail and b"\\" not in tail:
            self._remember(tail, table)
        return head.ts, table

    def _remember(self, tail: bytes, table: KnownTable) -> None:
        if len(self._known) >= MAX_TABLES:
            self._known.clear()
        size = len(tail) + _TAIL
        self._known[tail] = (VERSION + size.to_bytes(8, "big") + _TS, table)

    def table(self, head: Head) -> KnownTable:
        """Return what is known of the table of a row."""
        key = head.scm, head.tbl, head.ptn is not None
        return self._tables.get(key) or self._new_table(key)

    def _new_table(self, key: tuple[str, str, bool]) -> KnownTable:
        if len(self._tables) >= MAX_TABLES:
            del self._tables[next(iter(self._tables))]
        table = self._tables[key] = KnownTable(TableName(*key[:2]), self._selection, is_partitioned=key[2])
        self.has_left_out |= table.is_out
        return table
