"""Topics of workloads: each is written once, and used by every run as long as its broker lives."""

import time
from collections.abc import Iterable, Iterator

from confluent_kafka.admin import AdminClient

from applier.demo.simulator.kafka_log import create_topic, produce_log
from applier.demo.simulator.producer import LogRecord
from tests.bench.suite.workload import Workload

WRITTEN = ".written"
"""An empty topic with this at the end of its name says that the other one is whole."""
TIMEOUT_S = 30
QUIET = {"log_level": 0}
"""librdkafka would log that a client ends while an event waits for it."""
PRODUCER = {"linger.ms": 100, "batch.size": 1_000_000, "queue.buffering.max.messages": 500_000}


def prepare(servers: str, workload: Workload, rows: int) -> str:
    """Return the topic of a workload; write it unless it is there already."""
    topic, admin = workload.topic(rows), AdminClient({"bootstrap.servers": servers} | QUIET)
    existing = admin.list_topics(timeout=TIMEOUT_S).topics
    if topic + WRITTEN in existing:
        return topic
    if topic in existing:  # a run that was interrupted has written a part of it
        admin.delete_topics([topic], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)
        while topic in admin.list_topics(timeout=TIMEOUT_S).topics:
            time.sleep(0.2)
    create_topic(servers, topic, workload.partitions, **QUIET)
    began, counted = time.monotonic(), CountedLog(workload.log(rows))
    produce_log(counted, servers, properties=PRODUCER)
    seconds = time.monotonic() - began
    print(f"wrote {topic}: {counted.bytes / 1e6:,.0f} MB in {seconds:.0f} s, {rows / seconds:,.0f} rows/s", flush=True)
    create_topic(servers, topic + WRITTEN, 1, **QUIET)
    return topic


class CountedLog(Iterable[LogRecord]):
    """Counts the bytes of the records that pass."""

    def __init__(self, log: Iterable[LogRecord]) -> None:
        self._log, self.bytes = log, 0

    def __iter__(self) -> Iterator[LogRecord]:
        for record in self._log:
            self.bytes += len(record.key or b"") + len(record.value)
            yield record
