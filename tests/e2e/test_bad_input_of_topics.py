"""Bad input from Kafka: the exit code of the process, a message that names place and remedy, and the progress intact."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.rig.bad_input import RESOLVED, Stage, assert_reports, first_row, half_way
from tests.rig.upstream import small_upstream

pytestmark = pytest.mark.slow

SOURCE, OPERATOR = 3, 6
VERSION_2 = (2).to_bytes(8, "big")
NOBODY = "127.0.0.1:1"


@pytest.fixture
def stage(tmp_path, mock_kafka):
    return half_way(tmp_path, mock_kafka, f"sqlite:///{tmp_path}/replica.db")


def new_stage(directory, servers, topic):
    """A replica that has seen nothing yet."""
    return Stage(directory, servers, f"sqlite:///{directory}/replica.db", small_upstream(82, topic, transactions=5), topic, ())


@pytest.fixture(scope="module")
def without_broker(tmp_path_factory):
    """A run that waits for its broker as long as its settings say, while other tests run."""
    with ThreadPoolExecutor(1) as pool:
        stage = new_stage(tmp_path_factory.mktemp("alone"), NOBODY, "feed")
        yield pool.submit(stage.refusal)


def test_an_unknown_topic(without_broker, tmp_path, mock_kafka):
    assert_reports(new_stage(tmp_path, mock_kafka, "nothing-here").refusal(), SOURCE, "the topic does not exist", "topic: nothing-here")


def test_s13_a_topic_without_resolved_events(tmp_path, mock_kafka):
    topic = f"silent-{uuid4().hex[:8]}"
    stage = new_stage(tmp_path, mock_kafka, topic)
    stage.produce([record for record in stage.world.log if not record.key.endswith(RESOLVED)])
    assert_reports(stage.refusal(), SOURCE, "no resolved event", f"stream: {topic}/")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda record: record._replace(value=record.value[:-3]), "length"),
        (lambda record: record._replace(key=VERSION_2 + record.key[8:]), "version 1"),
    ],
    ids=["malformed", "unsupported protocol version"],
)
def test_s23_a_record_that_cannot_be_read(damage, words, stage):
    place = first_row(stage.late)
    bad = stage.late[place]
    offset = sum(record.stream == bad.stream for record in stage.world.log[: -len(stage.late)])
    offset += sum(record.stream == bad.stream for record in stage.late[:place])
    stage.produce([*stage.late[:place], damage(bad), *stage.late[place + 1 :]])
    reported = stage.refusal()
    assert_reports(reported, SOURCE, words, f"topic: {stage.topic}", f"partition: {bad.stream.partition}", f"offset: {offset}")


def test_an_empty_topic(tmp_path, kafka):
    topic = f"empty-{uuid4().hex[:8]}"
    kafka.create_topic(topic, partitions=2)
    assert_reports(new_stage(tmp_path, kafka.bootstrap_servers, topic).refusal(), SOURCE, "the topic is empty", f"topic: {topic}")


def test_offsets_expired_by_retention(tmp_path, kafka):
    stage = half_way(
        tmp_path,
        kafka.bootstrap_servers,
        f"sqlite:///{tmp_path}/replica.db",
        create=lambda world: world.create_topics(kafka.bootstrap_servers),
    )
    stored = stage.progress().positions
    stage.produce(stage.late)
    stream = stage.late[-1].stream
    end = sum(record.stream == stream for record in stage.world.log)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(*stream, end - 1)]).values()
    assert deleted.result(30).low_watermark == end - 1
    missing = f"{stored[stream].next_offset}..{end - 2}"
    assert_reports(stage.refusal(), OPERATOR, f"topic: {stage.topic}", f"partition: {stream.partition}", missing)


def test_a_broker_that_is_down(without_broker):
    assert_reports(without_broker.result(120), SOURCE, "Kafka does not answer", f"bootstrap_servers: {NOBODY}")
