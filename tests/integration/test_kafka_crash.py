"""The driver's view of Kafka through a broker that is killed and started again."""

import time
from uuid import uuid4

from applier.errors import SourceError
from applier.kafka.client import KafkaSource
from applier.kafka.settings import KafkaSettings

DEADLINE_S = 120
POLL_S = 0.2


def test_the_partitions_are_listed_again_after_the_broker_was_killed(kafka):
    topic = f"crash-{uuid4().hex[:8]}"
    kafka.create_topic(topic, partitions=3)
    with KafkaSource(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id="crash")) as source:
        before, ids = source.listing(), source.topic_ids()
        kafka.crash()
        give_up = time.monotonic() + DEADLINE_S
        while True:
            try:
                after = source.listing()
                break
            except SourceError:
                # It elects its leaders first.
                assert time.monotonic() < give_up, "an old picture of the cluster is kept"
                time.sleep(POLL_S)
        assert after == before
        assert source.topic_ids() == ids
    kafka.delete_topic(topic)


def test_a_topic_that_is_made_anew_has_another_id(kafka):
    topic = f"anew-{uuid4().hex[:8]}"
    kafka.create_topic(topic)
    with KafkaSource(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id="anew")) as source:
        before = source.topic_ids()
        kafka.delete_topic(topic)
        kafka.create_topic(topic)
        give_up = time.monotonic() + DEADLINE_S
        while (after := _ids(source)) is None:
            assert time.monotonic() < give_up, "the new topic is not seen"
            time.sleep(POLL_S)
    assert before.keys() == after.keys() == {topic}
    assert before != after
    kafka.delete_topic(topic)


def _ids(source):
    try:
        return source.topic_ids()
    except SourceError:
        return None
