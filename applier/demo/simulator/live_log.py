"""What a changefeed writes while upstream lives: every step as it is committed, a resolved ts now and then, replays after a restart."""

import random
import time
from collections.abc import Iterator, Sequence

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.encoder import Encoder, WireEvent, frame
from applier.demo.simulator.image_options import ImageOptions
from applier.demo.simulator.item import DdlItem, ItemEncoder, ItemMaker
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer import LogRecord
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

    def __init__(self, topic: str, partitions: int, *, seed: int = 0, dispatcher: Dispatcher = Dispatcher.INDEX_VALUE) -> None:
        self._streams = [Stream(topic, partition) for partition in range(partitions)]
        self._encoder = Encoder(Flavour.TICDC, "none")
        self._items = ItemEncoder(self._encoder, ImageOptions())
        self._maker = ItemMaker(random.Random(seed), dispatcher, ImageOptions())
        self._batches: list[list[WireEvent]] = [[] for _ in self._streams]
        self._since: list[list[LogRecord]] = [[]]
        self._last_ts = self.promised = NO_TS

    def step(self, step: UpstreamStep) -> Sequence[LogRecord]:
        """Write the rows of a step, then its DDLs to every partition."""
        self._last_ts = step.ts
        records: list[LogRecord] = []
        for item in self._maker.items(step):
            event = self._items.encode(item)
            if isinstance(item, DdlItem):
                records += [*self._flush_all(), *self._everywhere(event)]
                continue
            place = item.hash % len(self._streams)
            self._batches[place].append(event)
            if len(self._batches[place]) >= BATCH:
                records.append(self._flush(place))
        return self._noted(records)

    def resolve(self, ts: Ts | None = None) -> Sequence[LogRecord]:
        """Promise everything so far (or ``ts``) on every partition."""
        self.promised = max(self._last_ts, ts or NO_TS)
        records = self._noted([*self._flush_all(), *self._everywhere(self._encoder.resolved(self.promised))])
        self._since = [*self._since[-KEPT_RESOLVED:], []]
        return records

    def replay(self, rng: random.Random) -> Sequence[LogRecord]:
        """Write again what followed one of the last promises, as a new owner does: promises step back too."""
        begun = rng.randrange(len(self._since))
        return [*self._noted(list(self._flush_all())), *(record for records in self._since[begun:] for record in records)]

    def _noted(self, records: list[LogRecord]) -> list[LogRecord]:
        self._since[-1] += records
        return records

    def _everywhere(self, event: WireEvent) -> Iterator[LogRecord]:
        key, value = frame([event])
        return (LogRecord(stream, key, value, physical_ms(self._last_ts)) for stream in self._streams)

    def _flush_all(self) -> Iterator[LogRecord]:
        return (self._flush(place) for place, batch in enumerate(self._batches) if batch)

    def _flush(self, place: int) -> LogRecord:
        key, value = frame(self._batches[place])
        self._batches[place] = []
        return LogRecord(self._streams[place], key, value, physical_ms(self._last_ts))
