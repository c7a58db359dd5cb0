"""What every source keeps (``sources.port``): the one in memory, librdkafka's mock cluster, and a real Kafka."""

import pickle
from collections.abc import Iterator

import pytest

from applier.demo.simulator.producer import LogRecord
from applier.model.errors import ProtocolError, SourceError
from applier.model.events import PlacedRow, RowEvent
from applier.model.position import Offset, PartitionExtent, RecordPosition, Stream
from applier.model.range_report import RangeId
from applier.model.rejected_event import WHOLE_RECORD
from applier.sources.peek import read_whole
from applier.sources.port import Record, Unplaced
from tests.builders.wire import TS, head, integer_key, record, text
from tests.rig.feed import PARTITIONS, Feed, fake_feed, kafka_feed, mock_feed
from tests.rig.placing import place_record

MANY = 2500
TIME_MS = 1_700_000_000_000
EMPTY, FULL, SHORT = 0, 1, 2
"""Partitions of ``feed``: without records, with MANY rows, with one record without a value."""


@pytest.fixture(scope="module", params=["fake", "mock", pytest.param("kafka", marks=pytest.mark.integration)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make(kind: str, request: pytest.FixtureRequest) -> Feed:
    match kind:
        case "fake":
            return fake_feed()
        case "mock":
            return mock_feed(request.getfixturevalue("mock_kafka"))
        case _:
            return kafka_feed(request.getfixturevalue("kafka"))


@pytest.fixture(scope="module")
def feed(kind: str, request: pytest.FixtureRequest) -> Iterator[Feed]:
    """A feed that no test writes to."""
    feed = make(kind, request)
    with feed.source:
        feed.write(row_record(feed, FULL, number) for number in range(MANY))
        feed.write([LogRecord(Stream(feed.topic, SHORT), b"only", None, TIME_MS)])
        yield feed


@pytest.fixture
def own_feed(kind: str, request: pytest.FixtureRequest) -> Iterator[Feed]:
    """A feed of this test, with one record in FULL."""
    feed = make(kind, request)
    with feed.source:
        feed.write([row_record(feed, FULL, 0)])
        yield feed


def row_record(feed: Feed, partition: int, number: int) -> LogRecord:
    key, value = record((head(ts=TS + number), {"u": {"id": integer_key(number), "name": text(f"name {number}")}}))
    return LogRecord(Stream(feed.topic, partition), key, value, TIME_MS + number)


def ranged(feed: Feed, partition: int, start: int, end: int) -> RangeId:
    return RangeId(Stream(feed.topic, partition), Offset(start), Offset(end))


def read(feed: Feed, partition: int, start: int, end: int) -> list[Record]:
    reader = pickle.loads(pickle.dumps(feed.source.reader))  # noqa: S301 - our own bytes; as on the way to an executor
    return [one for _, batch in read_whole(reader, [ranged(feed, partition, start, end)]) for one in batch]


def offsets(feed: Feed, partition: int, start: int, end: int) -> list[int]:
    return [one.offset for one in read(feed, partition, start, end)]


def test_a_listing_has_every_partition_with_its_extent(feed: Feed) -> None:
    ends = {FULL: MANY, SHORT: 1}
    assert feed.source.listing().extents == {
        Stream(feed.topic, partition): PartitionExtent(Offset(0), Offset(ends.get(partition, 0))) for partition in range(PARTITIONS)
    }


def test_a_listing_is_made_when_it_is_asked_for(own_feed: Feed) -> None:
    stream = Stream(own_feed.topic, FULL)
    assert own_feed.source.listing().extents[stream].end == 1
    own_feed.write([row_record(own_feed, FULL, 1), row_record(own_feed, FULL, 2)])
    assert own_feed.source.listing().extents[stream].end == 3
    assert offsets(own_feed, FULL, 0, 3) == [0, 1, 2]


def test_a_range_is_read_whole_and_in_order(feed: Feed) -> None:
    records = read(feed, FULL, 0, MANY)
    assert [one.offset for one in records] == list(range(MANY))
    assert (records[7].key, records[7].value) == row_record(feed, FULL, 7)[1:3]
    assert read(feed, SHORT, 0, 1) == [Record(Offset(0), b"only", None)]


def test_a_range_ends_before_its_end_offset_and_the_next_one_continues_there(feed: Feed) -> None:
    assert offsets(feed, FULL, 100, 1103) == list(range(100, 1103))
    assert offsets(feed, FULL, 1103, 1200) == list(range(1103, 1200))


def test_an_empty_range_has_no_records(feed: Feed) -> None:
    assert offsets(feed, FULL, 5, 5) == []


def test_a_range_is_read_again_with_another_stream_in_between(feed: Feed) -> None:
    first = read(feed, FULL, 5, 10)
    assert offsets(feed, SHORT, 0, 1) == [0]
    assert read(feed, FULL, 5, 10) == first


def test_an_abandoned_range_does_not_spoil_the_next_one(feed: Feed) -> None:
    batches = feed.source.reader.read([ranged(feed, FULL, 0, MANY)])
    next(batches)
    batches.close()  # type: ignore[attr-defined]  # the readers are generators
    assert offsets(feed, FULL, 3, 6) == [3, 4, 5]


def read_many(feed: Feed, *ranges: RangeId) -> dict[RangeId, list[int] | str]:
    """Read ranges in one call: the offsets of each, or the kind of its error."""
    found: dict[RangeId, list[int] | str] = {range_id: [] for range_id in ranges}
    for range_id, records in feed.source.reader.read(ranges):
        before = found[range_id]
        assert isinstance(before, list), "nothing follows an error"
        found[range_id] = str(records.facts["kind"]) if isinstance(records, SourceError) else [*before, *(one.offset for one in records)]
    return found


def test_many_ranges_are_read_in_one_call_each_whole_and_in_order(feed: Feed) -> None:
    ranges = [
        ranged(feed, FULL, 2000, MANY),
        ranged(feed, SHORT, 0, 1),
        ranged(feed, FULL, 100, 1103),
        ranged(feed, FULL, 1103, 1500),
        ranged(feed, FULL, 5, 5),
        ranged(feed, FULL, 0, 7),
    ]
    assert read_many(feed, *ranges) == {one: list(range(one.start, one.end)) for one in ranges}
    assert read_many(feed, *reversed(ranges)) == {one: list(range(one.start, one.end)) for one in ranges}
    assert read_many(feed) == {}


def test_the_next_call_may_go_on_behind_the_last_one_or_go_back(feed: Feed) -> None:
    for start, end in ((0, 50), (50, 60), (40, 55), (MANY - 5, MANY), (0, 3)):
        range_id, other = ranged(feed, FULL, start, end), ranged(feed, SHORT, 0, 1)
        assert read_many(feed, range_id, other) == {range_id: list(range(start, end)), other: [0]}


def test_a_range_that_fails_ends_only_itself(feed: Feed) -> None:
    missing, adjacent, whole = ranged(feed, SHORT, 1, 3), ranged(feed, SHORT, 0, 1), ranged(feed, FULL, 0, MANY)
    assert read_many(feed, missing, whole, adjacent) == {missing: "unreachable", whole: list(range(MANY)), adjacent: [0]}


def test_a_call_that_is_abandoned_anywhere_does_not_spoil_the_next_one(feed: Feed) -> None:
    ranges = [ranged(feed, FULL, 0, 900), ranged(feed, FULL, 950, MANY), ranged(feed, SHORT, 0, 1)]
    for taken in range(4):
        batches = feed.source.reader.read(ranges)
        for _ in range(taken):
            next(batches)
        batches.close()  # type: ignore[attr-defined]  # the readers are generators
        assert read_many(feed, *ranges) == {one: list(range(one.start, one.end)) for one in ranges}


def test_a_call_within_a_call_reads_its_own_ranges(feed: Feed) -> None:
    whole, part = ranged(feed, FULL, 0, MANY), ranged(feed, FULL, 7, 9)
    found: list[int] = []
    for _, records in read_whole(feed.source.reader, [whole]):
        found += [one.offset for one in records]
        assert offsets(feed, FULL, 7, 9) == [7, 8]
    assert found == list(range(MANY))
    assert read_many(feed, part) == {part: [7, 8]}


def test_a_range_beyond_the_end_fails_instead_of_being_read_short(feed: Feed) -> None:
    with pytest.raises(SourceError) as caught:
        read(feed, SHORT, 0, 5)
    assert caught.value.facts["kind"] == "unreachable"


def test_a_range_whose_beginning_is_gone_fails_with_its_place_and_the_rest_can_be_read(own_feed: Feed) -> None:
    stream = Stream(own_feed.topic, 3)
    own_feed.expire(stream, [row_record(own_feed, 3, number) for number in range(12)])
    extent = own_feed.source.listing().extents[stream]
    assert (extent.earliest > 0, extent.end) == (True, 12)
    with pytest.raises(SourceError) as caught:
        read(own_feed, 3, 0, 12)
    place = {"kind": "retention", "topic": own_feed.topic, "partition": 3, "offset": 0}
    assert place.items() <= caught.value.facts.items()
    assert offsets(own_feed, 3, extent.earliest, 12) == list(range(extent.earliest, 12))
    gone, there, other = (
        ranged(own_feed, 3, 0, extent.earliest),
        ranged(own_feed, 3, extent.earliest, 12),
        ranged(own_feed, FULL, 0, 1),
    )
    assert read_many(own_feed, gone, there, other) == {gone: "retention", there: list(range(extent.earliest, 12)), other: [0]}
    assert own_feed.source.times.time_ms(stream, extent.earliest) == TIME_MS + extent.earliest


def test_the_time_of_a_record_is_that_of_the_first_one_at_or_after_the_offset_and_none_at_the_end(feed: Feed) -> None:
    assert feed.source.times.time_ms(Stream(feed.topic, FULL), Offset(5)) == TIME_MS + 5
    assert feed.source.times.time_ms(Stream(feed.topic, FULL), Offset(MANY)) is None
    assert feed.source.times.time_ms(Stream(feed.topic, EMPTY), Offset(0)) is None


def test_a_time_finds_the_first_offset_written_then_or_later_and_else_the_end(feed: Feed) -> None:
    full, empty, short = (Stream(feed.topic, partition) for partition in (FULL, EMPTY, SHORT))
    late, early = ({full: 30, short: 1}, {full: 0, short: 0}) if feed.knows_times else ({full: MANY, short: 1}, {full: MANY, short: 1})
    assert feed.source.times.offsets_at([full, empty, short], TIME_MS + 30) == late | {empty: 0}
    assert feed.source.times.offsets_at([full, short], TIME_MS - 1) == early
    assert feed.source.times.offsets_at([full], TIME_MS + MANY) == {full: MANY}
    assert feed.source.times.offsets_at([], TIME_MS) == {}


def test_the_ids_of_topics_stay_and_name_only_topics_of_the_source(feed: Feed) -> None:
    ids = feed.source.topics.ids()
    assert set(ids) <= {feed.topic}
    assert feed.source.topics.ids() == ids


def test_offsets_are_shown_without_an_answer(feed: Feed) -> None:
    feed.source.topics.show_offsets({Stream(feed.topic, FULL): Offset(5)})
    feed.source.topics.show_offsets({})
    assert feed.source.listing().extents[Stream(feed.topic, FULL)].end == MANY


def test_the_decoder_crosses_to_executors_and_its_two_ways_agree_on_what_was_read(feed: Feed) -> None:
    decoder = pickle.loads(pickle.dumps(feed.source.decoder))  # noqa: S301 - our own bytes
    stream = Stream(feed.topic, FULL)
    placer = decoder.placer(stream)
    for one in read(feed, FULL, 10, 20):
        (placed,) = place_record(placer, *one)
        assert isinstance(placed, PlacedRow)
        assert placer.place_each(*one) == [(0, placed)]
        (event,) = decoder.events(one, RecordPosition(stream, one.offset))
        assert isinstance(event, RowEvent)
        assert event.after is not None
        assert list(decoder.image_decoder(placed.shape)(placed.image)) == [column.value for column in event.after.values()]
        assert decoder.decode_key(placed.key) == [one.offset]
        assert placed.commit_ts == event.commit_ts == TS + one.offset


def test_a_record_that_cannot_be_taken_apart_is_an_error_with_its_place_and_one_unplaced_event(feed: Feed) -> None:
    (rubbish,) = read(feed, SHORT, 0, 1)
    decoder, stream = feed.source.decoder, Stream(feed.topic, SHORT)
    where = {"topic": feed.topic, "partition": SHORT, "offset": 0}
    with pytest.raises(ProtocolError) as placing:
        place_record(decoder.placer(stream), *rubbish)
    with pytest.raises(ProtocolError) as decoding:
        decoder.events(rubbish, RecordPosition(stream, rubbish.offset))
    ((index, unplaced),) = decoder.placer(stream).place_each(*rubbish)
    assert isinstance(unplaced, Unplaced)
    assert (index, unplaced.head) == (WHOLE_RECORD, None)
    for error in (placing.value, decoding.value, unplaced.error):
        assert where.items() <= error.facts.items()
