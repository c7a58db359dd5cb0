"""How a rejected event is described: its place and reason, and no value of its row where a log could show it."""

import pickle

import pytest

from applier.model.errors import ProtocolError, RowRefused
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, QuarantineState, RejectedEvent, key_text, reason_of

STREAM = Stream("feed", 2)


@pytest.mark.parametrize(("event", "text"), [(WHOLE_RECORD, "feed/2@9"), (0, "feed/2@9#0"), (7, "feed/2@9#7")])
def test_a_place_is_spelled_with_its_event(event, text):
    assert str(EventPosition(STREAM, Offset(9), event)) == text


def test_facts_for_a_log_hold_the_place_and_no_values():
    place = EventPosition(STREAM, Offset(9), 3)
    event = RejectedEvent(position=place, error="secret", schema="shop", table="orders", key="id=secret", commit_ts=Ts(5))
    assert event.facts == {
        "state": "held",
        "topic": "feed",
        "partition": 2,
        "offset": 9,
        "event": 3,
        "table": "shop.orders",
        "commit_ts": 5,
    }
    whole = RejectedEvent(position=place._replace(event=WHOLE_RECORD), error="secret", state=QuarantineState.SKIPPED)
    assert whole.facts == {"state": "skipped", "topic": "feed", "partition": 2, "offset": 9}


def test_a_reason_is_the_message_with_the_facts_that_are_not_the_place():
    error = ProtocolError.at(
        RecordPosition(STREAM, Offset(9)), "json", "it is not JSON", event=1, schema="s", table="t", commit_ts=5, column="c"
    )
    assert reason_of(error) == "it is not JSON [kind=json, column=c]"
    assert reason_of(RowRefused("too long", table="s.t", min_ts=1, max_ts=2)) == "too long"


def test_a_key_is_written_for_people():
    assert key_text(["id", "code", "data", "note"], [7, "x'", b"\x00\xff", None]) == 'id=7, code="x\'", data=0x00ff, note=None'


def test_a_rejected_event_survives_pickling():
    event = RejectedEvent(position=EventPosition(STREAM, Offset(9), 0), error="broken")
    assert pickle.loads(pickle.dumps(event)) == event  # noqa: S301 - our own bytes
