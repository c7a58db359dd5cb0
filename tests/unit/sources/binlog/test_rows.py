"""Rows of a binlog, as MariaDB 10.11 and MySQL 9.7 wrote them (``tests/data/binlog``), with the values that were written."""

import json
from base64 import b64decode
from pathlib import Path

import pytest

from applier.model.errors import ApplierError, NeedsOperator, ProtocolError
from applier.model.events import MARKER_IMAGE, ExcludedTable, ResolvedEvent, RowKind, RowOperation, TableName
from applier.model.position import RecordPosition
from applier.selection import TableFilter, TableSelection
from applier.sources.binlog import image_code
from applier.sources.binlog import image_code as row_code
from applier.sources.binlog.decoder import BINLOG, BinlogDecoder
from applier.sources.binlog.event_stream import HEADER_BYTES
from applier.sources.binlog.image_code import image_decoder, images_decoder
from applier.sources.binlog.part import ROWS_PER_EVENT, PartHead, PartKind, decode_head, encode_head, events_of
from applier.sources.binlog.position import STREAM
from applier.sources.binlog.rows_event import OPERATIONS
from applier.sources.binlog.table_map import TABLE_ID_BYTES
from applier.sources.column_flags import Flag
from applier.sources.port import EventHead, PlacedEvent, PlacedRows, Record, Unplaced

RECORDS = [json.loads(line) for line in Path("tests/data/binlog/rows.jsonl").read_text().splitlines()]
OFFSET, TS = 1 << 32 | 4, 1 << 32 | 999
PLACE = RecordPosition(STREAM, OFFSET)


def record_of(one, value=None, kind=PartKind.ROWS):
    head = PartHead(kind, TS, 3, 0, one["server"] == "mariadb", "0-1-2")
    return Record(OFFSET, encode_head(head), b64decode(one["value"]) if value is None else value)


def named(server, name):
    return next(one for one in RECORDS if one["server"] == server and one["name"] == name)


def name_of(one):
    return f"{one['server']}-{one['name']}".replace(" ", "-")


def plain(value):
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def read_image(image):
    return None if image is None else {name: [*column[:2], plain(column.value)] for name, column in image.items()}


def placed(record, decoder=BINLOG):
    """The rows of a record: kind, table, event and row number, key, values by column."""
    rows = []
    for found in decoder.placer(STREAM).place_all([record]):
        assert isinstance(found, PlacedRows)
        for at, image in enumerate(found.image):
            shape = found.shapes[found.shape[at]]
            values = [column[0] for column in images_decoder(shape)([image])]
            assert list(decoder.image_decoder(shape)(image)) == values
            named_values = dict(zip((column.name for column in shape.columns), map(plain, values), strict=True))
            rows.append(
                (found.kind[at], str(shape.name), divmod(found.index[at], ROWS_PER_EVENT), decoder.decode_key(found.key[at]), named_values)
            )
    return rows


@pytest.mark.parametrize("one", RECORDS, ids=name_of)
def test_events_have_the_values_that_were_written(one):
    events = [(event.operation, read_image(event.before), read_image(event.after)) for event in BINLOG.events(record_of(one), PLACE)]
    assert events == [(RowOperation(row["operation"]), row.get("before"), row.get("after")) for row in one["rows"]]


def values_of(image):
    return {name: column[2] for name, column in image.items()}


def key_of(image):
    return [image[name][2] for name in sorted(image) if image[name][1] & Flag.HANDLE_KEY]


def expected_rows(one):
    for number, row in enumerate(one["rows"]):
        before, after = row.get("before"), row.get("after")
        if before and (not after or key_of(before) != key_of(after) or not key_of(after)):
            yield RowKind.DELETE, number, key_of(before), values_of(before)
        if after:
            yield RowKind.UPSERT, number, key_of(after), values_of(after)


WITHOUT_COLUMNS = "update MINIMAL"
"""The second update changes the key."""


@pytest.mark.parametrize("one", [one for one in RECORDS if one["name"] != WITHOUT_COLUMNS], ids=name_of)
def test_placed_rows_agree_with_the_events(one):
    rows = placed(record_of(one))
    assert [(kind, event - 3 + row, key, values) for kind, _, (event, row), key, values in rows] == list(expected_rows(one))


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_row_that_lacks_columns_under_its_new_key_is_refused(server):
    record = record_of(named(server, WITHOUT_COLUMNS))
    with pytest.raises(ProtocolError) as raised:
        placed(record)
    assert raised.value.facts["kind"] == "partial_key"
    assert raised.value.facts["event"] == 4 * ROWS_PER_EVENT
    (first, row), *markers, (_, unplaced) = BINLOG.placer(STREAM).place_each(*record)
    assert (first, [column.name for column in row.shape.columns]) == (3 * ROWS_PER_EVENT, ["id", "stock"])
    # No older version of either row is written as the final one.
    assert [(index, BINLOG.decode_key(row.key), row.image) for index, row in markers] == [
        (4 * ROWS_PER_EVENT, [2], MARKER_IMAGE),
        (4 * ROWS_PER_EVENT, [3], MARKER_IMAGE),
    ]
    assert isinstance(unplaced, Unplaced)
    assert unplaced.head == EventHead(TS, TableName("d_cap", "nine"), is_ddl=False)


def test_one_event_at_a_time_gives_the_same_rows():
    for one in RECORDS:
        if one["name"] != WITHOUT_COLUMNS:
            each = BINLOG.placer(STREAM).place_each(*record_of(one))
            together = list(BINLOG.placer(STREAM).place_all([record_of(one)]))
            assert [index for index, _ in each] == [index for rows in together for index in rows.index]
            assert [row.image for _, row in each] == [image for rows in together for image in rows.image]


def test_the_end_of_a_range_is_a_promise():
    record = Record(OFFSET, encode_head(PartHead(PartKind.PROMISE, TS, 0, 0, True, "")), b"")
    assert list(BINLOG.placer(STREAM).place_all([record])) == [PlacedEvent(OFFSET, 0, ResolvedEvent(TS))]
    assert BINLOG.events(record, PLACE) == [ResolvedEvent(TS)]


@pytest.mark.parametrize("one", [named("mariadb", "every type"), named("mysql", "every type"), named("mysql", "update FULL")], ids=name_of)
def test_bad_bytes_are_an_error_with_its_place_and_nothing_else(one):
    value = b64decode(one["value"])
    placer = BINLOG.placer(STREAM)
    for at in range(len(value)):
        damaged = (value[:at], value[:at] + b"\xff" + value[at + 1 :], value[:at] + bytes((value[at] ^ 1,)) + value[at + 1 :])[at % 3]
        record = record_of(one, damaged)
        try:
            placed(record)
            BINLOG.events(record, PLACE)
        except ApplierError as error:
            assert error.facts.get("offset", OFFSET) == OFFSET  # noqa: PT017 - most damage is found, not all
        placer.place_each(*record)


def test_a_table_that_is_left_out_is_named_and_its_rows_are_not_read():
    one = named("mariadb", "insert FULL")
    decoder = BinlogDecoder(TableSelection(tables=TableFilter.parse(["*.*", "!d_cap.nine"])))
    (found,) = decoder.placer(STREAM).place_all([record_of(one), record_of(one)])
    assert found == PlacedEvent(OFFSET, 5 * ROWS_PER_EVENT, ExcludedTable(TS, TableName("d_cap", "nine")))


def test_the_servers_own_tables_are_no_rows_of_a_replica():
    value = b64decode(named("mysql", "insert FULL")["value"]).replace(b"\x05d_cap\0", b"\x05MySQL\0")
    assert list(BINLOG.placer(STREAM).place_all([record_of(named("mysql", "insert FULL"), value)])) == []


def test_a_table_map_without_names_says_what_to_set():
    value = b64decode(named("mysql", "keyless FULL")["value"])
    with pytest.raises(NeedsOperator, match="binlog_row_metadata is not FULL") as raised:
        placed(record_of(named("mysql", "keyless FULL"), value.replace(b"\x04\x06\x01a\x01b\x01c", b"\x0c\x06\x01a\x01b\x01c")))
    assert "SET GLOBAL binlog_row_metadata = FULL" in raised.value.remedy


NO_NAMES = b"\x04\x06\x01a\x01b\x01c", b"\x0c\x06\x01a\x01b\x01c"
WITHOUT = BinlogDecoder(TableSelection(tables=TableFilter.parse(["*.*", "!d_cap.*"])))


def test_what_is_wrong_with_a_table_that_a_replica_does_not_have_stops_nothing():
    keyless = named("mysql", "keyless FULL")
    value = b64decode(keyless["value"])
    record = record_of(keyless, value.replace(*NO_NAMES))
    (found,) = WITHOUT.placer(STREAM).place_all([record])
    assert isinstance(found.event, ExcludedTable)
    assert {type(one) for _, one in WITHOUT.placer(STREAM).place_each(*record)} == {ExcludedTable}
    assert list(BINLOG.placer(STREAM).place_all([record_of(keyless, record.value.replace(b"\x05d_cap\0", b"\x05mysql\0"))])) == []


@pytest.mark.parametrize(("decoder", "stops"), [(WITHOUT, False), (BINLOG, True)])
def test_parts_of_json_values_stop_only_a_replica_that_has_the_table(decoder, stops):
    one = named("mysql", "insert FULL")
    # The rows event as one of another type: its content is never looked at.
    value = b64decode(one["value"])
    map_bytes = int.from_bytes(value[9:13], "little")
    partial = value[:map_bytes] + event(39, value[map_bytes + 19 : map_bytes + 27] + b"anything")
    if stops:
        with pytest.raises(NeedsOperator, match="JSON values in parts"):
            list(decoder.placer(STREAM).place_all([record_of(one, partial)]))
    else:
        (found,) = decoder.placer(STREAM).place_all([record_of(one, partial)])
        assert isinstance(found.event, ExcludedTable)


def forget():
    image_code._tables.clear()
    for cache in (row_code._shared, images_decoder, image_decoder):
        cache.cache_clear()


def test_rows_with_very_many_sets_of_nulls_are_read_alike(monkeypatch):
    for one in (named("mysql", "insert FULL"), named("mariadb", "every type")):
        compiled = placed(record_of(one))
        with monkeypatch.context() as patch:
            patch.setattr(row_code, "MAX_READERS", 0)
            forget()
            assert placed(record_of(one)) == compiled
            forget()


def event(kind, body):
    return bytes(4) + bytes((kind,)) + bytes(4) + (19 + len(body)).to_bytes(4, "little") + bytes(6) + body


@pytest.mark.parametrize(("gtid", "command"), [("0-1-2", "skip --gtid"), ("", "skip --position")])
def test_an_unreadable_transaction_is_skipped_by_what_names_it(gtid, command):
    one = named("mysql", "key")
    record = Record(OFFSET, encode_head(PartHead(PartKind.ROWS, TS, 0, 0, False, gtid)), b64decode(one["value"])[:-1])
    with pytest.raises(ProtocolError, match="too short or too long") as raised:
        placed(record)
    assert command in raised.value.remedy


def test_parts_of_json_values_are_refused_with_the_variable_that_writes_them():
    with pytest.raises(NeedsOperator, match="JSON values in parts") as raised:
        placed(record_of(named("mysql", "key"), event(39, bytes(20))))
    assert "binlog_row_value_options = ''" in raised.value.remedy


def test_an_old_type_of_time_with_a_fraction_says_what_to_alter():
    table = bytes(8) + b"\x01s\0\x01t\0\x02\x03\x0b\0\x02" + b"\x01\x01\x00" + b"\x04\x05\x02id\x01t" + b"\x08\x01\0"
    row = bytes(8) + b"\x02\0" + b"\x02\x03" + b"\xfc\x07\0\0\0\x01\x02\x03\x04"
    with pytest.raises(ProtocolError, match="old types of time") as raised:
        placed(record_of(named("mariadb", "key"), event(19, table) + event(30, row)))
    assert "mysql56_temporal_format = ON" in raised.value.remedy


def test_a_row_without_key_and_some_columns_is_refused():
    table = bytes(8) + b"\x01s\0\x01t\0\x02\x03\x03\0\x03" + b"\x01\x01\x00" + b"\x04\x04\x01a\x01b"
    row = bytes(8) + b"\x02\0" + b"\x02\x01" + b"\0\x07\0\0\0"
    with pytest.raises(ProtocolError, match="has no key, and the binlog does not have all columns"):
        placed(record_of(named("mysql", "key"), event(19, table) + event(30, row)))


NO_FOREIGN_KEY_CHECKS, SQL_FOREIGN_KEY, STATEMENT_END = 0x02, 0x10, 0x01


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    ("flags", "hides"), [(0, True), (STATEMENT_END, True), (NO_FOREIGN_KEY_CHECKS, False), (SQL_FOREIGN_KEY | STATEMENT_END, False)]
)
def test_the_flags_of_an_event_say_whether_the_log_lacks_what_foreign_keys_have_changed(server, flags, hides):
    one = next(one for one in RECORDS if one["server"] == server)
    record = record_of(one)
    data = bytearray(record.value)
    places = [begin for kind, begin, *_ in events_of(decode_head(record.key), record.value, lambda *_: None) if kind in OPERATIONS]
    for begin in places:
        data[begin + HEADER_BYTES + TABLE_ID_BYTES] = flags
    assert places
    shapes = [shape for found in BINLOG.placer(STREAM).place_all([record._replace(value=bytes(data))]) for shape in found.shapes]
    assert {shape.hides_actions for shape in shapes} == {hides}


def test_rows_of_an_event_come_before_those_of_the_next_one_however_many_they_are():
    table = bytes(8) + b"\x01s\0\x01t\0\x01\x01\0\0" + b"\x04\x02\x01a" + b"\x08\x01\0"
    front = bytes(8) + b"\x02\0" + b"\x01\x01"
    many, one = front + b"\0\x07" * 1_000_001, front + b"\0\x07"
    found = list(BINLOG.placer(STREAM).place_all([record_of(named("mysql", "key"), event(19, table) + event(30, many) + event(30, one))]))
    indexes = [index for rows in found for index in rows.index]
    assert len(indexes) == 1_000_002
    assert max(indexes[:-1]) < indexes[-1] < 2**63
