"""Topics under a pattern: found in one request, while the program runs; never Kafka's own. On librdkafka's mock cluster."""

from collections import Counter
from contextlib import closing
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from applier.model.errors import SourceError
from applier.model.position import Stream
from applier.sources.factory import open_source
from applier.sources.kafka.extent_query import ExtentQuery
from applier.sources.kafka.settings import KafkaSettings

PARTITIONS = 4
"""Of each topic of the mock cluster."""


@pytest.fixture
def name():
    return f"cdc{uuid4().hex[:8]}"


@pytest.fixture
def produce(mock_kafka):
    producer = Producer({"bootstrap.servers": mock_kafka})

    def write(*topics):
        for topic in topics:
            producer.produce(topic, value=b"x", partition=1)
        assert producer.flush(30) == 0

    return write


def source_of(mock_kafka, *topics):
    settings = KafkaSettings(bootstrap_servers=mock_kafka, topics=topics, group_id="patterns", unreachable_after_s=10.0)
    return closing(open_source(settings))


def topics_of(listing):
    assert all(Stream(stream.topic, partition) in listing.extents for stream in listing.extents for partition in range(PARTITIONS))
    return sorted({stream.topic for stream in listing.extents})


def test_a_pattern_and_names_are_listed_together(mock_kafka, name, produce):
    produce(f"{name}_a", f"{name}_b", f"{name}", f"x{name}_c")
    with source_of(mock_kafka, f"x{name}_c", f"^{name}_") as source:
        listing = source.listing()
        assert topics_of(listing) == sorted([f"{name}_a", f"{name}_b", f"x{name}_c"])
        assert listing.extents[Stream(f"{name}_a", 1)].end == 1


def test_s14_a_topic_that_appears_under_the_pattern_is_in_the_next_listing(mock_kafka, name, produce):
    produce(f"{name}_a")
    with source_of(mock_kafka, f"^{name}_") as source:
        assert topics_of(source.listing()) == [f"{name}_a"]
        produce(f"{name}_b")
        assert topics_of(source.listing()) == [f"{name}_a", f"{name}_b"]
        assert source.topics.ids() == {}


def test_one_request_lists_all_topics_of_a_pattern(mock_kafka, name, produce, monkeypatch):
    produce(*(f"{name}_{number}" for number in range(3)))
    asked = Counter()
    ask = ExtentQuery.metadata

    def counting(self, topic=None, client=None):
        asked[topic] += 1
        return ask(self, topic, client)

    monkeypatch.setattr(ExtentQuery, "metadata", counting)
    with source_of(mock_kafka, f"^{name}_") as source:
        assert len(topics_of(source.listing())) == 3
    assert asked == {None: 1}


def test_a_pattern_that_names_no_topic_is_an_error_at_the_start_that_says_so(mock_kafka, name):
    with source_of(mock_kafka, f"^{name}_") as source:
        with pytest.raises(SourceError, match=r"no topic matches source\.topics") as caught:
            source.listing()
        assert caught.value.facts["topics"] == f"^{name}_"


def test_d34_each_of_several_topics_is_asked_for_and_a_missing_one_is_named(mock_kafka, name, produce):
    """Theirs: "a,b" is taken for the name of one topic, and its error for no partitions."""
    produce(f"{name}_a", f"{name}_b")
    with source_of(mock_kafka, f"{name}_a", f"{name}_b") as source:
        assert topics_of(source.listing()) == [f"{name}_a", f"{name}_b"]
