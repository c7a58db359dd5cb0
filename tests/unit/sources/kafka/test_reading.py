"""Many ranges in one call: which records belong to which range, what follows an end or an error, and what silence means."""

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.kafka import error_code
from applier.sources.kafka.error_meaning import PATIENCE_S
from applier.sources.kafka.reader import Reading
from applier.sources.kafka.settings import KafkaSettings

SETTINGS = KafkaSettings(bootstrap_servers="b:1", topics=("t",), group_id="g", unreachable_after_s=30.0)
DAMAGED = KafkaError.INVALID_MSG


def ranged(partition, start, end, topic="t"):
    return RangeId(Stream(topic, partition), Offset(start), Offset(end))


def message(partition, offset, topic="t"):
    return Message(topic=topic, partition=partition, offset=offset, key=b"%d" % offset, value=None)


def messages(partition, *offsets, topic="t"):
    return [message(partition, offset, topic) for offset in offsets]


def refusal(code, topic=None, partition=None, offset=None):
    where = {"topic": topic, "partition": partition, "offset": offset}
    return Message(error=KafkaError(code), **{name: value for name, value in where.items() if value is not None})


def taken(reading, *batch):
    """What a batch gives, in order: a range with offsets, or with the kind of its error."""
    return [
        (found, [one.offset for one in records] if isinstance(records, list) else records.facts["kind"])
        for found, records in reading.take(batch)
    ]


def opened(*ranges):
    """Ranges of which all streams are open."""
    reading = Reading(SETTINGS, ranges)
    reading.open(99)
    return reading


def places(partitions):
    return [(one.topic, one.partition, one.offset) for one in partitions]


def test_records_go_to_their_ranges_and_what_lies_beyond_an_end_to_none():
    first, second = ranged(0, 5, 8), ranged(1, 0, 3)
    reading = Reading(SETTINGS, [second, first])
    assert places(reading.open(99)) == [("t", 0, 5), ("t", 1, 0)]
    assert taken(reading, *messages(0, 5, 6), *messages(1, 0, 1), *messages(0, 7, 8, 9)) == [
        (first, [5, 6]),
        (second, [0, 1]),
        (first, [7]),
    ]
    assert (places(reading.ended()), reading.ended(), reading.left) == ([("t", 0, 8)], [], 1)
    assert taken(reading, *messages(0, 10), *messages(1, 2)) == [(second, [2])]
    assert not reading


def test_a_record_has_key_and_value_as_they_came():
    reading = opened(ranged(0, 5, 6))
    ((_, ((offset, key, value),)),) = reading.take([message(0, 5)])
    assert (offset, key, value) == (5, b"5", None)


def test_partitions_of_one_number_in_two_topics_are_two_streams():
    one, other = ranged(0, 0, 2), ranged(0, 0, 2, "u")
    reading = opened(one, other)
    assert taken(reading, message(0, 0), message(0, 0, "u"), message(0, 1), message(0, 1, "u")) == [
        (one, [0]),
        (other, [0]),
        (one, [1]),
        (other, [1]),
    ]


def test_adjacent_ranges_of_a_stream_are_read_without_a_move():
    later, first = ranged(0, 10, 20), ranged(0, 0, 10)
    reading = opened(later, first)
    assert taken(reading, *messages(0, *range(15))) == [(first, list(range(10))), (later, list(range(10, 15)))]
    assert (reading.moved(), reading.ended(), bool(reading)) == ([], [], True)


def test_a_range_elsewhere_is_moved_to_and_what_was_fetched_before_is_dropped():
    first, far = ranged(0, 0, 2), ranged(0, 100, 102)
    reading = opened(first, far)
    assert taken(reading, *messages(0, 0, 1, 2, 3)) == [(first, [0, 1])]
    assert (places(reading.moved()), reading.moved(), reading.ended()) == ([("t", 0, 100)], [], [])
    assert taken(reading, *messages(0, 4, 5, 100, 101)) == [(far, [100, 101])]
    assert not reading


def test_offsets_may_have_gaps_at_the_ends_of_ranges_too():
    first, empty, last = ranged(0, 0, 10), ranged(0, 10, 20), ranged(0, 20, 30)
    reading = opened(first, empty, last)
    assert taken(reading, *messages(0, 3, 7, 24)) == [(first, [3, 7]), (last, [24])]
    assert taken(reading, refusal(error_code.PARTITION_END, "t", 0, 27)) == []
    assert reading.left == 3
    assert taken(reading, refusal(error_code.PARTITION_END, "t", 0, 30)) == []
    assert not reading


def test_an_end_that_lies_behind_the_position_changes_nothing():
    reading = opened(ranged(0, 5, 10))
    assert taken(reading, refusal(error_code.PARTITION_END, "t", 0, 4), refusal(error_code.PARTITION_END, "t", 0)) == []
    assert (reading.left, reading.silent_s) == (5, 0.0)


def test_empty_ranges_are_read_before_they_begin():
    assert not opened(ranged(0, 5, 5))


@pytest.mark.parametrize(
    ("code", "kind"),
    [(error_code.NO_OFFSET, "retention"), (KafkaError.OFFSET_OUT_OF_RANGE, "retention"), (DAMAGED, "damaged")],
)
def test_an_error_ends_its_range_only_and_the_next_one_of_the_stream_is_tried(code, kind):
    bad, adjacent, other = ranged(0, 0, 10), ranged(0, 10, 12), ranged(1, 0, 2)
    reading = opened(bad, adjacent, other)
    batch = *messages(0, 0, 1), refusal(code, "t", 0), message(1, 0)
    assert taken(reading, *batch) == [(bad, [0, 1]), (bad, kind), (other, [0])]
    assert (places(reading.moved()), reading.left) == ([("t", 0, 10)], 3)
    assert taken(reading, *messages(0, 2, 3), *messages(0, 10, 11), message(1, 1)) == [(adjacent, [10, 11]), (other, [1])]
    assert not reading


def test_a_stream_whose_last_range_has_failed_is_taken_off_and_repeats_nothing():
    bad, other = ranged(0, 0, 10), ranged(1, 0, 2)
    reading = opened(bad, other)
    assert taken(reading, refusal(DAMAGED, "t", 0), refusal(DAMAGED, "t", 0)) == [(bad, "damaged")]
    assert places(reading.ended()) == [("t", 0, 10)]


def test_an_error_of_a_topic_fails_its_ranges_and_one_of_the_client_fails_all():
    here, there, other = ranged(0, 0, 1), ranged(1, 0, 1), ranged(0, 0, 1, "u")
    reading = opened(here, there, other)
    assert taken(reading, refusal(KafkaError.TOPIC_AUTHORIZATION_FAILED, "t")) == [(here, "unauthorized"), (there, "unauthorized")]
    assert taken(reading, refusal(KafkaError.GROUP_AUTHORIZATION_FAILED)) == [(other, "unreachable")]
    assert not reading


def test_what_the_client_retries_itself_is_no_failure():
    reading = opened(ranged(0, 0, 1))
    assert taken(reading, refusal(error_code.ALL_BROKERS_DOWN), refusal(KafkaError.NOT_LEADER_FOR_PARTITION, "t", 0)) == []
    assert reading


def test_a_silent_stream_fails_alone_with_all_its_ranges_while_another_moves():
    silent, behind, moving = ranged(0, 0, 5), ranged(0, 5, 10), ranged(1, 0, 9)
    reading = opened(silent, behind, moving)
    for offset in range(4):
        reading.wait(8.0)
        assert reading.silent_s == 8.0
        assert list(reading.fail_silent("")) == [] or offset == 3
        assert taken(reading, message(1, offset)) == [(moving, [offset])]
        assert reading.silent_s == 0.0
    assert reading.left == 5


def test_streams_are_opened_some_at_a_time_before_all_others_are_read():
    ranges = [ranged(partition, 0, 1) for partition in range(10)]
    reading = Reading(SETTINGS, ranges)
    assert ([one.partition for one in reading.open(4)], reading.left) == ([0, 1, 2, 3], 4)
    assert taken(reading, message(0, 0), message(5, 0)) == [(ranges[0], [0])]
    assert reading.open(4) == []
    assert taken(reading, message(3, 0)) == [(ranges[3], [0])]
    assert ([one.partition for one in reading.open(4)], reading.left) == ([4, 5], 4)
    taken(reading, *[message(partition, 0) for partition in range(10)])
    assert ([one.partition for one in reading.open(4)], bool(reading)) == ([6, 7, 8, 9], True)


def test_streams_that_are_opened_late_have_their_time_and_less_of_it_after_others_were_silent():
    silent, late, later, last = (ranged(partition, 0, 3) for partition in range(4))
    reading = Reading(SETTINGS, [silent, late, later, last])
    reading.open(2)
    reading.wait(20.0)
    taken(reading, *messages(1, 0, 1, 2))
    reading.open(2)
    reading.wait(10.0)
    assert [found for found, _ in reading.fail_silent("")] == [silent]
    assert [one.partition for one in reading.open(2)] == [3]
    reading.wait(PATIENCE_S - 1)
    assert [found for found, _ in reading.fail_silent("")] == [later]
    taken(reading, message(3, 0))
    reading.wait(PATIENCE_S)
    assert [found for found, _ in reading.fail_silent("")] == [last]


def test_streams_that_wait_fail_with_the_others_when_no_broker_answers():
    ranges = [ranged(partition, 0, 1) for partition in range(9)]
    reading = Reading(SETTINGS, ranges)
    reading.open(2)
    reading.wait(30.0)
    assert [found for found, _ in reading.fail_silent("")] == ranges
    assert not reading


def test_silence_is_reported_with_its_cause_and_the_position():
    silent, behind = ranged(0, 3, 5), ranged(0, 5, 10)
    reading = opened(silent, behind)
    reading.wait(29.9)
    assert list(reading.fail_silent("refused")) == []
    reading.wait(0.1)
    failures = list(reading.fail_silent("refused"))
    assert [(found, error.message, error.facts["cause"]) for found, error in failures] == [
        (silent, "Kafka does not answer: range t/0@3..5", "refused"),
        (behind, "Kafka does not answer: range t/0@5..10", "refused"),
    ]
    assert not reading


def test_a_call_that_cannot_go_on_fails_all_that_is_left():
    done, left, behind = ranged(0, 0, 1), ranged(1, 0, 5), ranged(1, 7, 9)
    reading = opened(done, left, behind)
    assert taken(reading, message(0, 0)) == [(done, [0])]
    error = SourceError("Kafka refuses the connection")
    assert list(reading.fail_all(error)) == [(left, error), (behind, error)]
    assert (bool(reading), reading.left) == (False, 0)


@st.composite
def calls(draw):
    """Ranges of some streams, the offsets that hold records, and how the client delivers them."""
    ranges, held = [], {}
    for partition in range(draw(st.integers(1, 3))):
        bounds = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=8)))
        ranges += [ranged(partition, *bounds[i : i + 2]) for i in range(0, len(bounds) - 1, draw(st.integers(1, 2)))]
        held[partition] = sorted(draw(st.sets(st.integers(0, 45))))
    return (
        draw(st.permutations(ranges)),
        held,
        draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 20)), max_size=60)),
        draw(st.integers(1, 4)),
    )


@given(calls())
def test_every_range_gets_its_records_once_and_in_order_however_they_are_delivered(call):
    ranges, held, deliveries, at_once = call
    reading = Reading(SETTINGS, ranges)
    at = {one.partition: one.offset for one in reading.open(at_once)}
    found = {range_id: [] for range_id in ranges}
    everything = [*deliveries, *[(partition, 99) for partition in held] * len(ranges)]
    for partition, count in everything:
        if partition not in at:
            continue
        here = [offset for offset in held[partition] if offset >= at[partition]][:count]
        batch = messages(partition, *here)
        if len(here) < count:
            batch.append(refusal(error_code.PARTITION_END, "t", partition, 50))
        at[partition] = here[-1] + 1 if here else at[partition]
        for range_id, records in reading.take(batch):
            found[range_id] += [one.offset for one in records]
        at |= {one.partition: one.offset for one in (*reading.moved(), *reading.open(at_once))}
    assert not reading
    assert found == {one: [o for o in held[one.stream.partition] if one.start <= o < one.end] for one in ranges}
