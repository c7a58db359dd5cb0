"""The sink's own catalogue decides which columns are written."""

import base64

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator, ProtocolError
from applier.planner import unique_names
from applier.sources.column_flags import Flag
from tests.builders.planning import (
    BLOB,
    INT,
    KEY,
    ORDERS,
    ORDERS_SHAPE,
    TEXT,
    gone,
    packed,
    plan,
    put,
    shape,
    sink_column,
    sink_table,
    written,
)

WIDE = shape(("id", INT, KEY), ("name", TEXT, 64), ("extra", TEXT, 64))


def test_members_of_unique_indexes_are_named_unless_they_are_the_handle_key() -> None:
    assert unique_names(ORDERS_SHAPE) == ()
    assert unique_names(shape(("ID", INT, KEY), ("Code", INT, int(Flag.UNIQUE_KEY)), ("n", INT, 64))) == ("code", "id")
    assert unique_names(shape(("id", INT, KEY), ("email", TEXT, int(Flag.UNIQUE_KEY | Flag.NULLABLE)))) == ()
    assert unique_names(shape(("id", INT, int(Flag.PRIMARY_KEY)), ("n", INT, 1))) == ("id",)


def test_names_match_without_regard_to_case_and_are_spelled_as_the_sink_spells_them() -> None:
    shouting = shape(("ID", INT, KEY), ("Name", TEXT, 64))
    assert written(packed(put(5, 1, "x", shape=shouting))) == [["replace", "orders", ["id", "name"], [[1, "x"]]]]


def test_a_column_that_the_sink_lacks_stops_with_column_table_and_commit_ts() -> None:
    with pytest.raises(FatalSinkError, match="lacks a column") as caught:
        plan(packed(put(5, 1, "x", "y", shape=WIDE, offset=3)))
    expected = {"column": "extra", "table": "shop.orders", "commit_ts": 5, "offset": 3}
    assert expected.items() <= caught.value.facts.items()
    assert caught.value.remedy


def test_a_delete_needs_only_the_key_whatever_else_its_image_holds_or_lacks() -> None:
    keys_only = shape(("id", INT, KEY))
    for row in (gone(5, 1, shape=keys_only), gone(5, 1, "x", "y", shape=WIDE)):
        assert written(packed(row)) == [["delete", "orders", ["id"], [[1]]]]


def test_rows_of_a_key_that_their_images_lack_need_the_operator() -> None:
    with pytest.raises(NeedsOperator, match="lacks columns that the sink") as caught:
        plan(packed(put(5, 1, "x")), tables=[sink_table("id", "name", "code")], rekeyed={ORDERS: ("code",)})
    assert caught.value.facts["columns"] == "code"
    assert caught.value.exit_code == 6


def test_a_superseded_version_may_be_partial() -> None:
    assert written(packed(put(5, 1, shape=shape(("id", INT, KEY))), put(6, 1, "x"))) == [["replace", "orders", ["id", "name"], [[1, "x"]]]]


def test_a_delete_by_a_key_column_that_the_sink_lacks_stops() -> None:
    with pytest.raises(FatalSinkError, match="lacks key columns") as caught:
        plan(packed(gone(5, 1, "x")), tables=[sink_table("name", primary=("name",))])
    assert caught.value.facts["columns"] == "id"


def test_a_column_that_the_sink_generates_is_never_written_even_if_the_wire_does_not_call_it_generated() -> None:
    table = sink_table("id", "name", sink_column("extra", generated=True))
    assert written(packed(put(5, 1, "x", "y", shape=WIDE)), tables=[table]) == [["replace", "orders", ["id", "name"], [[1, "x"]]]]


def test_a_virtual_column_that_never_appears_on_the_wire_is_not_missed() -> None:
    table = sink_table("id", sink_column("twice", generated=True), "name")
    assert written(packed(put(5, 1, "x")), tables=[table]) == [["replace", "orders", ["id", "name"], [[1, "x"]]]]


def test_a_column_that_upstream_generates_and_the_sink_holds_plainly_is_written() -> None:
    generated = shape(("id", INT, KEY), ("name", TEXT, int(Flag.GENERATED)))
    assert written(packed(put(5, 1, "x", shape=generated))) == [["replace", "orders", ["id", "name"], [[1, "x"]]]]


def test_an_image_with_two_columns_of_one_name_is_refused() -> None:
    twice = shape(("id", INT, KEY), ("name", TEXT, 64), ("NAME", TEXT, 64))
    with pytest.raises(ProtocolError, match="two columns with the same name"):
        plan(packed(put(5, 1, "x", "y", shape=twice)))


def test_a_binary_value_whose_flag_is_stale_is_unescaped_because_the_sinks_column_is_binary() -> None:
    table = sink_table("id", sink_column("name", sql_type="varbinary(20)", binary=True))
    assert written(packed(put(5, 1, "\\x89PNG\\r\\n")), tables=[table]) == [
        ["replace", "orders", ["id", "name"], [[1, {"bytes": b"\x89PNG\r\n".hex()}]]]
    ]


def test_a_blob_whose_flag_is_stale_is_bytes_because_the_sinks_column_is_binary() -> None:
    stale = shape(("id", INT, KEY), ("name", BLOB, 0))
    table = sink_table("id", sink_column("name", sql_type="blob", binary=True))
    row = put(5, 1, base64.b64encode(b"\xff\0").decode(), shape=stale)
    assert written(packed(row), tables=[table]) == [["replace", "orders", ["id", "name"], [[1, {"bytes": "ff00"}]]]]


def test_a_backslash_in_a_text_column_is_a_backslash() -> None:
    assert written(packed(put(5, 1, "\\x89"))) == [["replace", "orders", ["id", "name"], [[1, "\\x89"]]]]


def test_a_key_whose_binary_flag_is_stale_is_unescaped_too() -> None:
    stale = shape(("id", TEXT, int(Flag.HANDLE_KEY)), ("name", TEXT, 64))
    table = sink_table(sink_column("id", sql_type="varbinary(20)", binary=True), "name")
    assert written(packed(gone(5, "a\\x00", "x", shape=stale)), tables=[table]) == [["delete", "orders", ["id"], [[{"bytes": "6100"}]]]]


def test_a_number_in_a_binary_flagged_column_is_left_alone() -> None:
    assert ORDERS_SHAPE.columns[0].flags & Flag.BINARY
    table = sink_table(sink_column("id", binary=True), "name")
    assert written(packed(put(5, 1, "x")), tables=[table]) == [["replace", "orders", ["id", "name"], [[1, "x"]]]]
