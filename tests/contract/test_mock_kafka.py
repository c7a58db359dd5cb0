"""What the fast tests and the demo rely on in librdkafka's mock cluster."""

from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition


def test_mock_kafka_gives_each_topic_four_partitions_and_keeps_records_in_the_named_partition(mock_kafka):
    topic = f"mock-{uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": mock_kafka})
    for partition in range(4):
        producer.produce(topic, key=b"k", value=b"%d" % partition, partition=partition, timestamp=1_700_000_000_000 + partition)
    assert producer.flush(30) == 0

    consumer = Consumer({"bootstrap.servers": mock_kafka, "group.id": "rig", "auto.offset.reset": "error"})
    assert sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions) == [0, 1, 2, 3]
    consumer.assign([TopicPartition(topic, 3, 0)])
    (message,) = consumer.consume(1, timeout=30)
    consumer.close()
    assert (message.error(), message.value(), message.timestamp()[1]) == (None, b"3", 1_700_000_000_003)
