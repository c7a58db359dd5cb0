import pytest

from applier.model.errors import ProtocolError
from applier.sources.open_protocol.record import read_head
from tests.builders.wire import TS, dump


def kind_of(data):
    with pytest.raises(ProtocolError) as caught:
        read_head(data)
    return caught.value.facts["kind"]


def test_members_may_come_in_any_order_and_unknown_ones_are_ignored():
    key = read_head(dump({"new": [1], "t": 1, "ptn": 44, "tbl": "t", "scm": "s", "rid": 5, "ts": TS}))
    assert (key.ts, key.scm, key.tbl, key.ptn, key.ohk, key.ccl) == (TS, "s", "t", 44, False, None)


def test_last_of_repeated_members_counts():
    assert read_head(b'{"ts":1,"t":1,"ohk":true,"ohk":false}').ohk is False
    assert read_head(b'{"ts":1,"t":1,"ohk":false,"ohk":true}').ohk is True


def test_null_members_are_absent_ones():
    key = read_head(b'{"ts":1,"scm":null,"tbl":null,"t":2,"ptn":null,"ohk":null,"ccl":null}')
    assert (key.scm, key.tbl, key.ptn, key.ohk, key.ccl) == ("", "", None, False, None)


def test_unusual_members_are_read_beside_null_ones():
    key = read_head(b'{"ts":18446744073709551615,"scm":null,"tbl":"t","t":1,"ptn":7,"ohk":true,"ccl":"s3://b/x.json"}')
    assert (key.ts, key.tbl, key.ptn, key.ohk, key.ccl) == (2**64 - 1, "t", 7, True, "s3://b/x.json")


@pytest.mark.parametrize("ts", ["-1", "18446744073709551616", "1.0", '"1"', "true", "null"])
def test_timestamp_must_be_an_unsigned_integer_of_64_bits(ts):
    assert kind_of(b'{"ts":' + ts.encode() + b',"t":3}') == "field_type"


def test_row_without_timestamp_is_refused():
    assert kind_of(b'{"scm":"s","tbl":"t","t":1}') == "field_type"


@pytest.mark.parametrize("member", [b'"scm":5', b'"tbl":[]', b'"ptn":"7"', b'"ohk":1', b'"ccl":{}'])
def test_member_of_the_wrong_type_is_refused(member):
    assert kind_of(b'{"ts":1,"t":1,' + member + b"}") == "field_type"


@pytest.mark.parametrize("name", [b"scm", b"tbl"])
def test_name_that_is_not_utf8_is_refused(name):
    assert kind_of(b'{"ts":1,"t":1,"' + name + b'":"\xff"}') == "field_type"


def test_foreign_bytes_elsewhere_do_not_matter():
    assert read_head(b'{"ts":1,"t":1,"scm":"s","note":"\xff"}').scm == "s"


@pytest.mark.parametrize("event_type", [b"0", b"5", b"1.0", b'"1"', b"true", b"null"])
def test_unknown_event_type_is_refused(event_type):
    assert kind_of(b'{"ts":1,"t":' + event_type + b"}") == "event_type"
