"""Produces a log to a broker: each record to its own partition with its own time, in the order of the log."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # public, but not in its stub's __all__
from confluent_kafka.cimpl import NewPartitions, NewTopic

from applier.demo.simulator.producer import LogRecord
from applier.model.errors import SourceError

_FLUSH_TIMEOUT_S = 60.0
_ADMIN_TIMEOUT_S = 30.0
_SHOWN_TIMEOUT_S = 120.0
_ASK_TIMEOUT_S = 5.0
"""Of one question. The first one to a broker that has just started may get no answer; the second one is answered at once."""
_SHOWN_POLL_S = 0.05
_FULL_QUEUE_WAIT_S = 0.5
_EXISTS = (KafkaError.TOPIC_ALREADY_EXISTS,)
KEPT_FOR_EVER = -1
"""Simulated commits are in the past, also their record times: a broker would expire them at once."""


def create_topic(bootstrap_servers: str, topic: str, partitions: int, *, retention_ms: int = KEPT_FOR_EVER, **properties: Any) -> None:
    """Create a topic unless it exists; SourceError if the broker refuses (a mock cluster does)."""
    config = {"retention.ms": str(retention_ms)}
    admin = AdminClient({"bootstrap.servers": bootstrap_servers} | properties)
    _settle(
        admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)]),
        topic,
        allowed=_EXISTS,
    )
    wait_until_shown(admin, topic, partitions)


def add_partitions(bootstrap_servers: str, topic: str, partitions: int, **properties: Any) -> None:
    """Grow a topic to ``partitions`` partitions; SourceError if the broker refuses."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers} | properties)
    _settle(admin.create_partitions([NewPartitions(topic, partitions)]), topic)
    wait_until_shown(admin, topic, partitions)


def wait_until_shown(admin: AdminClient, topic: str, partitions: int) -> None:
    """Wait until the broker knows all partitions; SourceError if it never does. The controller answers earlier than its brokers know."""
    deadline = time.monotonic() + _SHOWN_TIMEOUT_S
    while time.monotonic() < deadline:
        with suppress(KafkaException):
            found = admin.list_topics(topic, timeout=_ASK_TIMEOUT_S).topics[topic].partitions
            if len(found) >= partitions:
                _ask_for_ends(admin, topic, found)
                return
        time.sleep(_SHOWN_POLL_S)
    raise SourceError("the broker does not show the new topic", topic=topic)


def _ask_for_ends(admin: AdminClient, topic: str, partitions: Iterable[int]) -> None:
    """KafkaException if a partition has no leader that answers."""
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in partitions}  # type: ignore[no-untyped-call]
    for answer in admin.list_offsets(asked, request_timeout=_ASK_TIMEOUT_S).values():
        answer.result()


def _settle(futures: Any, topic: str, *, allowed: tuple[int, ...] = ()) -> None:
    try:
        futures[topic].result(timeout=_ADMIN_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() not in allowed:
            raise SourceError("the broker refused to change a topic", topic=topic, reason=str(error.args[0])) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPace:
    """How fast a log is produced. ``speed``: upstream seconds per second; 0: as fast as the broker accepts it.

    ``gap_limit_s`` cuts long silences of the log short.
    """

    speed: float = 0.0
    gap_limit_s: float = 1.0


@dataclass(slots=True)
class LogProducer:
    """Produces records; keeps the first delivery error. One producer, idempotent where the broker can."""

    bootstrap_servers: str
    properties: dict[str, Any] = field(default_factory=dict)
    _producer: Producer | None = None
    _errors: list[str] = field(default_factory=list)

    def produce(self, log: Iterable[LogRecord], pace: ReplayPace | None = None) -> int:
        """Produce all records, wait for their delivery, and return their number; SourceError if one was not delivered."""
        pace, count, last_ms = pace or ReplayPace(), 0, None
        for record in log:
            if pace.speed and last_ms is not None:
                self._wait(min((record.time_ms - last_ms) / 1000 / pace.speed, pace.gap_limit_s))
            last_ms = record.time_ms
            self._send(record)
            count += 1
        self.flush()
        return count

    def flush(self) -> None:
        """Wait until everything is delivered."""
        left = self._client().flush(_FLUSH_TIMEOUT_S)
        if left or self._errors:
            reason = self._errors[0] if self._errors else "no answer"
            raise SourceError("records of the simulated upstream were not delivered", waiting=left, reason=reason)

    def _client(self) -> Producer:
        if self._producer is None:
            # One request in flight keeps the order of a partition through retries, as TiCDC's producer does.
            defaults = {"acks": "all", "max.in.flight.requests.per.connection": 1, "linger.ms": 20, "message.max.bytes": 20_000_000}
            self._producer = Producer({"bootstrap.servers": self.bootstrap_servers} | defaults | self.properties)
        return self._producer

    def _send(self, record: LogRecord) -> None:
        client, (topic, partition) = self._client(), record.stream
        while True:
            try:
                client.produce(topic, record.value, record.key, partition=partition, timestamp=record.time_ms, on_delivery=self._delivered)
            except BufferError:  # the local queue is full: let deliveries empty it
                client.poll(_FULL_QUEUE_WAIT_S)
            else:
                client.poll(0)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(f"{message.topic()}/{message.partition()}: {error}")

    def _wait(self, seconds: float) -> None:
        """Wait while deliveries continue."""
        until = time.monotonic() + seconds
        if seconds > 0:
            self._client().flush(0)
            time.sleep(max(until - time.monotonic(), 0))


def produce_log(
    log: Iterable[LogRecord], bootstrap_servers: str, *, pace: ReplayPace | None = None, properties: dict[str, Any] | None = None
) -> int:
    """Produce a log to a broker and return the number of records; SourceError if one was not delivered.

    The topics' partitions must exist (``create_topic``, or a mock cluster's four).
    """
    return LogProducer(bootstrap_servers, properties or {}).produce(log, pace)
