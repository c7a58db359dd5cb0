"""Many rows, and a producer without replays. For benchmarks and for long catch-ups.

``BulkHistory`` is iterated like any history, so that an oracle can execute it; ``bulk_log`` writes any history without changes of
tables at some 75,000 rows a second, because it has no queues per table, no replays and no delays.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from applier.demo.simulator import column_type as of
from applier.demo.simulator.dispatch import Dispatcher, hash_of
from applier.demo.simulator.encoder import Encoder, ImageWriter
from applier.demo.simulator.item import DdlItem, ImageOptions, ItemMaker, RowItem
from applier.demo.simulator.item_encoder import ItemEncoder, wire_of
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.open_protocol import wire_columns
from applier.demo.simulator.operation import CreateSchema, CreateTable, Row, RowChange, UpstreamStep
from applier.demo.simulator.producer import LogRecord, ProducerOptions
from applier.demo.simulator.producer.bootstrap import BootstrapSender
from applier.demo.simulator.schema import Table, column, index, primary
from applier.demo.simulator.wire_format import WireEvent
from applier.model.events import TableName
from applier.model.position import Stream, Ts
from applier.sources.ticdc.tso import LOGICAL_BITS, physical_ms

SALES = Table(
    name=TableName("bulk", "sales"),
    columns=(
        column("id", of.integer("BIGINT"), null=False),
        column("customer", of.integer("INT"), null=False),
        column("product", of.varchar(40), null=False),
        column("amount", of.decimal(12, 2), null=False),
        column("made_at", of.datetime()),
    ),
    indexes=(primary("id"), index("by_customer", "customer")),
)
_START_MS = 1_764_000_000_000
_CREATE_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkHistory:
    """At least ``rows`` row changes in transactions of ``per_transaction``: inserts, and some updates and deletes of what is there."""

    seed: int = 0
    rows: int = 1_000_000
    per_transaction: int = 50
    update_share: float = 0.25
    delete_share: float = 0.05
    live_rows: int = 200_000

    def __iter__(self) -> Iterator[UpstreamStep]:
        """Yield the steps in commit_ts order; one millisecond apart."""
        rng = random.Random(f"bulk {self.seed}")
        yield UpstreamStep(Ts(_START_MS << LOGICAL_BITS), (), (CreateSchema(SALES.name.schema),))
        yield UpstreamStep(Ts(_START_MS + 1 << LOGICAL_BITS), (), (CreateTable(SALES),))
        live: list[Row] = []
        number, left, at_ms = 0, self.rows, _START_MS + _CREATE_STEPS
        while left > 0:
            count = min(self.per_transaction, left)
            changes, number = self._changes(rng, live, count, number)
            yield UpstreamStep(Ts(at_ms << LOGICAL_BITS), changes, ())
            left -= count
            at_ms += 1

    def steps(self) -> Iterator[UpstreamStep]:
        """Yield the steps in commit_ts order."""
        return iter(self)

    def _changes(self, rng: random.Random, live: list[Row], count: int, number: int) -> tuple[tuple[RowChange, ...], int]:
        """Change ``count`` rows, none twice in one transaction."""
        changes: list[RowChange] = []
        used: set[int] = set()
        for _ in range(count):
            choice, place = rng.random(), int(rng.random() * len(live)) if live else 0
            if live and place not in used and choice < self.update_share + self.delete_share:
                used.add(place)
                row = live[place]
                after = None if choice >= self.update_share else (row[0], row[1], row[2], f"{rng.random() * 1000:.2f}", row[4])
                changes.append(RowChange(SALES, row, after))
                if after is not None:
                    live[place] = after
                    continue
                number += 1
                live[place] = self._new(number)  # the deleted row's place is taken by a new row
                changes.append(RowChange(SALES, None, live[place]))
                continue
            number += 1
            row = self._new(number)
            changes.append(RowChange(SALES, None, row))
            if len(live) < self.live_rows:
                used.add(len(live))
                live.append(row)
        return tuple(changes), number

    @staticmethod
    def _new(number: int) -> Row:
        seconds = number % 60
        return (
            number,
            number % 9973,
            f"product {number % 613}",
            f"{number % 100000}.{number % 100:02d}",
            f"2025-11-24 10:{seconds:02d}:{seconds:02d}",
        )


def bulk_log(
    history: Iterable[UpstreamStep],
    options: ProducerOptions | None = None,
    *,
    resolved_every: int = 20,
    slots: Sequence[int] | None = None,
) -> Iterator[LogRecord]:
    """Write a history in commit_ts order: batches, DDL copies, a resolved ts everywhere after ``resolved_every`` steps and at the end.

    ``slots``: the partition of each remainder of a row's hash; a partition in many slots gets many rows. None: all partitions alike.
    """
    options = options or ProducerOptions(dispatcher=Dispatcher.INDEX_VALUE, flavour=Flavour.TICDC)
    writer = _BulkWriter(options, slots or range(options.partitions))
    ts = Ts(0)
    for number, step in enumerate(history):
        ts = step.ts
        yield from writer.step(step)
        if number % resolved_every == resolved_every - 1:
            yield from writer.resolve(ts)
    yield from writer.resolve(Ts(ts + 1))


class _BulkWriter:
    """Open batches of each partition."""

    def __init__(self, options: ProducerOptions, slots: Sequence[int]) -> None:
        self._options, self._slots = options, slots
        self._streams = [Stream(options.topic, partition) for partition in range(options.partitions)]
        self._batches: list[list[WireEvent]] = [[] for _ in self._streams]
        self._encoder = Encoder(options.flavour, options.compression)
        self._wire = wire_of(options.form, options.flavour, options.compression, options.images, options.wire)
        self._items = ItemEncoder(self._wire, options.sent_images)
        self._bootstraps = BootstrapSender(options.wire, options.flavour)
        self._maker = ItemMaker(random.Random(options.seed), options.dispatcher, ImageOptions())
        self._images: dict[Table, ImageWriter] = {}

    def step(self, step: UpstreamStep) -> Iterator[LogRecord]:
        """Write the rows of a step, then its DDLs on every partition."""
        time_ms = physical_ms(step.ts) + 5
        if self._options.form.batches:
            yield from self._batched(step, time_ms)
            step = step._replace(rows=())
        for item in self._maker.items(step):
            if isinstance(item, DdlItem):
                yield from self._flush_all(time_ms)
                streams = self._streams if self._wire.broadcasts_ddls else self._streams[:1]
                yield from self._copies(self._items.encode(item, time_ms), streams, time_ms)
            else:
                yield from self._single(item, time_ms)

    def _batched(self, step: UpstreamStep, time_ms: int) -> Iterator[LogRecord]:
        for change in step.rows:
            place = self._place(change, step.ts)
            batch = self._batches[place]
            batch.append(self._event(change, step.ts))
            if len(batch) >= self._options.batch_size:
                yield self._flushed(place, time_ms)

    def _single(self, item: RowItem, time_ms: int) -> Iterator[LogRecord]:
        """Write a row as a record of its own, after the schema of its table where that is new."""
        if self._options.form.sends_schemas and self._bootstraps.notes(item, self._options.topic, time_ms):
            schema = self._wire.bootstrap(item.schema, time_ms)
            yield from () if schema is None else self._copies(schema, self._streams, time_ms)
        stream = self._streams[self._slots[item.hash % len(self._slots)]]
        yield from self._copies(self._items.encode(item, time_ms), [stream], time_ms)

    def resolve(self, ts: Ts) -> Iterator[LogRecord]:
        """Write what is open, then ``ts`` as resolved on all partitions."""
        time_ms = physical_ms(ts) + 5
        yield from self._flush_all(time_ms)
        yield from self._copies(self._wire.watermark(ts, time_ms), self._streams, time_ms)

    def _copies(self, event: WireEvent, streams: Sequence[Stream], time_ms: int) -> Iterator[LogRecord]:
        key, value = self._wire.frame([event])
        return (LogRecord(stream, key, value, time_ms) for stream in streams)

    def _place(self, change: RowChange, ts: Ts) -> int:
        row = change.after if change.after is not None else change.before or ()
        return self._slots[hash_of(self._options.dispatcher, change.table, row, ts) % len(self._slots)]

    def _event(self, change: RowChange, ts: Ts) -> WireEvent:
        table, before, after = change
        writer = self._images.get(table)
        if writer is None:
            writer = self._images[table] = self._encoder.image_writer(wire_columns(table))
        key = self._encoder.row_key(ts, table.name.schema, table.name.table)
        if after is None:
            return WireEvent(key, self._encoder.row_value(deleted=writer.write(before or ())))
        previous = None if before is None else writer.write(before)
        return WireEvent(key, self._encoder.row_value(after=writer.write(after), previous=previous))

    def _flushed(self, place: int, time_ms: int) -> LogRecord:
        key, value = self._wire.frame(self._batches[place])
        self._batches[place] = []
        return LogRecord(self._streams[place], key, value, time_ms)

    def _flush_all(self, time_ms: int) -> Iterator[LogRecord]:
        return (self._flushed(place, time_ms) for place, batch in enumerate(self._batches) if batch)
