"""The binlog's side of the source's port: what executors and the driver read records with.

``BinlogPlacer`` is the hot path: table, time, kind and key of each row of a range's records; images stay the bytes that came. A record is
a transaction or a part of one. Rows of many transactions are yielded together, as columns; an event that is not a row ends such a group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Final

from applier.model.errors import ApplierError, InvariantViolation, ProtocolError
from applier.model.events import (
    MARKER_IMAGE,
    Column,
    DdlEvent,
    Event,
    ExcludedTable,
    Image,
    PlacedRow,
    ResolvedEvent,
    RowEvent,
    RowKind,
    RowOperation,
    Shape,
    SkippedStatement,
    TableName,
    Value,
)
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD
from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.binlog.catalogue import excluded
from applier.sources.binlog.event_stream import HEADER_BYTES, PARTIAL_UPDATE_ROWS, QUERY, ROWS
from applier.sources.binlog.image_code import image_decoder, images_decoder, table_code
from applier.sources.binlog.part import (
    FoundTable,
    KnownTable,
    PartEvent,
    PartHead,
    PartKind,
    decode_head,
    events_of,
    located,
    refusal_of,
    table_of,
)
from applier.sources.binlog.query import events_of_query
from applier.sources.binlog.rows_event import OPERATIONS, EventRows, MappedTable
from applier.sources.binlog.table_map import read_map_name
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import decode_key

RUN_ROWS: Final = 512
"""Approximate number of rows that are yielded together."""

_PLAIN_BEGIN: Final = b"\0BEGIN"
"""Of the QUERY event that begins most transactions: it is not looked at."""


class _Run:
    """Rows of several transactions that follow one another; ``ready``: what came before them."""

    def __init__(self) -> None:
        self.columns: tuple[list[Any], ...] = ([], [], [], [], [], [], [])
        self.left_out: dict[TableName, PlacedEvent] = {}
        self.ready: list[PlacedRows | PlacedEvent] = []

    def add(self, offset: int, commit_ts: int, index: int, rows: EventRows) -> None:
        """Add the rows of an event. ``index``: of the first one."""
        shapes, kinds, numbers, keys, images = rows
        shape, ts, kind, offsets, indexes, key, image = self.columns
        count = len(images)
        shape += shapes
        kind += kinds
        key += keys
        image += images
        if count == 1:
            ts.append(commit_ts)
            offsets.append(offset)
            indexes.append(index)
        else:
            ts.extend(repeat(commit_ts, count))
            offsets.extend(repeat(offset, count))
            indexes += [index + number for number in numbers]

    def end(self, *others: PlacedEvent) -> None:
        """End the rows, with each table that has skipped rows, at the last of these; ``others`` come after them."""
        self.ready += self.left_out.values()
        self.left_out.clear()
        if self.columns[0]:
            shape, commit_ts, kind, offset, index, key, image = self.columns
            self.columns = ([], [], [], [], [], [], [])
            numbers = {identity: number for number, identity in enumerate({id(one): one for one in shape})}
            shapes = {id(one): one for one in shape}
            places = bytes(len(shape)) if len(numbers) == 1 else [numbers[id(one)] for one in shape]
            self.ready.append(PlacedRows(tuple(shapes.values()), places, commit_ts, kind, offset, index, key, image))
        self.ready += others

    def taken(self) -> list[PlacedRows | PlacedEvent]:
        """Return what is ready, once."""
        found, self.ready = self.ready, []
        return found


class BinlogPlacer:
    """Places the records of one range. Not thread-safe; what is compiled of table maps is shared by the process."""

    def __init__(self, stream: Stream, selection: TableSelection = EVERYTHING) -> None:
        self._stream, self._selection = stream, selection
        self._tables: dict[bytes, KnownTable] = {}
        self._shapes: dict[Shape, Shape] = {}

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order: rows as columns, two where an update changed its key.

        ProtocolError names the position of what cannot be read; NeedsOperator: it cannot be applied.
        """
        run = _Run()
        for offset, key, value in records:
            # No generator of its own: most records are a transaction of a few rows.
            self._place_record(run, offset, key, value or b"")
            if len(run.columns[0]) >= RUN_ROWS:
                run.end()
            if run.ready:
                yield from run.taken()
        run.end()
        yield from run.taken()

    def _place_record(self, run: _Run, offset: int, key: bytes | None, value: bytes) -> None:
        head: PartHead | None = None
        event: PartEvent | None = None
        try:
            head = decode_head(key)
            if head.kind == PartKind.PROMISE:
                run.end(PlacedEvent(offset, 0, ResolvedEvent(Ts(head.commit_ts))))
            for event in events_of(head, value, self._known_table):
                kind, begin, end, index, table = event
                if kind in ROWS:
                    self._add_rows(run, table, (offset, head.commit_ts, index), (value, begin + HEADER_BYTES, end, kind))
                elif found := self._other(kind, value[begin:end], head):
                    run.end(*(PlacedEvent(offset, index, one) for one in found))
        except ApplierError as error:
            raise located(error, RecordPosition(self._stream, Offset(offset)), head, event) from error

    def _add_rows(self, run: _Run, found: FoundTable, origin: tuple[int, int, int], event: tuple[bytes, int, int, int]) -> None:
        kind = event[3]
        if isinstance(found, SelectedTable):
            if found.is_filtered:
                offset, commit_ts, index = origin
                run.left_out[found.name] = PlacedEvent(offset, index, ExcludedTable(commit_ts, found.name))
            return
        if isinstance(found, MappedTable) and found.ignored and OPERATIONS.get(kind, RowOperation.UPDATE) in found.ignored:
            return
        if kind == PARTIAL_UPDATE_ROWS:
            raise refusal_of(kind)
        run.add(*origin, table_of(found).place(*event))

    def _known_table(self, body: bytes, is_mariadb: bool) -> KnownTable:  # noqa: FBT001 - of a callable type
        found = self._tables.get(body)
        if found is None:
            # Its name first: what is wrong with a table that the replica does not have stops nothing.
            name = read_map_name(body)
            found = excluded(name, self._selection)
            if found is None:
                found = MappedTable(table_code(body, is_mariadb=is_mariadb), self._selection.table(name), self._shapes)
            self._tables[body] = found
        return found

    def _other(self, kind: int, event: bytes, head: PartHead) -> Sequence[DdlEvent | SkippedStatement]:
        if kind == QUERY:
            return () if event.endswith(_PLAIN_BEGIN) else events_of_query(event, head, self._selection)
        raise refusal_of(kind)

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index. Of a rows event that cannot be read, no row is placed.

        A record that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``. Raises nothing.
        """
        position = RecordPosition(self._stream, Offset(offset))
        head: PartHead | None = None
        try:
            head = decode_head(key)
            if head.kind == PartKind.PROMISE:
                return [(0, ResolvedEvent(Ts(head.commit_ts)))]
            events = list(events_of(head, value or b"", self._known_table))
        except ApplierError as error:
            return [(WHOLE_RECORD, _unplaced(located(error, position, head, None), None))]
        return [found for event in events for found in self._each_of(position, head, value or b"", event)]

    def _each_of(self, position: RecordPosition, head: PartHead, value: bytes, event: PartEvent) -> list[tuple[int, Placed | Unplaced]]:
        kind, begin, end, index, table = event
        try:
            if kind not in ROWS:
                return [(index, found) for found in self._other(kind, value[begin:end], head)]
            run = _Run()
            self._add_rows(run, table, (position.offset, head.commit_ts, index), (value, begin + HEADER_BYTES, end, kind))
            return list(_one_by_one(run))
        except ApplierError as error:
            name = self._selection.name(table.name) if isinstance(table, MappedTable) else TableName("", "")
            found_head = EventHead(Ts(head.commit_ts), name, kind == QUERY)
            unplaced = _unplaced(located(error, position, head, event), found_head)
            return [*((index, marker) for marker in _markers(head, value, event)), (index, unplaced)]


def _markers(head: PartHead, value: bytes, event: PartEvent) -> Iterator[PlacedRow]:
    """Yield a marker for each row of a rows event, if their keys can be read."""
    kind, begin, end, _, table = event
    if isinstance(table, MappedTable) and kind in OPERATIONS:
        found = table.markers(value, begin + HEADER_BYTES, end, kind)
        shape, keys = found or (None, ())
        if shape is not None:
            yield from (PlacedRow(head.commit_ts, int(RowKind.UPSERT), shape, key, MARKER_IMAGE) for key in keys)


def _unplaced(error: ApplierError, head: EventHead | None) -> Unplaced:
    if isinstance(error, ProtocolError):
        return Unplaced(error, head)
    return Unplaced(ProtocolError(error.message, remedy=error.remedy, **error.facts), head)


def _one_by_one(run: _Run) -> Iterator[tuple[int, Placed]]:
    yield from ((placed.index, placed.event) for placed in run.left_out.values())  # type: ignore[misc] # ExcludedTable alone
    for shape, commit_ts, kind, _, index, key, image in zip(*run.columns, strict=True):
        yield index, PlacedRow(commit_ts, kind, shape, key, image)


def whole_events(record: Record, position: RecordPosition, selection: TableSelection) -> list[Event]:
    """Return the events of one record in order. ProtocolError, NeedsOperator: it cannot be read.

    Tables that ``selection`` excludes are shown too; what cannot be read of them is skipped.
    """
    know = partial(_table, selection=selection)
    head: PartHead | None = None
    event: PartEvent | None = None
    events: list[Event] = []
    try:
        head = decode_head(record.key)
        if head.kind == PartKind.PROMISE:
            return [ResolvedEvent(Ts(head.commit_ts))]
        for event in events_of(head, record.value or b"", know):
            events += _events(head, record.value or b"", event, selection)
    except ApplierError as error:
        raise located(error, position, head, event) from error
    return events


def _table(body: bytes, is_mariadb: bool, *, selection: TableSelection) -> KnownTable:  # noqa: FBT001 - of a callable type
    try:
        code = table_code(body, is_mariadb=is_mariadb)
        return MappedTable(code, EVERYTHING.table(code.map.name), {})
    except ApplierError:
        if (found := excluded(read_map_name(body), selection)) is None:
            raise
        return found


def _events(head: PartHead, value: bytes, event: PartEvent, selection: TableSelection) -> Iterator[Event]:
    kind, begin, end, _, table = event
    if kind == QUERY:
        yield from (found for found in _of_query(value[begin:end], head, selection) if isinstance(found, DdlEvent))
        return
    if isinstance(table, SelectedTable):
        return
    if kind == PARTIAL_UPDATE_ROWS and isinstance(table, MappedTable) and excluded(table.name, selection) is not None:
        return
    if kind not in OPERATIONS:
        raise refusal_of(kind)
    operation = OPERATIONS[kind]
    found = table_of(table)
    for shape, image, new_shape, new_image in found.images(value, begin + HEADER_BYTES, end, kind):
        yield RowEvent(
            commit_ts=Ts(head.commit_ts),
            schema=found.name.schema,
            table=found.name.table,
            partition_id=None,
            operation=operation,
            only_handle_key=False,
            claim_check=None,
            after=None if operation is RowOperation.DELETE else _image(new_shape, new_image),
            before=None if operation is RowOperation.INSERT else _image(shape, image),
        )


def _of_query(event: bytes, head: PartHead, selection: TableSelection) -> Sequence[DdlEvent | SkippedStatement]:
    try:
        return events_of_query(event, head)  # under upstream's names
    except ApplierError:
        return events_of_query(event, head, selection)


def _image(shape: Shape, image: bytes) -> Image:
    values, key = image_decoder(shape)(image), shape.handle_key
    return {
        column.name: Column(column.mysql_type, column.flags, value, column in key)
        for column, value in zip(shape.columns, values, strict=True)
    }


@dataclass(frozen=True, slots=True)
class BinlogDecoder:
    """Implements ``Decoder``. What is compiled is shared by the process.

    ``selection``: what its placers give of upstream, and under which names. ``events`` shows everything, as it came,
    except unreadable events of excluded tables.
    """

    selection: TableSelection = EVERYTHING

    # A transaction may delete and write one key in any order, and its rows come so.
    keeps_order: ClassVar[bool] = True

    # The functions themselves, not methods that call them: keys and images are decoded once per row.
    image_decoder = staticmethod(image_decoder)
    images_decoder = staticmethod(images_decoder)
    decode_key = staticmethod(decode_key)

    @property
    def row_lookup(self) -> RowLookup | None:
        """Rows of a binlog are never placeholders."""
        return None

    def placer(self, stream: Stream) -> BinlogPlacer:
        """Make the placer of one range."""
        return BinlogPlacer(stream, self.selection)

    def encode_image(self, shape: Shape, values: Sequence[Value]) -> bytes:
        """Raise InvariantViolation: only placeholders are replaced by rows from elsewhere."""
        raise InvariantViolation("rows of a binlog are never placeholders", schema=shape.schema, table=shape.table, values=len(values))

    def events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the whole events of one record."""
        return whole_events(record, position, self.selection)

    def whole_events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the whole events of one record: no row is too large for a binlog."""
        return whole_events(record, position, self.selection)


BINLOG: Final = BinlogDecoder()
