"""Peeking: the present records, stream by stream; no offset changes."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

from applier.model.errors import SourceError
from applier.model.position import Listing, Offset, PartitionExtent, Stream
from applier.sources import peek as peek_module
from applier.sources.peek import PeekChoice, follow, peek
from applier.sources.port import Record

ONE, TWO, OTHER = Stream("feed", 0), Stream("feed", 1), Stream("other", 0)
HELD = {ONE: [3, 4, 7, 8], TWO: [0, 1], OTHER: []}
ENDS = {ONE: 9, TWO: 2, OTHER: 0}


class ListedSource:
    """Records in lists, read in batches of two; only what peeking needs of the port."""

    def listing(self):
        return Listing({s: PartitionExtent(Offset(offsets[0] if offsets else 0), Offset(ENDS[s])) for s, offsets in HELD.items()})

    @property
    def reader(self):
        return self

    def read(self, ranges):
        for range_id in ranges:
            offsets = [o for o in HELD[range_id.stream] if range_id.start <= o < range_id.end]
            for at in range(0, len(offsets), 2):
                yield range_id, [Record(Offset(o), b"k", b"v") for o in offsets[at : at + 2]]


def places(**choice):
    return [(stream, record.offset) for stream, record in peek(ListedSource(), PeekChoice(**choice))]


def test_everything_that_is_there_comes_by_stream_and_offset():
    assert places() == [(ONE, 3), (ONE, 4), (ONE, 7), (ONE, 8), (TWO, 0), (TWO, 1)]


def test_a_topic_and_a_partition_restrict_the_streams():
    assert places(topic="other") == []
    assert places(topic="feed", partition=1) == [(TWO, 0), (TWO, 1)]
    assert places(partition=0) == [(ONE, 3), (ONE, 4), (ONE, 7), (ONE, 8)]


@pytest.mark.parametrize(("limit", "offsets"), [(1, [3]), (2, [3, 4]), (3, [3, 4, 7]), (9, [3, 4, 7, 8])])
def test_the_limit_counts_records_of_each_stream_and_not_offsets(limit, offsets):
    assert places(limit=limit, topic="feed", partition=0) == [(ONE, o) for o in offsets]


def test_from_begins_at_an_offset_even_if_it_is_a_gap():
    assert places(start=Offset(5), partition=0, topic="feed") == [(ONE, 7), (ONE, 8)]


def test_an_offset_behind_the_end_gives_no_records():
    assert places(start=Offset(99), topic="feed", partition=1) == []


def test_an_offset_that_is_gone_is_named_with_the_one_where_the_partition_begins():
    with pytest.raises(SourceError) as caught:
        places(start=Offset(1), topic="feed", partition=0)
    assert caught.value.facts == {"kind": "retention", "topic": "feed", "partition": 0, "offset": 1}
    assert "offset 3" in caught.value.remedy
    assert places(start=Offset(3), topic="feed", partition=0) == [(ONE, o) for o in HELD[ONE]]


def test_a_partition_that_was_made_again_is_followed_by_a_new_command():
    with pytest.raises(SourceError, match="ends before what was read of it") as caught:
        next(follow(ListedSource(), PeekChoice(), {ONE: Offset(99)}))
    assert caught.value.remedy.startswith("Start the command again")
    assert next(follow(ListedSource(), PeekChoice(), {}))[1].offset == HELD[ONE][0]


def test_for_an_unknown_partition_the_error_names_the_known_ones():
    with pytest.raises(SourceError) as caught:
        places(topic="feed", partition=7)
    assert caught.value.remedy == "The partitions are: feed/0, feed/1, other/0"


def followed(monkeypatch, choice, begun, change):
    """What comes until it is quiet for the second time. ``change`` is called when it is quiet for the first time."""
    waits = []

    def wait(_):
        if waits:
            raise KeyboardInterrupt
        waits.append(change())

    monkeypatch.setattr(peek_module, "time", SimpleNamespace(sleep=wait))
    found = []
    with suppress(KeyboardInterrupt):
        for stream, record in follow(ListedSource(), choice, begun):
            found.append((stream, record.offset))
    return found


def test_an_offset_that_a_partition_has_not_reached_is_waited_for(monkeypatch):
    begun = {ONE: Offset(12), TWO: Offset(12)}

    def grow():
        monkeypatch.setitem(HELD, ONE, [3, 4, 7, 8, 11, 12, 13])
        monkeypatch.setitem(ENDS, ONE, 14)

    assert followed(monkeypatch, PeekChoice(topic="feed", start=Offset(12)), begun, grow) == [(ONE, 12), (ONE, 13)]


def test_a_partition_that_ends_before_what_was_read_of_it_stops_the_following(monkeypatch):
    def shrink():
        monkeypatch.setitem(ENDS, ONE, 5)

    with pytest.raises(SourceError, match="ends before what was read"):
        followed(monkeypatch, PeekChoice(topic="feed", start=Offset(3)), {ONE: Offset(9), TWO: Offset(2)}, shrink)
