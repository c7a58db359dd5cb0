"""Whole events of a record: each value decoded, of all tables, under upstream's names. For inspection, tests and DataFrames."""

from collections.abc import Iterator

from applier.model.errors import ApplierError
from applier.model.events import Column, DdlEvent, Event, Image, ResolvedEvent, RowEvent, RowOperation, Shape
from applier.model.position import Place, Ts
from applier.selection import EVERYTHING
from applier.sources.binlog.event import HEADER_BYTES, QUERY
from applier.sources.binlog.image_code import table_code
from applier.sources.binlog.image_codec import image_decoder
from applier.sources.binlog.part import PartHead, PartKind, decode_head
from applier.sources.binlog.part_event import PartEvent, events_of, located, refusal_of, table_of
from applier.sources.binlog.query import events_of_query
from applier.sources.binlog.rows_event import OPERATIONS, MappedTable
from applier.sources.port import Record


def whole_events(record: Record, place: Place) -> list[Event]:
    """Return the events of one record in order. ProtocolError, NeedsOperator: it cannot be read."""
    head: PartHead | None = None
    event: PartEvent | None = None
    events: list[Event] = []
    try:
        head = decode_head(record.key)
        if head.kind == PartKind.PROMISE:
            return [ResolvedEvent(Ts(head.commit_ts))]
        for event in events_of(head, record.value or b"", _table):
            events += _events(head, record.value or b"", event)
    except ApplierError as error:
        raise located(error, place, head, event) from error
    return events


def _table(body: bytes, is_mariadb: bool) -> MappedTable:  # noqa: FBT001 - of a callable type
    return MappedTable(table_code(body, is_mariadb=is_mariadb), EVERYTHING, {})


def _events(head: PartHead, value: bytes, event: PartEvent) -> Iterator[Event]:
    kind, begin, end, _, table = event
    if kind == QUERY:
        yield from (found for found in events_of_query(value[begin:end], head) if isinstance(found, DdlEvent))
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


def _image(shape: Shape, image: bytes) -> Image:
    values = image_decoder(shape)(image)
    return {column.name: Column(column.mysql_type, column.flags, value) for column, value in zip(shape.columns, values, strict=True)}
