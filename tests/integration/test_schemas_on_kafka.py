"""The search for schemas of simple on a real Kafka: a beginning that is gone, aborted transactions, partitions without records."""

from uuid import uuid4

import pytest
from confluent_kafka import Producer

from applier.model.errors import ProtocolError, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, PartitionExtent, Stream
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.simple.message import read_message
from applier.sources.simple.schema_log import PATIENCE_MS, SchemaSearch, known_versions
from tests.builders.simple_wire import BUILT, ORDERS, VERSION, bootstrap, column, order, row, schema, watermark

PARTITIONS = 3
FLUSH_S = 60
PLENTY = 2_500
"""More than the first piece of a search."""

OTHER = schema(*ORDERS, column("more", "int"))
"""The same version of the same table with a column that it never had."""


class Topic:
    """A topic whose records a test writes, and the search of a process that knows nothing of it."""

    def __init__(self, kafka, name):
        self.kafka, self.name = kafka, name
        self.properties = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5} | kafka.properties
        self.reader = KafkaRangeReader(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(name,), group_id=name))

    def write(self, *values, partition=0, producer=None):
        producer = producer or Producer(self.properties)
        for value in values:
            producer.produce(self.name, value=value, partition=partition)
        assert producer.flush(FLUSH_S) == 0

    def transactional(self):
        producer = Producer(self.properties | {"transactional.id": self.name})
        producer.init_transactions(FLUSH_S)
        return producer

    def extent(self, partition=0):
        return self.reader.listing().extents[Stream(self.name, partition)]

    def found(self, offset, *, partition=0, value=None):
        """The columns of the schema of the row at an offset."""
        known = known_versions(self.reader)
        known.versions.clear()
        known.searched.clear()
        search = SchemaSearch(Stream(self.name, partition), self.reader)
        search.begin(offset)
        return list(search.version(read_message(None, value or row("INSERT", order(1))), offset).columns)


@pytest.fixture
def topic(kafka):
    name = f"schemas-{uuid4().hex[:8]}"
    kafka.create_topic(name, PARTITIONS, retention_ms="-1")
    yield Topic(kafka, name)
    kafka.delete_topic(name)


NAMES = [each["name"] for each in ORDERS]


def test_a_schema_is_found_behind_the_row_ahead_of_it_and_in_partition_0(topic):
    noise = [watermark()] * PLENTY
    topic.write(bootstrap(), *noise, row("INSERT", order(1)))
    assert topic.found(PLENTY + 1) == NAMES
    topic.write(row("INSERT", order(1)), *noise, bootstrap(), partition=1)
    assert topic.found(0, partition=1) == NAMES
    topic.write(row("INSERT", order(1)), partition=2)
    assert topic.found(0, partition=2) == NAMES


def test_a_schema_that_retention_deleted_is_waited_for_and_then_missing(topic):
    topic.write(bootstrap(), *[watermark()] * 5, row("INSERT", order(1)))
    topic.kafka.delete_records(topic.name, 3)
    assert topic.extent() == PartitionExtent(Offset(3), Offset(7))
    with pytest.raises(SourceError, match="has not come yet") as caught:
        topic.found(6)
    assert caught.value.kind is FailureKind.UNREACHABLE
    # Enough time has passed in the log, and there is no schema.
    topic.write(row("INSERT", order(2), buildTs=BUILT + PATIENCE_MS + 1))
    with pytest.raises(ProtocolError, match="was not sent"):
        topic.found(6)
    topic.write(bootstrap())
    assert topic.found(6) == NAMES


def test_a_beginning_that_goes_between_the_listing_and_the_read_ends_the_search_there(topic):
    topic.write(bootstrap(), *[watermark()] * 5, row("INSERT", order(1)), bootstrap())
    listing = topic.reader.listing()
    topic.kafka.delete_records(topic.name, 3)
    search = SchemaSearch(Stream(topic.name, 0), _Outdated(topic.reader, listing))
    assert list(search.version(read_message(None, row("INSERT", order(1))), 6).columns) == NAMES


class _Outdated:
    """A reader whose listing is older than the log."""

    def __init__(self, reader, listing):
        self.read, self.log_name = reader.read, f"{reader.log_name} before"
        self.listing = lambda: listing


def test_schemas_of_aborted_and_open_transactions_are_not_taken(topic):
    producer = topic.transactional()
    newer = bootstrap(schema(version=VERSION + 1))
    for values, end in (
        ((bootstrap(OTHER),), producer.abort_transaction),
        ((bootstrap(),), producer.commit_transaction),
        ((row("INSERT", order(1)),), producer.commit_transaction),
        ((newer,) * 3, producer.abort_transaction),
    ):
        producer.begin_transaction()
        topic.write(*values, producer=producer)
        end()
    # 0 and its marker are aborted; 2 is the schema, and its marker; 4 the row, and its marker; 6-8 and their marker are aborted.
    assert topic.found(4) == NAMES
    # All that lies behind the row, and the end of the partition, is aborted records and a marker.
    unknown = row("INSERT", order(1), version=VERSION + 1)
    with pytest.raises(SourceError, match="has not come yet"):
        topic.found(4, value=unknown)
    producer.begin_transaction()
    topic.write(newer, producer=producer)
    with pytest.raises(SourceError, match="has not come yet"):
        topic.found(4, value=unknown)
    producer.commit_transaction()
    assert topic.found(4, value=unknown) == NAMES


def test_a_partition_without_records_is_searched_at_once(topic):
    topic.write(*[watermark()] * 4)
    topic.kafka.delete_records(topic.name, 4)
    assert topic.extent() == PartitionExtent(Offset(4), Offset(4))
    topic.write(row("INSERT", order(1)), partition=1)
    with pytest.raises(SourceError, match="has not come yet"):
        topic.found(0, partition=1)
    topic.write(bootstrap())
    assert topic.found(0, partition=1) == NAMES
