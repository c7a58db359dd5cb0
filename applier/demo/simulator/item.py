"""What a producer has to send: row events and DDLs as items, and the wire events of them: reduced images, placeholders of large rows."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from applier.demo.simulator.dispatch import Dispatcher, hash_of
from applier.demo.simulator.encoder import NO_EXTRAS, EncodedColumn, Encoder, ImageWriter, KeyExtras, WireEvent, record_length
from applier.demo.simulator.image_options import ImageOptions
from applier.demo.simulator.large_row import LargeRowOption, LargeRows
from applier.demo.simulator.mysql_text import DdlWriter, changes_unique_value
from applier.demo.simulator.operation import Ddl, Row, RowChange, UpstreamStep, action_type, event_name, routing_name, touched_names
from applier.demo.simulator.schema import Table
from applier.model.events import Flag, TableName
from applier.model.position import Ts


class RowClass(IntEnum):
    """Order of the events of one transaction, table and partition: delete < update < insert."""

    DELETE = 0
    UPDATE = 1
    INSERT = 2


@dataclass(slots=True, eq=False, kw_only=True)
class RowItem:
    """One row event to send. ``hash`` chooses the partition, ``half`` the node if the table is split among two."""

    ts: Ts
    table: Table
    kind: RowClass
    before: Row | None
    after: Row | None
    hash: int
    half: int

    @property
    def name(self) -> TableName:
        """The table that it is routed by."""
        return self.table.name


@dataclass(slots=True, eq=False, kw_only=True)
class DdlItem:
    """One DDL to send to each partition of its topic; ``previous`` is the DDL before it at the same ts."""

    ts: Ts
    ddl: Ddl
    previous: "DdlItem | None"
    sent: bool = False

    @property
    def name(self) -> TableName:
        """The table that it is routed by: RENAME goes by the old name."""
        return routing_name(self.ddl)

    @property
    def touched(self) -> frozenset[TableName]:
        """The tables whose rows keep their order with it."""
        return touched_names(self.ddl)


Item = RowItem | DdlItem


class ItemMaker:
    """Turns the steps of a history into items in the order that a producer keeps."""

    def __init__(self, rng: random.Random, dispatcher: Dispatcher, images: ImageOptions) -> None:
        self._rng = rng
        self._dispatcher = dispatcher
        self._images = images

    def items(self, step: UpstreamStep) -> list[Item]:
        """Return the rows of a step (deletes, updates, inserts), then its DDLs."""
        rows: list[RowItem] = [item for change in step.rows for item in self._row_items(step.ts, change)]
        # Shuffled, then sorted by kind (a stable sort): producers promise no order among the events of one kind.
        self._rng.shuffle(rows)
        rows.sort(key=lambda item: item.kind)
        ddls: list[DdlItem] = []
        for ddl in step.ddls:
            ddls.append(DdlItem(ts=step.ts, ddl=ddl, previous=ddls[-1] if ddls else None))
        return [*rows, *ddls]

    def _row_items(self, ts: Ts, change: RowChange) -> list[RowItem]:
        table, before, after = change
        if before is not None and after is not None:
            # Split, or two rows that swap unique values would collide on the way (open_protocol.md 3.6).
            if self._images.raw_updates or not changes_unique_value(change):
                return [self._item(ts, table, RowClass.UPDATE, before, after)]
            return [self._item(ts, table, RowClass.DELETE, before, None), self._item(ts, table, RowClass.INSERT, None, after)]
        return [self._item(ts, table, RowClass.DELETE if after is None else RowClass.INSERT, before, after)]

    def _item(self, ts: Ts, table: Table, kind: RowClass, before: Row | None, after: Row | None) -> RowItem:
        row = after if after is not None else before or ()
        number = hash_of(self._dispatcher, table, row, ts)
        # All versions of a row are written by one node, whatever the dispatcher.
        half = hash_of(Dispatcher.INDEX_VALUE, table, row, ts) % 2
        return RowItem(ts=ts, table=table, kind=kind, before=before, after=after, hash=number, half=half)


class ItemEncoder:
    """Writes items as wire events of one producer. ``large``: what happens to rows beyond the limit of a message; None: they are sent."""

    def __init__(self, encoder: Encoder, images: ImageOptions, large: LargeRows | None = None) -> None:
        self._encoder = encoder
        self._images = images
        self._large = large
        self._ddl = DdlWriter(encoder.flavour)
        self._columns = _ColumnWriter(images)

    def encode(self, item: Item) -> WireEvent:
        """Return the event of ``item``."""
        if isinstance(item, DdlItem):
            return self._encoder.ddl(item.ts, event_name(item.ddl), self._ddl.write(item.ddl), action_type(item.ddl))
        event = self._event(item, None, NO_EXTRAS)
        if self._large is None or not item.table.handle_places or record_length([event]) <= self._large.limit:
            return event
        return self._placeholder(item, event, self._large)

    def is_dropped(self, item: Item) -> bool:
        """Return whether the changefeed sends nothing for ``item``: a delete whose image is empty."""
        return (
            isinstance(item, RowItem) and item.after is None and not self._places(item.table, only_key=self._images.delete_only_handle_key)
        )

    def _placeholder(self, item: RowItem, event: WireEvent, large: LargeRows) -> WireEvent:
        """Write an event that holds the handle key only. ValueError if that is too large as well: a changefeed fails there."""
        if large.option is LargeRowOption.CLAIM_CHECK:
            extras = KeyExtras(claim_check=large.store(event))
        else:
            extras = KeyExtras(only_handle_key=True)
        placeholder = self._event(item, item.table.handle_places, extras)
        if record_length([placeholder]) > large.limit:
            message = f"the changefeed fails: a placeholder of {item.name} is larger than {large.limit} bytes"
            raise ValueError(message)
        return placeholder

    def _event(self, item: RowItem, only: Sequence[int] | None, extras: KeyExtras) -> WireEvent:
        key = self._encoder.row_key(item.ts, item.table.name.schema, item.table.name.table, extras)
        return WireEvent(key, self._value(item, only))

    def _value(self, item: RowItem, only: Sequence[int] | None) -> bytes:
        writer = self._encoder.image_writer(self._columns.of(item.table))
        if item.after is None:
            places = self._places(item.table, only_key=self._images.delete_only_handle_key) if only is None else only
            return self._encoder.row_value(deleted=_write(writer, item.before or (), places))
        places = self._places(item.table, only_key=False) if only is None else only
        after = _write(writer, item.after, places)
        if item.before is None or not self._images.old_value:
            return self._encoder.row_value(after=after)
        if self._images.only_updated_columns:
            places = [place for place in changed_places(item.before, item.after) if place in places]
        return self._encoder.row_value(after=after, previous=_write(writer, item.before, places))

    def _places(self, table: Table, *, only_key: bool) -> Sequence[int]:
        sent = table.sent_places if self._images.selector is None else self._images.selector.places(table)
        return [place for place in table.handle_places if place in sent] if only_key and table.handle_places else sent


def _write(writer: ImageWriter, row: Row, places: Sequence[int]) -> str:
    return writer.write(row) if len(places) == len(row) else writer.write_some(row, places)


def changed_places(before: Row, after: Row) -> Sequence[int]:
    """Return the places of the columns that an update changed."""
    return [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


def wire_columns(table: Table) -> tuple[EncodedColumn, ...]:
    """Return the columns of a table as the wire describes them."""
    return tuple(EncodedColumn(column.name, column.type.code, flags) for column, flags in zip(table.columns, table.flags, strict=True))


class _ColumnWriter:
    """The columns of each table, with the flags that this owner writes."""

    def __init__(self, images: ImageOptions) -> None:
        self._images = images
        self._made: dict[Table, tuple[EncodedColumn, ...]] = {}
        self._first: dict[TableName, Table] = {}

    def of(self, table: Table) -> tuple[EncodedColumn, ...]:
        found = self._made.get(table)
        if found is None:
            found = self._made[table] = tuple(column._replace(written=self._written(table, column)) for column in wire_columns(table))
        return found

    def _written(self, table: Table, column: EncodedColumn) -> int | None:
        if not self._images.flags:
            return 0
        if not self._images.stale_flags or column.flags & Flag.HANDLE_KEY:  # a stale handle key is for tests by hand
            return None
        first = self._first.setdefault(table.name, table)
        place = first.position.get(column.name)
        return 0 if place is None else first.flags[place]
