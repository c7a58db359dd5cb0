"""What a listing asks of the brokers: partitions and ends each time, beginnings where they may have changed."""

import time
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer

from applier.model.errors import SourceError
from applier.model.position import PartitionExtent, Stream
from applier.sources.kafka import error_code, extent_query
from applier.sources.kafka.error_meaning import ConnectionErrors
from applier.sources.kafka.extent_query import ExtentQuery
from applier.sources.kafka.settings import KafkaSettings

PARTITIONS = 4
"""What a mock cluster gives each topic."""


class CountingConsumer(Consumer):
    """Notes what it is asked for."""

    def __init__(self, configuration):
        super().__init__(configuration)
        self.asked = []
        self.failure = None

    def offsets_for_times(self, partitions, timeout):
        if self.failure is not None:
            raise self.failure
        self.asked.append((partitions[0].offset, len(partitions)))
        return super().offsets_for_times(partitions, timeout=timeout)

    def list_topics(self, *topic, timeout):
        self.asked.append(("metadata", *topic))
        return super().list_topics(*topic, timeout=timeout)


@pytest.fixture
def topic(mock_kafka):
    name = f"extents-{uuid4().hex[:8]}"
    write(mock_kafka, name, 1)
    return name


def write(address, topic, partition):
    producer = Producer({"bootstrap.servers": address, "log_level": 3})
    producer.produce(topic, value=b"v", partition=partition)
    assert producer.flush(30) == 0


@pytest.fixture
def query(mock_kafka):
    consumers = []

    def make(*topics):
        settings = KafkaSettings(bootstrap_servers=mock_kafka, topics=topics, group_id="extents", unreachable_after_s=3.0)
        errors = ConnectionErrors(settings)
        consumers.append(CountingConsumer(settings.consumer() | {"error_cb": errors.add}))
        return ExtentQuery(settings, consumers[-1], errors), consumers[-1]

    yield make
    for consumer in consumers:
        consumer.close()


def test_ends_are_asked_for_each_time_and_beginnings_where_they_are_not_known(query, topic, mock_kafka, monkeypatch):
    extents, consumer = query(topic)
    asked = consumer.asked
    expected = {Stream(topic, partition): PartitionExtent(0, int(partition == 1)) for partition in range(PARTITIONS)}
    assert extents.listing().extents == expected
    assert asked == [("metadata", topic), (OFFSET_BEGINNING, PARTITIONS), (OFFSET_END, PARTITIONS)]
    asked.clear()
    # A partition that held nothing may have got its first record, and lost it again.
    assert extents.listing().extents == expected
    assert asked == [("metadata", topic), (OFFSET_BEGINNING, PARTITIONS - 1), (OFFSET_END, PARTITIONS)]
    for partition in (0, 2, 3):
        write(mock_kafka, topic, partition)
    expected = dict.fromkeys(expected, PartitionExtent(0, 1))
    assert [extents.listing().extents, extents.listing().extents] == [expected, expected]
    assert asked[-2:] == [("metadata", topic), (OFFSET_END, PARTITIONS)]
    asked.clear()
    monkeypatch.setattr(extent_query, "BEGINNINGS_S", 0.0)
    assert extents.listing().extents == expected
    assert asked == [("metadata", topic), (OFFSET_BEGINNING, PARTITIONS), (OFFSET_END, PARTITIONS)]


def test_a_listing_that_fails_is_followed_by_one_that_asks_for_everything(query, topic):
    extents, consumer = query(topic)
    extents.listing()
    consumer.failure = KafkaException(KafkaError(error_code.TIMED_OUT))
    with pytest.raises(SourceError) as caught:
        extents.listing()
    assert caught.value.facts["kind"] == "unreachable"
    consumer.failure = None
    consumer.asked.clear()
    extents.listing()
    assert consumer.asked == [("metadata", topic), (OFFSET_BEGINNING, PARTITIONS), (OFFSET_END, PARTITIONS)]


def test_a_partition_that_does_not_exist_is_named(query, topic):
    extents, _ = query(topic)
    with pytest.raises(SourceError) as caught:
        extents.ends([Stream(topic, 0), Stream(topic, PARTITIONS + 5)])
    assert caught.value.message == f"Kafka does not answer: offsets of {topic}/{PARTITIONS + 5}"
    assert "Unknown partition" in caught.value.facts["cause"]


def test_many_topics_are_asked_for_in_one_request_and_a_missing_one_is_named(query, topic, mock_kafka):
    topics = sorted(f"{topic}-{number}" for number in range(extent_query.ONE_BY_ONE + 1))
    for name in topics:
        write(mock_kafka, name, 0)
    extents, consumer = query(*topics)
    assert {stream.topic for stream in extents.listing().extents} == set(topics)
    assert [one for one in consumer.asked if one[0] == "metadata"] == [("metadata",)]
    extents, _ = query(*topics, "none-of-them")
    with pytest.raises(SourceError) as caught:
        extents.listing()
    assert caught.value.facts == {"kind": "unknown_topic", "topic": "none-of-them"}


def test_more_partitions_than_librdkafka_likes_in_one_list_are_asked_for_in_several(query, topic, monkeypatch):
    monkeypatch.setattr(extent_query, "ASKED_AT_ONCE", 3)
    extents, consumer = query(topic)
    assert extents.listing().extents[Stream(topic, 1)] == PartitionExtent(0, 1)
    assert consumer.asked[1:] == [(OFFSET_BEGINNING, 3), (OFFSET_BEGINNING, 1), (OFFSET_END, 3), (OFFSET_END, 1)]


def test_a_question_about_nothing_is_not_asked(query, topic):
    extents, consumer = query(topic)
    assert (extents.ends([]), extents.at_time([], time.time_ns() // 10**6), consumer.asked) == ({}, {}, [])
