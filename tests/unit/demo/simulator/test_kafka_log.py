"""Playing a log onto a mock cluster: partitions, times and bytes arrive as they are in the log."""

from collections import defaultdict

import pytest
from confluent_kafka import Consumer, TopicPartition

from applier.demo.simulator.broker import MOCK_PARTITIONS, MockBroker
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import ReplayPace, create_topic, produce_log
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import SourceError

LOG = list(Producer(History(1, HistoryOptions(transactions=10)), ProducerOptions(partitions=MOCK_PARTITIONS, replays=2)).log())


@pytest.fixture(scope="module")
def broker():
    with MockBroker() as running:
        yield running.bootstrap_servers


def read_back(broker, expected):
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(stream.topic, stream.partition, 0) for stream in expected])
        found = defaultdict(list)
        for _ in range(sum(map(len, expected.values()))):
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            found[message.topic(), message.partition()].append((message.key(), message.value(), message.timestamp()[1]))
        return dict(found)
    finally:
        consumer.close()


def test_a_log_arrives_whole_and_in_the_order_of_each_partition(broker):
    expected = defaultdict(list)
    for record in LOG:
        expected[record.stream].append((record.key, record.value, record.time_ms))
    assert produce_log(LOG, broker, pace=ReplayPace(speed=1e9)) == len(LOG)
    assert read_back(broker, expected) == dict(expected)


def test_a_record_for_a_partition_that_is_not_there_is_an_error(broker):
    stranger = LOG[0]._replace(stream=LOG[0].stream._replace(partition=99))
    with pytest.raises(SourceError, match="not delivered"):
        produce_log([stranger], broker, properties={"message.timeout.ms": 2000})


def test_a_broker_that_cannot_create_topics_is_an_error(broker):
    with pytest.raises(SourceError, match="refused"):
        create_topic(broker, "other", 3, **{"socket.timeout.ms": 2000})


def test_a_broker_ends_with_who_started_it():
    broker = MockBroker()
    address = broker.start()
    assert address.rpartition(":")[2].isdecimal()
    process = broker._process
    broker.stop()
    assert process.returncode == 0
