"""What a producer has to send: row events and DDLs as items, each with the version of its table.

A changefeed may omit parts of its images (open_protocol.md 2.4, 2.5, 2.8). A row that is too large for a message becomes a handle-key-only
event, or an object in a store and a placeholder (2.9).
"""

import json
import random
from base64 import b64encode
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from applier.demo.simulator.dispatch import Dispatcher, hash_of
from applier.demo.simulator.mysql_text import changes_unique_value
from applier.demo.simulator.operation import Ddl, Row, RowChange, UpstreamStep, routing_name, touched_names
from applier.demo.simulator.schema import Table, UpstreamColumn
from applier.demo.simulator.schema_versions import VersionedSchemas, VersionedTable
from applier.demo.simulator.wire_format import RecordBytes, WireFormat, WireOptions
from applier.model.events import TableName
from applier.model.position import Ts


@dataclass(frozen=True, slots=True)
class ColumnSelector:
    """The ``column-selectors`` rule of a changefeed: some columns of each table are never sent.

    Which ones is drawn from ``seed`` and the names of table and column. Skipped are only columns that a sink can fill without upstream:
    with a default, or nullable, and in no unique index that the default would violate.
    ``keeps_handle`` False: where a table has a second unique key that is complete, its handle key may be omitted.
    """

    seed: int = 0
    share: float = 0.4
    keeps_handle: bool = True

    def places(self, table: Table) -> tuple[int, ...]:
        """Return the positions of the columns that are sent."""
        return _selected(self, table)


@lru_cache(maxsize=4096)
def _selected(selector: ColumnSelector, table: Table) -> tuple[int, ...]:
    kept = _kept_key(selector, table)
    return tuple(
        place
        for place, column in enumerate(table.columns)
        if column.is_sent and (column.name in kept or not _can_be_left_out(table, column, kept) or not _is_drawn(selector, table, column))
    )


def _kept_key(selector: ColumnSelector, table: Table) -> frozenset[str]:
    """Return the columns of the key that stays: the handle, or the first other unique key that is NOT NULL."""
    if table.handle is None:
        return frozenset(table.position)
    nullable = {column.name for column in table.columns if column.nullable}
    others = [index for index in table.unique_indexes if index is not table.handle and not nullable & set(index.columns)]
    return frozenset((table.handle if selector.keeps_handle or not others else others[0]).columns)


def _can_be_left_out(table: Table, column: UpstreamColumn, kept: frozenset[str]) -> bool:
    if table.handle is not None and column.name in table.handle.columns:
        return column.name not in kept
    fills_many = any(column.name in index.columns for index in table.unique_indexes) and column.has_default
    return (column.nullable or column.has_default) and not fills_many


def _is_drawn(selector: ColumnSelector, table: Table, column: UpstreamColumn) -> bool:
    return random.Random(f"selector {selector.seed} {table.name} {column.name}").random() < selector.share


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """What a changefeed omits from images (open_protocol.md 2.8) and whether it splits updates of keys (3.6).

    ``flags`` False: the oldest producers, whose columns have ``h`` but no ``f``. ``stale_flags``: columns keep the flags that they had
    when the owner first saw the table, and later columns have none (2.5, the new producer's cache).
    """

    raw_updates: bool = False
    old_value: bool = True
    only_updated_columns: bool = False
    delete_only_handle_key: bool = False
    flags: bool = True
    stale_flags: bool = False
    selector: ColumnSelector | None = None

    def sent(self, form: WireFormat, options: WireOptions) -> "ImageOptions":
        """Return them as a format writes them: all but Open Protocol have old images always, and simple has complete ones only."""
        match form:
            case WireFormat.OPEN_PROTOCOL:
                return self
            case WireFormat.CANAL_JSON:
                return replace(self, old_value=True, only_updated_columns=self.only_updated_columns or options.content_compatible)
            case WireFormat.SIMPLE | WireFormat.SIMPLE_AVRO:
                return replace(self, old_value=True, only_updated_columns=False, delete_only_handle_key=False)


class LargeRowOption(StrEnum):
    """``large-message-handle-option`` of a changefeed."""

    CLAIM_CHECK = "claim-check"
    HANDLE_KEY_ONLY = "handle-key-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRowSettings:
    """How a changefeed sends rows beyond ``limit`` bytes.

    ``directory`` takes the objects of claim checks; ``location`` is what placeholders call it: the producer's own address of the store.
    ``raw_value``: an object is the value of the record, where the record has no key (``claim-check-raw-value``).
    """

    option: LargeRowOption
    limit: int = 900
    directory: Path | None = None
    location: str = "s3://changefeed/large"
    raw_value: bool = False


class LargeRows:
    """The large rows of one owner."""

    def __init__(self, settings: LargeRowSettings, rng: random.Random) -> None:
        self.option, self.limit = settings.option, settings.limit
        self._settings = settings
        self._rng = rng

    def store(self, record: RecordBytes) -> str:
        """Write the object of a record and return its address. It is there before its placeholder is sent."""
        if self._settings.directory is None:
            message = "claim checks need a directory"
            raise ValueError(message)
        name = f"{UUID(int=self._rng.getrandbits(128), version=4)}.json"
        self._settings.directory.mkdir(parents=True, exist_ok=True)
        (self._settings.directory / name).write_bytes(self._content(record))
        return f"{self._settings.location}/{name}"

    def _content(self, record: RecordBytes) -> bytes:
        if self._settings.raw_value and record.key is None:
            return record.value
        key = None if record.key is None else b64encode(record.key).decode()
        return json.dumps({"key": key, "value": b64encode(record.value).decode()}).encode()


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
    def physical_id(self) -> int:
        """The id of the partition that holds it, or of its table."""
        return self.schema.physical_id(self.after if self.after is not None else self.before or ())

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
