"""What a producer has to send: row events and DDLs as items, each with the version of its table."""

import random
from dataclasses import dataclass
from enum import IntEnum

from applier.demo.simulator.dispatch import Dispatcher, hash_of
from applier.demo.simulator.image_options import ImageOptions
from applier.demo.simulator.mysql_text import changes_unique_value
from applier.demo.simulator.operation import Ddl, Row, RowChange, UpstreamStep, routing_name, touched_names
from applier.demo.simulator.schema import Table
from applier.demo.simulator.schema_versions import VersionedSchemas, VersionedTable
from applier.model.events import TableName
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
    schema: VersionedTable
    kind: RowClass
    before: Row | None
    after: Row | None
    hash: int
    half: int

    @property
    def table(self) -> Table:
        """The definition that the row has."""
        return self.schema.table

    @property
    def name(self) -> TableName:
        """The table that it is routed by."""
        return self.table.name


@dataclass(slots=True, eq=False, kw_only=True)
class DdlItem:
    """One DDL to send; ``previous`` is the DDL before it at the same ts. ``before``, ``after``: its table; None for a schema DDL."""

    ts: Ts
    ddl: Ddl
    previous: "DdlItem | None"
    before: VersionedTable | None
    after: VersionedTable | None
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
    """Turns the steps of a history into items in the order that a producer keeps. ``schemas``: the tables as earlier steps left them."""

    def __init__(self, rng: random.Random, dispatcher: Dispatcher, images: ImageOptions, schemas: VersionedSchemas | None = None) -> None:
        self._rng = rng
        self._dispatcher = dispatcher
        self._images = images
        self.schemas = VersionedSchemas() if schemas is None else schemas

    def items(self, step: UpstreamStep) -> list[Item]:
        """Return the rows of a step (deletes, updates, inserts), then its DDLs."""
        rows: list[RowItem] = [item for change in step.rows for item in self._row_items(step.ts, change)]
        # Shuffled, then sorted by kind (a stable sort): producers promise no order among the events of one kind.
        self._rng.shuffle(rows)
        rows.sort(key=lambda item: item.kind)
        ddls: list[DdlItem] = []
        for ddl in step.ddls:
            before, after = self.schemas.execute(ddl, step.ts)
            ddls.append(DdlItem(ts=step.ts, ddl=ddl, previous=ddls[-1] if ddls else None, before=before, after=after))
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
        return RowItem(ts=ts, schema=self.schemas.of(table, ts), kind=kind, before=before, after=after, hash=number, half=half)
