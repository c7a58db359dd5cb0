"""Streams written by hand in any format: DDLs, rows and watermarks as upstream has them, each in a record of its own.

The simulator's encoders write them. For what one format alone can say there are builders of that format.
"""

import random
from collections.abc import Iterable

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.item import ImageOptions, ItemMaker, RowItem
from applier.demo.simulator.item_encoder import ItemEncoder, wire_of
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import Ddl, Row, RowChange, UpstreamStep
from applier.demo.simulator.producer.options import LogRecord
from applier.demo.simulator.schema import Table
from applier.demo.simulator.wire_format import WireEvent, WireFormat, WireOptions
from applier.model.position import Stream, Ts

BUILT_MS = 1_700_000_000_000


class WireLog:
    """Collects ``records`` of one topic. Rows of simple have the schema of their table before them, once in each partition."""

    def __init__(self, form: WireFormat, topic: str = "feed", partitions: int = 2) -> None:
        self.form, self.records = form, list[LogRecord]()
        self._streams = [Stream(topic, partition) for partition in range(partitions)]
        options, images = WireOptions(), ImageOptions()
        self._wire = wire_of(form, Flavour.TIFLOW, "none", images, options)
        self._maker = ItemMaker(random.Random(0), Dispatcher.TABLE, images)
        self._items = ItemEncoder(self._wire, images.sent(form, options))
        self._sent = set[tuple[int, int, int]]()

    def ddl(self, ts: int, *ddls: Ddl) -> None:
        """Write DDLs to the partitions that have them in this format."""
        for item in self._maker.items(UpstreamStep(Ts(ts), (), ddls)):
            self._write(self._streams if self.form.broadcasts_ddls else self._streams[:1], self._items.encode(item, BUILT_MS))

    def row(self, ts: int, table: Table, before: Row | None, after: Row | None, *, partition: int = 0) -> None:
        """Write the change of a row."""
        stream = self._streams[partition]
        for item in self._maker.items(UpstreamStep(Ts(ts), (RowChange(table, before, after),), ())):
            assert isinstance(item, RowItem)
            place = (partition, item.schema.table_id, item.schema.version)
            schema = None if place in self._sent else self._wire.bootstrap(item.schema, BUILT_MS)
            self._sent.add(place)
            if schema is not None:
                self._write([stream], schema)
            self._write([stream], self._items.encode(item, BUILT_MS))

    def watermark(self, ts: int, *partitions: int) -> None:
        """Write a watermark to some partitions, or to all."""
        streams = [self._streams[partition] for partition in partitions] or self._streams
        self._write(streams, self._wire.watermark(Ts(ts), BUILT_MS))

    def place_of_last(self) -> tuple[str, int, int]:
        """Return the topic, the partition and the offset of the last record."""
        stream = self.records[-1].stream
        return *stream, sum(record.stream == stream for record in self.records) - 1

    def damage_last(self) -> None:
        """Cut off the end of the last record."""
        last = self.records[-1]
        self.records[-1] = last._replace(value=last.value[:-3])

    def take(self) -> list[LogRecord]:
        """Return the records since the last call."""
        taken, self.records = self.records, []
        return taken

    def _write(self, streams: Iterable[Stream], event: WireEvent) -> None:
        framed = self._wire.frame([event])
        self.records += [LogRecord(stream, framed.key, framed.value, BUILT_MS) for stream in streams]
