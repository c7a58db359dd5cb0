"""The driver's view of Kafka through a broker that is killed and started again."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, TopicPartition

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings

DEADLINE_S = 120
POLL_S = 0.2
SHOWN_EVERY_S = 0.03


def test_the_partitions_are_listed_again_after_the_broker_was_killed(kafka):
    topic = f"crash-{uuid4().hex[:8]}"
    kafka.create_topic(topic, partitions=3)
    with open_source(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id="crash")) as source:
        before, ids = source.listing(), source.topics.ids()
        kafka.crash()
        give_up = time.monotonic() + DEADLINE_S
        while True:
            try:
                after = source.listing()
                break
            except SourceError:
                # It elects its leaders first.
                assert time.monotonic() < give_up, "old metadata of the cluster are kept"
                time.sleep(POLL_S)
        assert after == before
        assert source.topics.ids() == ids
    kafka.delete_topic(topic)


def test_offsets_are_shown_through_the_deaths_of_the_broker(kafka):
    topic, group = f"shown-{uuid4().hex[:8]}", f"shown-{uuid4().hex[:8]}"
    kafka.create_topic(topic)
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id=group)
    with open_source(settings) as source, ThreadPoolExecutor(1) as beside:
        for _ in range(2):
            crash = beside.submit(kafka.crash)
            while not crash.done():
                source.topics.show_offsets({Stream(topic, 0): Offset(7)})
                time.sleep(SHOWN_EVERY_S)
            crash.result()
        give_up = time.monotonic() + DEADLINE_S
        while _committed(kafka, group, topic) != Offset(8):
            assert time.monotonic() < give_up, "later offsets are not shown"
            source.topics.show_offsets({Stream(topic, 0): Offset(8)})
            time.sleep(POLL_S)
    kafka.delete_topic(topic)


def test_a_source_closes_although_a_dead_broker_owes_it_an_answer(kafka):
    topic = f"owed-{uuid4().hex[:8]}"
    kafka.create_topic(topic)
    source = open_source(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id="owed"))
    source.listing()
    kafka.server.kill()
    try:
        source.topics.show_offsets({Stream(topic, 0): Offset(7)})
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < DEADLINE_S / 2
    finally:
        kafka.server.start()
    kafka.delete_topic(topic)


def test_a_topic_that_is_created_again_has_another_id(kafka):
    topic = f"recreated-{uuid4().hex[:8]}"
    kafka.create_topic(topic)
    with open_source(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id="recreated")) as source:
        before = source.topics.ids()
        kafka.delete_topic(topic)
        kafka.create_topic(topic)
        give_up = time.monotonic() + DEADLINE_S
        while (after := _ids(source)) in (None, before):
            assert time.monotonic() < give_up, "the new topic is not seen"
            time.sleep(POLL_S)
    assert before.keys() == after.keys() == {topic}
    assert before != after
    kafka.delete_topic(topic)


def _committed(kafka, group, topic):
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    try:
        return consumer.committed([TopicPartition(topic, 0)], timeout=DEADLINE_S)[0].offset
    except KafkaException:  # the group's coordinator is not back yet
        return None
    finally:
        consumer.close()


def _ids(source):
    try:
        return source.topics.ids()
    except SourceError:
        return None
