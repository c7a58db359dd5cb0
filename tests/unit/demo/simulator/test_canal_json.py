"""The encoder of canal-json against the values of canal_json_and_simple.md, and every log of the simulator as canal-json."""

import json
from dataclasses import replace

import lz4.frame
import pytest

from applier.demo.simulator import column_type as of
from applier.demo.simulator.canal_json import CanalJsonWire, java_type
from applier.demo.simulator.history import History
from applier.demo.simulator.item import DdlItem, LargeRowOption, LargeRowSettings, RowClass, RowItem
from applier.demo.simulator.json_text import Flavour, easyjson_string, plain_float_text
from applier.demo.simulator.operation import CreateSchema
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.schema import Table, column, index, primary, unique
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.value_text import compatible_type, plain_type
from applier.demo.simulator.wire_format import KeyExtras, SentImages, WireFormat, WireOptions
from applier.model.events import TableName
from applier.model.position import Ts

TS = Ts(5 << 18)
EXTRAS = KeyExtras()


def table(*columns, indexes=()):
    return Table(name=TableName("d", "t"), columns=columns, indexes=indexes)


def row(kind, before=None, after=None):
    schema = VersionedTable(kind, 102, 9, tuple(range(1, len(kind.columns) + 1)))
    return RowItem(ts=TS, schema=schema, kind=RowClass.UPDATE, before=before, after=after, hash=0, half=0)


def wire(flavour=Flavour.TIFLOW, compression="none", **options):
    return CanalJsonWire(flavour, compression, WireOptions(**options))


AB = table(column("a", of.varchar(9), null=False), column("b", of.varchar(9)), indexes=(primary("a"),))


def test_an_update_has_changed_columns_in_old_and_the_whole_row_in_data():
    event = wire().row(row(AB, ("aa", "x"), ("aa", None)), SentImages((0, 1), (1,)), EXTRAS, 7)
    head = (
        '{"id":0,"database":"d","table":"t","pkNames":["a"],"isDdl":false,"type":"UPDATE","es":5,"ts":7,"sql":"","sqlType":{"a":12,"b":12}'
    )
    tail = ',"old":[{"b":"x"}],"data":[{"a":"aa","b":null}],"_tidb":{"commitTs":1310720}}'
    text = event.value.decode()
    assert (event.key, text.startswith(head + ',"mysqlType":{'), text.endswith(tail)) == (b"", True, True)
    assert json.loads(text)["mysqlType"] == {"a": "varchar", "b": "varchar"}


def test_a_ddl_and_a_watermark_are_those_of_the_reference():
    item = DdlItem(ts=TS, ddl=CreateSchema("d"), previous=None, before=None, after=None)
    assert wire().ddl(item, 7).value.decode() == (
        '{"id":0,"database":"d","table":"","pkNames":null,"isDdl":true,"type":"QUERY","es":5,"ts":7'
        ',"sql":"CREATE DATABASE `d` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin"'
        ',"sqlType":null,"mysqlType":null,"data":null,"old":null,"_tidb":{"commitTs":1310720}}'
    )
    watermark = wire().watermark(Ts(1 << 18), 2).value
    assert watermark.decode() == (
        '{"id":0,"database":"","table":"","pkNames":null,"isDdl":false,"type":"TIDB_WATERMARK","es":1,"ts":2,"sql":"","sqlType":null'
        ',"mysqlType":null,"data":null,"old":null,"_tidb":{"watermarkTs":262144}}'
    )
    assert len(watermark.replace(b"262144", b"1")) == 190
    assert lz4.frame.decompress(wire(compression="lz4").watermark(Ts(1 << 18), 2).value) == watermark


def test_a_delete_has_its_image_in_data_and_no_old():
    shown = json.loads(wire().row(row(AB, before=("aa", "x")), SentImages(None, (0,)), EXTRAS, 7).value)
    assert (shown["type"], shown["data"], shown["old"], shown["mysqlType"]) == ("DELETE", [{"a": "aa"}], None, {"a": "varchar"})


def test_large_rows_and_rows_without_the_extension():
    item, images = row(AB, after=("aa", "x")), SentImages((0,), None)
    reduced = json.loads(wire().row(item, images, KeyExtras(only_handle_key=True), 7).value)
    claimed = json.loads(wire().row(item, images, KeyExtras(claim_check="s3://x/y.json"), 7).value)
    assert reduced["_tidb"] == {"commitTs": TS, "onlyHandleKey": True}
    assert claimed["_tidb"] == {"commitTs": TS, "claimCheckLocation": "s3://x/y.json"}
    assert "_tidb" not in json.loads(wire(extension=False).row(item, images, EXTRAS, 7).value)


def test_pk_names_hold_the_primary_key_only_and_tiflow_knows_only_what_it_sends():
    unique_only = table(column("a", of.integer(), null=False), indexes=(unique("u", "a"),))
    keyed = table(
        column("b", of.integer(), null=False), column("a", of.integer(), null=False), indexes=(index("x", "a"), primary("a", "b"))
    )
    for kind, flavour, places, names in (
        (unique_only, Flavour.TICDC, (0,), []),
        (keyed, Flavour.TIFLOW, (0, 1), ["b", "a"]),
        (keyed, Flavour.TIFLOW, (1,), ["a"]),
        (keyed, Flavour.TICDC, (1,), ["b", "a"]),
    ):
        event = wire(flavour).row(row(kind, after=(1,) * len(kind.columns)), SentImages(places, None), EXTRAS, 7)
        assert json.loads(event.value)["pkNames"] == names


@pytest.mark.parametrize(
    ("kind", "value", "plain", "compatible", "java", "text"),
    [
        (of.integer("TINYINT", unsigned=True), 127, "tinyint unsigned", "tinyint(3) unsigned", -6, "127"),
        (of.integer("TINYINT", unsigned=True), 128, "tinyint unsigned", "tinyint(3) unsigned", 5, "128"),
        (of.integer("MEDIUMINT", unsigned=True), 2**24 - 1, "mediumint unsigned", "mediumint(8) unsigned", 4, "16777215"),
        (of.integer("INT", unsigned=True), None, "int unsigned", "int(10) unsigned", 4, None),
        (of.integer("BIGINT", unsigned=True), 1 << 63, "bigint unsigned", "bigint(20) unsigned", 3, "9223372036854775808"),
        (of.real("FLOAT"), 3.25e10, "float", "float", 7, "32500000000"),
        (of.real("FLOAT"), 123456.79, "float", "float", 7, "123456.79"),
        (of.real(), 1e-10, "double", "double", 8, "0.0000000001"),
        (of.real(), 1e22, "double", "double", 8, "1" + "0" * 22),
        (of.real(), -0.0, "double", "double", 8, "-0"),
        (of.decimal(5, 2), "12.50", "decimal", "decimal(5,2)", 3, "12.50"),
        (of.bit(64), 2**64 - 1, "bit", "bit(64)", -7, "18446744073709551615"),
        (of.enum("a", "b,c", "d'e"), 2, "enum", "enum('a','b,c','d''e')", 4, "2"),
        (of.set_of("a", "b"), 3, "set", "set('a','b')", -7, "3"),
        (of.char(16), "x", "char", "char(16)", 1, "x"),
        (of.binary(3), b"\xff\x00a", "binary", "binary(3)", 2004, "\xff\x00a"),
        (of.blob(), bytes(range(256)), "blob", "blob", 2004, "".join(map(chr, range(256)))),
        (of.text("MEDIUM"), "null", "mediumtext", "mediumtext", 2005, "null"),
        (of.time(3), "-838:59:59.000", "time", "time(3)", 92, "-838:59:59.000"),
        (of.timestamp(6), "2026-11-23 09:00:00.123456", "timestamp", "timestamp(6)", 93, "2026-11-23 09:00:00.123456"),
        (of.year(), 2026, "year", "year(4)", 12, "2026"),
        (of.json(), '{"a": 1}', "json", "json", 12, '{"a": 1}'),
    ],
)
def test_every_type_has_its_texts(kind, value, plain, compatible, java, text):
    assert (plain_type(kind), compatible_type(kind), java_type(kind, value)) == (plain, compatible, java)
    event = wire(content_compatible=True).row(row(table(column("v", kind)), after=(value,)), SentImages((0,), None), EXTRAS, 7)
    shown = json.loads(event.value)
    assert (shown["data"], shown["mysqlType"], shown["sqlType"]) == ([{"v": text}], {"v": compatible}, {"v": java})


def test_strings_are_escaped_as_the_documents_example_is():
    example = bytes([5, 7, 10, 15, 36, 50, 43, 99, 120, 60, 38, 255, 254, 45, 55, 70]).decode("latin-1")
    assert easyjson_string(example) == '"\\u0005\\u0007\\n\\u000f$2+cx\\u003c\\u0026ÿþ-7F"'
    assert easyjson_string("\x7f\u2028\b\udcff\udcfe") == '"\x7f\\u2028\\u0008\ufffd\ufffd"'
    assert plain_float_text(3.4028234663852886e38, single=True) == "34028235" + "0" * 31


def options_of(seed, **changes):
    return replace(ProducerOptions.drawn(seed), compression="none", **changes).written_as(WireFormat.CANAL_JSON)


@pytest.mark.parametrize("seed", range(6))
def test_every_log_has_one_event_in_a_record_and_ddls_on_partition_0(seed):
    history = History(seed)
    producer = Producer(history, options_of(seed, replays=2, growth=1))
    shown = [(record, json.loads(record.value)) for record in producer.log()]
    assert {record.key for record, _ in shown} == {None}
    assert all("commitTs" in one["_tidb"] or one["_tidb"].keys() == {"watermarkTs"} for _, one in shown)
    assert {record.stream.partition for record, one in shown if one["isDdl"]} == {0}
    streams = {record.stream for record, _ in shown}
    assert {record.stream for record, one in shown if one["type"] == "TIDB_WATERMARK"} == streams
    rows = [one for _, one in shown if one["data"] is not None]
    assert len(rows) >= sum(len(step.rows) for step in history)
    assert all(len(one["data"]) == 1 and one["data"][0].keys() == one["mysqlType"].keys() == one["sqlType"].keys() for one in rows)
    built = [one["ts"] for _, one in shown]
    assert built == sorted(built)


def test_a_copy_after_a_restart_differs_by_its_time_alone():
    log = Producer(History(3), options_of(3, replays=4, images=ProducerOptions().images)).log()
    copies: dict[str, set[int]] = {}
    for record in log:
        shown = json.loads(record.value)
        if shown["data"] is not None:
            copies.setdefault(json.dumps(shown | {"ts": 0}, sort_keys=True), set()).add(shown["ts"])
    assert any(len(times) > 1 for times in copies.values())


@pytest.mark.parametrize("raw", [False, True])
def test_an_object_holds_the_whole_record(tmp_path, raw):
    large = LargeRowSettings(option=LargeRowOption.CLAIM_CHECK, limit=800, directory=tmp_path, raw_value=raw)
    options = replace(options_of(1), large=large)
    claimed = [one for record in Producer(History(1), options).log() if "claimCheckLocation" in (one := json.loads(record.value))["_tidb"]]
    assert claimed
    for one in claimed:
        content = json.loads((tmp_path / one["_tidb"]["claimCheckLocation"].rpartition("/")[2]).read_bytes())
        assert (content.keys() == {"key", "value"}) is not raw
        if raw:
            assert content["_tidb"]["commitTs"] == one["_tidb"]["commitTs"]
            assert one["data"][0].items() <= content["data"][0].items()
