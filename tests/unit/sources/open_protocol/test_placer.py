"""Placing: one PlacedRow per row, two where an update changed its handle key; whatever is unusual takes the full parse."""

import json

import lz4.frame
import pytest

from applier.model.errors import ProtocolError
from applier.model.events import DdlEvent, PlacedRow, ResolvedEvent, RowKind
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.column_flags import shape_of
from applier.sources.open_protocol import KEYLESS, OpenProtocolPlacer, decode_key, image_decoder
from applier.sources.open_protocol import placer as row_head
from applier.sources.open_protocol import placer as row_run
from applier.sources.open_protocol.value import VALUE_CLASSES
from tests.builders.wire import TS, column, dump, head, integer_key, record, text
from tests.rig.placing import assert_faces_agree, place_record

STREAM = Stream("changefeed", 2)
PLACE = RecordPosition(STREAM, Offset(9))


def place(*events, placer=None):
    return place_record(placer or OpenProtocolPlacer(STREAM), 9, *record(*events))


def place_twice(body, key=None):
    """Place a row when its shape is new, and when it is known; the two must not differ."""
    placer = OpenProtocolPlacer(STREAM)
    first, second = (place((key or head(), body), placer=placer) for _ in range(2))
    assert first == second
    assert_faces_agree(placer, *record((key or head(), body)))
    return second


def values_of(row):
    return dict(zip((column.name for column in row.shape.columns), image_decoder(row.shape)(row.image), strict=True))


def order(number, note="x"):
    return {"id": integer_key(number), "note": text(note)}


def test_insert_is_an_upsert_with_the_image_as_it_came():
    (row,) = place_twice({"u": order(1)})
    assert isinstance(row, PlacedRow)
    assert row == (TS, RowKind.UPSERT, shape_of("shop", "orders", (("id", 3, 11), ("note", 15, 64))), row.key, dump(order(1)))
    assert decode_key(row.key) == [1]


def test_delete_carries_its_image():
    (row,) = place_twice({"d": order(1)})
    assert (row.kind, row.image) == (RowKind.DELETE, dump(order(1)))


@pytest.mark.parametrize("old", [None, {}, order(1, "before"), {"note": text("before")}, {"id": integer_key(1)}])
def test_update_that_keeps_its_key_is_one_upsert(old):
    (row,) = place_twice({"u": order(1), "p": old})
    assert (row.kind, decode_key(row.key), row.image) == (RowKind.UPSERT, [1], dump(order(1)))


def test_s20_update_of_the_key_deletes_the_old_row_before_it_writes_the_new_one():
    deleted, written = place_twice({"u": order(2), "p": order(1, "before")})
    assert (deleted.kind, decode_key(deleted.key), values_of(deleted)) == (RowKind.DELETE, [1], {"id": 1, "note": "before"})
    assert (written.kind, decode_key(written.key), values_of(written)) == (RowKind.UPSERT, [2], {"id": 2, "note": "x"})
    assert deleted.shape is written.shape


def test_s20_old_image_with_changed_columns_only_is_laid_over_the_new_one():
    deleted, _ = place_twice({"u": order(2, "same"), "p": {"id": integer_key(1)}})
    assert values_of(deleted) == {"id": 1, "note": "same"}


def test_part_of_a_composite_key_may_be_absent_from_the_old_image():
    def row(a, b):
        return {"b": integer_key(b), "A": integer_key(a), "c": text("x")}

    deleted, written = place_twice({"u": row(1, 2), "p": {"b": integer_key(3)}})
    assert (decode_key(deleted.key), decode_key(written.key)) == ([1, 3], [1, 2])  # in the order of casefolded names
    (kept,) = place_twice({"u": row(1, 2), "p": {"b": integer_key(2), "c": text("y")}})
    assert decode_key(kept.key) == [1, 2]


def test_key_change_is_seen_where_only_the_old_image_knows_the_key_column():
    deleted, written = place_twice({"u": {"a": integer_key(1)}, "p": {"b": integer_key(1)}})
    assert (decode_key(deleted.key), decode_key(written.key)) == ([1, 1], [1])


def test_equal_values_under_another_key_column_are_another_key():
    new = {"a": integer_key(1), "b": column(3, 65, 1)}
    old = {"a": column(3, 65, 1), "b": integer_key(1)}
    assert [row.kind for row in place_twice({"u": new, "p": old})] == [RowKind.DELETE, RowKind.UPSERT]


def test_stale_flags_of_the_old_image_do_not_make_another_key():
    (row,) = place_twice({"u": {"id": column(3, 11, 1)}, "p": {"id": column(3, 3, 1)}})
    assert row.kind == RowKind.UPSERT


def test_rows_without_handle_key_have_no_key_and_each_update_replaces_one():
    image = {"a": column(3, 65, 1)}
    (row,) = place_twice({"u": image})
    assert row.key == KEYLESS
    assert [row.kind for row in place_twice({"u": image, "p": image})] == [RowKind.DELETE, RowKind.UPSERT]


def test_rows_without_handle_key_say_that_their_table_is_partitioned():
    image = {"note": text("x")}
    (row,) = place_twice({"u": image}, head(ptn=71))
    assert row.shape.partitioned
    old, new = place_twice({"u": image, "p": {"note": text("y")}}, head(ptn=72))
    assert old.shape.partitioned
    assert new.shape.partitioned
    (keyed,) = place_twice({"u": order(1)}, head(ptn=71))
    assert not keyed.shape.partitioned
    # Partitioning may come and go within a range.
    placer = OpenProtocolPlacer(STREAM)
    found = [place((key, {"u": image}), placer=placer)[0].shape.partitioned for key in (head(), head(ptn=71), head(), head(ptn=72))]
    assert found == [False, True, False, True]


def test_binary_and_other_spellings_of_one_key_are_one_key():
    (plain,) = place_twice({"u": {"k": column(15, 11, "A\\x42")}})
    (escaped,) = place_twice({"u": {"k": column(15, 11, "\\u0041B")}})
    assert plain.key == escaped.key
    assert decode_key(plain.key) == [b"AB"]
    (kept,) = place_twice({"u": {"k": column(15, 11, "AB")}, "p": {"k": column(15, 11, "\\x41B")}})
    assert kept.kind == RowKind.UPSERT


@pytest.mark.parametrize("mysql_type", VALUE_CLASSES)
@pytest.mark.parametrize("flags", [2, 11, 139])
def test_key_may_be_of_any_type_and_null(mysql_type, flags):
    (row,) = place_twice({"u": {"k": column(mysql_type, flags, None), "c": integer_key(1, f=65)}})
    assert decode_key(row.key) == [None]
    place_twice({"u": {"k": column(mysql_type, flags, None)}, "p": {"k": column(mysql_type, flags, None)}})


def test_both_zeros_of_a_float_key_are_one_key():
    keys = {place_twice({"u": {"k": column(5, 11, zero)}})[0].key for zero in (0, 0.0, -0.0)}
    assert len(keys) == 1


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, -(2**63)])
@pytest.mark.parametrize("flags", [11, 139])
def test_s17_big_integer_keys_are_exact_whatever_the_flags_say(value, flags):
    (row,) = place_twice({"u": {"id": column(8, flags, value)}})
    assert decode_key(row.key) == [value]
    assert values_of(row) == {"id": value}


def test_keys_beyond_64_bits_are_refused_also_where_the_shape_is_known():
    placer = OpenProtocolPlacer(STREAM)
    place((head(), {"u": {"id": column(8, 139, 1)}}), placer=placer)
    with pytest.raises(ProtocolError) as caught:
        place((head(), {"u": {"id": column(8, 139, 2**64)}}), placer=placer)
    assert caught.value.facts["kind"] == "value_type"


def test_text_key_that_is_not_utf8_keeps_its_bytes():
    (row,) = place_twice({"u": {"k": text("caf\udce9", f=10)}})
    assert decode_key(row.key) == ["caf\udce9"]
    (deleted, _) = place_twice({"u": {"k": text("a\udcff", f=10)}, "p": {"k": text("b\udcfe", f=10), "x": text("\udcff")}})
    assert values_of(deleted) == {"k": "b\udcfe", "x": "\udcff"}


@pytest.mark.parametrize("name", ["", "a b", "é", "😀", "<&>", 'c"z', "c\\z", "tab\t", "u", "p", "d", "f0", "v"])
def test_column_may_have_any_name(name):
    image = {"id": integer_key(1), name: text("x")}
    for body in ({"u": image}, {"d": image}, {"u": image, "p": image}, {"u": image, "p": {**image, "id": integer_key(0)}}):
        place_twice(body)
        escaped = json.dumps(body).encode().replace(b"<", b"\\u003c")  # the older producer escapes names too
        place_twice(escaped)


@pytest.mark.parametrize("flags", [256, 2**31, 2**63 - 1])
def test_flags_unknown_to_us_are_kept(flags):
    (row,) = place_twice({"u": {"id": column(3, flags, 1)}})
    assert row.shape.columns[0].flags == flags


def test_shape_is_equal_for_equal_types_and_flags_in_any_order():
    placer = OpenProtocolPlacer(STREAM)
    first, second, retyped, reflagged = (
        place((head(), {"u": image}), placer=placer)[0]
        for image in (
            order(1),
            dict(reversed(order(1).items())),
            {"id": integer_key(1), "note": text("eA==", t=252)},
            {"id": integer_key(1), "note": text("x", f=0)},
        )
    )
    assert first.shape is second.shape
    assert len({first.shape, retyped.shape, reflagged.shape}) == 3


def test_flags_0_may_be_left_out_but_a_handle_key_may_not_be_missed():
    with_flags, without = ({"u": {"id": integer_key(1), "c": {"t": 3, **flags, "v": 5}}} for flags in ({"f": 0}, {}))
    assert place_twice(with_flags)[0].shape is place_twice(without)[0].shape
    placer = OpenProtocolPlacer(STREAM)
    place((head(), without), placer=placer)
    (row,) = place((head(), {"u": {"id": integer_key(1), "c": {"t": 3, "h": True, "v": 5}}}), placer=placer)
    assert decode_key(row.key) == [5, 1]


def test_oldest_producers_rows_without_flags_are_placed_by_their_handle_member():
    (row,) = place_twice({"u": {"id": {"t": 3, "h": True, "v": 9}, "c": {"t": 3, "v": 2}}})
    assert decode_key(row.key) == [9]


@pytest.mark.parametrize(
    "body",
    [
        b' {"u" : %b } ',
        b'{"u":%b,"z":[1]}',
        b'{"z":1,"u":%b}',
        b'{"u":{},"u":%b}',
        b'{"u":%b,"u":%b}',
        b'{"p":null,"u":%b}',
        b'{"u":%b,"d":{}}',
    ],
)
def test_unusual_layouts_are_the_same_row(body):
    image = dump(order(1))
    (row,) = place_twice(body.replace(b"%b", image))
    assert (row.kind, row.image) == (RowKind.UPSERT, image)


def test_compressed_row_has_its_image_unpacked():
    (row,) = place_twice(lz4.frame.compress(dump({"u": order(1)})))
    assert row.image == dump(order(1))


def test_text_that_looks_like_an_old_image_is_text():
    (row,) = place_twice({"u": order(1, 'x"}},"p":{"id":{"t":3,"h":true,"f":11,"v":2}}')})
    assert row.kind == RowKind.UPSERT


@pytest.mark.parametrize(
    "body",
    [b'{"u":%b]', b'{"u":%b', b'{"u":%b}}', b'{"u":%b},"p":{}}', b'{"u":%b,"p":{}]', b'{"u":%b,"p":5}', b'{"d":%b]', b'{"u":%b"p":%b}'],
)
def test_body_that_is_broken_outside_of_its_images_is_refused_also_where_the_shape_is_known(body):
    placer = OpenProtocolPlacer(STREAM)
    place((head(), {"u": order(1)}), placer=placer)
    with pytest.raises(ProtocolError):
        place((head(), body.replace(b"%b", dump(order(1)))), placer=placer)


def test_bad_value_outside_of_the_key_is_found_when_the_image_is_decoded():
    placer = OpenProtocolPlacer(STREAM)
    place((head(), {"u": order(1)}), placer=placer)
    (row,) = place((head(), {"u": order(1, 5)}), placer=placer)
    with pytest.raises(ProtocolError) as caught:
        values_of(row)
    facts = caught.value.facts
    assert (facts["kind"], facts["schema"], facts["table"], facts["column"]) == ("value_type", "shop", "orders", "note")


def test_error_names_the_place_and_the_event_and_the_table():
    key, value = record((head(), {"u": order(1)}), (head(), {"u": order("1")}))
    with pytest.raises(ProtocolError) as caught:
        place_record(OpenProtocolPlacer(STREAM), 9, key, value)
    expected = {"topic": "changefeed", "partition": 2, "offset": 9, "event": 1, "schema": "shop", "table": "orders", "commit_ts": TS}
    assert expected.items() <= caught.value.facts.items()


def test_record_is_placed_again_after_an_error():
    placer = OpenProtocolPlacer(STREAM)
    for _ in range(2):
        with pytest.raises(ProtocolError):
            place_record(placer, 1, *record((b'{"ts":1,', b"{}")))
        (row,) = place((head(), {"u": order(1)}), placer=placer)
        assert row.commit_ts == TS


def test_other_events_come_between_rows_in_their_order():
    placed = place((head(), {"u": order(1)}), (head(t=2), {"q": "x", "t": 3}), ({"ts": TS, "t": 3}, b""), (head(), {"d": order(1)}))
    assert [type(event) for event in placed] == [PlacedRow, DdlEvent, ResolvedEvent, PlacedRow]


@pytest.mark.parametrize("body", [{"u": {"id": integer_key(1)}}, {"u": {"id": integer_key(1)}, "p": {"id": integer_key(1)}}])
def test_s16_row_reduced_to_its_handle_key_cannot_be_placed(body):
    with pytest.raises(ProtocolError) as caught:
        place((head(ohk=True), body))
    assert caught.value.facts["kind"] == "handle_key_only"
    assert (caught.value.facts["table"], caught.value.facts["commit_ts"]) == ("orders", TS)
    assert caught.value.remedy


def test_s16_delete_reduced_to_its_handle_key_is_complete():
    (row,) = place_twice({"d": {"id": integer_key(1)}}, head(ohk=True))
    assert (row.kind, decode_key(row.key)) == (RowKind.DELETE, [1])


def test_reduced_delete_without_any_handle_key_cannot_be_placed():
    with pytest.raises(ProtocolError) as caught:
        place((head(ohk=True), {"d": {"a": column(3, 65, 1)}}))
    assert caught.value.facts["kind"] == "handle_key_only"


@pytest.mark.parametrize("member", ["u", "d"])
@pytest.mark.parametrize("only_handle_key", [False, True])
def test_s15_row_kept_in_an_object_cannot_be_placed(member, only_handle_key):
    with pytest.raises(ProtocolError) as caught:
        place((head(ohk=only_handle_key, ccl="s3://bucket/x.json"), {member: {"id": integer_key(1)}}))
    assert caught.value.facts["kind"] == "claim_check"
    assert caught.value.remedy


def test_row_without_a_value_is_refused():
    with pytest.raises(ProtocolError) as caught:
        place_record(OpenProtocolPlacer(STREAM), 9, record((head(), b""))[0], None)
    assert caught.value.facts["kind"] == "count_mismatch"


def test_many_tables_and_shapes_are_forgotten_in_bounds_and_still_placed(monkeypatch):
    monkeypatch.setattr(row_head, "MAX_TABLES", 3)
    monkeypatch.setattr(row_run, "MAX_TABLE_SHAPES", 2)
    placer = OpenProtocolPlacer(STREAM)
    for _ in range(2):
        for table in range(6):
            for shape in range(4):
                row = {"id": integer_key(table), f"c{shape}": text("x")}
                (placed,) = place((head(table=f"t{table}"), {"u": row}), placer=placer)
                assert values_of(placed) == {"id": table, f"c{shape}": "x"}


def test_shapes_that_alternate_are_all_known_by_identity():
    placer = OpenProtocolPlacer(STREAM)
    bodies = [{"u": order(1)}, {"d": {"id": integer_key(1)}}, {"u": {**order(1), "extra": text("y")}}] * 2
    shapes = [place((head(), body), placer=placer)[0].shape for body in bodies]
    assert [id(shape) for shape in shapes[:3]] == [id(shape) for shape in shapes[3:]]
    assert len(set(shapes)) == 3


@pytest.mark.parametrize("wrong", ["x", 0, 1, "", [], {}])
@pytest.mark.parametrize(
    "column", [{"t": 3, "h": True, "f": 11, "v": 1}, {"t": 3, "f": 65, "v": 1}, {"t": 3, "v": 1}], ids=["key", "flags", "bare"]
)
def test_an_h_that_is_no_boolean_is_refused_also_where_the_shape_is_known(column, wrong):
    placer = OpenProtocolPlacer(STREAM)
    good = (head(), {"u": {"id": {"t": 3, "h": True, "f": 11, "v": 1}, "c": column}})
    place(good, placer=placer)
    with pytest.raises(ProtocolError):
        place((head(), {"u": {"id": {"t": 3, "h": True, "f": 11, "v": 1}, "c": column | {"h": wrong}}}), placer=placer)
