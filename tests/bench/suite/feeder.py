"""A live upstream in a process of its own: so many rows a second, and a resolved event on every partition each second.

Row images are encoded before it starts, so that 20,000 rows a second cost a fifth of a core. Prints one line of JSON for each resolved
event: its timestamp, and when (ms) the broker had appended its last copy. A line on standard input changes the rate; its end stops it.

    python -m tests.bench.suite.feeder BROKER TOPIC PARTITIONS ROWS_PER_S
"""

import json
import struct
import sys
import time
from itertools import cycle
from threading import Thread
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from applier.demo.simulator.dispatch import Dispatcher, hash_of
from applier.demo.simulator.encoder import VERSION, Encoder, frame
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.open_protocol import wire_columns
from applier.model.position import Ts
from applier.sources.ticdc.tso import LOGICAL_BITS
from tests.bench.suite.rows import order, orders

ROWS = 100_000
"""How many rows there are: then they are written again."""
PER_TRANSACTION, PER_RECORD = 10, 16
TICK_S, RESOLVED_EVERY_S = 0.01, 1.0
LENGTH = struct.Struct(">Q").pack
CLIENT = {"acks": "all", "max.in.flight.requests.per.connection": 1, "linger.ms": 2, "queue.buffering.max.messages": 1_000_000}


class Feeder:
    """Keeps an open record per partition; ``rows_per_s`` may be changed from another thread."""

    def __init__(self, servers: str, topic: str, partitions: int, rows_per_s: float) -> None:
        self._producer = Producer({"bootstrap.servers": servers} | CLIENT)
        self._topic, self._partitions, self.rows_per_s = topic, partitions, rows_per_s
        self._encoder = Encoder(Flavour.TICDC, "none")
        self._rows = cycle(self._encoded())
        self._keys: list[list[bytes]] = [[] for _ in range(partitions)]
        self._values: list[list[bytes]] = [[] for _ in range(partitions)]
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
                self._commit()
                owed -= PER_TRANSACTION
            if now >= next_resolved:
                next_resolved += RESOLVED_EVERY_S
                self._resolve()
            self._producer.poll(0)
            time.sleep(max(0.0, TICK_S - (time.monotonic() - now)))
        self._producer.flush(30)

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

    def _now(self) -> int:
        self._last_ts = max(time.time_ns() // 1_000_000 << LOGICAL_BITS, self._last_ts + 1)
        return self._last_ts

    def _commit(self) -> None:
        name = orders().name
        key = self._encoder.row_key(Ts(self._now()), name.schema, name.table)
        key = LENGTH(len(key)) + key
        for _ in range(PER_TRANSACTION):
            place, value = next(self._rows)
            keys = self._keys[place]
            keys.append(key)
            self._values[place].append(value)
            if len(keys) == PER_RECORD:
                self._flush(place)
        self.rows += PER_TRANSACTION

    def _flush(self, place: int) -> None:
        key, value = VERSION + b"".join(self._keys[place]), b"".join(self._values[place])
        self._keys[place], self._values[place] = [], []
        self._producer.produce(self._topic, value, key, partition=place, on_delivery=_check)

    def _resolve(self) -> None:
        for place, keys in enumerate(self._keys):
            if keys:
                self._flush(place)
        ts = self._now()
        self._waiting[ts] = (self._partitions, 0)
        key, value = frame([self._encoder.resolved(Ts(ts))])
        for place in range(self._partitions):
            self._producer.produce(
                self._topic, value, key, partition=place, on_delivery=lambda error, message: self._appended(ts, error, message)
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
    servers, topic, partitions, rows_per_s = sys.argv[1:]
    feeder = Feeder(servers, topic, int(partitions), float(rows_per_s))
    Thread(target=_read_rates, args=(feeder,), daemon=True).start()
    feeder.run()


if __name__ == "__main__":
    main()
