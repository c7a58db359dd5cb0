"""Topics of four partitions for the contract of sources: in memory, on librdkafka's mock cluster, and on a real Kafka."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from applier.demo.simulator.producer import LogRecord
from applier.model.position import Offset, Stream
from applier.sources.factory import open_source
from applier.sources.kafka.client import KafkaSource
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.port import Source
from tests.rig.fake_source import FakeSource
from tests.rig.kafka import Kafka

PARTITIONS = 4
"""What a mock cluster gives each topic."""
FLUSH_S = 30
OVERFLOW_BYTES = 1 << 20
"""A mock cluster forgets the first records of a partition that holds more than some 5 MB."""


class Feed(Protocol):
    """One topic and a source that reads it."""

    @property
    def topic(self) -> str: ...

    @property
    def source(self) -> Source: ...

    @property
    def knows_times(self) -> bool:
        """Whether offsets can be found by time. A mock cluster answers with the end of the partition, whatever the time."""
        ...

    def write(self, records: Iterable[LogRecord]) -> None:
        """Write records, each to its own partition with its own time."""
        ...

    def expire(self, stream: Stream, records: Sequence[LogRecord]) -> None:
        """Write records, of which the first are gone afterwards, and the last ones are not."""
        ...


@dataclass
class FakeFeed:
    """In memory."""

    topic: str
    source: FakeSource
    knows_times: bool = True

    def write(self, records: Iterable[LogRecord]) -> None:
        self.source.extend(records)

    def expire(self, stream: Stream, records: Sequence[LogRecord]) -> None:
        self.write(records)
        self.source.expire(stream, Offset(len(records) // 2))


@dataclass
class MockFeed:
    """On a mock cluster: topics appear with their first record, and nothing can be deleted."""

    topic: str
    source: KafkaSource
    bootstrap_servers: str
    knows_times: bool = False

    def write(self, records: Iterable[LogRecord]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "log_level": 3, "message.max.bytes": 2 * OVERFLOW_BYTES})
        for stream, key, value, time_ms in records:
            producer.produce(stream.topic, key=key, value=value, partition=stream.partition, timestamp=time_ms)
            producer.poll(0)
        assert producer.flush(FLUSH_S) == 0

    def expire(self, stream: Stream, records: Sequence[LogRecord]) -> None:
        filling = b"x" * (OVERFLOW_BYTES - 1024)
        self.write([record._replace(value=filling) for record in records])


@dataclass
class KafkaFeed(MockFeed):
    """On a real Kafka."""

    knows_times: bool = True

    def expire(self, stream: Stream, records: Sequence[LogRecord]) -> None:
        self.write(records)
        wanted = TopicPartition(stream.topic, stream.partition, len(records) // 2)
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for answer in admin.delete_records([wanted]).values():
            answer.result(FLUSH_S)


def fake_feed() -> FakeFeed:
    topic = _topic()
    return FakeFeed(topic, FakeSource((), partitions={topic: PARTITIONS}))


def mock_feed(bootstrap_servers: str) -> MockFeed:
    topic = _topic()
    return MockFeed(topic, open_source(_settings(bootstrap_servers, topic)), bootstrap_servers)


def kafka_feed(kafka: Kafka) -> KafkaFeed:
    topic = _topic()
    kafka.create_topic(topic, PARTITIONS, retention_ms="-1")
    return KafkaFeed(topic, open_source(_settings(kafka.bootstrap_servers, topic)), kafka.bootstrap_servers)


def _topic() -> str:
    return f"contract-{uuid4().hex[:8]}"


def _settings(bootstrap_servers: str, topic: str) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=bootstrap_servers, topics=(topic,), group_id="applier-contract", unreachable_after_s=3.0)
