"""The wire events of items, in any format: reduced images, placeholders of large rows. ``wire_of`` makes the encoder of a format."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from applier.demo.simulator.canal_json import CanalJsonWire
from applier.demo.simulator.item import DdlItem, ImageOptions, Item, LargeRowOption, LargeRows, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.open_protocol import OpenProtocolWire
from applier.demo.simulator.operation import Row
from applier.demo.simulator.schema import Table
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.simple import SimpleJsonWire
from applier.demo.simulator.simple_avro import SimpleAvroWire
from applier.demo.simulator.wire_format import NO_EXTRAS, KeyExtras, RecordBytes, SentImages, WireEvent, WireFormat, WireOptions
from applier.model.position import Ts


class Wire(Protocol):
    """Writes the events of one producer in one format. ``built_ms``: when a message is built; copies have another one."""

    flavour: Flavour

    @property
    def broadcasts_ddls(self) -> bool:
        """Whether a DDL goes to all partitions of its topic, or to partition 0."""
        ...

    @property
    def announces_keyless_rows(self) -> bool:
        """Whether a large row of a table without a key becomes a claim check, whose record has no column. Else it is sent whole."""
        ...

    def row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> WireEvent:
        """Write a row."""
        ...

    def ddl(self, item: DdlItem, built_ms: int) -> WireEvent:
        """Write a DDL."""
        ...

    def watermark(self, ts: Ts, built_ms: int) -> WireEvent:
        """Write a watermark: Open Protocol calls it resolved."""
        ...

    def bootstrap(self, schema: VersionedTable, built_ms: int) -> WireEvent | None:
        """Write the schema that rows need; None in a format whose rows need none."""
        ...

    def frame(self, events: Sequence[WireEvent], /) -> RecordBytes:
        """Return the record of some events."""
        ...

    def length(self, events: Sequence[WireEvent], /) -> int:
        """Return the length of a record that producers compare with max-message-bytes."""
        ...


def wire_of(form: WireFormat, flavour: Flavour, compression: str, images: ImageOptions, options: WireOptions) -> Wire:
    """Make the encoder of a producer."""
    match form:
        case WireFormat.OPEN_PROTOCOL:
            return OpenProtocolWire(flavour, compression, images)
        case WireFormat.CANAL_JSON:
            return CanalJsonWire(flavour, compression, options)
        case WireFormat.SIMPLE:
            return SimpleJsonWire(flavour, compression)
        case WireFormat.SIMPLE_AVRO:
            return SimpleAvroWire(flavour, compression)


class ItemEncoder:
    """Writes items as wire events of one producer. ``large``: what happens to rows beyond the limit of a message; None: they are sent."""

    def __init__(self, wire: Wire, images: ImageOptions, large: LargeRows | None = None) -> None:
        self._wire = wire
        self._images = images
        self._large = large

    def encode(self, item: Item, built_ms: int = 0) -> WireEvent:
        """Return the event of ``item``."""
        if isinstance(item, DdlItem):
            return self._wire.ddl(item, built_ms)
        event = self._wire.row(item, self._sent(item, None), _extras(item), built_ms)
        if self._large is None or self._wire.length([event]) <= self._large.limit or not self._is_divided(item, self._large):
            return event
        return self._placeholder(item, event, self._large, built_ms)

    def _is_divided(self, item: RowItem, large: LargeRows) -> bool:
        """Return whether a large row is sent in two parts. A handle key alone would be nothing where there is none."""
        is_announced = large.option is LargeRowOption.CLAIM_CHECK and self._wire.announces_keyless_rows
        return bool(item.table.handle_places) or is_announced

    def is_dropped(self, item: Item) -> bool:
        """Return whether the changefeed sends nothing for ``item``: a delete whose image is empty."""
        return (
            isinstance(item, RowItem) and item.after is None and not self._places(item.table, only_key=self._images.delete_only_handle_key)
        )

    def _placeholder(self, item: RowItem, event: WireEvent, large: LargeRows, built_ms: int) -> WireEvent:
        """Write an event that holds the handle key only. ValueError if that is too large as well: a changefeed fails there."""
        if large.option is LargeRowOption.CLAIM_CHECK:
            extras = replace(_extras(item), claim_check=large.store(self._wire.frame([event])))
        else:
            extras = replace(_extras(item), only_handle_key=True)
        placeholder = self._wire.row(item, self._sent(item, item.table.handle_places), extras, built_ms)
        if self._wire.length([placeholder]) > large.limit:
            message = f"the changefeed fails: a placeholder of {item.name} is larger than {large.limit} bytes"
            raise ValueError(message)
        return placeholder._replace(is_placeholder=True)

    def _sent(self, item: RowItem, only: Sequence[int] | None) -> SentImages:
        """Return the columns of each image; ``only``: the columns of a placeholder."""
        if item.after is None:
            return SentImages(None, self._places(item.table, only_key=self._images.delete_only_handle_key) if only is None else only)
        places = self._places(item.table, only_key=False) if only is None else only
        if item.before is None or not self._images.old_value:
            return SentImages(places, None)
        if self._images.only_updated_columns:
            return SentImages(places, [place for place in changed_places(item.before, item.after) if place in places])
        return SentImages(places, places)

    def _places(self, table: Table, *, only_key: bool) -> Sequence[int]:
        sent = table.sent_places if self._images.selector is None else self._images.selector.places(table)
        return [place for place in table.handle_places if place in sent] if only_key and table.handle_places else sent


def _extras(item: RowItem) -> KeyExtras:
    return KeyExtras(partition_id=item.physical_id) if item.schema.partition_ids else NO_EXTRAS


def changed_places(before: Row, after: Row) -> Sequence[int]:
    """Return the positions of the columns that an update changed."""
    return [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
