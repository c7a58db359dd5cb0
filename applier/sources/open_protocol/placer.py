"""The hot path: the position of each event of a range's records (table, timestamp, operation, key), images left as the bytes that came.

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
    DdlEvent,
    LeftOutTable,
    PlacedRow,
    ResolvedEvent,
    RowKind,
    RowOperation,
    TableName,
)
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.selection import EVERYTHING, TableSelection
from applier.sources.column_flags import shape_of
from applier.sources.compiled import intern_shape
from applier.sources.open_protocol.large_row import LargeRowPlacer
from applier.sources.open_protocol.matcher import begin_range
from applier.sources.open_protocol.record import (
    DDL,
    ROW,
    Head,
    event_head,
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
from applier.sources.open_protocol.value import is_of_handle, read_column
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import canonical_float, encode_key
from applier.sources.selected_events import SelectedEvents, gather_rows
from applier.sources.ticdc.json_text import is_valid_text, parse
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources


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
        handle = {name: read_column(name, members) for name, members in image.items() if is_of_handle(name, members)}
    except ProtocolError:
        return None
    if not handle:
        return None
    columns = tuple((name, column.mysql_type, column.flags) for name, column in handle.items())
    shape = intern_shape(shape_of(head.scm, head.tbl, columns))
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
        self._stream = stream
        self._heads = RowHeads(selection)
        self._large_rows = LargeRowPlacer(stream, whole_rows, lambda head: self._heads.table(head).selected.is_out)
        self._events = SelectedEvents(stream, selection)

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
            raise locate(error, RecordPosition(self._stream, Offset(offset)), None, None) from error
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
        """Yield each table of which rows are skipped, at its last row: of a replay that comes first, nothing is missed."""
        filtered = {row[1].table: (row[0], row[1].table.selected.name, row[2], row[3]) for row in run if row[1].table.selected.is_filtered}
        for ts, name, offset, index in filtered.values():
            yield PlacedEvent(offset, index, LeftOutTable(ts, name))

    def _end_run(self, run: list[RunRow]) -> Iterator[PlacedRows | PlacedEvent]:
        # Here and not where a row is added to the run: there it would cost something for each row of every table.
        kept = run
        if self._heads.has_left_out:
            kept = [row for row in run if not row[1].table.selected.is_out]
            yield from self._left_out(run)
        if kept:
            rows = place_run(self._stream, kept)
            run.clear()
            yield rows
        else:
            run.clear()

    def _place_other(self, offset: int, index: int, head_json: bytes, body: bytes | None) -> PlacedRows | PlacedEvent | None:
        """Place an event that is not a plain row; None if the selection excludes it."""
        event = _OpenEvent(self._heads, self._large_rows, offset, index, (head_json, body))
        placed = self._events.place(event, offset, index)
        return next(gather_rows((offset, index, found) for found in placed), None)

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index; an event that cannot be read as markers and an ``Unplaced``.

        A record that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``. Raises nothing.
        """
        self._large_rows.begin(())
        try:
            parts = split_record(key, value)
        except ProtocolError as error:
            return self._events.unplaced(error, offset)
        return [
            (index, found)
            for index, part in enumerate(parts)
            for found in self._events.place_or_mark(_OpenEvent(self._heads, self._large_rows, offset, index, part), offset, index)
        ]


class _OpenEvent:
    """Implements ``UnreadEvent``."""

    __slots__ = ("_body", "_head", "_head_json", "_heads", "_index", "_large_rows", "_offset")

    def __init__(self, heads: RowHeads, large_rows: LargeRowPlacer, offset: int, index: int, part: tuple[bytes, bytes | None]) -> None:
        self._heads, self._large_rows = heads, large_rows
        self._offset, self._index = offset, index
        self._head_json, self._body = part
        self._head: Head | None = None

    @property
    def head(self) -> EventHead | None:
        """What the event key says."""
        return event_head(self._head)

    def read_head(self) -> EventHead:
        """Read the event key."""
        self._head = read_head(self._head_json)
        return EventHead(Ts(self._head.ts), TableName(self._head.scm, self._head.tbl), self._head.t == DDL)

    def is_row(self) -> bool:
        """Whether it is the change of a row."""
        return self._known.t == ROW

    def operation(self) -> RowOperation:
        """Read the body for it."""
        return read_row(require_body(self._body)).operation

    def rows(self) -> list[PlacedRow]:
        """Place the row: with the shapes of the range if it is a plain one."""
        head, body = self._known, require_body(self._body)
        plain = self._heads.of_event(self._head_json)
        if plain is not None:
            return place_row(run_row(*plain, self._offset, self._index, body))
        return self._large_rows.place(head, body, self._offset) if head.ohk or head.ccl else place_parsed(head, body)

    def plain(self) -> DdlEvent | ResolvedEvent | AdminEvent:
        """Read the body."""
        return read_plain(self._known, self._body)

    def markers(self) -> list[PlacedRow]:
        """Return a marker for each row whose key can be read."""
        return markers_of(self._head, self._body)

    @property
    def _known(self) -> Head:
        if self._head is None:
            raise AssertionError("the head is read first")
        return self._head
