"""Placing: one row per message, two where an update changed the key; both ways agree for every type at its borders."""

import json
from base64 import b64decode, b64encode
from pathlib import Path

import lz4.frame
import pytest

from applier.config import load_config
from applier.model.errors import ProtocolError
from applier.model.events import MARKER_IMAGE, ExcludedTable, PlacedRow, RowKind, RowOperation, TableName
from applier.model.position import Offset, RecordPosition
from applier.model.rejected_event import WHOLE_RECORD
from applier.sources.port import Record, Unplaced
from applier.sources.row_key import decode_key
from applier.sources.simple import SimpleDecoder
from applier.sources.simple.image_code import AVRO
from applier.sources.ticdc.large_row import WholeRowSources
from applier.tasks.tolerance import Tolerance, TolerantPlacer
from tests.builders.simple_wire import TS, VERSION, bootstrap, column, ddl, dump, index, order, primary, row, schema, watermark
from tests.rig.placing import place_records
from tests.rig.simple_placing import STREAM, assert_ways_agree, decoded, decoder_of, placed

MAX64 = 2**64 - 1
BORDERS = {
    "tinyint": ["-128", "127", "0", "-0"],
    "smallint": ["-32768", "32767"],
    "mediumint": ["-8388608", "8388607"],
    "int": ["-2147483648", "2147483647", "007"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "year": ["0", "1901", "2155"],
    "bit": ["0", str(MAX64)],
    "enum": ["0", "65535"],
    "set": ["0", str(2**63), str(MAX64)],
    "float": ["0", "-0", "123456.79", "0." + "0" * 44 + "1", "3" * 39, "1e+22", "1E-7"],
    "double": ["-0", "1" + "0" * 308, "0." + "0" * 323 + "5", "1e+22"],
    "decimal": ["0.00", "-12.50", "9" * 65],
    "char": ["", "null", "NULL", "ä😀", '\0\t\n"\\<>&\u2028'],
    "varchar": ["x", "AA=="],
    "text": ["a" * 5000],
    "tinytext": [""],
    "mediumtext": ["m"],
    "longtext": ["l"],
    "date": ["0000-00-00", "2020-02-31", "9999-12-31"],
    "time": ["-838:59:59", "838:59:59.000000"],
    "datetime": ["0000-00-00 00:00:00", "2026-11-23 09:00:00.123456"],
    "json": ['{"a": [1, null, "x"]}', "null", '"t"'],
    "vector": ["[1,2.5,3]", "[]"],
}
UNSIGNED = {"tinyint": "255", "smallint": "65535", "mediumint": "16777215", "int": "4294967295", "bigint": str(MAX64)}
BEYOND = {
    "tinyint": ["-129", "128", "1.0", "", " 1", "1 ", "+1", "1_0", "٣", "0x1", "null", "1\n", "\n1", "1e3"],
    "smallint": ["32768"],
    "mediumint": ["8388608"],
    "int": ["2147483648", "9" * 21],
    "bigint": ["9223372036854775808"],
    "year": ["-1", "2156"],
    "bit": ["-1", str(MAX64 + 1)],
    "enum": ["65536", "a"],
    "set": ["-1"],
    "float": ["", "nan", "inf", "1e400", "-", ".5", "5.", "0x1p3", " 1", "1\n"],
    "double": ["Infinity", "1e309"],
}
BYTES = ("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob")


def borders():
    for kind, texts in BORDERS.items():
        yield from ((kind, False, text) for text in texts)
    yield from ((kind, True, text) for kind, text in UNSIGNED.items())


def with_column(kind, value, *, in_key=False, **more):
    table = schema(
        column("id", "int"), column("c", kind, nullable=not in_key, **more), indexes=[primary("id", "c") if in_key else primary("id")]
    )
    return bootstrap(table), row("INSERT", {"c": value, "id": "1"})


@pytest.mark.parametrize("in_key", [False, True])
@pytest.mark.parametrize(("kind", "is_unsigned", "text"), list(borders()), ids=lambda value: str(value)[:20])
def test_a_value_at_the_border_of_its_type_is_read_the_same_both_ways(kind, is_unsigned, text, in_key):
    (event,) = assert_ways_agree(*with_column(kind, text, in_key=in_key, **({"unsigned": True} if is_unsigned else {})))
    value = event.after["c"].value
    if isinstance(value, int):
        assert value == int(text)
    elif isinstance(value, float):
        assert repr(value) == repr(float(text))
    else:
        assert value == text


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in BEYOND.items() for text in texts])
def test_a_value_beyond_its_type_is_refused_by_both_ways_and_never_altered(kind, text):
    before, value = with_column(kind, text)
    assert assert_ways_agree(before, value) is None
    good = row("INSERT", {"c": BORDERS[kind][0], "id": "1"})
    rows = [event for event in placed(before, good, value) if isinstance(event, PlacedRow)]
    decoder = decoder_of(before)
    with pytest.raises(ProtocolError, match="does not fit"):
        decoder.image_decoder(rows[1].shape)(rows[1].image)
    with pytest.raises(ProtocolError, match="does not fit"):
        decoder.images_decoder(rows[1].shape)([one.image for one in rows] * 40)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("in_key", [False, True])
def test_bytes_are_base64_and_the_text_null_is_not_null(kind, in_key):
    for raw in (b"", bytes(range(256)), b64decode("null")):
        (event,) = assert_ways_agree(*with_column(kind, b64encode(raw).decode(), in_key=in_key))
        assert event.after["c"].value == raw
    for wrong in ("A", "AA", "A===", "AA==\n", "-_==", "A A="):
        assert assert_ways_agree(*with_column(kind, wrong, in_key=in_key)) is None


@pytest.mark.parametrize("kind", [*BORDERS, *BYTES, "timestamp"])
def test_null_is_null_in_every_type(kind):
    (event,) = assert_ways_agree(*with_column(kind, None))
    assert event.after["c"].value is None


@pytest.mark.parametrize("location", ["UTC", "Local", "Asia/Shanghai", ""])
def test_a_timestamp_is_its_text(location):
    before, value = with_column("timestamp", {"location": location, "value": "2026-11-23 09:00:00.5"})
    (event,) = assert_ways_agree(before, value)
    assert event.after["c"].value == "2026-11-23 09:00:00.5"
    assert assert_ways_agree(before, row("INSERT", {"id": "1", "c": "2026-11-23 09:00:00.5"})) is None
    assert assert_ways_agree(before, row("INSERT", {"id": "1", "c": {"location": "UTC"}})) is None


BITS = b"\x06bit\x02\x01"
"""A BIT of 64 ones as tiflow writes it."""


@pytest.mark.parametrize(
    "bit", [BITS, b"\x06bit\x08\x02" + b"5", b"\x06bit\x08\x28" + b"18446744073709551615"], ids=["long", "text", "long text"]
)
def test_rows_with_bits_of_either_producer_are_read_together(bit, monkeypatch):
    value = AVRO_ROWS["insert"].replace(BITS, bit)
    decoder = decoder_of(AVRO_ROWS["bootstrap"], value)
    placer = decoder.placer(STREAM)
    (first,) = (
        one for _, one in place_records(placer, [Record(Offset(n), None, v) for n, v in enumerate([AVRO_ROWS["bootstrap"], value])])
    )
    monkeypatch.setattr("applier.sources.simple.placer.read_message", None)
    again = [one for _, one in place_records(placer, [Record(Offset(n), None, value) for n in range(2, 9)])]
    assert [decoded(decoder, one) for one in again] == [decoded(decoder, first)] * 7
    assert decoded(decoder, first)[3]["bit"] == (5 if bit.endswith(b"5") and len(bit) < 9 else MAX64)


def stamped(encoding, zone):
    """Rows of one version whose TIMESTAMP values name a zone."""
    if encoding == AVRO:
        return AVRO_ROWS["bootstrap"], AVRO_ROWS["insert"].replace(b"\x06UTC", bytes([2 * len(zone)]) + zone.encode())
    return with_column("timestamp", {"location": zone, "value": "2026-11-23 09:00:00"})


@pytest.mark.parametrize("encoding", [b"", AVRO])
@pytest.mark.parametrize(
    ("zone", "configured", "is_read"),
    [
        ("UTC", "UTC", True),
        ("Etc/UTC", "UTC", True),
        ("Local", "Asia/Shanghai", True),
        ("PRC", "Asia/Shanghai", True),
        ("Asia/Shanghai", "+08:00", False),  # it had daylight saving until 1991
        ("Etc/GMT-8", "+08:00", True),
        ("Asia/Shanghai", "UTC", False),
        ("UTC", "Europe/Berlin", False),
        ("Nowhere/AtAll", "UTC", False),
        ("Asia/Shanghai", "", True),
    ],
)
def test_a_timestamp_must_name_the_zone_that_is_configured(encoding, zone, configured, is_read):
    schema_of_it, value = stamped(encoding, zone)
    decoder = decoder_of(schema_of_it, value).in_zone(configured)
    one = Record(Offset(1), None, value)
    placer = decoder.placer(STREAM)
    place_records(placer, [Record(Offset(0), None, schema_of_it)])
    ways = (
        lambda: place_records(placer, [one]),
        lambda: place_records(placer, [one]),
        lambda: decoder.events(one, RecordPosition(STREAM, Offset(1))),
    )
    for read in ways:
        if is_read:
            assert len(read()) == 1
            continue
        with pytest.raises(ProtocolError, match=f"in the zone {zone}, and source.time_zone is") as caught:
            read()
        assert (caught.value.exit_code, caught.value.facts["kind"]) == (3, "time_zone")


@pytest.mark.parametrize("encoding", [b"", AVRO])
def test_a_timestamp_of_another_zone_among_known_rows_stops_and_is_not_quarantined(encoding):
    schema_of_it, value = stamped(encoding, "UTC")
    _, other = stamped(encoding, "Asia/Shanghai")
    records = [Record(Offset(offset), None, one) for offset, one in enumerate([schema_of_it, value, value, other, value])]
    decoder = decoder_of(schema_of_it).in_zone("UTC")
    for placer in (decoder.placer(STREAM), TolerantPlacer(STREAM, Tolerance(unreadable=True), decoder)):
        with pytest.raises(ProtocolError, match="in the zone Asia/Shanghai") as caught:
            list(placer.place_all(records))
        assert caught.value.facts["offset"] == 3


@pytest.mark.parametrize("name", ['"', "\\", "a\nb", "ä", "", "'", "id ", "data", "v"])
def test_any_name_of_a_column_is_read(name):
    table = schema(column("id", "int"), column(name, "varchar"))
    (event,) = assert_ways_agree(bootstrap(table), row("INSERT", {"id": "1", name: "x"}))
    assert event.after[name].value == "x"


def test_a_delete_has_its_image_in_old_and_an_update_is_one_row():
    (deleted,) = placed(bootstrap(), row("DELETE", old=order(1)))
    assert (deleted.kind, decode_key(deleted.key)) == (RowKind.DELETE, [1])
    values = [bootstrap(), *[row("UPDATE", order(n, "new"), order(n, "old")) for n in range(5)]]
    assert [(event.kind, decode_key(event.key)) for event in placed(*values)] == [(RowKind.UPSERT, [n]) for n in range(5)]


def test_an_update_that_changes_the_key_is_a_delete_and_an_upsert_of_one_event():
    values = [bootstrap(), *[row("UPDATE", order(n + 10), order(n), ts=TS + n) for n in range(4)]]
    placer = decoder_of(*values).placer(STREAM)
    found = place_records(placer, [Record(Offset(offset), None, value) for offset, value in enumerate(values)])
    assert [(place, event.kind, decode_key(event.key)) for place, event in found] == [
        ((n + 1, 0), kind, [key]) for n in range(4) for kind, key in ((RowKind.DELETE, n), (RowKind.UPSERT, n + 10))
    ]


def test_an_update_of_a_table_without_a_key_replaces_its_row_even_by_itself():
    table = schema(indexes=[])
    values = [bootstrap(table), *[row("UPDATE", order(1), order(1))] * 3]
    assert [event.kind for event in placed(*values)] == [RowKind.DELETE, RowKind.UPSERT] * 3
    assert {event.key for event in placed(*values)} == {b""}
    assert placed(*values)[0].shape.keys.handle == ()


@pytest.mark.parametrize("indexes", [[], [primary("id")]], ids=["no key", "key"])
def test_an_update_without_its_old_image_is_refused_by_both_ways(indexes):
    known = bootstrap(schema(indexes=indexes))
    for lacking in (row("UPDATE", order(1)), row("UPDATE", None, order(1))):
        assert assert_ways_agree(known, lacking) is None
        with pytest.raises(ProtocolError, match="the row lacks an image") as caught:
            placed(known, row("UPDATE", order(1), order(1)), lacking)
        assert caught.value.facts["offset"] == 2


def test_an_update_of_avro_without_its_old_image_is_refused_among_rows_of_its_version():
    known, insert = AVRO_ROWS["bootstrap"], AVRO_ROWS["insert"]
    # The operation stands behind the id of the table.
    lacking = insert.replace(b"all_types\xd4\x01\x00", b"all_types\xd4\x01\x02")
    assert assert_ways_agree(known, lacking) is None
    with pytest.raises(ProtocolError, match="the row lacks an image") as caught:
        placed(known, insert, insert, lacking)
    assert caught.value.facts["offset"] == 3


def test_rows_of_a_partitioned_table_join_their_schema_by_name_and_version():
    values = [bootstrap(), row("INSERT", order(1), tableID=99), row("INSERT", order(2), tableID=98)]
    assert [decode_key(event.key) for event in placed(*values)] == [[1], [2]]
    assert not any(event.shape.partitioned for event in placed(*values))
    without_key = [bootstrap(schema(indexes=[])), *[row("INSERT", order(1), tableID=number) for number in (7, 99, 99, 7)]]
    assert [event.shape.partitioned for event in placed(*without_key)] == [False, True, True, False]
    (event,) = assert_ways_agree(values[0], values[1])
    assert event.partition_id == 99


KEYS = [
    ([primary("id")], ("id",)),
    ([index("note", nullable=True), index("id")], ("id",)),
    ([index("id", "blob"), index("note")], ("note",)),
    ([index("id", unique=False)], ()),
    ([index("id", "note"), index("blob", "note")], ("id", "note")),
    ([index("hidden")], None),
    ([], ()),
]


@pytest.mark.parametrize(("indexes", "handle"), KEYS)
def test_the_key_is_ticdcs_choice(indexes, handle):
    columns = [
        column("id", "int"),
        column("note", "varchar", nullable=any(one["nullable"] for one in indexes)),
        column("blob", "varbinary"),
    ]
    (found,) = placed(bootstrap(schema(*columns, indexes=indexes)), row("INSERT", order(1)))
    assert found.shape.keys.handle == handle
    assert found.shape.keys.primary == next((tuple(one["columns"]) for one in indexes if one["primary"]), ())


def test_what_a_column_selector_has_taken_out_is_no_key():
    table = schema(column("id", "int"), column("u", "int"), column("note", "varchar"), indexes=[primary("id"), index("u")])
    (found,) = placed(bootstrap(table), row("INSERT", {"note": "x", "u": "5"}))
    assert (found.shape.keys.handle, found.shape.keys.identifying) == (("u",), ("u",))
    (found,) = placed(bootstrap(table), row("INSERT", {"note": "x"}))
    assert (found.shape.keys.handle, found.key) == (None, b"")


def test_zeros_with_a_sign_are_one_key():
    table = schema(column("id", "double"))
    values = [bootstrap(table), *[row("INSERT", {"id": text}) for text in ("0", "-0", "0", "-0")]]
    assert len({event.key for event in placed(*values)}) == 1


def test_rows_of_mixed_tables_and_shapes_come_in_order():
    other = schema(column("a", "bigint"), table="other", indexes=[primary("a")])
    values = [bootstrap(), bootstrap(other)]
    for n in range(600):
        values.append(row("INSERT", {"a": str(n)}, table="other", ts=TS + n) if n % 3 else row("INSERT", order(n), ts=TS + n))
        if n % 50 == 0:
            values += [watermark(TS + n), row("DELETE", old=order(n), ts=TS + n), bootstrap()]
    rows = [event for event in placed(*values) if isinstance(event, PlacedRow)]
    assert [event.commit_ts for event in rows] == sorted(event.commit_ts for event in rows)
    assert len(rows) == 612
    wide = [bootstrap(), *[row("INSERT", order(n) if n % 2 else {"id": str(n), "note": "x"}) for n in range(40)]]
    assert [decode_key(event.key) for event in placed(*wide)] == [[n] for n in range(40)]


def test_the_first_error_is_that_of_the_first_row():
    values = [bootstrap(), *[row("INSERT", order(n)) for n in range(5)], row("INSERT", order("x")), row("INSERT", order("y"))]
    with pytest.raises(ProtocolError) as caught:
        placed(*values)
    assert (caught.value.facts["offset"], caught.value.facts["table"], caught.value.facts["column"]) == (6, "orders", "id")


def test_an_unreadable_row_leaves_a_marker_of_its_key():
    values = [bootstrap(), row("UPDATE", {"id": "2", "note": 5}, order(1)), b"rubbish", row("INSERT", order(1), version=5)]
    placer = decoder_of(*values).placer(STREAM)
    assert placer.place_each(0, None, values[0]) == []
    *markers, (_, unplaced) = placer.place_each(1, None, values[1])
    assert [(decode_key(marker.key), marker.image, marker.kind) for _, marker in markers] == [
        ([1], MARKER_IMAGE, RowKind.UPSERT),
        ([2], MARKER_IMAGE, RowKind.UPSERT),
    ]
    assert isinstance(unplaced, Unplaced)
    assert unplaced.head.name == ("shop", "orders")
    ((number, unplaced),) = placer.place_each(2, None, values[2])
    assert (number, unplaced.head) == (WHOLE_RECORD, None)


def test_rows_of_tables_that_are_excluded_need_no_schema():
    settings = load_config(
        None,
        {
            "source": {"bootstrap_servers": "a:1", "topics": ["t"], "tables": ["shop.*", "!shop.log"]},
            "sink": {"url": "sqlite:///x.db"},
        },
        environment={},
    )
    chosen = settings.source.selection()
    values = [
        bootstrap(),
        *[
            row("INSERT", order(n), table=table, version=VERSION if table == "orders" else 5)
            for n in range(3)
            for table in ("log", "orders")
        ],
    ]
    found = placed(*values, selection=chosen)
    assert {event.name for event in found if isinstance(event, ExcludedTable)} == {TableName("shop", "log")}
    assert [decode_key(event.key) for event in found if isinstance(event, PlacedRow)] == [[0], [1], [2]]


class Objects:
    """Claim-check objects in memory."""

    def __init__(self, **contents):
        self.contents = contents

    def read(self, names):
        yield from (self.contents[name] for name in names)


AVRO_ROWS = {
    vector["name"]: b64decode(vector["value_b64"])
    for vector in json.loads((Path(__file__).parents[3] / "data" / "simple_avro.json").read_text(encoding="utf-8"))
}


def test_a_large_row_is_read_from_its_object_raw_or_not():
    whole = row("INSERT", order(1, "large"))
    forms = {"raw": whole, "packed": dump({"key": None, "value": b64encode(whole).decode()})}
    forms |= {"lz4": lz4.frame.compress(whole), "packed_lz4": dump({"key": None, "value": b64encode(lz4.frame.compress(whole)).decode()})}
    for name, content in forms.items():
        value = row("INSERT", {"id": "1"}, claimCheckLocation=f"file:///x/{name}", handleKeyOnly=True)
        (found,) = placed(bootstrap(), value, whole_rows=WholeRowSources(claims=Objects(**{name: content})))
        assert (found.image, found.shape.placeholder) == (whole.partition(b'"data":')[2][:-1], False)
    avro = AVRO_ROWS["claim check"]
    (found,) = placed(AVRO_ROWS["bootstrap"], avro, whole_rows=WholeRowSources(claims=Objects(**{"x.json": AVRO_ROWS["insert"]})))
    assert (found.shape.encoding, len(found.shape.columns)) == (AVRO, 22)


@pytest.mark.parametrize(
    "content",
    [
        b"rubbish",
        b"",
        row("INSERT", order(2)),
        row("DELETE", old=order(1)),
        row("INSERT", order(1), ts=TS + 1),
        row("INSERT", order(1), table="other"),
        row("INSERT", {"id": "1"}, handleKeyOnly=True),
        watermark(),
        dump({"key": None, "value": "?"}),
    ],
)
def test_an_object_that_is_another_row_is_refused(content):
    value = row("INSERT", {"id": "1"}, claimCheckLocation="file:///x/one", handleKeyOnly=True)
    with pytest.raises(ProtocolError, match="claim-check object cannot be used"):
        placed(bootstrap(), value, whole_rows=WholeRowSources(claims=Objects(one=content)))
    with pytest.raises(ProtocolError, match="claim-check storage"):
        placed(bootstrap(), value)


def test_a_row_with_its_key_alone_is_a_placeholder_or_is_refused():
    value = row("UPDATE", {"id": "1"}, {"id": "1"}, handleKeyOnly=True)
    with pytest.raises(ProtocolError, match="only its handle key was sent"):
        placed(bootstrap(), value)
    (found,) = placed(bootstrap(), value, whole_rows=WholeRowSources(lookup=object()))
    assert (found.shape.placeholder, decode_key(found.key)) == (True, [1])
    (deleted,) = placed(bootstrap(), row("DELETE", old={"id": "1"}, handleKeyOnly=True))
    assert (deleted.kind, decode_key(deleted.key)) == (RowKind.DELETE, [1])
    (found,) = placed(AVRO_ROWS["bootstrap"], AVRO_ROWS["handle key only"], whole_rows=WholeRowSources(lookup=object()))
    assert found.shape.placeholder


def test_a_large_row_of_a_table_without_a_key_is_no_ddl():
    with pytest.raises(ProtocolError, match="the row has no key"):
        placed(bootstrap(schema(indexes=[])), row("INSERT", handleKeyOnly=True), whole_rows=WholeRowSources(lookup=object()))


def test_avro_rows_have_the_keys_that_json_rows_have():
    (of_avro,) = placed(AVRO_ROWS["bootstrap"], AVRO_ROWS["insert"])
    assert decode_key(of_avro.key) == [MAX64]
    decoder = SimpleDecoder()
    image = decoded(decoder, of_avro)[3]
    assert (image["bit"], image["s"], image["vb"]) == (MAX64, 2**63, bytes(range(256)))
    assert_ways_agree(AVRO_ROWS["bootstrap"], AVRO_ROWS["update"])
    assert_ways_agree(AVRO_ROWS["bootstrap"], AVRO_ROWS["delete"])


@pytest.mark.parametrize("encoding", [b"", AVRO])
def test_an_image_that_is_written_here_is_read_as_the_same_values(encoding):
    table = schema(*[column(kind, kind, nullable=True) for kind in (*BORDERS, *BYTES, "timestamp")], indexes=[])
    (found,) = placed(bootstrap(table), row("INSERT", dict.fromkeys((*BORDERS, *BYTES, "timestamp"))))
    shape = found.shape._replace(encoding=encoding)
    decoder = SimpleDecoder()
    examples = [None] * len(shape.columns), [example(one) for one in shape.columns]
    for values in examples:
        assert list(decoder.image_decoder(shape)(decoder.encode_image(shape, values))) == list(values)
        (twice, again) = zip(*decoder.images_decoder(shape)([decoder.encode_image(shape, values)] * 2), strict=True)
        assert list(twice) == list(again) == list(values)


def example(one):
    if one.name in BYTES:
        return b"\0\xff"
    if one.name in {"float", "double"}:
        return 1.5
    if one.name == "timestamp":
        return "2026-11-23 09:00:00"
    text = BORDERS[one.name][-1]
    return int(text) if one.name in BEYOND and one.name != "float" else text


def test_a_text_that_is_no_utf8_is_kept_byte_by_byte():
    shape_row = placed(AVRO_ROWS["bootstrap"], AVRO_ROWS["insert"].replace(b"h\xc3\xa4", b"h\xc3\xff"))[0]
    assert decoded(SimpleDecoder(), shape_row)[3]["x"].startswith("h\udcc3\udcff")
    (event,) = assert_ways_agree(*with_column("varchar", "\udcff"))
    assert event.after["c"].value == "\udcff"


@pytest.mark.parametrize("word", ["INSERT", "UPDATE", "DELETE"])
def test_a_name_of_a_column_that_is_no_utf8_is_refused_as_the_others_of_its_record(word):
    new, old = None if word == "DELETE" else order(1), None if word == "INSERT" else order(1)
    plain = row(word, new, old)
    for damaged in (plain.replace(b'"note"', b'"n\xffte"'), b"n\xffte".join(plain.rsplit(b"note", 1))):
        assert assert_ways_agree(bootstrap(), damaged) is None
        *markers, (_, unplaced) = decoder_of(bootstrap(), damaged).placer(STREAM).place_each(1, None, damaged)
        assert [decode_key(marker.key) for _, marker in markers] == [[1]]
        assert unplaced.error.facts["kind"] == "schema"


def test_an_old_image_that_lacks_a_text_that_is_no_utf8_has_it_from_the_new_one():
    whole = dump(order(1, "x")).replace(b'"x"', b'"\xff"')
    value = row("UPDATE", order(1), {"id": "2"}).replace(dump(order(1)), whole)
    old, new = placed(bootstrap(), value)
    assert (decode_key(old.key), decode_key(new.key)) == ([2], [1])
    assert [decoded(SimpleDecoder(), event)[3]["note"] for event in (old, new)] == ["\udcff"] * 2


def test_a_table_of_the_sink_that_holds_bytes_gets_the_bytes_of_a_text():
    (found,) = placed(*with_column("varchar", "ä"))
    columns = tuple(one._replace(is_bytes=True) if one.name == "c" else one for one in found.shape.columns)
    decoder = SimpleDecoder()
    shape = found.shape._replace(columns=columns)
    assert decoder.image_decoder(shape)(found.image)[0] == "ä".encode()
    assert decoder.images_decoder(shape)([found.image])[0] == ["ä".encode()]


def test_operations_have_the_names_of_their_messages():
    for word, operation in (("INSERT", RowOperation.INSERT), ("UPDATE", RowOperation.UPDATE), ("DELETE", RowOperation.DELETE)):
        (event,) = assert_ways_agree(bootstrap(), row(word, None if word == "DELETE" else order(1), None if word == "INSERT" else order(1)))
        assert event.operation is operation


def test_a_ddl_takes_effect_for_the_rows_behind_it():
    newer = schema(column("id", "int"), column("note", "int"), version=VERSION + 1)
    values = [
        bootstrap(),
        row("INSERT", order(1)),
        ddl("ALTER TABLE `orders` MODIFY `note` INT", newer),
        row("INSERT", {"id": "1", "note": "5"}, version=VERSION + 1),
    ]
    values += [row("INSERT", order(2))]
    rows = [event for event in placed(*values) if isinstance(event, PlacedRow)]
    assert [decoded(SimpleDecoder(), event)[3]["note"] for event in rows] == ["x", 5, "x"]
