"""The source on librdkafka's mock cluster (tests/contract holds what every source keeps)."""

import gc
import pickle
import weakref

import pytest
from confluent_kafka import KafkaError, Producer

from applier.model.errors import ConfigError, SourceError
from applier.model.listing import PartitionExtent
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.kafka.client import KafkaSource
from applier.sources.kafka.settings import KafkaSettings

TOPIC = "changefeed"
TIME_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker():
    mock = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 3})
    address = str(next(iter(mock.list_topics(timeout=60).brokers.values()))).split("/")[0]
    producer = Producer({"bootstrap.servers": address, "log_level": 3})
    for i in range(2500):
        producer.produce(TOPIC, key=b"k%d" % i, value=b"v%d" % i, partition=1, timestamp=TIME_MS + i)
        if i % 500 == 0:
            producer.poll(0)
    producer.produce(TOPIC, key=b"only", value=None, partition=2, timestamp=TIME_MS)
    assert producer.flush(10) == 0
    yield address
    del producer, mock


def settings(address, *topics, **more):
    return KafkaSettings(bootstrap_servers=address, topics=topics or (TOPIC,), group_id="applier-test", unreachable_after_s=3.0, **more)


@pytest.fixture
def source(broker):
    with KafkaSource(settings(broker)) as source:
        yield source


def ranged(partition, start, end):
    return RangeId(Stream(TOPIC, partition), Offset(start), Offset(end))


def read(source, range_id):
    reader = pickle.loads(pickle.dumps(source.reader))  # noqa: S301 - our own bytes
    return [record for batch in reader.read(range_id) for record in batch]


def test_a_listing_has_every_partition_with_its_extent_and_empty_ones_end_at_0(source):
    extents = source.listing().extents
    assert extents[Stream(TOPIC, 1)] == PartitionExtent(Offset(0), Offset(2500))
    assert extents[Stream(TOPIC, 2)] == PartitionExtent(Offset(0), Offset(1))
    assert extents[Stream(TOPIC, 0)] == PartitionExtent(Offset(0), Offset(0))


def test_a_range_is_read_whole_and_in_order(source):
    records = read(source, ranged(1, 0, 2500))
    assert [r.offset for r in records] == list(range(2500))
    assert (records[7].key, records[7].value) == (b"k7", b"v7")


def test_a_range_ends_before_its_end_offset_and_the_next_one_goes_on_there(source):
    assert [r.offset for r in read(source, ranged(1, 100, 1103))] == list(range(100, 1103))
    assert [r.offset for r in read(source, ranged(1, 1103, 1200))] == list(range(1103, 1200))


def test_a_range_can_be_read_again_and_another_stream_in_between(source):
    first = read(source, ranged(1, 5, 10))
    assert [(r.key, r.value) for r in read(source, ranged(2, 0, 1))] == [(b"only", None)]
    assert read(source, ranged(1, 5, 10)) == first


def test_an_abandoned_range_does_not_spoil_the_next_one(source):
    reader = source.reader
    batches = reader.read(ranged(1, 0, 2500))
    next(batches)
    batches.close()
    assert [r.offset for r in read(source, ranged(1, 3, 6))] == [3, 4, 5]


def test_an_offset_that_is_gone_names_the_place_and_says_retention(source):
    with pytest.raises(SourceError) as caught:
        read(source, ranged(1, 9_000, 9_010))
    assert caught.value.facts == {"kind": "retention", "topic": TOPIC, "partition": 1, "offset": 9_000}


def test_a_range_beyond_the_end_fails_after_the_time_out_instead_of_waiting_for_ever(source):
    with pytest.raises(SourceError) as caught:
        read(source, ranged(2, 1, 5))
    assert caught.value.facts["kind"] == "unreachable"


def test_an_unknown_topic_is_named(broker):
    with KafkaSource(settings(broker, "no-such-topic")) as source, pytest.raises(SourceError) as caught:
        source.listing()
    assert caught.value.facts == {"kind": "unknown_topic", "topic": "no-such-topic"}


def test_a_topic_that_was_there_and_is_not_known_any_more_may_come_back(source):
    source.listing()
    assert source._refused(TOPIC, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)).facts["kind"] == "unreachable"


def test_a_broker_that_does_not_answer_is_named():
    with KafkaSource(settings("127.0.0.1:1")) as source, pytest.raises(SourceError) as caught:
        source.listing()
    assert caught.value.facts["kind"] == "unreachable"
    assert caught.value.facts["bootstrap_servers"] == "127.0.0.1:1"


def test_the_record_time_is_kafkas_timestamp_and_none_at_the_end(source):
    assert source.record_time_ms(Stream(TOPIC, 1), Offset(5)) == TIME_MS + 5
    assert source.record_time_ms(Stream(TOPIC, 0), Offset(0)) is None


def test_a_mock_cluster_tells_no_topic_ids(source):
    assert source.topic_ids() == {}


@pytest.mark.parametrize("name", ["enable.auto.commit", "auto.offset.reset", "bootstrap.servers"])
def test_properties_that_correctness_needs_may_not_be_set(name):
    with pytest.raises(ConfigError, match=name):
        settings("127.0.0.1:1", properties=((name, "x"),))


def test_secrets_in_properties_are_never_shown():
    secret = settings("127.0.0.1:1", properties=(("sasl.password", "hunter2"),))
    assert "hunter2" not in repr(secret)
    assert secret.consumer()["sasl.password"] == "hunter2"


def test_a_source_that_is_let_go_leaves_nothing_behind(broker):
    gc.collect()
    gc.disable()
    try:
        source = KafkaSource(settings(broker))
        source.listing()
        seen = weakref.ref(source)
        source.close()
        del source
        assert seen() is None
    finally:
        gc.enable()
