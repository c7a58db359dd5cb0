"""Playing onto a real broker: topics are created, and partitions added, as the log needs them."""

from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import add_partitions, create_topic, produce_log
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import SourceError


def partitions_of(kafka, topic):
    metadata = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(topic, timeout=30)
    return len(metadata.topics[topic].partitions)


@pytest.fixture
def topic():
    return f"player-{uuid4().hex[:8]}"


def test_a_topic_is_created_once_and_grows(kafka, topic):
    create_topic(kafka.bootstrap_servers, topic, 2)
    create_topic(kafka.bootstrap_servers, topic, 2)
    assert partitions_of(kafka, topic) == 2
    add_partitions(kafka.bootstrap_servers, topic, 5)
    assert partitions_of(kafka, topic) == 5
    with pytest.raises(SourceError, match="refused"):
        add_partitions(kafka.bootstrap_servers, topic, 3)


def test_a_whole_log_is_delivered(kafka, topic):
    create_topic(kafka.bootstrap_servers, topic, 3)
    log = Producer(History(2, HistoryOptions(transactions=20)), ProducerOptions(topic=topic, partitions=3, replays=2)).log()
    assert produce_log(log, kafka.bootstrap_servers) > 100
