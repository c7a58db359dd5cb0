"""From events one by one to columns of rows: for placers that read event by event."""

from collections.abc import Iterable, Iterator

from applier.model.events import PlacedRow, Shape
from applier.model.rejected_event import RejectedEvent
from applier.sources.port import Placed, PlacedEvent, PlacedRows


def gather_rows(events: Iterable[tuple[int, int, Placed | RejectedEvent]]) -> Iterator[PlacedRows | PlacedEvent]:
    """Turn (offset, index, event) into what ``Placer.place_all`` yields: rows that follow one another become columns."""
    rows: list[tuple[int, int, PlacedRow]] = []
    for offset, index, event in events:
        if isinstance(event, PlacedRow):
            rows.append((offset, index, event))
            continue
        if rows:
            yield rows_of(rows)
            rows = []
        yield PlacedEvent(offset, index, event)
    if rows:
        yield rows_of(rows)


def rows_of(rows: list[tuple[int, int, PlacedRow]]) -> PlacedRows:
    """Return the columns of at least one (offset, index, row)."""
    offset, index, placed = zip(*rows, strict=True)
    commit_ts, kind, shape, key, image = zip(*placed, strict=True)
    shapes: dict[int, Shape] = {id(one): one for one in shape}
    numbers = {identity: number for number, identity in enumerate(shapes)}
    return PlacedRows(tuple(shapes.values()), [numbers[id(one)] for one in shape], commit_ts, kind, offset, index, key, image)
