"""Framing: records cut at every byte, with rubbish after them, with lying lengths."""

import pytest

from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, ResolvedEvent, RowEvent
from applier.model.position import NO_TS
from applier.sources.open_protocol import decode_record
from applier.sources.open_protocol.record import split_record
from tests.builders.wire import TS, VERSION, dump, frame, head, integer_key, record

ROW = (head(), {"u": {"id": integer_key(1)}})
DDL = (head(ts=TS + 1, t=2), {"q": "TRUNCATE TABLE `orders`", "t": 11})
RESOLVED = ({"ts": TS + 2, "t": 3}, b"")
ADMIN = ({"ts": TS + 3, "t": 4}, {"partition": 8})


def kind_of(key, value):
    with pytest.raises(ProtocolError) as caught:
        decode_record(key, value)
    return caught.value.facts["kind"]


def test_events_of_every_type_in_one_record_come_in_order():
    events = decode_record(*record(ROW, DDL, RESOLVED, ADMIN, ROW))
    assert [type(event) for event in events] == [RowEvent, DdlEvent, ResolvedEvent, AdminEvent, RowEvent]
    assert events[2] == ResolvedEvent(TS + 2)
    assert events[3] == AdminEvent(TS + 3, 8)


def test_admin_event_of_the_founding_design_needs_no_timestamp():
    assert decode_record(*record(({"t": 4}, {"partition": 5}))) == [AdminEvent(NO_TS, 5)]


@pytest.mark.parametrize("body", [{"partition": 0}, {"partition": True}, {"partition": 2**31}, {}, {"u": {}}])
def test_event_of_type_4_without_a_number_of_partitions_is_refused(body):
    assert kind_of(*record(({"t": 4}, body))) == "event_type"


@pytest.mark.parametrize("value", [b"", None])
def test_version_alone_is_an_empty_batch(value):
    assert decode_record(VERSION, value) == []


def test_null_key_is_refused():
    assert kind_of(None, None) == "version"


@pytest.mark.parametrize("events", [(ROW,), (ROW, DDL), (RESOLVED, RESOLVED)])
def test_record_cut_at_any_byte_is_refused(events):
    key, value = record(*events)
    for end in range(8, len(key)):
        assert kind_of(key[:end], value) in ("framing", "count_mismatch"), end
    for end in range(1, len(value)):
        assert kind_of(key, value[:end]) in ("framing", "count_mismatch"), end


@pytest.mark.parametrize("size", [1, 7, 8, 9])
def test_rubbish_after_the_last_event_is_refused(size):
    key, value = record(ROW, ROW)
    assert kind_of(key + b"\0" * size, value) in ("framing", "count_mismatch")
    assert kind_of(key, value + b"\0" * size) in ("framing", "count_mismatch")


def test_length_of_64_bits_is_refused_without_slicing():
    key, value = record(ROW)
    assert kind_of(key, b"\xff" * 8 + value[8:]) == "framing"
    assert kind_of(key[:8] + b"\xff" * 8 + key[16:], value) == "framing"


def test_counts_that_differ_name_both_numbers():
    key, _ = record(ROW, ROW)
    _, value = record(ROW)
    with pytest.raises(ProtocolError) as caught:
        split_record(key, value)
    assert (caught.value.facts["keys"], caught.value.facts["bodies"]) == (2, 1)


@pytest.mark.parametrize("value", [b"", None])
def test_resolved_events_need_no_value_but_rows_and_ddls_do(value):
    resolved, _ = record(RESOLVED, RESOLVED)
    assert decode_record(resolved, value) == [ResolvedEvent(TS + 2)] * 2
    for event in (ROW, DDL, ADMIN):
        assert kind_of(record(event)[0], value) == "count_mismatch"


def test_resolved_event_with_a_body_is_refused():
    assert kind_of(*record(({"ts": TS, "t": 3}, {}))) == "framing"


def test_error_names_the_event_within_its_record_and_its_table():
    key, value = record(ROW, (head(table="bad"), {"u": {"id": integer_key("1")}}))
    with pytest.raises(ProtocolError) as caught:
        decode_record(key, value)
    facts = caught.value.facts
    assert (facts["event"], facts["schema"], facts["table"], facts["commit_ts"], facts["column"]) == (1, "shop", "bad", TS, "id")


def test_error_of_an_unreadable_event_key_does_not_name_the_table_before_it():
    key = VERSION + frame([dump(ROW[0]), b"{"])
    with pytest.raises(ProtocolError) as caught:
        decode_record(key, record(ROW, ROW)[1])
    assert caught.value.facts == {"kind": "json", "event": 1}
