"""A live upstream in a process of its own: so many rows a second, and a watermark on every partition each second.

Row images are encoded before it starts, so that 20,000 rows a second cost a fifth of a core. Prints one line of JSON for each watermark:
its timestamp, and when (ms) the broker had appended its last copy. A line on standard input changes the rate; its end stops it.

    python -m tests.bench.suite.feeder BROKER TOPIC PARTITIONS ROWS_PER_S [FORMAT]
"""

import json
import random
import struct
import sys
import time
from collections.abc import Callable
from itertools import cycle
from threading import Thread
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message, Producer

from applier.demo.simulator.dispatch import Dispatcher, hash_of
from applier.demo.simulator.encoder import VERSION, Encoder, frame
from applier.demo.simulator.item import ImageOptions, ItemMaker
from applier.demo.simulator.item_encoder import ItemEncoder, wire_of
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.open_protocol import wire_columns
from applier.demo.simulator.operation import RowChange, UpstreamStep
from applier.demo.simulator.simple_avro import long
from applier.demo.simulator.wire_format import RecordBytes, WireFormat, WireOptions
from applier.model.position import Ts
from applier.sources.ticdc.tso import LOGICAL_BITS
from tests.bench.suite.rows import order, orders

ROWS = 100_000
"""How many rows there are: then they are written again."""
PER_TRANSACTION, PER_RECORD = 10, 16
TICK_S, RESOLVED_EVERY_S = 0.01, 1.0
SCHEMAS_EVERY = 120
"""Watermarks between two schemas of simple: two minutes."""
LENGTH = struct.Struct(">Q").pack
CLIENT = {"acks": "all", "max.in.flight.requests.per.connection": 1, "linger.ms": 2, "queue.buffering.max.messages": 1_000_000}

Send = Callable[[int, RecordBytes], None]
"""Send a record to a partition."""


class Rows(Protocol):
    """The rows in one format."""

    def commit(self, ts: Ts) -> None:
        """Write the rows of a transaction."""
        ...

    def flush(self) -> None:
        """Send what was written."""
        ...

    def watermark(self, ts: Ts) -> list[RecordBytes]:
        """Return the records that each partition gets with a watermark; it is the last one."""
        ...


class BatchedRows:
    """Open Protocol: an open record per partition."""

    def __init__(self, partitions: int, send: Send) -> None:
        self._partitions, self._send = partitions, send
        self._encoder = Encoder(Flavour.TICDC, "none")
        self._rows = cycle(self._encoded())
        self._keys: list[list[bytes]] = [[] for _ in range(partitions)]
        self._values: list[list[bytes]] = [[] for _ in range(partitions)]

    def _encoded(self) -> list[tuple[int, bytes]]:
        """Return each row's partition and the bytes of its event."""
        table = orders()
        image = self._encoder.image_writer(wire_columns(table))
        found = []
        for number in range(ROWS):
            row = order(number)
            value = self._encoder.row_value(after=image.write(row))
            place = hash_of(Dispatcher.INDEX_VALUE, table, row, 0) % self._partitions
            found.append((place, LENGTH(len(value)) + value))
        return found

    def commit(self, ts: Ts) -> None:
        name = orders().name
        key = self._encoder.row_key(ts, name.schema, name.table)
        key = LENGTH(len(key)) + key
        for _ in range(PER_TRANSACTION):
            place, value = next(self._rows)
            keys = self._keys[place]
            keys.append(key)
            self._values[place].append(value)
            if len(keys) == PER_RECORD:
                self._flush(place)

    def flush(self) -> None:
        for place, keys in enumerate(self._keys):
            if keys:
                self._flush(place)

    def _flush(self, place: int) -> None:
        record = RecordBytes(VERSION + b"".join(self._keys[place]), b"".join(self._values[place]))
        self._keys[place], self._values[place] = [], []
        self._send(place, record)

    def watermark(self, ts: Ts) -> list[RecordBytes]:
        return [frame([self._encoder.resolved(ts)])]


class SingleRows:
    """A format with one event in a record: the bytes on both sides of the commit timestamp are encoded before."""

    def __init__(self, form: WireFormat, partitions: int, send: Send) -> None:
        self._send = send
        self._text: Callable[[int], bytes] = long if form is WireFormat.SIMPLE_AVRO else _decimal
        self._wire = wire_of(form, Flavour.TICDC, "none", ImageOptions(), WireOptions())
        self._watermarks = 0
        ts, table, items = Ts(_now()), orders(), ItemEncoder(self._wire, ImageOptions().sent(form, WireOptions()))
        maker = ItemMaker(random.Random(0), Dispatcher.INDEX_VALUE, ImageOptions())
        self._schema = maker.schemas.of(table, ts)
        found = []
        for number in range(ROWS):
            (item,) = maker.items(UpstreamStep(ts, (RowChange(table, None, order(number)),), ()))
            before, after = items.encode(item, _now() >> LOGICAL_BITS).value.split(self._text(ts))
            place = hash_of(Dispatcher.INDEX_VALUE, table, order(number), 0) % partitions
            found.append((place, before, after))
        self._rows = cycle(found)

    def commit(self, ts: Ts) -> None:
        text = self._text(ts)
        for _ in range(PER_TRANSACTION):
            place, before, after = next(self._rows)
            self._send(place, RecordBytes(None, before + text + after))

    def flush(self) -> None:
        """Nothing is held."""

    def watermark(self, ts: Ts) -> list[RecordBytes]:
        built_ms = ts >> LOGICAL_BITS
        schema = None if self._watermarks % SCHEMAS_EVERY else self._wire.bootstrap(self._schema, built_ms)
        self._watermarks += 1
        return [self._wire.frame([event]) for event in (schema, self._wire.watermark(ts, built_ms)) if event is not None]


def rows_in(form: WireFormat, partitions: int, send: Send) -> Rows:
    """Return the rows in a format."""
    return BatchedRows(partitions, send) if form.batches else SingleRows(form, partitions, send)


def _decimal(ts: int) -> bytes:
    return str(ts).encode()


def _now() -> int:
    return time.time_ns() // 1_000_000 << LOGICAL_BITS


class Feeder:
    """Sends rows; ``rows_per_s`` may be changed from another thread."""

    def __init__(self, servers: str, topic: str, partitions: int, rows_per_s: float, form: WireFormat = WireFormat.OPEN_PROTOCOL) -> None:
        self._producer = Producer({"bootstrap.servers": servers} | CLIENT)
        self._topic, self._partitions, self.rows_per_s = topic, partitions, rows_per_s
        self._rows = rows_in(form, partitions, self._send)
        self._last_ts = 0
        self._waiting: dict[int, tuple[int, int]] = {}
        self.is_stopped = False
        self.rows = 0

    def run(self) -> None:
        """Feed until it is stopped."""
        then = next_resolved = time.monotonic()
        owed = 0.0
        while not self.is_stopped:
            now = time.monotonic()
            owed, then = owed + (now - then) * self.rows_per_s, now
            while owed > 0:
                self._rows.commit(self._next_ts())
                self.rows += PER_TRANSACTION
                owed -= PER_TRANSACTION
            if now >= next_resolved:
                next_resolved += RESOLVED_EVERY_S
                self._resolve()
            self._producer.poll(0)
            time.sleep(max(0.0, TICK_S - (time.monotonic() - now)))
        self._producer.flush(30)

    def _next_ts(self) -> Ts:
        self._last_ts = max(_now(), self._last_ts + 1)
        return Ts(self._last_ts)

    def _send(self, place: int, record: RecordBytes) -> None:
        self._producer.produce(self._topic, record.value, record.key, partition=place, on_delivery=_check)

    def _resolve(self) -> None:
        self._rows.flush()
        ts = self._next_ts()
        self._waiting[ts] = (self._partitions, 0)
        *schemas, last = self._rows.watermark(ts)
        for place in range(self._partitions):
            for schema in schemas:
                self._send(place, schema)
            self._producer.produce(
                self._topic, last.value, last.key, partition=place, on_delivery=lambda error, message: self._appended(ts, error, message)
            )

    def _appended(self, ts: int, error: KafkaError | None, message: Message) -> None:
        _check(error, message)
        left, latest = self._waiting.pop(ts)
        latest = max(latest, int(message.timestamp()[1]))
        if left > 1:
            self._waiting[ts] = (left - 1, latest)
        else:
            print(json.dumps({"ts": ts, "appended_ms": latest, "rows": self.rows}), flush=True)


def _check(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise SystemExit(f"{message.topic()}/{message.partition()}: {error}")


def _read_rates(feeder: Any) -> None:
    for line in sys.stdin:
        feeder.rows_per_s = float(line)
    feeder.is_stopped = True


def main() -> None:
    servers, topic, partitions, rows_per_s, *form = sys.argv[1:]
    feeder = Feeder(servers, topic, int(partitions), float(rows_per_s), *map(WireFormat, form))
    Thread(target=_read_rates, args=(feeder,), daemon=True).start()
    feeder.run()


if __name__ == "__main__":
    main()
