"""What the Kafka source does beside the contract of every source (tests/contract/test_source_contract.py), on a mock cluster."""

import gc
import pickle
import time
import weakref

import pytest
from confluent_kafka import KafkaError, Producer

from applier.model.errors import ConfigError, SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.factory import open_source
from applier.sources.kafka import extent_query
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.peek import read_whole
from tests.rig.changing_proxy import changing_proxy

TOPIC = "changefeed"


@pytest.fixture(scope="module")
def broker():
    mock = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 3})
    address = str(next(iter(mock.list_topics(timeout=60).brokers.values()))).split("/")[0]
    producer = Producer({"bootstrap.servers": address, "log_level": 3})
    producer.produce(TOPIC, key=b"k", value=b"v", partition=1)
    assert producer.flush(10) == 0
    yield address
    del producer, mock


def settings(address, *topics, **more):
    return KafkaSettings(bootstrap_servers=address, topics=topics or (TOPIC,), group_id="applier-test", unreachable_after_s=3.0, **more)


@pytest.fixture
def source(broker):
    with open_source(settings(broker)) as source:
        yield source


def ranged(partition, start, end):
    return RangeId(Stream(TOPIC, partition), Offset(start), Offset(end))


def read(source, range_id):
    reader = pickle.loads(pickle.dumps(source.reader))  # noqa: S301 - our own bytes
    return [record for _, batch in read_whole(reader, [range_id]) for record in batch]


def test_an_offset_that_is_gone_names_the_place_and_says_retention(source):
    with pytest.raises(SourceError) as caught:
        read(source, ranged(1, 9_000, 9_010))
    assert caught.value.facts == {"kind": "retention", "topic": TOPIC, "partition": 1, "offset": 9_000}


def test_a_byte_that_changes_between_the_log_and_the_reader_is_no_record(broker):
    topic = "changed-byte"
    producer = Producer({"bootstrap.servers": broker, "log_level": 3, "linger.ms": 500})
    values = [b"amount 100", b"amount 900"]
    for value in values:
        producer.produce(topic, key=b"k", value=value, partition=1)
        assert producer.flush(10) == 0  # a batch each
    whole = RangeId(Stream(topic, 1), Offset(0), Offset(2))
    with changing_proxy(broker) as proxy, open_source(settings(proxy.address, topic)) as source:
        assert [record.value for record in read(source, whole)] == values
        proxy.changes[b"amount 100"] = b"amount 500"
        with pytest.raises(SourceError) as caught:
            read(source, whole)
        assert (caught.value.facts["kind"], caught.value.facts["topic"], caught.value.facts["offset"]) == ("damaged", topic, 0)
        behind = RangeId(Stream(topic, 1), Offset(1), Offset(2))
        assert [record.value for record in read(source, behind)] == values[1:], "what is whole behind it can be read"
        del proxy.changes[b"amount 100"]
        assert [record.value for record in read(source, whole)] == values, "the byte had changed on the way"


def test_nobody_turns_the_comparison_of_checksums_off():
    with pytest.raises(ConfigError) as caught:
        settings("unused", properties=(("check.crcs", "false"),))
    assert caught.value.facts["key"] == "source.kafka.check.crcs"


def test_an_unknown_topic_is_named(broker):
    with open_source(settings(broker, "no-such-topic")) as source, pytest.raises(SourceError) as caught:
        source.listing()
    assert caught.value.facts == {"kind": "unknown_topic", "topic": "no-such-topic"}


def test_a_topic_that_was_listed_before_may_come_back(source):
    source.listing()
    assert source._extents.refused(TOPIC, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)).facts["kind"] == "unreachable"


def test_a_broker_that_does_not_answer_is_named():
    with open_source(settings("127.0.0.1:1")) as source, pytest.raises(SourceError) as caught:
        source.listing()
    assert caught.value.facts["kind"] == "unreachable"
    assert caught.value.facts["bootstrap_servers"] == "127.0.0.1:1"


def test_a_mock_cluster_has_no_topic_ids(source):
    assert source.topics.ids() == {}


@pytest.mark.parametrize("name", ["enable.auto.commit", "auto.offset.reset", "bootstrap.servers"])
def test_properties_that_correctness_needs_may_not_be_set(name):
    with pytest.raises(ConfigError, match=name):
        settings("127.0.0.1:1", properties=((name, "x"),))


def test_secrets_in_properties_are_never_shown():
    secret = settings("127.0.0.1:1", properties=(("sasl.password", "hunter2"),))
    assert "hunter2" not in repr(secret)
    assert secret.consumer()["sasl.password"] == "hunter2"


def test_a_closed_source_is_freed_without_the_garbage_collector(broker):
    gc.collect()
    gc.disable()
    try:
        source = open_source(settings(broker))
        source.listing()
        seen = weakref.ref(source)
        source.close()
        del source
        # A thread that has just closed a client may hold the source for a moment.
        give_up = time.monotonic() + 10
        while seen() is not None and time.monotonic() < give_up:
            time.sleep(0.01)
        assert seen() is None
    finally:
        gc.enable()


def test_brokers_that_have_never_answered_are_given_up_sooner_than_a_restart_takes(monkeypatch, broker):
    monkeypatch.setattr(extent_query, "FIRST_ANSWER_S", 0.5)
    nowhere = KafkaSettings(bootstrap_servers="127.0.0.1:9", topics=(TOPIC,), group_id="applier-test", unreachable_after_s=30.0)
    with open_source(nowhere) as source:
        began_s = time.monotonic()
        for ask in (source.topics.check, source.listing):
            with pytest.raises(SourceError, match="does not answer") as caught:
                ask()
            assert "127.0.0.1:9" in caught.value.facts["cause"]
        assert time.monotonic() - began_s < 10
    with open_source(settings(broker)) as source:
        source.topics.check()
        assert source._extents.has_answered
