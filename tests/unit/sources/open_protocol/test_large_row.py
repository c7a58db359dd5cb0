"""Large rows at their place in the stream: which objects are read, in which calls, and what becomes of their failures."""

from base64 import b64encode

import pytest

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import RowKind
from applier.model.failure import FailureKind
from applier.model.position import Stream
from applier.sources.open_protocol import OpenProtocolPlacer, decode_key
from applier.sources.port import Record, Unplaced
from applier.sources.ticdc.large_row import WholeRowSources
from tests.builders.wire import dump, head, integer_key, record, text
from tests.rig.placing import place_records

STREAM = Stream("feed", 3)


class Objects:
    """Implements ``ClaimCheckStore`` in memory: rows by name; ``calls`` are the names of each call."""

    def __init__(self, **contents):
        self.contents, self.calls = contents, []

    def read(self, names):
        self.calls.append(list(names))
        for name in names:
            yield self.contents.get(name.removesuffix(".json"), ProtocolError("it does not exist", kind="claim_check", object=name))


def whole(number, **members):
    return head(**members), {"u": {"id": integer_key(number), "c": text("whole")}}


def content(event):
    key, value = record(event)
    return dump({"key": b64encode(key).decode(), "value": b64encode(value).decode()})


def claim(name, number, **members):
    return head(ccl=f"s3://b/{name}.json", **members), {"u": {"id": integer_key(number)}}


def records(*events):
    return [Record(offset, *(event if isinstance(event[0], bytes) else record(event))) for offset, event in enumerate(events)]


def placer_of(store):
    return OpenProtocolPlacer(STREAM, WholeRowSources(claims=store))


def ids(placed):
    return [decode_key(row.key)[0] for _, row in placed]


def test_objects_of_some_records_are_asked_for_together_and_rows_come_in_their_order():
    store = Objects(a=content(whole(1)), b=content(whole(2)), c=content(whole(4)))
    placed = place_records(placer_of(store), records(claim("a", 1), claim("b", 2), whole(3), claim("c", 4), claim("a", 1)))
    assert ids(placed) == [1, 2, 3, 4, 1]
    assert store.calls == [["a.json", "b.json", "c.json", "a.json"]]


def test_several_claims_of_one_record_are_its_events():
    store = Objects(a=content(whole(1)), b=content(whole(2)))
    placed = place_records(placer_of(store), [Record(5, *record(claim("a", 1), whole(3), claim("b", 2)))])
    assert [place for place, _ in placed] == [(5, 0), (5, 1), (5, 2)]
    assert ids(placed) == [1, 3, 2]


def test_a_batch_of_records_is_as_far_as_is_read_ahead():
    store = Objects(a=content(whole(1)))
    placed = place_records(placer_of(store), records(*[claim("a", 1)] * 600))
    assert len(placed) == 600
    assert [len(call) for call in store.calls] == [256, 256, 88]


def test_an_unreadable_record_further_on_is_reported_at_its_turn():
    store = Objects(a=content(whole(1)), b=content(whole(2)))
    bad = (b'\0\0\0\0\0\0\0\1{"ccl"', b"")
    with pytest.raises(ProtocolError) as raised:
        place_records(placer_of(store), records(claim("a", 1), bad, claim("b", 2)))
    assert (raised.value.facts["offset"], store.calls) == (1, [["a.json"]])


def test_a_claim_that_was_not_seen_ahead_is_read_alone():
    """Its member is written with an escape: legal JSON, which no producer writes."""
    store = Objects(a=content(whole(1)), b=content(whole(2)))
    odd = record((dump(head(ccl="s3://b/b.json")).replace(b'"ccl"', b'"\\u0063cl"'), {"u": {"id": integer_key(2)}}))
    assert ids(place_records(placer_of(store), records(claim("a", 1), odd, claim("a", 1)))) == [1, 2, 1]
    assert store.calls == [["a.json", "a.json"], ["b.json"], ["a.json"]]


def test_a_row_that_is_placed_alone_reads_its_object_alone():
    store = Objects(a=content(whole(1)))
    placer = placer_of(store)
    first, second = records(claim("a", 1), claim("gone", 2))
    assert [index for index, _ in placer.place_each(*first)] == [0]
    marker, unplaced = (event for _, event in placer.place_each(*second))
    assert (marker.image, decode_key(marker.key)) == (b"", [2])
    assert isinstance(unplaced, Unplaced)
    assert (unplaced.error.facts["object"], unplaced.error.facts["offset"]) == ("gone.json", 1)
    assert store.calls == [["a.json"], ["gone.json"]]


@pytest.mark.parametrize("alone", [False, True])
def test_a_storage_that_fails_is_an_error_of_the_range_and_not_of_the_row(alone):
    store = Objects(a=SourceError("away", kind=FailureKind.UNREACHABLE))
    placer, (one,) = placer_of(store), records(claim("a", 1))
    with pytest.raises(SourceError) as raised:
        placer.place_each(*one) if alone else place_records(placer, [one])
    assert not isinstance(raised.value, ProtocolError)
    assert raised.value.facts == {"kind": "unreachable", "topic": "feed", "partition": 3, "offset": 0}


def test_an_object_may_hold_an_update_that_changes_the_key():
    moved = head(), {"u": {"id": integer_key(2), "c": text("x")}, "p": {"id": integer_key(1), "c": text("x")}}
    store = Objects(a=content(moved))
    announced = head(ccl="s3://b/a.json"), {"u": {"id": integer_key(2)}, "p": {"id": integer_key(1)}}
    rows = [row for _, row in place_records(placer_of(store), records(announced))]
    assert [(row.kind, decode_key(row.key)) for row in rows] == [(RowKind.DELETE, [1]), (RowKind.UPSERT, [2])]


class Lookup:
    """Stands for an address of upstream: placers only ask whether there is one."""


def test_placeholders_keep_their_place_and_the_delete_of_a_changed_key_is_complete():
    placer = OpenProtocolPlacer(STREAM, WholeRowSources(lookup=Lookup()))
    key = {"id": integer_key(1)}
    events = [(head(ohk=True), {"u": key}), (head(ohk=True), {"u": {"id": integer_key(2)}, "p": key}), (head(ohk=True), {"d": key})]
    rows = [row for _, row in place_records(placer, records(*events))]
    assert [(row.kind, row.shape.placeholder, decode_key(row.key)) for row in rows] == [
        (RowKind.UPSERT, True, [1]),
        (RowKind.DELETE, False, [1]),
        (RowKind.UPSERT, True, [2]),
        (RowKind.DELETE, False, [1]),
    ]


def test_a_placeholder_without_a_key_is_refused_also_with_an_address():
    placer = OpenProtocolPlacer(STREAM, WholeRowSources(lookup=Lookup()))
    with pytest.raises(ProtocolError) as raised:
        place_records(placer, records((head(ohk=True), {"u": {"c": text("x")}})))
    assert raised.value.facts["kind"] == "handle_key_only"
