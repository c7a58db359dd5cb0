"""CPU of single stages for the rows of a backlog, in one process; and that of the library's own loop for the same rows."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
from sqlalchemy import make_url

from applier.model.events import MARKER_IMAGE, Shape, Value
from applier.model.position import Offset
from applier.model.range_report import RangeId
from applier.planner.port import ColumnDescription, TableDescription, WireColumn
from applier.planner.rendering import GROUP_ROWS
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.binlog.decoder import BINLOG
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.position import STREAM, BinlogPosition, split_file_name
from applier.sources.binlog.reader import BinlogRangeReader
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.port import PlacedRows, Record
from tests.bench.binlog.primary import Backlog, FilePosition

LIBRARY_ID = 429_000_000
SERVER_IDS = (429_000_001, 429_000_009)
ORDERS = TableDescription(
    schema="bench",
    table="orders",
    columns=tuple(
        ColumnDescription(name=name, sql_type=kind, nullable=name in {"made_at", "note"})
        for name, kind in (
            ("id", "bigint(20)"),
            ("customer", "int(11)"),
            ("product", "varchar(40)"),
            ("amount", "decimal(12,2)"),
            ("made_at", "datetime"),
            ("note", "varchar(200)"),
        )
    ),
    unique_keys=(("id",),),
    primary_key=("id",),
)
"""The sink's table, as its catalogue shows it."""


def of_library(primary: str, backlog: Backlog) -> dict[str, Any]:
    """Read the backlog by the library's own loop, all columns decoded."""
    where = make_url(primary)
    rows = 0
    began = time.process_time()
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": where.port, "user": where.username, "passwd": str(where.password)},
        server_id=LIBRARY_ID,
        log_file=backlog.first.file,
        log_pos=backlog.first.position,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    try:
        for event in stream:
            rows += len(event.rows)
    finally:
        stream.close()
    return _stage("the library's own loop", began, rows)


def of_applier(primary: str, backlog: Backlog) -> Iterator[dict[str, Any]]:
    """Do each stage for the whole backlog, one after another, with what the stage before has given."""
    settings = BinlogSettings(url=primary, server_ids=SERVER_IDS)
    base_name, start = _number(backlog.first)
    _, end = _number(backlog.end)
    began = time.process_time()
    stream = EventStream(settings, base_name, start, bodies=False)
    while stream.position < end:
        stream.read(1.0)
    stream.close()
    yield _stage("looking ahead (frames only)", began, backlog.rows)
    began = time.process_time()
    records: list[Record] = []
    for _, found in BinlogRangeReader(settings, base_name, {}).read([RangeId(STREAM, Offset(start), Offset(end))]):
        if not isinstance(found, list):
            raise found
        records.extend(found)
    yield _stage("reading", began, backlog.rows)
    began = time.process_time()
    placed = [one for one in BINLOG.placer(STREAM).place_all(records) if isinstance(one, PlacedRows)]
    count = sum(len(one.image) for one in placed)
    yield _stage("placing", began, count)
    yield from _of_images(placed)


def _of_images(placed: Sequence[PlacedRows]) -> Iterator[dict[str, Any]]:
    images: dict[Shape, list[bytes]] = {}
    for one in placed:
        for shape, image in zip(one.shape, one.image, strict=True):
            if image != MARKER_IMAGE and one.shapes[shape].table == ORDERS.table:
                images.setdefault(one.shapes[shape], []).append(image)
    count = sum(map(len, images.values()))
    began = time.process_time()
    decoded = {shape: list(map(BINLOG.images_decoder(shape), _in_groups(found))) for shape, found in images.items()}
    yield _stage("decoding", began, count)
    began = time.process_time()
    written = sum(len(text) for shape, groups in decoded.items() for text in _rendered(shape, groups))
    assert written
    yield _stage("rendering", began, count)


def _in_groups(images: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (images[place : place + GROUP_ROWS] for place in range(0, len(images), GROUP_ROWS))


def _rendered(shape: Shape, groups: Sequence[Sequence[Sequence[Value]]]) -> Iterator[str | bytes]:
    columns = [
        WireColumn(column, shape.columns[place].mysql_type, shape.columns[place].is_bytes) for place, column in enumerate(ORDERS.columns)
    ]
    rows_text = MysqlDialect().rows_text(ORDERS, columns)
    for group in groups:
        if (text := rows_text(group)) is not None:
            yield text


def _number(place: FilePosition) -> tuple[str, int]:
    base_name, file = split_file_name(place.file)
    return base_name, BinlogPosition(0, file, place.position).number


def _stage(name: str, began: float, rows: int) -> dict[str, Any]:
    return {"stage": name, "rows": rows, "us": (time.process_time() - began) / max(rows, 1) * 1e6}
