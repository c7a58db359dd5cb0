"""Messages in both encodings, plain and compressed; what is refused, and by which name."""

import json
import pickle
import struct
from base64 import b64decode
from pathlib import Path

import cramjam
import lz4.frame
import pytest

from applier.model.errors import ProtocolError
from applier.model.events import DdlEvent, ResolvedEvent, RowEvent
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.port import Record
from applier.sources.simple import SimpleDecoder
from applier.sources.simple.avro import nearest_float32
from applier.sources.simple.image_code import AVRO
from tests.builders.simple_wire import TS, bootstrap, column, ddl, dump, order, row, schema, watermark
from tests.rig.simple_placing import STREAM, KnownLog, decoder_of, placed

PLACE = RecordPosition(STREAM, Offset(9))
AVRO_VECTORS = json.loads((Path(__file__).parents[3] / "data" / "simple_avro.json").read_text(encoding="utf-8"))
"""Written by fastavro 1.13 by the schema of the reference."""
BY_NAME = {vector["name"]: vector for vector in AVRO_VECTORS}
LOG = [b64decode(BY_NAME["bootstrap"]["value_b64"])]


def events(value, *before, key=None):
    return decoder_of(*before, value).events(Record(Offset(len(before)), key, value), RecordPosition(STREAM, Offset(len(before))))


def refused(value, *before, key=None):
    with pytest.raises(ProtocolError) as caught:
        events(value, *before, key=key)
    return caught.value


def meant(image):
    return None if image is None else {name: value_of(value) for name, value in image.items()}


def value_of(wire):
    match wire:
        case None:
            return None
        case {"int": text}:
            return int(text)
        case {"float": text}:
            return float(text)
        case {"str": text}:
            return text
        case {"bytes_b64": text}:
            return b64decode(text)


def values(image):
    return None if image is None else {name: member.value for name, member in image.items()}


@pytest.mark.parametrize("vector", [vector for vector in AVRO_VECTORS if "op" in vector], ids=lambda vector: vector["name"])
def test_a_row_of_avro_has_the_values_that_another_library_wrote(vector):
    value = b64decode(vector["value_b64"])
    (event,) = events(value, *LOG)
    assert isinstance(event, RowEvent)
    assert (event.operation, values(event.after), values(event.before)) == (
        vector["op"],
        meant(vector.get("after")),
        meant(vector.get("before")),
    )
    assert (event.only_handle_key, event.claim_check) == (vector.get("reduced", False), vector.get("claim"))


def test_the_other_messages_of_avro():
    assert events(b64decode(BY_NAME["watermark"]["value_b64"])) == [ResolvedEvent(447984074911121426)]
    assert events(LOG[0]) == []
    for name in ("ddl", "ddl of a schema"):
        (event,) = events(b64decode(BY_NAME[name]["value_b64"]))
        assert isinstance(event, DdlEvent)
        assert [event.schema, event.table, event.ddl_type] == BY_NAME[name]["ddl"]


def test_the_watermark_of_the_reference():
    assert events(bytes.fromhex("16000002a480e0a190c9c7b70c9caec0bdbc63")) == [ResolvedEvent(447984074911121426)]


@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_message_of_avro_that_is_cut_or_followed_by_something_is_refused(name):
    value = b64decode(BY_NAME[name]["value_b64"])
    for end in range(1, len(value)):
        assert refused(value[:end], *LOG).facts["kind"] in {"avro", "version", "compression"}
    assert refused(value + b"\0", *LOG).facts["kind"] == "avro"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("insert", b"shop"),
        ("insert", b"all_types"),
        ("insert", b"\2t\2"),
        ("bootstrap", b"shop"),
        ("bootstrap", b"\2t\x0e"),
        ("ddl", b"CREATE"),
    ],
)
def test_a_name_or_a_statement_of_avro_that_is_no_text_is_refused(name, text):
    value = b64decode(BY_NAME[name]["value_b64"])
    damaged = value.replace(text, text[:1] + b"\xff" + text[2:], 1)
    assert damaged != value
    for before in ([], [value] * 2):
        assert refused(damaged, *LOG, *before).facts["kind"] == "avro"


@pytest.mark.parametrize(
    "wrap", [bytes, lz4.frame.compress, lambda data: bytes(cramjam.snappy.compress_raw(data))], ids=["none", "lz4", "snappy"]
)
def test_each_message_may_be_compressed(wrap):
    assert events(wrap(watermark())) == [ResolvedEvent(TS)]
    (event,) = events(wrap(row("INSERT", order(1))), wrap(bootstrap()))
    assert values(event.after) == {"id": 1, "note": "x", "blob": None}
    (event,) = events(wrap(b64decode(BY_NAME["insert"]["value_b64"])), wrap(LOG[0]))
    assert values(event.after) == meant(BY_NAME["insert"]["after"])


def test_a_compressed_message_whose_first_byte_is_that_of_a_plain_one():
    for first in (0x7B, 0x16):
        sizes = (bytes(cramjam.snappy.compress_raw(watermark(TS) + b" " * blanks)) for blanks in range(200))
        for value in sizes:
            if value[0] == first:
                assert events(value) == [ResolvedEvent(TS)]
    length = 0x7B - len(watermark(TS))
    assert events(bytes(cramjam.snappy.compress_raw(watermark(TS) + b" " * length))) == [ResolvedEvent(TS)]


def test_ddls_are_named_by_their_schema_or_their_statement():
    (event,) = events(ddl("ALTER TABLE `new` ADD COLUMN `x` INT", schema(table="new")))
    assert (event.schema, event.table, event.ddl_type, event.refusal) == ("shop", "new", 5, None)
    (event,) = events(ddl("DROP DATABASE `shop`", word="QUERY"))
    assert (event.schema, event.table, event.ddl_type) == ("shop", "", 2)
    (event,) = events(ddl("WHAT IS THIS", schema()))
    assert event.refusal is not None


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"version": 2}, "version"),
        ({"version": "1"}, "field_type"),
        ({"type": "MERGE"}, "event_type"),
        ({"commitTs": 0}, "field_type"),
        ({"commitTs": -1}, "field_type"),
        ({"commitTs": 2**64}, "field_type"),
        ({"commitTs": 1.5}, "field_type"),
        ({"table": ""}, "field_type"),
        ({"data": None}, "empty_row"),
        ({"data": []}, "json"),
        ({"data": {"id": 1}}, "value_type"),
        ({"data": {"id": ["1"]}}, "value_type"),
        ({"data": {"other": "1"}}, "schema"),
        ({"schemaVersion": 5}, "schema"),
        ({"tableSchema": {"schema": 1}}, "json"),
    ],
    ids=str,
)
def test_a_wrong_member_is_refused(changes, kind):
    document = json.loads(row("INSERT", order(1))) | changes
    assert refused(dump(document), bootstrap()).facts["kind"] == kind


def test_the_commit_ts_of_a_bootstrap_is_nobodys():
    log = [bootstrap(), row("INSERT", order(1)), watermark(TS + 1)]
    assert [event[0].commit_ts for event in [placed(*log)[:1]]] == [TS]
    assert refused(watermark(0)).facts["kind"] == "field_type"


def test_timestamps_and_versions_are_whole_numbers_of_64_bits():
    version = 2**63 + 1
    (event,) = events(row("INSERT", order(1), ts=2**64 - 1, version=version), bootstrap(schema(version=version)))
    assert event.commit_ts == 2**64 - 1


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        (b"\0\0\0\0\0\0\0\1" + b"\0" * 7 + b"\x02{}", b"\0" * 8, ""),
        (None, dump({"id": 0, "isDdl": False, "es": 1, "_tidb": {"commitTs": 1}}), "canal-json"),
        (None, dump({"id": 0, "isDdl": False, "es": 1}), "canal-json without enable-tidb-extension"),
        (b"\0\0\0\0\1", b"\0\0\0\0\1", "avro with a schema registry"),
        (None, dump({"payload": {}}), "debezium"),
        (b"key", dump({"database": "d", "table": "t", "type": "insert", "ts": 1}), "maxwell"),
        (b"key", row("INSERT", order(1)), ""),
        (None, b"hello", ""),
        (None, b"", ""),
        (None, None, ""),
    ],
)
def test_a_record_of_another_protocol_is_refused_by_its_name(key, value, name):
    error = refused(value, key=key)
    assert error.exit_code == 3
    assert name in error.message


def test_a_row_that_ticdc_found_corrupted_is_refused_and_its_checksum_is_not_verified():
    log = bootstrap()
    for checksum, is_refused in (({"version": 0, "corrupted": False, "current": 1, "previous": 2}, False), ({"corrupted": True}, True)):
        value = row("INSERT", order(1), checksum=checksum)
        if is_refused:
            with pytest.raises(ProtocolError, match="corrupted"):
                placed(log, value)
        else:
            assert len(placed(log, value)) == 1
    with pytest.raises(ProtocolError, match="corrupted"):
        placed(LOG[0], b64decode(BY_NAME["corrupted"]["value_b64"]))


def test_floats_of_avro_have_the_digits_that_json_has():
    for text in ("123456.79", "1e-45", "3.4028235e38", "0.1", "-0.0", "16777216.0"):
        wire = struct.unpack("<f", struct.pack("<f", float(text)))[0]
        assert repr(nearest_float32(wire)) == repr(float(text))


def test_unknown_members_are_ignored_and_both_encodings_agree():
    table = schema(column("id", "int"), column("f", "float"), column("t", "timestamp"))
    value = row("INSERT", {"id": "1", "f": "0.1", "t": {"location": "UTC", "value": "2026-11-23 09:00:00"}}, whatever={"a": [1]})
    (event,) = events(value, bootstrap(table))
    assert values(event.after) == {"f": 0.1, "id": 1, "t": "2026-11-23 09:00:00"}


def test_a_decoder_crosses_to_executors():
    decoder = decoder_of(bootstrap())
    again = pickle.loads(pickle.dumps(decoder))  # noqa: S301 - our own bytes
    assert isinstance(again, SimpleDecoder)
    assert isinstance(again.log, KnownLog)
    assert AVRO != b""
    assert Stream(*again.placer(STREAM)._events._stream) == STREAM
