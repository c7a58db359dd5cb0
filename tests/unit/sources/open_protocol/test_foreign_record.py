"""Records of other protocols are named by their content."""

import json

import cramjam
import lz4.frame
import pytest

from applier.model.errors import ProtocolError
from applier.model.position import Offset, Stream
from applier.sources.open_protocol import decode_record
from applier.sources.open_protocol.decoder import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.sources.ticdc.foreign_record import refuse_other
from tests.builders.wire import VERSION, head, record

CANAL = {
    "id": 0, "database": "d", "table": "t", "pkNames": ["a"], "isDdl": False, "type": "UPDATE", "es": 1, "ts": 2, "sql": "",
    "sqlType": {"a": 12}, "mysqlType": {"a": "varchar"}, "old": [{"b": "x"}], "data": [{"a": "aa"}],
}  # fmt: skip
SIMPLE = {"version": 1, "database": "d", "table": "t", "tableID": 7, "type": "DELETE", "commitTs": 4, "buildTs": 5, "old": {"a": "aa"}}
MAXWELL = {"database": "d", "table": "t", "type": "insert", "ts": 1, "data": {"a": 1}}
DEBEZIUM = {"payload": {"source": {"connector": "TiCDC"}, "op": "c"}, "schema": {}}
EXTENDED = CANAL | {"_tidb": {"commitTs": 7}}


def text(document):
    return json.dumps(document).encode()


FOREIGN = [
    ("canal-json", None, text(EXTENDED)),
    ("canal-json", b"", text(EXTENDED) + b"\r\n"),
    ("canal-json", None, lz4.frame.compress(text(EXTENDED))),
    ("canal-json", None, bytes(cramjam.snappy.compress_raw(text(EXTENDED)))),
    ("canal-json without enable-tidb-extension", b"d.t", text(CANAL)),
    ("simple (JSON)", None, text(SIMPLE)),
    ("simple (JSON)", None, text({"version": 1, "type": "WATERMARK", "commitTs": 4, "buildTs": 5})),
    ("simple (Avro)", None, b"\x16\x00\x00\x02\x08\x0a"),
    ("simple (Avro)", None, bytes(cramjam.snappy.compress_raw(b"\x16\x04\x04\x02\x00\x02x"))),
    ("avro with a schema registry", b"\0\0\0\0\x07key", b"\0\0\0\0\x08value"),
    ("avro with a schema registry", b"\3" + b"\0" * 18, b"\3" + b"\0" * 18),
    ("debezium", text({"payload": {"a": 1}, "schema": {}}), text(DEBEZIUM)),
    ("maxwell", VERSION, text(MAXWELL)),
    ("maxwell", text({"database": "d"}), text(MAXWELL | {"type": "table-create"})),
    ("csv", None, b'"I","employee","hr",433305438660591626,101,"Smith","Bob"'),
    ("csv", None, b"D,employee,hr,433305438660591626,101"),
]
FIRST_WORDS = {
    "canal-json": 'The changefeed writes protocol=canal-json: set protocol = "canal-json" under [source].',
    "simple (JSON)": 'The changefeed writes protocol=simple: set protocol = "simple" under [source].',
    "simple (Avro)": 'The changefeed writes protocol=simple: set protocol = "simple" under [source].',
    "canal-json without enable-tidb-extension": "Set enable-tidb-extension=true in the changefeed's sink URI: ",
}
NOT_KNOWN = [
    (None, b'"I", said nobody'),
    (b"garbage", b"more garbage"),
    (None, None),
    (None, b""),
    (b"", b'{"order": 7}'),
    (None, b"[1]"),
    (None, b"[" * 100_000),
    (None, lz4.frame.compress(text(CANAL))[:-3]),
    (b"\0\0", b"\0\0"),
]


@pytest.mark.parametrize(("protocol", "key", "value"), FOREIGN)
def test_a_record_of_another_protocol_is_named(protocol, key, value):
    with pytest.raises(ProtocolError, match="not Open Protocol") as caught:
        decode_record(key, value)
    assert caught.value.message == f"the record is {protocol}, not Open Protocol"
    assert caught.value.facts["kind"] == "protocol"
    assert caught.value.remedy.startswith(FIRST_WORDS.get(protocol, "It "))
    assert ("protocol=open-protocol in the changefeed's sink URI" in caught.value.remedy) is (protocol not in FIRST_WORDS)


@pytest.mark.parametrize(("protocol", "key", "value"), [*FOREIGN, ("Open Protocol", *record((head(5), {"d": {}})))])
@pytest.mark.parametrize("reads", ["canal-json", "simple"])
def test_each_reader_names_what_it_cannot_read(reads, protocol, key, value):
    error = refuse_other(reads, key, value)
    if protocol.startswith(reads) and "without" not in protocol:
        assert error is None  # its own decoder says what is wrong with it
    else:
        assert error.message == f"the record is {protocol}, not {reads}"


@pytest.mark.parametrize(("key", "value"), NOT_KNOWN)
def test_a_record_of_no_known_protocol_is_not_named(key, value):
    with pytest.raises(ProtocolError, match="does not begin with protocol version 1") as caught:
        decode_record(key, value)
    assert "another one" in caught.value.remedy


def test_a_listener_names_the_protocol_and_the_place():
    with pytest.raises(ProtocolError, match="the record is canal-json, not") as caught:
        list(OPEN_PROTOCOL.placer(Stream("orders", 3)).place_all([Record(Offset(7), None, text(EXTENDED))]))
    assert {"topic": "orders", "partition": 3, "offset": 7}.items() <= caught.value.facts.items()
