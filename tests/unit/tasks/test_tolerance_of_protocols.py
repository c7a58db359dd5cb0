"""A policy that quarantines what cannot be read keeps no record of another protocol: such a record stops the run by its name."""

import json

import pytest

from applier.model.errors import ProtocolError
from applier.model.position import Offset
from applier.model.rejected_event import WHOLE_RECORD, QuarantineState
from applier.selection import EVERYTHING
from applier.sources.formats import FORMATS
from applier.sources.port import Record
from applier.sources.ticdc.large_row import REFUSED
from applier.tasks.tolerance import Tolerance, TolerantPlacer
from tests.builders import canal_json, simple_wire
from tests.builders.handwritten import ONE
from tests.builders.wire import VERSION, head, integer_key, record

WRITTEN = {
    "open-protocol": record((head(), {"u": {"id": integer_key(1)}})),
    "canal-json": (None, canal_json.dump(canal_json.row())),
    "canal-json without enable-tidb-extension": (None, json.dumps({"isDdl": False, "es": 5, "type": "INSERT"}).encode()),
    "simple": (None, simple_wire.watermark()),
    "debezium": (None, b'{"payload": {}}'),
    "maxwell": (VERSION, b'{"database": "d", "table": "t", "type": "insert", "ts": 1}'),
    "avro": (None, b"\0\0\0\0\x07record"),
    "csv": (None, b'"I","t","d",1'),
}
OF_NO_PROTOCOL = [(b"garbage", b"more garbage"), (None, b"{"), (None, b'{"order": 7}'), (None, None)]
FOREIGN = [pytest.param(reads, name, id=f"{name} to {reads}") for reads in FORMATS for name in WRITTEN if name != reads]


def place(reads, key, value, **tolerated):
    placer = TolerantPlacer(ONE, Tolerance(**tolerated), FORMATS[reads](REFUSED, EVERYTHING))
    return [placed.event for placed in placer.place_all([Record(Offset(7), key, value)])]


@pytest.mark.parametrize(("reads", "name"), FOREIGN)
def test_a_record_of_another_protocol_stops_although_unreadable_ones_are_quarantined(reads, name):
    with pytest.raises(ProtocolError, match=f"the record is {name}".replace("open-p", "Open P")) as caught:
        place(reads, *WRITTEN[name], unreadable=True)
    assert (caught.value.exit_code, caught.value.facts["offset"]) == (3, 7)
    assert "protocol" in caught.value.remedy or "enable-tidb-extension" in caught.value.remedy


@pytest.mark.parametrize(("key", "value"), OF_NO_PROTOCOL)
@pytest.mark.parametrize("reads", FORMATS)
def test_a_record_of_no_protocol_is_quarantined(reads, key, value):
    (found,) = place(reads, key, value, unreadable=True)
    assert found.state is QuarantineState.HELD


@pytest.mark.parametrize(
    ("reads", "key", "value"),
    [
        ("open-protocol", VERSION + (1).to_bytes(8, "big") + b"{", b""),
        ("canal-json", None, canal_json.dump(canal_json.row() | {"type": "UPSERT"})),
        ("simple", None, simple_wire.watermark().replace(b'"WATERMARK"', b'"OTHER"')),
    ],
)
def test_a_damaged_record_of_the_right_protocol_is_quarantined(reads, key, value):
    (found,) = place(reads, key, value, unreadable=True)
    assert found.state is QuarantineState.HELD


@pytest.mark.parametrize(("reads", "name"), FOREIGN)
def test_the_operator_can_skip_a_record_of_another_protocol(reads, name):
    (found,) = place(reads, *WRITTEN[name], skipped={(7, WHOLE_RECORD): "the operator"})
    assert found.state is QuarantineState.SKIPPED


def test_a_record_that_an_earlier_version_has_quarantined_stays_quarantined():
    (found,) = place("simple", *WRITTEN["debezium"], stored=frozenset({(7, WHOLE_RECORD)}))
    assert found.state is QuarantineState.HELD
