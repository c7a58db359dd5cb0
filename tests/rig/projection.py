"""What a sink must hold where a changefeed sends partial images: a history that an oracle can execute.

A row's listed columns are upstream's. An unlisted column keeps what the sink's own row had; where the sink had no row (or the event
says that it was deleted: a split update of a key), it takes its default.
"""

from collections.abc import Iterable, Iterator, Sequence

from applier.demo.simulator.alteration import fill_of
from applier.demo.simulator.catalogue import Catalogue, TableState
from applier.demo.simulator.item import ImageOptions
from applier.demo.simulator.mysql_text import changes_unique_value
from applier.demo.simulator.operation import Row, RowChange, UpstreamStep
from applier.demo.simulator.schema import Table
from applier.model.events import TableName
from applier.model.position import NO_TS, Ts


def seen_by_sink(history: Iterable[UpstreamStep], images: ImageOptions, *, start_ts: Ts = NO_TS) -> Iterator[UpstreamStep]:
    """Yield the history as a sink must show it that was loaded with upstream's state at ``start_ts``."""
    if images.selector is None:
        yield from history
        return
    sink = Catalogue()
    for step in history:
        rows = step.rows if step.ts <= start_ts else _projected(step.rows, sink, images)
        sink.change(rows)
        for ddl in step.ddls:
            sink.execute(ddl)
        yield step._replace(rows=rows)


def _projected(changes: Sequence[RowChange], sink: Catalogue, images: ImageOptions) -> tuple[RowChange, ...]:
    # All rows as they were before the commit: keys may rotate within it.
    return tuple(_one(change, sink.tables[change.table.name], images) for change in changes)


def _one(change: RowChange, state: TableState, images: ImageOptions) -> RowChange:
    table, before, after = change
    if table.handle is None:  # without a key nothing may be left out
        return change
    held = None if before is None else state.rows[state.key_of(before)]
    if after is None:
        return RowChange(table, held, None)
    kept = held if held is not None and not _is_deleted_first(change, images) else None
    return RowChange(table, held, _laid_over(table, images, after, kept))


def _is_deleted_first(change: RowChange, images: ImageOptions) -> bool:
    """Return whether an update reaches the sink as a delete and an insert: split by the producer, or a raw change of the key."""
    before, after = change.before or (), change.after or ()
    moved = any(before[place] != after[place] for place in change.table.handle_places)
    return moved or (not images.raw_updates and changes_unique_value(change))


def _laid_over(table: Table, images: ImageOptions, after: Row, kept: Row | None) -> Row:
    listed = frozenset(images.selector.places(table) if images.selector else range(len(table.columns)))
    rest = kept if kept is not None else tuple(fill_of(column) for column in table.columns)
    # A VIRTUAL column is the sink's to compute, of the values that its row has.
    return table.completed(
        tuple(after[place] if place in listed else rest[place] for place in range(len(table.columns))), virtual_only=True
    )


def unlisted_columns(tables: Iterable[Table], images: ImageOptions) -> dict[TableName, tuple[str, ...]]:
    """Return the columns of each table that are never sent."""
    found = {}
    for table in tables:
        listed = frozenset(images.selector.places(table) if images.selector else range(len(table.columns)))
        found[table.name] = tuple(column.name for place, column in enumerate(table.columns) if column.is_sent and place not in listed)
    return found
