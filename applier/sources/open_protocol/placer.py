"""The hot path: the place of each event of a range's records (table, timestamp, operation, key), images left as the bytes that came.

Rows that follow one another are a run (``row_run``), whichever tables they belong to; other events end it. So most of what a row costs
is paid per run: one call for hundreds of images.

What is still known of an unreadable event: which rows it is about.

A row event whose key can be read, although something else in it cannot, leaves a marker for each key (``MARKER_IMAGE``).
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Any, Final

from applier.model.errors import ProtocolError
from applier.model.events import (
    MARKER_IMAGE,
    AdminEvent,
    ColumnShape,
    DdlEvent,
    LeftOutTable,
    PlacedRow,
    ResolvedEvent,
    RowKind,
    Shape,
    TableName,
)
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD
from applier.selection import EVERYTHING, TableSelection, select_ddl
from applier.sources.open_protocol.large_row import REFUSED, LargeRowPlacer, WholeRowSources
from applier.sources.open_protocol.matcher import begin_range, intern_shape
from applier.sources.open_protocol.record import (
    DDL,
    ROW,
    Head,
    locate,
    read_head,
    read_plain,
    read_row,
    require_body,
    split_record,
    split_row,
)
from applier.sources.open_protocol.row_run import (
    AFTER,
    DELETED,
    END,
    KnownShapes,
    RowHeads,
    RunRow,
    place_parsed,
    place_row,
    place_run,
    run_row,
    split_old,
)
from applier.sources.open_protocol.value import is_handle, read_column
from applier.sources.placed_rows import rows_of
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import canonical_float, encode_key
from applier.sources.ticdc.json_text import is_valid_text, parse


def event_head(head: Head | None) -> EventHead | None:
    """Return what the event key says; None if it cannot be read."""
    return None if head is None else EventHead(Ts(head.ts), TableName(head.scm, head.tbl), head.t == DDL)


def markers_of(head: Head | None, body: bytes | None) -> list[PlacedRow]:
    """Return a marker for each row that the event is about, as far as its keys can be read; [] for what is no row event."""
    if head is None or head.t != ROW or body is None:
        return []
    try:
        row = split_row(body)
        after, old, deleted = (_columns(bytes(raw)) for raw in (row.u, row.p, row.d))
    except ProtocolError:
        return []
    images = [image for image in ({**after, **old} if old else {}, after, deleted) if image]
    markers = [marker for image in images if (marker := _marker(head, image)) is not None]
    return list({marker.key: marker for marker in markers}.values())


def _columns(data: bytes) -> dict[str, Any]:
    document = parse(data)
    return document if isinstance(document, dict) and all(map(is_valid_text, document)) else {}


def _marker(head: Head, image: dict[str, Any]) -> PlacedRow | None:
    try:
        handle = {name: read_column(name, members) for name, members in image.items() if is_handle(name, members)}
    except ProtocolError:
        return None
    if not handle:
        return None
    columns = tuple(ColumnShape(name, column.mysql_type, column.flags) for name, column in handle.items())
    shape = intern_shape(Shape(head.scm, head.tbl, columns))
    values = (handle[column.name].value for column in shape.handle_key)
    key = encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])
    return PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, MARKER_IMAGE)


RUN_ROWS: Final = 256
"""Rows of a run, more or less. What one call decodes should stay in the processor's cache: 512 rows of 40 columns cost a fifth more."""

_front = Struct(">Q6s").unpack_from
_FRONT_BYTES: Final = 14
_IMAGE_AT: Final = 13


class OpenProtocolPlacer:
    """Places the records of one range. Not thread-safe; compiled shapes are shared by the process."""

    def __init__(self, stream: Stream, whole_rows: WholeRowSources = REFUSED, selection: TableSelection = EVERYTHING) -> None:
        begin_range()
        self._stream, self._selection = stream, selection
        self._heads = RowHeads(selection)
        self._large_rows = LargeRowPlacer(stream, whole_rows, lambda head: self._heads.table(head).is_out)

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order: rows as columns, two where an update changed its handle key.

        ProtocolError as ``decode_record``, and for rows that cannot be applied: handle_key_only, claim_check. Bad values outside of
        the handle key may be found only by the image decoder.
        """
        run: list[RunRow] = []
        for first in range(0, len(records), RUN_ROWS):
            some = records[first : first + RUN_ROWS]
            self._large_rows.begin(some)
            yield from self._place_some(run, some)
            yield from self._end_run(run)

    def _place_some(self, run: list[RunRow], records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        last_key: bytes | None = None
        head = None
        for offset, key, value in records:
            # Rows of one transaction and table have equal keys.
            if key != last_key:
                head, last_key = self._heads.of_record(key), key
            # A record of one plain row, written out here: a call per row would be a fifth of its cost.
            if head is not None and value and value[-2:] == END and len(value) > _FRONT_BYTES:
                length, front = _front(value)
                if length + 8 == len(value):
                    ts, table = head
                    if front == AFTER:
                        known = table.upserts
                        image, old = split_old(value[_IMAGE_AT:-1]) if known.has_old else (value[_IMAGE_AT:-1], b"")
                        run.append((ts, known, offset, 0, image, old))
                        continue
                    if front == DELETED:
                        run.append((ts, table.deletes, offset, 0, value[_IMAGE_AT:-1], b""))
                        continue
            if head is not None or not self._add_rows(run, offset, key, value):
                yield from self._place_record(run, offset, key, value)
            if len(run) >= RUN_ROWS:
                yield from self._end_run(run)

    def _add_rows(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes | None) -> bool:
        """Add the rows of a record that holds plain rows only, in their usual form; False, with nothing added, for any other record."""
        heads = self._heads.of_rows(key)
        if not heads or not value:
            return False
        times, tables = heads
        known: list[KnownShapes] = []
        images: list[bytes] = []
        old: list[bytes] = [b""] * len(tables)
        at = 0
        try:
            for index, table in enumerate(tables):
                length, front = _front(value, at)
                image_at = at + _IMAGE_AT
                at += 8 + length
                if front == AFTER:
                    shapes = table.upserts
                elif front == DELETED:
                    shapes = table.deletes
                else:
                    return False
                if value[at - 2 : at] != END:
                    return False
                known.append(shapes)
                images.append(value[image_at : at - 1])
                if shapes.has_old:
                    images[index], old[index] = split_old(images[index])
        except StructError:  # the value is too short
            return False
        if at != len(value):
            return False
        run += zip(times, known, repeat(offset), range(len(known)), images, old, strict=False)
        return True

    def _place_record(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes | None) -> Iterator[PlacedRows | PlacedEvent]:
        """Add the rows of a record to the run; yield what ends it, and events that are not plain rows."""
        try:
            parts = split_record(key, value)
        except ProtocolError as error:
            yield from self._end_run(run)
            raise locate(error, Place(self._stream, Offset(offset)), None, None) from error
        for index, (head_json, body) in enumerate(parts):
            head = None if body is None else self._heads.of_event(head_json)
            if head is not None and body is not None:
                run.append(run_row(*head, offset, index, body))
            else:
                yield from self._end_run(run)
                placed = self._place_other(offset, index, head_json, body)
                if placed is not None:
                    yield placed

    def _left_out(self, run: Sequence[RunRow]) -> Iterator[PlacedEvent]:
        """Yield each table of which rows are left out, at its last row: of a replay that comes first, nothing is missed."""
        filtered = {row[1].table: (row[0], row[1].table, row[2], row[3]) for row in run if row[1].table.is_filtered}
        for ts, table, offset, index in filtered.values():
            yield PlacedEvent(offset, index, LeftOutTable(ts, TableName(table.schema, table.name)))

    def _end_run(self, run: list[RunRow]) -> Iterator[PlacedRows | PlacedEvent]:
        # Here and not where a row is added to the run: there it would cost something for each row of every table.
        kept = run
        if self._heads.has_left_out:
            kept = [row for row in run if not row[1].table.is_out]
            yield from self._left_out(run)
        if kept:
            rows = place_run(self._stream, kept)
            run.clear()
            yield rows
        else:
            run.clear()

    def _place_other(self, offset: int, index: int, head_json: bytes, body: bytes | None) -> PlacedRows | PlacedEvent | None:
        """Place an event that is not a plain row; None if the selection leaves it out."""
        head: Head | None = None
        try:
            head = read_head(head_json)
            if head.t != ROW:
                return PlacedEvent(offset, index, self._selected(read_plain(head, body)))
            if self._heads.table(head).is_filtered:
                return PlacedEvent(offset, index, _left_out_by(head))
            rows = self._selected_rows(head, body, offset)
            return rows_of([(offset, index, row) for row in rows]) if rows else None
        except ProtocolError as error:
            raise locate(error, Place(self._stream, Offset(offset)), index, head) from error

    def _selected(self, event: DdlEvent | ResolvedEvent | AdminEvent) -> DdlEvent | ResolvedEvent | AdminEvent:
        """Return the event with the sink's names, if it is a DDL."""
        if self._selection.is_everything or not isinstance(event, DdlEvent):
            return event
        return select_ddl(event, self._selection)

    def _selected_rows(self, head: Head, body: bytes | None, offset: int) -> list[PlacedRow]:
        """Place a row that is not plain, or of a table some of whose row changes are left out; [] if this one is."""
        table = self._heads.table(head)
        if table.is_out:
            return []
        found = require_body(body)
        if table.ignored and read_row(found).operation in table.ignored:
            return []
        return table.routed(self._large_rows.place(head, found, offset) if head.ohk or head.ccl else place_parsed(head, found))

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index; an event that cannot be read as markers and an ``Unplaced``.

        A record that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``. Raises nothing.
        """
        place = Place(self._stream, Offset(offset))
        self._large_rows.begin(())
        try:
            parts = split_record(key, value)
        except ProtocolError as error:
            return [(WHOLE_RECORD, Unplaced(locate(error, place, None, None), None))]
        return [(index, found) for index, (head, body) in enumerate(parts) for found in self._place_one(place, index, head, body)]

    def _place_one(self, place: Place, index: int, head_json: bytes, body: bytes | None) -> Sequence[Placed | Unplaced]:
        head: Head | None = None
        try:
            head = read_head(head_json)
            if head.t != ROW:
                return [self._selected(read_plain(head, body))]
            if self._heads.table(head).is_filtered:
                return [_left_out_by(head)]
            plain = self._heads.of_event(head_json)
            if plain is None or body is None or plain[1].is_out:
                return self._selected_rows(head, body, place.offset)
            return place_row(run_row(*plain, place.offset, index, body))
        except ProtocolError as error:
            return [*self._markers(head, body), Unplaced(locate(error, place, index, head), self._event_head(head))]

    def _markers(self, head: Head | None, body: bytes | None) -> list[PlacedRow]:
        markers = markers_of(head, body)
        return self._heads.table(head).routed(markers) if markers and head is not None else markers

    def _event_head(self, head: Head | None) -> EventHead | None:
        found = event_head(head)
        return None if found is None else found._replace(name=self._selection.name(found.name))


def _left_out_by(head: Head) -> LeftOutTable:
    return LeftOutTable(head.ts, TableName(head.scm, head.tbl))
