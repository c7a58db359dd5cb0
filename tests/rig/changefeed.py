"""The topic of a changefeed that lives, written by hand: rows of ``orders``, and a resolved event on each partition twice a second."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer

from applier.sources.ticdc.tso import ts_at
from tests.builders import wire
from tests.rig.dump_directory import DUMPLING, HEAD

PARTITIONS = 4
ROWS_IN = 1
"""The partition that gets the rows."""


def now():
    return ts_at(datetime.now(UTC))


class Changefeed:
    """``topic`` has PARTITIONS partitions."""

    def __init__(self, servers, topic):
        self._producer, self._topic = Producer({"bootstrap.servers": servers, "log_level": 0}), topic

    def row(self, ts, schema="shop", *, table="orders", **columns):
        customer, total = wire.text(columns["customer"]), wire.column(246, 64, columns["total"])
        body = {"u": {"id": wire.integer_key(columns["id"]), "customer": customer, "total": total}}
        self.record(*wire.record((wire.head(ts=ts, schema=schema, table=table), body)), ROWS_IN)
        self.flush()

    def record(self, key, value, partition):
        self._producer.produce(self._topic, value, key, partition=partition)

    def resolve(self, ts):
        for partition in range(PARTITIONS):
            self.record(*wire.record(({"ts": ts, "t": 3}, b"")), partition)
        self.flush()

    def flush(self):
        self._producer.flush(30)

    @contextmanager
    def living(self) -> Iterator[None]:
        ended = threading.Event()

        def resolve():
            while not ended.wait(0.5):
                self.resolve(now())

        thread = threading.Thread(target=resolve)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def write_dump(directory: Path, ts: int, schema: str, table: str, rows: str) -> None:
    """Write what Dumpling writes of a schema with one table ``orders``, as of ``ts``: ``table`` and ``rows`` are its statements."""
    directory.mkdir()
    for file, text in {
        f"{schema}-schema-create.sql": f"CREATE DATABASE `{schema}` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;",
        f"{schema}.orders-schema.sql": f"{table} COLLATE utf8mb4_bin;",
        f"{schema}.orders.000000000.sql": f"{rows};",
    }.items():
        (directory / file).write_text(f"{HEAD}{text}\n", encoding="utf-8")
    (directory / "metadata").write_text(DUMPLING.format(log="tidb-binlog", ts=ts), encoding="utf-8")
