"""The position of a streaming query: what a batch reads, how much, and topics that are not the same any more."""

import json

import pytest

from applier.dataframe.reading import check_topics, limited, offsets_in, position_document, ranges_between
from applier.model.errors import SourceError
from applier.model.position import Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId

ONE, TWO = Stream("feed", 0), Stream("feed", 1)
IDS = {"feed": "id-1"}


def document(one, two=None, first=None, ids=IDS):
    offsets = {ONE: Offset(one)} | ({} if two is None else {TWO: Offset(two)})
    return json.loads(json.dumps(position_document(offsets, ids, first)))


def test_a_position_is_read_as_it_was_written():
    assert offsets_in(document(5, 7)) == {ONE: 5, TWO: 7}


def test_a_batch_reads_what_lies_between_two_positions():
    assert ranges_between(document(5, 7), document(9, 7)) == [RangeId(ONE, Offset(5), Offset(9))]


def test_a_partition_that_is_new_begins_where_its_batch_noted():
    end = document(5, 9, first={TWO: Offset(3)})
    assert ranges_between(document(5), end) == [RangeId(TWO, Offset(3), Offset(9))]
    assert ranges_between(end, document(5, 11)) == [RangeId(TWO, Offset(9), Offset(11))]


@pytest.mark.parametrize(("at_most", "wanted"), [(None, (100, 11)), (1000, (100, 11)), (50, (45, 5)), (1, (1, 2))])
def test_a_limited_batch_takes_a_share_of_each_partition_and_always_goes_on(at_most, wanted):
    found = limited({ONE: Offset(0), TWO: Offset(1)}, {ONE: Offset(100), TWO: Offset(11)}, at_most)
    assert (found[ONE], found[TWO]) == wanted


@pytest.mark.parametrize(
    ("ids", "ends", "words"),
    [
        ({"feed": "id-2"}, {ONE: 9, TWO: 9}, "created again"),
        (IDS, {ONE: 9}, "does not exist any more"),
        (IDS, {ONE: 9, TWO: 6}, "ends before what was read"),
    ],
)
def test_a_topic_that_is_not_the_same_any_more_stops_the_query(ids, ends, words):
    extents = {stream: PartitionExtent(Offset(0), Offset(end)) for stream, end in ends.items()}
    with pytest.raises(SourceError, match=words):
        check_topics(document(5, 7), ids, extents)


def test_a_broker_without_ids_is_believed():
    extents = {ONE: PartitionExtent(Offset(0), Offset(9))}
    check_topics(document(5, ids={}), IDS, extents)
    check_topics(document(5), {}, extents)
