"""Whole events of a record: each value decoded, of all tables, under upstream's names. For inspection, tests and DataFrames.

They come from what the placer gives, so the two ways agree.
"""

from collections.abc import Sequence

from applier.model.events import Column, DdlEvent, Event, Image, PlacedRow, ResolvedEvent, RowEvent, RowKind, RowOperation
from applier.model.position import Place, Ts
from applier.sources.binlog.image_codec import image_decoder
from applier.sources.binlog.placer import BinlogPlacer
from applier.sources.port import PlacedEvent, Record


def whole_events(record: Record, place: Place) -> list[Event]:
    """Return the events of one record in order. ProtocolError, NeedsOperator: as the placer."""
    events: list[Event] = []
    for found in BinlogPlacer(place.stream).place_all([record]):
        if isinstance(found, PlacedEvent):
            if isinstance(found.event, DdlEvent | ResolvedEvent):
                events.append(found.event)
            continue
        rows = [
            (index, PlacedRow(*placed))
            for index, *placed in zip(
                found.index, found.commit_ts, found.kind, (found.shapes[n] for n in found.shape), found.key, found.image, strict=True
            )
        ]
        events += _row_events(rows)
    return events


def _row_events(rows: Sequence[tuple[int, PlacedRow]]) -> list[Event]:
    """Return one event for each row. An update of a key, which was placed as two rows of one index, is one."""
    events: list[Event] = []
    deleted: tuple[int, PlacedRow] | None = None
    for at, (index, row) in enumerate(rows):
        is_upsert = row.kind == RowKind.UPSERT
        if not is_upsert and at + 1 < len(rows) and rows[at + 1][0] == index:
            deleted = (index, row)
            continue
        before = deleted[1] if deleted is not None else None if is_upsert else row
        events.append(_row_event(row, after=row if is_upsert else None, before=before))
        deleted = None
    return events


def _row_event(row: PlacedRow, *, after: PlacedRow | None, before: PlacedRow | None) -> RowEvent:
    operation = RowOperation.DELETE if after is None else RowOperation.INSERT if before is None else RowOperation.UPDATE
    return RowEvent(
        commit_ts=Ts(row.commit_ts),
        schema=row.shape.schema,
        table=row.shape.table,
        partition_id=None,
        operation=operation,
        only_handle_key=False,
        claim_check=None,
        after=_image(after),
        before=_image(before),
    )


def _image(row: PlacedRow | None) -> Image | None:
    if row is None:
        return None
    values = image_decoder(row.shape)(row.image)
    return {column.name: Column(column.mysql_type, column.flags, value) for column, value in zip(row.shape.columns, values, strict=True)}
