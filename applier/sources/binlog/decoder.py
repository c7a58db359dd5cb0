"""The binlog's side of the source's port: what executors and the driver are given to read records with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from applier.model.errors import ApplierError, InvariantViolation
from applier.model.events import Column, DdlEvent, Event, Image, ResolvedEvent, RowEvent, RowOperation, Shape, SkippedStatement, Value
from applier.model.position import Place, Stream, Ts
from applier.planner.port import RowLookup
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.binlog.event import HEADER_BYTES, PARTIAL_UPDATE_ROWS, QUERY
from applier.sources.binlog.excluded_table import excluded
from applier.sources.binlog.image_code import image_decoder, images_decoder, table_code
from applier.sources.binlog.part import KnownTable, PartEvent, PartHead, PartKind, decode_head, events_of, located, refusal_of, table_of
from applier.sources.binlog.placer import BinlogPlacer
from applier.sources.binlog.query import events_of_query
from applier.sources.binlog.rows_event import OPERATIONS, MappedTable
from applier.sources.binlog.table_map import read_map_name
from applier.sources.port import Record
from applier.sources.row_key import decode_key


def whole_events(record: Record, place: Place, selection: TableSelection) -> list[Event]:
    """Return the events of one record in order. ProtocolError, NeedsOperator: it cannot be read.

    Tables that ``selection`` excludes are shown too, as far as they can be read; what cannot be read of them is passed over.
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
        raise located(error, place, head, event) from error
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
    values = image_decoder(shape)(image)
    return {column.name: Column(column.mysql_type, column.flags, value) for column, value in zip(shape.columns, values, strict=True)}


@dataclass(frozen=True, slots=True)
class BinlogDecoder:
    """Implements ``Decoder``. What is compiled is shared by the process.

    ``selection``: what its placers give of upstream, and under which names. ``events`` shows everything, as it came,
    but for what cannot be read of excluded tables.
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

    def events(self, record: Record, place: Place) -> Sequence[Event]:
        """Return the whole events of one record."""
        return whole_events(record, place, self.selection)

    def whole_events(self, record: Record, place: Place) -> Sequence[Event]:
        """Return the whole events of one record: no row is too large for a binlog."""
        return whole_events(record, place, self.selection)


BINLOG: Final = BinlogDecoder()
