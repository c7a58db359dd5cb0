import json

from applier.model.event_json import event_to_json
from applier.sources.open_protocol import decode_record
from tests.builders.wire import TS, column, head, integer_key, record


def test_events_are_plain_json_with_exact_numbers():
    image = {
        "id": column(8, 139, 2**64 - 1),
        "f": column(5, 65, 0.1),
        "b": column(252, 65, "/w=="),
        "t": column(15, 64, "é"),
        "n": column(3, 65, None),
    }
    row, admin = (
        event_to_json(event) for event in decode_record(*record((head(ptn=4), {"d": image}), ({"ts": TS, "t": 4}, {"partition": 5})))
    )
    assert json.loads(json.dumps(row)) == row
    assert {name: member["value"] for name, member in row["before"].items()} == {
        "id": {"int": "18446744073709551615"},
        "f": {"float": "0.1"},
        "b": {"bytes_b64": "/w=="},
        "t": {"str": "é"},
        "n": None,
    }
    assert (row["op"], row["after"], row["partition_id"]) == ("delete", None, 4)
    assert admin == {"type": "admin", "ts": TS, "partition": 5}


def test_ddl_and_resolved_events_have_their_own_members():
    events = decode_record(*record((head(t=2), {"q": "x", "t": 3}), ({"ts": TS, "t": 3}, b""), (head(), {"u": {"id": integer_key(1)}})))
    ddl, resolved, row = map(event_to_json, events)
    assert ddl == {"type": "ddl", "commit_ts": TS, "schema": "shop", "table": "orders", "query": "x", "ddl_type": 3}
    assert resolved == {"type": "resolved", "ts": TS}
    assert row["type"] == "row"
