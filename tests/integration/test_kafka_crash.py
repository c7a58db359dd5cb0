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
        before = source.listing()
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
    kafka.delete_topic(topic)
