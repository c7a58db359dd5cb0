"""Whole events of records, and what is refused with which reason (canal_json_and_simple.md 2, 10, 11, 13)."""

import json
import logging
from base64 import b64encode

import cramjam
import lz4.frame
import pytest

from applier.ddl import ddl_type_name
from applier.model.errors import ProtocolError
from applier.model.events import DdlEvent, PlacedRow, ResolvedEvent, RowKind, RowOperation
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources import unknown_member
from applier.sources.canal_json import CANAL_JSON
from applier.sources.open_protocol import decode_record
from applier.sources.port import Record
from tests.builders.canal_json import TS, ddl, dump, row, watermark
from tests.builders.wire import VERSION

STREAM = Stream("changefeed", 3)
PLACE = RecordPosition(STREAM, Offset(7))
WIDE = {
    "id": ("bigint", "1"),
    "n": ("int unsigned", "4294967295"),
    "e": ("enum('blob','x')", "2"),
    "b": ("bit", "5"),
    "f": ("float", "1.5"),
}


def events(value, key=None):
    value = dump(value) if isinstance(value, dict) else value
    return CANAL_JSON.events(Record(Offset(7), key, value), PLACE)


def event(value):
    (found,) = events(value)
    return found


def values(image):
    return None if image is None else {name: column.value for name, column in image.items()}


def placed(*records):
    """The rows and other events of some records in one range."""
    given = [Record(Offset(number), None, dump(one) if isinstance(one, dict) else one) for number, one in enumerate(records)]
    found = []
    for part in CANAL_JSON.placer(STREAM).place_all(given):
        if hasattr(part, "event"):
            found.append(part.event)
        else:
            found += map(PlacedRow, part.commit_ts, part.kind, [part.shapes[number] for number in part.shape], part.key, part.image)
    return found


def read(row_placed):
    """(kind, key, values) of a placed row."""
    shape = row_placed.shape
    return (
        RowKind(row_placed.kind),
        CANAL_JSON.decode_key(row_placed.key),
        dict(zip((column.name for column in shape.columns), CANAL_JSON.image_decoder(shape)(row_placed.image), strict=True)),
    )


def test_the_rows_of_the_reference():
    found = event(row("UPDATE", old={"b": "x"}))
    assert (found.operation, found.commit_ts, found.schema, found.table) == (RowOperation.UPDATE, TS, "d", "t")
    assert (values(found.before), values(found.after)) == ({"a": "aa", "b": "x"}, {"a": "aa", "b": None})
    assert [name for name, column in found.after.items() if column.is_key] == ["a"]
    deleted = event(row("DELETE", WIDE, pk=["id"]))
    assert (deleted.after, values(deleted.before)) == (None, {"id": 1, "n": 4294967295, "e": 2, "b": 5, "f": 1.5})
    assert event(row("INSERT")).before is None


def test_a_watermark_and_a_ddl():
    assert len(watermark(1)) == 190
    assert event(watermark(2**63 + 1)) == ResolvedEvent(2**63 + 1)
    found = event(ddl("CREATE DATABASE `d`"))
    assert (found.commit_ts, found.name, found.query, found.refusal) == (TS, ("d", ""), "CREATE DATABASE `d`", None)
    assert ddl_type_name(found.ddl_type) == "create_schema"


@pytest.mark.parametrize(
    ("word", "query", "kind"),
    [
        ("QUERY", "DROP DATABASE d", "drop_schema"),
        ("RENAME", "RENAME TABLE a TO b", "rename_table"),
        ("RENAME", "ALTER TABLE a RENAME TO b", "rename_table"),
        ("QUERY", "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "exchange_partition"),
        ("ALTER", "ALTER TABLE t ADD COLUMN c INT", "add_column"),
        ("QUERY", "RECOVER TABLE t", "recover_table"),
        ("ERASE", "TRUNCATE TABLE t", "truncate_table"),
    ],
)
def test_the_type_of_a_ddl_is_read_from_its_statement(word, query, kind):
    found = event(ddl(query, type=word, table="t"))
    assert (ddl_type_name(found.ddl_type), found.refusal) == (kind, None)


def test_an_unknown_statement_stops_at_its_turn():
    found = event(ddl("MAKE TABLE t BETTER", table="t"))
    assert isinstance(found, DdlEvent)
    assert "cannot read this statement" in found.refusal.why


def test_a_ddl_is_taken_on_any_partition_and_between_rows():
    kinds = [type(one).__name__ for one in placed(row(), ddl("DROP TABLE t"), watermark(), row(), row("DELETE"))]
    assert kinds == ["PlacedRow", "DdlEvent", "ResolvedEvent", "PlacedRow", "PlacedRow"]


def test_rows_are_placed_by_their_key():
    assert list(map(read, placed(row(), row("UPDATE", old={"b": "x"}), row("UPDATE", old={"a": "old"}), row("DELETE"), row()))) == [
        (RowKind.UPSERT, ["aa"], {"a": "aa", "b": None}),
        (RowKind.UPSERT, ["aa"], {"a": "aa", "b": None}),
        (RowKind.DELETE, ["old"], {"a": "old", "b": None}),
        (RowKind.UPSERT, ["aa"], {"a": "aa", "b": None}),
        (RowKind.DELETE, ["aa"], {"a": "aa", "b": None}),
        (RowKind.UPSERT, ["aa"], {"a": "aa", "b": None}),
    ]


def test_the_order_of_key_columns_does_not_count():
    columns = {"b": ("int", "2"), "A": ("varbinary", "\xff"), "c": ("double", "-0")}
    one, other = placed(row(columns=columns, pk=["b", "A", "c"]), row(columns=columns | {"c": ("double", "0")}, pk=["A", "b", "c"]))
    assert one.key == other.key
    assert CANAL_JSON.decode_key(one.key) == [b"\xff", 2, 0.0]


@pytest.mark.parametrize("pk", [(), None, ("a", "not_sent")])
def test_rows_without_a_primary_key_are_placed_by_their_table(pk):
    found = placed(*[row(pk=pk), row("UPDATE", old={"b": "x"}, pk=pk), row("UPDATE", old={}, pk=pk), row("DELETE", pk=pk)] * 2)
    assert [(RowKind(one.kind).name, one.key) for one in found] == [
        (kind, b"") for kind in ["UPSERT", "DELETE", "UPSERT", "DELETE", "UPSERT", "DELETE"] * 2
    ]
    assert found[0].shape.has_unknown_key
    assert read(found[1])[2] == {"a": "aa", "b": "x"}


def test_an_update_that_changes_nothing_is_an_upsert():
    (one,) = placed(row("UPDATE", old={}))
    assert one.kind == RowKind.UPSERT


def test_an_insert_of_v5_1_has_an_old_image_of_null():
    assert event(row() | {"old": [None]}).operation is RowOperation.INSERT


def test_the_text_null_is_a_text():
    assert values(event(row(columns={"a": ("varchar", "null"), "b": ("varchar", None)})).after) == {"a": "null", "b": None}


def test_a_key_that_is_null_names_the_issue_of_the_producer():
    for reduced in (row(columns={"a": ("varchar", None)}), row("UPDATE", old={"a": None})):
        with pytest.raises(ProtocolError, match=r"pingcap/ticdc issue 3958"):
            placed(reduced)


def test_a_reduced_delete_is_placed_by_its_key():
    found = placed(row(), row("DELETE", {"a": ("varchar", "aa")}))
    assert read(found[1]) == (RowKind.DELETE, ["aa"], {"a": "aa"})


def test_the_types_may_change_in_the_middle_of_a_range():
    rows = [row(columns={"a": ("int", str(number))}) for number in range(300)] + [row(columns={"a": ("varchar(9)", "x")})] * 3
    found = placed(*rows)
    assert [CANAL_JSON.decode_key(one.key) for one in found] == [[number] for number in range(300)] + [["x"]] * 3


def test_members_may_be_unknown_or_missing_and_in_any_order():
    document = row() | {"news": {"data": [{}]}}
    del document["id"], document["ts"], document["sqlType"]
    assert placed(dump(dict(reversed(document.items())))) == placed(row()) == placed(dump(document), row())[:1]


@pytest.mark.parametrize("end", [b"\r\n", b" ", b"\n\t "])
def test_white_space_behind_a_record_does_not_matter(end):
    assert placed(*[dump(row()) + end] * 3) == placed(*[row()] * 3)


@pytest.mark.parametrize("compress", [lz4.frame.compress, lambda data: bytes(cramjam.snappy.compress_raw(data))])
def test_everything_may_be_compressed(compress):
    plain = [dump(row()), dump(row()), watermark(), dump(ddl("DROP TABLE t")), dump(row("UPDATE", old={"a": "x"}))]
    assert placed(*map(compress, plain)) == placed(*plain)
    assert [events(compress(one)) for one in plain] == [events(one) for one in plain]


def test_a_snappy_block_that_begins_with_a_brace_is_read():
    plain = b'{"isDdl":false,"type":"TIDB_WATERMARK","es":1,"_tidb":{"watermarkTs":1}}'.ljust(ord("{"))
    packed = bytes(cramjam.snappy.compress_raw(plain))
    assert packed[:1] == b"{"
    assert events(packed) == placed(packed) == [ResolvedEvent(1)]


def test_an_unknown_member_of_the_extension_is_ignored_and_named_once(caplog):
    unknown_member._noted.clear()
    with caplog.at_level(logging.WARNING, logger="applier"):
        found = placed(*[row(extension={"tableId": 5, "partitionId": 6})] * 3, row(extension={"rowkey": "dA=="}))
    assert found == placed(*[row()] * 4)
    assert [(entry.message, entry.member) for entry in caplog.records] == [
        ("unknown_member", "_tidb.partitionId"),
        ("unknown_member", "_tidb.tableId"),
    ]


EXTENSION_OFF = {name: member for name, member in row().items() if name != "_tidb"}
SIMPLE = {"version": 1, "database": "d", "table": "t", "tableID": 7, "type": "DELETE", "commitTs": 4, "buildTs": 5, "old": {"a": "aa"}}
FOREIGN = [
    ("Open Protocol, not canal-json", VERSION + (1).to_bytes(8, "big") + b"{", None),
    ("simple (JSON), not canal-json", None, dump(SIMPLE)),
    ("simple (Avro), not canal-json", None, b"\x16\x00\x00\x02\x08\x0a"),
    ("avro with a schema registry, not canal-json", b"\0\0\0\0\x07key", b"\0\0\0\0\x08value"),
    ("debezium, not canal-json", dump({"payload": {"a": 1}}), dump({"payload": {}})),
    ("maxwell, not canal-json", VERSION, dump({"database": "d", "table": "t", "type": "insert", "ts": 1})),
    ("canal-json without enable-tidb-extension, not canal-json", b"d.t", dump(EXTENSION_OFF)),
    ("canal-json without enable-tidb-extension, not canal-json", None, lz4.frame.compress(dump(EXTENSION_OFF))),
]


@pytest.mark.parametrize(("said", "key", "value"), FOREIGN)
def test_a_record_of_another_protocol_stops_with_what_it_is(said, key, value):
    with pytest.raises(ProtocolError) as caught:
        events(value, key)
    assert caught.value.message == f"the record is {said}"
    assert (caught.value.exit_code, caught.value.facts) == (3, {"kind": "protocol"} | PLACE.facts)
    if "without" in said:
        assert "enable-tidb-extension=true" in caught.value.remedy
    with pytest.raises(ProtocolError, match="the record is"):
        list(CANAL_JSON.placer(STREAM).place_all([Record(Offset(7), key, value)]))


def test_an_open_protocol_reader_names_canal_json():
    with pytest.raises(ProtocolError, match="the record is canal-json, not Open Protocol"):
        decode_record(None, dump(row()))


@pytest.mark.parametrize("value", [None, b"", b"{", b"more garbage", b"[1]", b'{"order":7}', b"{}", b"\xff\xfe", b"{" * 100_000])
def test_a_record_of_no_known_protocol_is_refused(value):
    with pytest.raises(ProtocolError):
        events(value)


DAMAGED = {
    "no commitTs": row(_tidb={}),
    "commitTs 0": row(ts=0),
    "commitTs beyond 64 bits": row(ts=2**64),
    "commitTs a float": row(_tidb={"commitTs": 1.5}),
    "commitTs a boolean": row(_tidb={"commitTs": True}),
    "the extension an array": row(_tidb=[]),
    "a watermark without a timestamp": json.loads(watermark()) | {"_tidb": {}},
    "an unknown type": row("UPSERT"),
    "no type": row(type=None),
    "isDdl a number": row(isDdl=0),
    "no table": row(table=None),
    "no image": row(data=None),
    "two images": row(data=[{"a": "1"}, {"a": "2"}]),
    "an empty image": row(data=[{}]),
    "an image that is no object": row(data=["a"]),
    "no types": row(mysqlType=None),
    "a column without a type": row(mysqlType={"a": "varchar"}),
    "a type that is no text": row(mysqlType={"a": "varchar", "b": 12}),
    "an unknown column type": row(mysqlType={"a": "varchar", "b": "geometry"}),
    "a value that is a number": row(data=[{"a": "1", "b": 2}]),
    "an update without an old image": row("UPDATE"),
    "an insert with an old image": row("INSERT", old={"b": "x"}),
    "an old column that the row lacks": row("UPDATE", old={"c": "x"}),
    "names of the key that are no array": row(pk="a") | {"pkNames": "a"},
    "names of the key that are no texts": row() | {"pkNames": [1]},
    "a key that does not fit": row(columns={"a": ("int", "x")}),
    "a claim check that is no text": row(extension={"claimCheckLocation": 1}),
    "a DDL without a statement": ddl("x") | {"sql": None},
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_a_producer_does_not_write_is_refused(case):
    with pytest.raises(ProtocolError) as caught:
        events(DAMAGED[case])
    assert PLACE.facts.items() <= caught.value.facts.items()
    for before in ([], [row()] * 3):
        with pytest.raises(ProtocolError):
            # A bad value outside of the key may be left to the decoder of its image.
            list(map(read, placed(*before, DAMAGED[case])))


def test_a_bootstrap_without_a_statement_names_the_option():
    with pytest.raises(ProtocolError) as caught:
        events(ddl("", ts=0))
    assert "send-all-bootstrap-at-start" in caught.value.remedy


def test_an_event_that_cannot_be_read_leaves_a_marker_for_its_keys():
    damaged = row("UPDATE", old={"a": "old"}) | {"data": [{"a": "aa", "b": None}]}
    placer = CANAL_JSON.placer(STREAM)
    bad = damaged | {"mysqlType": {"a": "varchar", "b": "geometry"}}
    found = [one for _, one in placer.place_each(5, None, dump(bad))]
    assert [type(one).__name__ for one in found] == ["Unplaced"]
    assert (found[0].head.name, found[0].error.facts["offset"]) == (("d", "t"), 5)
    (only,) = placer.place_each(6, b"key", b"{}")
    assert only[1].head is None


def test_a_claim_check_without_a_storage_leaves_markers():
    placer = CANAL_JSON.placer(STREAM)
    large = row("UPDATE", {"a": ("varchar", "aa")}, old={"a": "old"}, extension={"claimCheckLocation": "file:///x/y.json"})
    found = [one for _, one in placer.place_each(5, None, dump(large))]
    assert [CANAL_JSON.decode_key(one.key) for one in found[:-1]] == [["old"], ["aa"]]
    assert [one.image for one in found[:-1]] == [b"", b""]
    assert "claim-check storage" in found[-1].error.message


def test_base64_is_not_read_as_bytes():
    text = b64encode(b"\xff").decode()
    assert values(event(row(columns={"a": ("blob", text)})).after) == {"a": text.encode()}
