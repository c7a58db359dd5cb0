"""Claim-check objects: only the announced row is taken from them. (More cases are among the vectors.)"""

from base64 import b64encode

import pytest

from applier.model.errors import ProtocolError
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.open_protocol import decode_record, read_claim_check
from tests.builders.wire import TS, dump, head, integer_key, record, text

LOCATION = "s3://bucket/prefix/x.json"
PLACE = RecordPosition(Stream("changefeed", 0), Offset(5))
HANDLE, WHOLE = {"id": integer_key(1)}, {"id": integer_key(1), "body": text("long")}


def announce(body, **members):
    (event,) = decode_record(*record((head(ccl=LOCATION, **members), body)))
    return event


def content_of(*events):
    key, value = record(*events)
    return dump({"key": b64encode(key).decode(), "value": b64encode(value).decode()})


def reason_of(content, announced):
    with pytest.raises(ProtocolError) as caught:
        read_claim_check(content, announced, PLACE)
    facts = caught.value.facts
    assert (facts["kind"], facts["offset"], facts["claim_check"], facts["commit_ts"]) == ("claim_check", 5, LOCATION, TS)
    assert caught.value.remedy
    return facts["reason"]


def test_object_gives_the_whole_row():
    row = read_claim_check(content_of((head(), {"u": WHOLE})), announce({"u": HANDLE})).row
    assert row.after["body"].value == "long"
    assert row.claim_check is None


def test_old_image_may_be_in_one_of_the_two_only():
    announced = announce({"u": HANDLE, "p": HANDLE})
    assert read_claim_check(content_of((head(), {"u": WHOLE, "p": {}})), announced).row.before is None


@pytest.mark.parametrize(
    "other",
    [
        (head(ts=TS + 1), {"u": WHOLE}),
        (head(schema="other"), {"u": WHOLE}),
        (head(table="other"), {"u": WHOLE}),
        (head(ptn=7), {"u": WHOLE}),
        (head(), {"d": WHOLE}),
        (head(), {"u": {**WHOLE, "id": integer_key(2)}}),
        (head(), {"u": {"body": text("long")}}),
        (head(ohk=True), {"u": WHOLE}),
        (head(ccl=LOCATION), {"u": WHOLE}),
        (head(t=2), {"q": "TRUNCATE TABLE `orders`", "t": 11}),
    ],
)
def test_another_row_than_announced_is_refused(other):
    assert reason_of(content_of(other), announce({"u": HANDLE})) == "claim_check"


def test_deleted_row_is_compared_by_its_key():
    announced = announce({"d": HANDLE})
    assert read_claim_check(content_of((head(), {"d": WHOLE})), announced).row.before["id"].value == 1
    assert reason_of(content_of((head(), {"d": {"id": integer_key(2)}})), announced) == "claim_check"


def test_object_with_no_or_two_rows_is_refused():
    row = (head(), {"u": WHOLE})
    assert reason_of(content_of(), announce({"u": HANDLE})) == "claim_check"
    assert reason_of(content_of(row, row), announce({"u": HANDLE})) == "claim_check"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "json"),
        (b"[]", "json"),
        (b"{}", "field_type"),
        (b'{"key":5,"value":""}', "field_type"),
        (b'{"key":"AA","value":""}', "base64"),
        (b'{"key":"","value":""}', "version"),
    ],
)
def test_content_that_cannot_be_read_is_refused_with_the_reason(content, reason):
    assert reason_of(content, announce({"u": HANDLE})) == reason
