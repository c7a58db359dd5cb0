"""What a changefeed writes while upstream lives: every step as it is committed, a resolved ts now and then, replays after a restart."""

import random
import time
from collections.abc import Iterator, Sequence

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.item import DdlItem, ImageOptions, ItemMaker, RowItem
from applier.demo.simulator.item_encoder import ItemEncoder, wire_of
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer import LogRecord
from applier.demo.simulator.producer.bootstrap import BootstrapSender
from applier.demo.simulator.wire_format import WireEvent, WireFormat, WireOptions
from applier.model.position import NO_TS, Stream, Ts
from applier.sources.ticdc.tso import LOGICAL_BITS, physical_ms

BATCH = 16
KEPT_RESOLVED = 6
"""How many resolved events a restart may go back."""


def wall_clock_ts(above: Ts) -> Ts:
    """Return the next TSO: the wall clock, and always above the last one."""
    return Ts(max(time.time_ns() // 1_000_000 << LOGICAL_BITS, above + 1))


class LiveLog:
    """Turns steps into the records of one topic. ``promised`` is the last resolved ts."""

    def __init__(
        self,
        topic: str,
        partitions: int,
        *,
        seed: int = 0,
        dispatcher: Dispatcher = Dispatcher.INDEX_VALUE,
        form: WireFormat = WireFormat.OPEN_PROTOCOL,
    ) -> None:
        self._streams = [Stream(topic, partition) for partition in range(partitions)]
        self._form = form
        self.forget_definitions()
        self._bootstraps = BootstrapSender(WireOptions(), Flavour.TICDC)
        self._batch = BATCH if form.batches else 1
        self._maker = ItemMaker(random.Random(seed), dispatcher, ImageOptions())
        self._batches: list[list[WireEvent]] = [[] for _ in self._streams]
        self._since: list[list[LogRecord]] = [[]]
        self._last_ts = self.promised = NO_TS

    def forget_definitions(self) -> None:
        """Forget each definition of a table that was written: they are kept for speed, and DDLs make ever more of them."""
        self._wire = wire_of(self._form, Flavour.TICDC, "none", ImageOptions(), WireOptions())
        self._items = ItemEncoder(self._wire, ImageOptions())

    def step(self, step: UpstreamStep) -> Sequence[LogRecord]:
        """Write the rows of a step, then its DDLs to every partition that gets DDLs."""
        self._last_ts = step.ts
        records: list[LogRecord] = []
        for item in self._maker.items(step):
            event = self._items.encode(item, physical_ms(step.ts))
            if isinstance(item, DdlItem):
                streams = self._streams if self._wire.broadcasts_ddls else self._streams[:1]
                records += [*self._flush_all(), *self._copies(event, streams)]
                continue
            records += self._schema(item)
            place = item.hash % len(self._streams)
            self._batches[place].append(event)
            if len(self._batches[place]) >= self._batch:
                records.append(self._flush(place))
        return self._noted(records)

    def _schema(self, item: RowItem) -> Iterator[LogRecord]:
        """Yield the schema of a table before its first row, in a format that sends schemas."""
        now_ms = physical_ms(item.ts)
        if self._bootstraps.notes(item, self._streams[0].topic, now_ms):
            event = self._wire.bootstrap(item.schema, now_ms)
            if event is not None:
                yield from self._copies(event, self._streams)

    def resolve(self, ts: Ts | None = None) -> Sequence[LogRecord]:
        """Promise everything so far (or ``ts``) on every partition."""
        self.promised = max(self._last_ts, ts or NO_TS)
        watermark = self._wire.watermark(self.promised, physical_ms(self.promised))
        records = self._noted([*self._flush_all(), *self._copies(watermark, self._streams)])
        self._since = [*self._since[-KEPT_RESOLVED:], []]
        return records

    def replay(self, rng: random.Random) -> Sequence[LogRecord]:
        """Write again what followed one of the last promises, as a new owner does: promises step back too."""
        begun = rng.randrange(len(self._since))
        return [*self._noted(list(self._flush_all())), *(record for records in self._since[begun:] for record in records)]

    def _noted(self, records: list[LogRecord]) -> list[LogRecord]:
        self._since[-1] += records
        return records

    def _copies(self, event: WireEvent, streams: Sequence[Stream]) -> Iterator[LogRecord]:
        key, value = self._wire.frame([event])
        return (LogRecord(stream, key, value, physical_ms(self._last_ts)) for stream in streams)

    def _flush_all(self) -> Iterator[LogRecord]:
        return (self._flush(place) for place, batch in enumerate(self._batches) if batch)

    def _flush(self, place: int) -> LogRecord:
        key, value = self._wire.frame(self._batches[place])
        self._batches[place] = []
        return LogRecord(self._streams[place], key, value, physical_ms(self._last_ts))
