"""The encoders of the simple protocol against the values of canal_json_and_simple.md, and every log of the simulator in both encodings."""

import json
from dataclasses import replace

import pytest

from applier.demo.simulator import column_type as of
from applier.demo.simulator.column_type import GeneratedRule, Generation
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import DdlItem, LargeRowOption, LargeRowSettings, RowClass, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import AddColumn, AlterTable, CreateSchema, CreateTable, CreateView, RenameTable, TruncateTable
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.schema import Table, UpstreamIndex, column, column_with_default, generated, index, primary
from applier.demo.simulator.schema_versions import VersionedSchemas, VersionedTable
from applier.demo.simulator.simple import SimpleJsonWire
from applier.demo.simulator.simple_avro import SimpleAvroWire
from applier.demo.simulator.table_family import TableFamily
from applier.demo.simulator.wire_format import KeyExtras, SentImages, WireFormat
from applier.model.events import TableName
from applier.model.position import Ts
from tests.rig.avro_reading import read_message

TS = Ts(500)
EXTRAS = KeyExtras()
WIRES = (SimpleJsonWire, SimpleAvroWire)


def table(*columns, indexes=()):
    return Table(name=TableName("d", "t"), columns=columns, indexes=indexes)


def row(kind, before=None, after=None):
    schema = VersionedTable(kind, 7, 9, tuple(range(1, len(kind.columns) + 1)))
    return RowItem(ts=TS, schema=schema, kind=RowClass.UPDATE, before=before, after=after, hash=0, half=0)


def content(raw):
    """Return the members of a message, whatever its encoding."""
    return json.loads(raw) if raw.startswith(b"{") else (message := read_message(raw))["payload"] | {"kind": message["type"]}


AB = table(column("b", of.varchar(9)), column("a", of.varchar(9), null=False), indexes=(primary("a"),))


def test_a_row_and_a_watermark_are_those_of_the_reference():
    wire = SimpleJsonWire(Flavour.TIFLOW, "none")
    assert wire.row(row(AB, before=(None, "aa")), SentImages(None, (0, 1)), EXTRAS, 3).value == (
        b'{"version":1,"database":"d","table":"t","tableID":7,"type":"DELETE","commitTs":500,"buildTs":3,"schemaVersion":9'
        b',"old":{"a":"aa","b":null}}'
    )
    assert wire.watermark(TS, 3).value == b'{"version":1,"type":"WATERMARK","commitTs":500,"buildTs":3}'
    avro = SimpleAvroWire(Flavour.TIFLOW, "none").watermark(Ts(447984074911121426), 1708924603278)
    assert avro.value.hex() == "16000002a480e0a190c9c7b70c9caec0bdbc63"


@pytest.mark.parametrize("made", WIRES)
def test_each_message_says_what_it_is_in_its_first_bytes(made):
    wire = made(Flavour.TIFLOW, "none")
    created = DdlItem(ts=TS, ddl=CreateSchema("d"), previous=None, before=None, after=None)
    messages = [
        wire.watermark(TS, 3),
        wire.bootstrap(row(AB).schema, 3),
        wire.ddl(created, 3),
        wire.row(row(AB, after=("x", "y")), SentImages((0, 1), None), EXTRAS, 3),
    ]
    if made is SimpleAvroWire:
        assert [event.value[:4].hex() for event in messages] == ["16000002", "16020202", "16040402", "16060602"]
        assert messages[2].value.startswith(bytes.fromhex("160404020e"))
        assert messages[2].value.endswith(b"\0\0")
    shown = content(messages[1].value)["tableSchema"]
    assert [one["name"] for one in shown["columns"]] == ["b", "a"]
    assert shown["indexes"] == [{"name": "PRIMARY", "unique": True, "primary": True, "nullable": False, "columns": ["a"]}]
    assert content(messages[2].value).get("tableSchema") is None


VALUES = [
    (of.integer("BIGINT", unsigned=True), 2**64 - 1, "18446744073709551615", {"value": -1}),
    (of.integer(), -5, "-5", -5),
    (of.real("FLOAT"), 0.5, "0.5", 0.5),
    (of.real(), 1e22, "1" + "0" * 22, 1e22),
    (of.decimal(5, 2), "12.50", "12.50", "12.50"),
    (of.bit(64), 1 << 63, "9223372036854775808", -(1 << 63)),
    (of.enum("a", "b"), 2, "2", 2),
    (of.set_of(*(f"m{n}" for n in range(64))), 1 << 63, "9223372036854775808", -(1 << 63)),
    (of.varbinary(4), b"\0\xff", "AP8=", b"\0\xff"),
    (of.varchar(9), "a<\u2028", "a<\u2028", "a<\u2028"),
    (of.timestamp(3), "2026-11-23 09:00:00.123", *[{"location": "UTC", "value": "2026-11-23 09:00:00.123"}] * 2),
    (of.year(), 2026, "2026", 2026),
    (of.json(), "[1]", "[1]", "[1]"),
    (of.integer(), None, None, None),
]


@pytest.mark.parametrize(("kind", "value", "text", "typed"), VALUES)
def test_every_type_has_its_value(kind, value, text, typed):
    for made, expected in ((SimpleJsonWire, text), (SimpleAvroWire, typed)):
        event = made(Flavour.TIFLOW, "none").row(row(table(column("v", kind)), after=(value,)), SentImages((0,), None), EXTRAS, 3)
        shown = content(event.value)
        assert (shown["data"], shown.get("old"), shown["type"], shown["schemaVersion"]) == ({"v": expected}, None, "INSERT", 9)


def test_the_new_producer_writes_bits_as_text_and_exponents():
    item = row(table(column("b", of.bit(8)), column("f", of.real())), after=(5, 1e22))
    images = SentImages((0, 1), None)
    assert content(SimpleAvroWire(Flavour.TICDC, "none").row(item, images, EXTRAS, 3).value)["data"] == {"b": "5", "f": 1e22}
    assert content(SimpleJsonWire(Flavour.TICDC, "none").row(item, images, EXTRAS, 3).value)["data"] == {"b": "5", "f": "1e+22"}


@pytest.mark.parametrize(("value", "text"), [(1e-5, "1e-05"), (-2.5e-7, "-2.5e-07"), (1e20, "1" + "0" * 20), (0.001, "0.001"), (0.0, "0")])
def test_exponents_are_those_of_go(value, text):
    event = SimpleJsonWire(Flavour.TICDC, "none").row(row(table(column("f", of.real())), after=(value,)), SentImages((0,), None), EXTRAS, 3)
    assert content(event.value)["data"] == {"f": text}


@pytest.mark.parametrize("made", WIRES)
def test_a_schema_has_types_defaults_and_all_indexes(made):
    kind = table(
        column("id", of.integer("BIGINT", unsigned=True), null=False),
        column_with_default("state", of.enum("new", "it's"), 2),
        column_with_default("bits", of.bit(4), 5),
        column("price", of.decimal(12, 2)),
        column("name", of.varchar(40, "utf8mb4_general_ci")),
        column("at", of.datetime(3)),
        indexes=(primary("id"), index("by_name", "name"), UpstreamIndex(name="expr", columns=("name",), expression="lower")),
    )
    shown = content(made(Flavour.TICDC, "none").bootstrap(row(kind, after=()).schema, 3).value)["tableSchema"]
    columns = {one["name"]: one for one in shown["columns"]}
    types = {name: one["dataType"] for name, one in columns.items()}
    assert (types["id"]["mysqlType"], types["id"]["unsigned"], types["id"]["length"]) == ("bigint", True, 20)
    assert (types["state"]["elements"], columns["state"]["default"]) == (["new", "it's"], "it's")
    assert str(columns["bits"]["default"]) == "5"
    assert (types["price"]["length"], types["price"]["decimal"]) == (12, 2)
    assert (types["name"]["charset"], types["name"]["collate"]) == ("utf8mb4", "utf8mb4_general_ci")
    assert [(one["name"], one["columns"]) for one in shown["indexes"]] == [
        ("by_name", ["name"]),
        ("expr", ["_v$_expr_0"]),
        ("primary", ["id"]),
    ]


def test_versions_change_with_definitions_and_ids_with_tables():
    schemas = VersionedSchemas()
    first = schemas.execute(CreateTable(AB), Ts(100))[1]
    alter = AlterTable(AB, (AddColumn(column("c", of.integer()), after=""),))
    added = schemas.execute(alter, Ts(200))[1]
    renamed = schemas.execute(RenameTable(AB.name, TableName("d", "u")), Ts(300))
    emptied = schemas.execute(TruncateTable(TableName("d", "u")), Ts(400))[1]
    assert (first.version, added.version, added.table_id, added.column_ids) == (99, 199, first.table_id, (3, 1, 2))
    assert (renamed[0], renamed[1].version, renamed[1].table_id) == (added, 199, first.table_id)
    assert (emptied.version, emptied.table_id != first.table_id) == (399, True)
    # tiflow: in the order of creation, not that of the table.
    shown = content(SimpleJsonWire(Flavour.TIFLOW, "none").bootstrap(added, 3).value)["tableSchema"]
    assert [one["name"] for one in shown["columns"]] == ["b", "a", "c"]


def log_of(seed, form, history=None, **changes):
    options = replace(ProducerOptions.drawn(seed), compression="none").written_as(form)
    options = replace(options, wire=replace(options.wire, bootstrap_everywhere=True), topic_per_schema=False, growth=0, **changes)
    return [(record, content(record.value)) for record in Producer(history or History(seed), options).log()]


def kind_of(shown):
    return shown.get("kind") or {"WATERMARK": "WATERMARK", "BOOTSTRAP": "BOOTSTRAP"}.get(shown["type"], "DDL" if "sql" in shown else "DML")


@pytest.mark.parametrize("form", [WireFormat.SIMPLE, WireFormat.SIMPLE_AVRO])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_has_its_schema_before_it_in_its_own_partition(seed, form):
    known: dict = {}
    rows = 0
    for record, shown in log_of(seed, form, replays=3):
        kind, seen = kind_of(shown), known.setdefault(record.stream, set())
        if schema := shown.get("tableSchema"):
            seen.add((schema.get("schema") or schema["database"], schema["table"], schema["version"]))
        if kind == "DML":
            rows += 1
            assert (shown["database"], shown["table"], shown["schemaVersion"]) in seen
        assert (kind == "BOOTSTRAP") is (not shown.get("commitTs"))
    assert rows


PARTITIONED = HistoryOptions(families=frozenset({TableFamily.PARTITIONED}))


@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize("form", [WireFormat.SIMPLE, WireFormat.SIMPLE_AVRO])
def test_rows_of_a_partitioned_table_have_the_ids_of_its_partitions(form, flavour):
    log = log_of(3, form, History(3, PARTITIONED), flavour=flavour, upgrade=False, replays=0)
    tables: dict = {}
    for _, shown in log:
        if schema := shown.get("tableSchema"):
            tables[schema["table"]] = schema["tableID"]
    rows = [shown for _, shown in log if kind_of(shown) == "DML"]
    ids = {name: {shown["tableID"] for shown in rows if shown["table"] == name} for name in ("points", "totals")}
    assert {name: len(found) for name, found in ids.items()} == {"points": 4, "totals": 3}
    assert not ids["points"] & ids["totals"]
    assert all(tables[name] not in found for name, found in ids.items())
    # One sender counts partitions, the other one tables.
    sent = [shown["tableSchema"]["table"] for _, shown in log if kind_of(shown) == "BOOTSTRAP"]
    partitions = {record.stream for record, _ in log}
    assert len(sent) >= len(partitions) * (7 if flavour is Flavour.TIFLOW else 2)


@pytest.mark.parametrize("flavour", list(Flavour))
def test_an_owner_may_send_the_schemas_of_all_tables_before_its_first_watermark(flavour):
    options = replace(ProducerOptions.drawn(1), compression="none", flavour=flavour, upgrade=False, partitions=2, growth=0, replays=12)
    options = replace(options, topic_per_schema=True).written_as(WireFormat.SIMPLE)
    history = History(1)
    for everything in (True, False):
        # Without the sender of rows tiflow sends none; ticdc does not ask.
        wire = replace(options.wire, bootstrap_at_start=True, bootstrap_ms=options.wire.bootstrap_ms * everything)
        producer = Producer(history, replace(options, wire=wire))
        log = [(record, content(record.value)) for record in producer.log()]
        assert producer.counts["restart"] > 0
        assert bool(producer.counts.get("schema at start")) is (everything or flavour is Flavour.TICDC)
    sent = [(record.stream, shown["tableSchema"]) for record, shown in log if kind_of(shown) == "BOOTSTRAP"]
    assert {stream.topic for stream, _ in sent} == ({options.topic} if flavour is Flavour.TICDC else set())
    views = {ddl.name.table for step in history for ddl in step.ddls if isinstance(ddl, CreateView)}
    assert not views & {schema["table"] for _, schema in sent}
    assert all(sum(other == schema for _, other in sent) % 2 == 0 for _, schema in sent), "each is in both partitions"


def test_both_encodings_say_the_same():
    json_log, avro_log = (log_of(5, form, flavour=Flavour.TIFLOW, upgrade=False) for form in (WireFormat.SIMPLE, WireFormat.SIMPLE_AVRO))
    assert [(record.stream, kind_of(shown), shown.get("commitTs", 0)) for record, shown in json_log] == [
        (record.stream, kind_of(shown), shown.get("commitTs", 0)) for record, shown in avro_log
    ]


def test_schemas_are_sent_again_and_not_at_all_when_they_are_off():
    options = replace(ProducerOptions.drawn(2), replays=0, compression="none").written_as(WireFormat.SIMPLE)
    counts = []
    for rows in (10_000, 5, 0):
        producer = Producer(History(2), replace(options, wire=replace(options.wire, bootstrap_ms=10**9, bootstrap_rows=rows)))
        assert list(producer.log())
        counts.append(producer.counts.get("schema", 0))
    assert counts[1] > counts[0] > counts[2] == 0


def test_a_large_row_says_that_it_is_reduced(tmp_path):
    for option in LargeRowOption:
        large = LargeRowSettings(option=option, limit=500, directory=tmp_path)
        reduced = [shown for _, shown in log_of(1, WireFormat.SIMPLE, large=large) if shown.get("handleKeyOnly")]
        assert reduced
        assert all(("claimCheckLocation" in shown) is (option is LargeRowOption.CLAIM_CHECK) for shown in reduced)


def test_generated_columns_are_listed_and_not_marked():
    made = Generation(rule=next(iter(GeneratedRule)), source="a", stored=False)
    kind = table(column("a", of.integer(), null=False), generated("g", of.integer(), made))
    shown = content(SimpleJsonWire(Flavour.TICDC, "none").bootstrap(row(kind, after=()).schema, 3).value)["tableSchema"]
    assert [one["name"] for one in shown["columns"]] == ["a", "g"]
