"""What can still be said of a record that cannot be read: its readable events, and which rows the others are about."""

import pytest

from applier.model.events import MARKER_IMAGE, PlacedRow, ResolvedEvent, RowKind, TableName
from applier.model.position import Stream
from applier.model.rejected_event import WHOLE_RECORD
from applier.sources.open_protocol import OpenProtocolPlacer, decode_key
from applier.sources.port import EventHead, Record, Unplaced
from tests.builders.wire import TS, column, head, integer_key, record, text
from tests.rig.placing import place_records

STREAM = Stream("changefeed", 2)
BAD = column(3, 0, "not a number")


def order(number, note="x"):
    return {"id": integer_key(number), "note": text(note)}


def each(*events):
    return OpenProtocolPlacer(STREAM).place_each(9, *record(*events))


def markers(body, key=None):
    """The keys of the rows that an unreadable event is about."""
    *found, (_, last) = each((key or head(), body))
    assert isinstance(last, Unplaced)
    assert all((row.kind, row.image, row.commit_ts) == (RowKind.UPSERT, MARKER_IMAGE, TS) for _, row in found)
    return [decode_key(row.key) for _, row in found]


def test_what_can_be_read_comes_out_as_it_is_placed_with_the_index_of_its_event():
    events = [(head(), {"u": order(2), "p": order(1)}), (head(), {"u": order(3)}), ({"ts": 7, "t": 3}, b"")]
    placer = OpenProtocolPlacer(STREAM)
    placed = place_records(placer, [Record(9, *record(*events))])
    assert [place for place, _ in placed] == [(9, 0), (9, 0), (9, 1), (9, 2)]
    assert each(*events) == [(index, event) for (_, index), event in placed]


def test_the_events_around_one_that_cannot_be_read_are_placed():
    found = each((head(), {"u": order(1)}), (head(), {"u": {"id": BAD}}), ({"ts": 7, "t": 3}, b""))
    (first, row), (second, unplaced), (third, resolved) = found
    assert (first, second, third) == (0, 1, 2)
    assert isinstance(row, PlacedRow)
    assert isinstance(resolved, ResolvedEvent)
    assert isinstance(unplaced, Unplaced)
    facts = {"topic": "changefeed", "partition": 2, "offset": 9, "event": 1, "table": "orders", "commit_ts": TS}
    assert facts.items() <= unplaced.error.facts.items()
    assert unplaced.head is not None
    assert unplaced.head == EventHead(TS, TableName("shop", "orders"), is_ddl=False)


@pytest.mark.parametrize(
    ("key", "value"), [(None, b""), (b"rubbish", b""), (record((head(), {}))[0], b"short"), (record((head(), {}))[0][:-1], b"")]
)
def test_a_record_that_cannot_be_taken_apart_is_one_event(key, value):
    ((index, unplaced),) = OpenProtocolPlacer(STREAM).place_each(9, key, value)
    assert (index, unplaced.head) == (WHOLE_RECORD, None)


def test_an_event_whose_own_key_cannot_be_read_has_no_head():
    ((index, unplaced),) = each((b"{", {"u": order(1)}))
    assert (index, unplaced.head) == (0, None)


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ({"u": {"id": integer_key(1), "note": BAD}}, [[1]]),
        ({"d": {"id": integer_key(1), "note": BAD}}, [[1]]),
        ({"u": {"id": integer_key(2), "note": BAD}, "p": {"id": integer_key(1)}}, [[1], [2]]),
        ({"u": {"id": integer_key(1), "note": BAD}, "p": {"note": text("x")}}, [[1]]),
        ({"u": order(1), "p": {"id": BAD}}, [[1]]),
        ({"u": order(1), "d": order(2)}, [[1], [2]]),
        ({"u": {"id": integer_key("?"), "note": text("x")}}, []),
        ({"u": {"note": BAD}}, []),
        ({"u": {"note": 5}}, []),
        ({"u": {"id": {**integer_key(1), "f": "?"}, "note": BAD}}, []),
        ({"u": [1]}, []),
        ({}, []),
        (b"", []),
        (b"\xff\xff", []),
    ],
)
def test_a_row_event_leaves_a_marker_for_each_key_that_can_be_read(body, keys):
    assert markers(body) == keys


def test_a_reduced_row_leaves_a_marker():
    assert markers({"u": {"id": integer_key(1)}}, head(ohk=True)) == [[1]]
    assert markers({"u": {"id": integer_key(1)}}, head(ccl="somewhere")) == [[1]]


def test_a_key_of_floating_point_and_of_text_is_that_of_readable_rows():
    columns = {"id": column(5, 11, -0.0), "name": column(15, 2, "é")}
    (_, row), *_ = each((head(), {"u": columns}))
    (_, marker), _ = each((head(), {"u": {**columns, "note": BAD}}))
    assert marker.key == row.key


def test_a_ddl_that_cannot_be_read_leaves_none():
    assert markers({"q": 5}, head(t=2)) == []


def test_a_record_without_a_value_leaves_none():
    key, _ = record((head(), {"u": order(1)}))
    ((index, unplaced),) = OpenProtocolPlacer(STREAM).place_each(9, key, None)
    assert (index, unplaced.error.facts["kind"]) == (0, "count_mismatch")
