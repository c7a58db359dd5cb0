"""Reading ranges from a real Kafka: through the death of the broker, around transactions, and beside what cannot be read."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from applier.model.errors import SourceError
from applier.model.position import Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId
from applier.sources.factory import open_source
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import KafkaSettings

PARTITIONS = 4
RECORDS = 12_000
"""In each partition: more than a reader fetches ahead."""
FLUSH_S = 60


def settings(kafka, topic, **changes):
    return KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=(topic,), group_id="reading", **changes)


def ranged(topic, partition, start, end):
    return RangeId(Stream(topic, partition), Offset(start), Offset(end))


def read(reader, ranges):
    """The offsets of each range in the order in which they came, or the kind of its error."""
    found = {range_id: [] for range_id in ranges}
    for range_id, records in reader.read(ranges):
        found[range_id] = (
            records.facts["kind"] if isinstance(records, SourceError) else [*found[range_id], *(one.offset for one in records)]
        )
    return found


def whole(ranges):
    return {one: list(range(one.start, one.end)) for one in ranges}


@pytest.fixture
def topic(kafka):
    name = f"reading-{uuid4().hex[:8]}"
    kafka.create_topic(name, PARTITIONS, retention_ms="-1")
    yield name
    kafka.delete_topic(name)


@pytest.fixture
def filled(kafka, topic):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 20} | kafka.properties)
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(topic, value=b"%0300d" % number, partition=partition)
        producer.poll(0)
    assert producer.flush(FLUSH_S) == 0
    return topic


def test_a_call_reads_on_where_the_broker_was_killed_in_the_middle(kafka, filled):
    reader = KafkaRangeReader(settings(kafka, filled, unreachable_after_s=120.0))
    ranges = [ranged(filled, partition, *bounds) for partition in range(PARTITIONS) for bounds in ((0, 9_000), (9_000, RECORDS))]
    found = {range_id: [] for range_id in ranges}
    with ThreadPoolExecutor(1) as beside:
        crash = None
        for range_id, records in reader.read(ranges):
            found[range_id] += [one.offset for one in records]
            crash = crash or beside.submit(kafka.crash)
            if sum(map(len, found.values())) < 2 * RECORDS:
                time.sleep(0.05)  # so that the broker dies before everything is read
        crash.result()
    assert found == whole(ranges)


def test_ranges_of_a_dead_broker_fail_each_and_are_read_by_the_next_call(kafka, filled):
    reader = KafkaRangeReader(settings(kafka, filled, unreachable_after_s=3.0))
    ranges = [ranged(filled, partition, 0, RECORDS) for partition in range(PARTITIONS)]
    batches = reader.read(ranges)
    next(batches)
    kafka.server.kill()
    try:
        began = time.monotonic()
        failed = {range_id for range_id, records in batches if isinstance(records, SourceError)}
        assert failed
        assert time.monotonic() - began < FLUSH_S
        assert set(read(reader, ranges).values()) == {"unreachable"}
    finally:
        kafka.server.start()
    give_up = time.monotonic() + FLUSH_S
    while (found := read(reader, ranges)) != whole(ranges):
        assert "unreachable" in found.values(), "a range was read short"
        assert time.monotonic() < give_up


def test_a_partition_that_does_not_exist_fails_alone(kafka, filled):
    reader = KafkaRangeReader(settings(kafka, filled, unreachable_after_s=2.0))
    missing, other = ranged(filled, PARTITIONS + 3, 0, 5), ranged("no-such-topic", 0, 0, 5)
    ranges = [ranged(filled, partition, 0, RECORDS) for partition in range(PARTITIONS)]
    assert read(reader, [missing, *ranges, other]) == whole(ranges) | {missing: "unreachable", other: "unreachable"}
    assert read(reader, ranges) == whole(ranges)


def test_transactions_leave_gaps_and_open_ones_are_beyond_the_end(kafka, topic):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic} | kafka.properties)
    producer.init_transactions(FLUSH_S)

    def transaction(records, end):
        producer.begin_transaction()
        for number in range(records):
            producer.produce(topic, value=b"%d" % number, partition=1)
        assert producer.flush(FLUSH_S) == 0
        end()

    # Offsets: 0-2, marker 3; 4-8 aborted, marker 9; 10-11, marker 12; 13-16 of a transaction that is open.
    for records, end in ((3, producer.commit_transaction), (5, producer.abort_transaction), (2, producer.commit_transaction)):
        transaction(records, end)
    transaction(4, lambda: None)
    with open_source(settings(kafka, topic, unreachable_after_s=5.0)) as source:
        assert source.listing().extents[Stream(topic, 1)] == PartitionExtent(Offset(0), Offset(13))
        parts = [ranged(topic, 1, *bounds) for bounds in ((0, 2), (2, 4), (4, 7), (7, 10), (10, 12), (12, 13))]
        expected = dict(zip(parts, [[0, 1], [2], [], [], [10, 11], []], strict=True))
        assert read(source.reader, parts) == expected
        for part in parts:
            assert read(source.reader, [part]) == {part: expected[part]}
        assert read(source.reader, [ranged(topic, 1, 0, 13)]) == {ranged(topic, 1, 0, 13): [0, 1, 2, 10, 11]}
        producer.commit_transaction()
        give_up = time.monotonic() + FLUSH_S
        while (end := source.listing().extents[Stream(topic, 1)].end) != 18:
            assert (end, time.monotonic() < give_up) == (13, True)  # the marker is written a moment after the answer
        assert read(source.reader, [ranged(topic, 1, 13, 18)]) == {ranged(topic, 1, 13, 18): [13, 14, 15, 16]}
