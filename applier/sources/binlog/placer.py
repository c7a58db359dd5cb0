"""The hot path: the place of each row of a range's records (table, time, kind, key), images left as the bytes that came.

A record is a transaction or a part of one. Rows of many transactions are yielded together, as columns; what is no row ends them.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from struct import Struct
from typing import Any, Final

from applier.model.errors import ApplierError, NeedsOperator, ProtocolError
from applier.model.events import DdlEvent, LeftOutTable, PlacedRow, ResolvedEvent, Shape, SkippedStatement, TableName
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD
from applier.selection import EVERYTHING, TableSelection
from applier.sources.binlog.event import HEADER_BYTES, PARTIAL_UPDATE_ROWS, QUERY, TABLE_MAP
from applier.sources.binlog.image_code import table_code
from applier.sources.binlog.part import ROWS_PER_EVENT, PartHead, PartKind, decode_head
from applier.sources.binlog.query import events_of_query
from applier.sources.binlog.rows_event import OPERATIONS, MappedTable
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced

RUN_ROWS: Final = 512
"""Rows that are yielded together, more or less."""

_HEADER: Final = HEADER_BYTES
_NUMBER_END: Final = HEADER_BYTES + 6
_NO_TABLE: Final = b"\xff\xff\xff\0\0\0"
"""The number of the table of a rows event without rows, which ends a statement."""
_header = Struct("<4xB4xI").unpack_from
_SILENT: Final = frozenset({5, 13, 14, 16, 28, 29, 33, 34, 36, 37, 38, 42, 160, 162})
"""Events of a group that hold no rows: variables of a statement, XIDs, GTIDs, texts. What a statement does is in QUERY."""

_PLAIN_BEGIN: Final = b"\0BEGIN"
"""Of the QUERY event that begins most transactions: it is not looked at."""

PARTIAL_REMEDY: Final = (
    "Run on the primary: SET GLOBAL binlog_row_value_options = ''. Rows written so before cannot be read: create the replica from a dump"
)


class _Run:
    """Rows of several transactions that follow one another."""

    def __init__(self) -> None:
        self.columns: tuple[list[Any], ...] = ([], [], [], [], [], [], [])
        self.left_out: dict[TableName, PlacedEvent] = {}

    def __len__(self) -> int:
        return len(self.columns[0])

    def end(self) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the rows, and each table of which rows are left out, at the last of them; begin anew."""
        if self.left_out:
            yield from self.left_out.values()
            self.left_out = {}
        if not self.columns[0]:
            return
        shape, commit_ts, kind, offset, index, key, image = self.columns
        self.columns = ([], [], [], [], [], [], [])
        distinct: dict[int, Shape] = {id(one): one for one in shape}
        if len(distinct) == 1:
            yield PlacedRows((shape[0],), bytes(len(shape)), commit_ts, kind, offset, index, key, image)
            return
        numbers = {identity: number for number, identity in enumerate(distinct)}
        yield PlacedRows(tuple(distinct.values()), [numbers[id(one)] for one in shape], commit_ts, kind, offset, index, key, image)


class BinlogPlacer:
    """Places the records of one range. Not thread-safe; what is compiled of table maps is shared by the process."""

    def __init__(self, stream: Stream, selection: TableSelection = EVERYTHING) -> None:
        self._stream, self._selection = stream, selection
        self._tables: dict[bytes, MappedTable] = {}
        self._shapes: dict[Shape, Shape] = {}

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order: rows as columns, two where an update changed its key.

        ProtocolError names the place of what cannot be read; NeedsOperator: it cannot be applied.
        """
        run = _Run()
        for offset, key, value in records:
            yield from self._place_record(run, offset, key, value or b"")
            if len(run) >= RUN_ROWS:
                yield from run.end()
        yield from run.end()

    def _place_record(self, run: _Run, offset: int, key: bytes | None, value: bytes) -> Iterator[PlacedRows | PlacedEvent]:
        head = self._head(offset, key)
        if head.kind == PartKind.PROMISE:
            yield from run.end()
            yield PlacedEvent(offset, 0, ResolvedEvent(Ts(head.commit_ts)))
            return
        number, tables = head.first_event, dict[bytes, MappedTable]()
        for kind, begin, end in self._split(offset, head, value):
            index = number * ROWS_PER_EVENT
            table: MappedTable | None = None
            try:
                if kind in OPERATIONS:
                    number += 1
                    table = _table_of(tables, value[begin + _HEADER : begin + _NUMBER_END])
                    if table is not None:
                        self._add_rows(run, table, (offset, head.commit_ts, index), (value, begin + _HEADER, end, kind))
                elif kind == TABLE_MAP:
                    tables[value[begin + _HEADER : begin + _NUMBER_END]] = self._known_table(value[begin + _HEADER : end])
                elif kind not in _SILENT:
                    found = self._other(kind, value[begin:end], head)
                    if found:
                        yield from run.end()
                        yield from (PlacedEvent(offset, index, event) for event in found)
            except ApplierError as error:
                yield from run.end()
                raise self._located(error, offset, index, head, table) from error

    def _split(self, offset: int, head: PartHead, value: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield the type, the beginning and the end of each event."""
        at = 0
        while at < len(value):
            kind, size = _header(value, at) if len(value) - at >= _HEADER else (0, 0)
            if size < _HEADER or at + size > len(value):
                error = ProtocolError.at(None, "framing", "an event of the binlog is too short or too long")
                raise self._located(error, offset, None, head, None)
            yield kind, at, at + size
            at += size

    def _add_rows(self, run: _Run, table: MappedTable, place: tuple[int, int, int], event: tuple[bytes, int, int, int]) -> None:
        offset, commit_ts, index = place
        if table.is_filtered:
            run.left_out[table.name] = PlacedEvent(offset, index, LeftOutTable(commit_ts, table.name))
        if (table.ignored and OPERATIONS[event[3]] in table.ignored) or table.is_out:
            return
        shapes, kinds, numbers, keys, images = table.place(*event)
        count = len(images)
        columns = run.columns
        columns[0].extend(shapes)
        columns[1].extend(repeat(commit_ts, count))
        columns[2].extend(kinds)
        columns[3].extend(repeat(offset, count))
        columns[4].extend([index + number for number in numbers])
        columns[5].extend(keys)
        columns[6].extend(images)

    def _known_table(self, body: bytes) -> MappedTable:
        identity = body[6:]
        found = self._tables.get(identity)
        if found is None:
            found = self._tables[identity] = MappedTable(table_code(body), self._selection, self._shapes)
        return found

    def _other(self, kind: int, event: bytes, head: PartHead) -> Sequence[DdlEvent | SkippedStatement]:
        if kind == QUERY:
            return () if event.endswith(_PLAIN_BEGIN) else events_of_query(event, head, self._selection)
        if kind == PARTIAL_UPDATE_ROWS:
            raise NeedsOperator("upstream writes changes of JSON values in parts, which the applier does not read", remedy=PARTIAL_REMEDY)
        raise ProtocolError.at(None, "event_type", "an event of this type is not known among rows", event_type=kind)

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index. Of a rows event that cannot be read, no row is placed.

        A record that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``. Raises nothing.
        """
        try:
            head = self._head(offset, key)
            if head.kind == PartKind.PROMISE:
                return [(0, ResolvedEvent(Ts(head.commit_ts)))]
            return list(self._each_event(offset, head, value or b""))
        except ProtocolError as error:
            return [(WHOLE_RECORD, Unplaced(error, None))]

    def _each_event(self, offset: int, head: PartHead, value: bytes) -> Iterator[tuple[int, Placed | Unplaced]]:
        number, tables = head.first_event, dict[bytes, MappedTable]()
        for kind, begin, end in list(self._split(offset, head, value)):
            index = number * ROWS_PER_EVENT
            number += kind in OPERATIONS
            table: MappedTable | None = None
            try:
                if kind == TABLE_MAP:
                    tables[value[begin + _HEADER : begin + _NUMBER_END]] = self._known_table(value[begin + _HEADER : end])
                elif kind in OPERATIONS:
                    table = _table_of(tables, value[begin + _HEADER : begin + _NUMBER_END])
                    if table is not None:
                        run = _Run()
                        self._add_rows(run, table, (offset, head.commit_ts, index), (value, begin + _HEADER, end, kind))
                        yield from _one_by_one(run)
                elif kind not in _SILENT:
                    yield from ((index, event) for event in self._other(kind, value[begin:end], head))
            except ApplierError as error:
                located = self._located(error, offset, index, head, table)
                name = TableName("", "") if table is None else self._selection.name(table.name)
                unplaced = (
                    located if isinstance(located, ProtocolError) else ProtocolError(located.message, remedy=error.remedy, **located.facts)
                )
                yield index, Unplaced(unplaced, EventHead(Ts(head.commit_ts), name, kind == QUERY))

    def _head(self, offset: int, key: bytes | None) -> PartHead:
        try:
            return decode_head(key)
        except ProtocolError as error:
            raise self._located(error, offset, None, None, None) from error

    def _located(
        self, error: ApplierError, offset: int, index: int | None, head: PartHead | None, table: MappedTable | None
    ) -> ApplierError:
        """Return the error with the facts of the record and the event that it arose in."""
        facts: dict[str, Any] = {} if index is None else {"event": index}
        if head is not None:
            facts |= {"commit_ts": head.commit_ts} | ({"gtid": head.gtid} if head.gtid else {})
        if table is not None:
            facts |= {"schema": table.name.schema, "table": table.name.table}
        return type(error)(error.message, remedy=error.remedy, **(Place(self._stream, Offset(offset)).facts | facts | error.facts))


def _table_of(tables: dict[bytes, MappedTable], number: bytes) -> MappedTable | None:
    """Return the table of a rows event; None if it has none, and no rows."""
    found = tables.get(number)
    if found is None and number != _NO_TABLE:
        raise ProtocolError.at(None, "table_map", "a rows event has no table map before it")
    return found


def _one_by_one(run: _Run) -> Iterator[tuple[int, Placed]]:
    yield from ((placed.index, placed.event) for placed in run.left_out.values())  # type: ignore[misc] # LeftOutTable alone
    for shape, commit_ts, kind, _, index, key, image in zip(*run.columns, strict=True):
        yield index, PlacedRow(commit_ts, kind, shape, key, image)
