"""The record of a rejected event is found among several of one offset, and each is read once."""

import pytest

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, RejectedEvent
from applier.sources.port import Record
from applier.tasks.write import RecordFetcher

STREAM = Stream("binlog", 0)
PARTS = {Offset(4): [(0, b"a"), (100, b"b"), (200, b"c")], Offset(9): [(0, b"d")]}


class PartReader:
    """Gives the parts of an offset, and counts them."""

    def __init__(self):
        self.read = 0

    def records_at(self, stream, offset):
        assert stream == STREAM
        for first_event, value in PARTS.get(offset, []):
            self.read += 1
            yield first_event, Record(offset, None, value)


def event(offset, index):
    return RejectedEvent(position=EventPosition(STREAM, Offset(offset), index), error="")


def test_each_event_gets_the_part_that_holds_it_and_each_part_is_read_once():
    reader = PartReader()
    fetch = RecordFetcher(reader)
    places = [(4, 0), (4, 99), (4, 100), (4, 150), (4, 250), (9, WHOLE_RECORD)]
    assert [fetch(event(*place)).value for place in places] == [b"a", b"a", b"b", b"b", b"c", b"d"]
    assert reader.read == 4


def test_an_offset_without_a_record_is_gone():
    with pytest.raises(SourceError, match="gone from the source"):
        RecordFetcher(PartReader())(event(5, 0))
