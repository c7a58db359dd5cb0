"""Which version of a key is written, and in what order (the design's sections 3 and 6)."""

import pickle
from itertools import permutations

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator, ProtocolError
from applier.model.events import FoldedName
from applier.model.position import Stream
from applier.planner import TransactionSet, count_transactions
from applier.planner.port import Phase
from tests.builders.planning import INT, KEY, PlainDialect, between, gone, packed, plan, put, shape, sink_table, written

KEYLESS = shape(("id", INT, 1), ("name", 15, 0))
REPLACED = ["replace", "orders", ["id", "name"]]


def test_the_last_version_by_commit_ts_is_written_whatever_order_chunks_come_in() -> None:
    rows = [put(5, 1, "old", offset=9), put(6, 1, "new", offset=2), gone(4, 1, "older", offset=7)]
    for order in permutations(rows):
        assert written(*(packed(row) for row in order)) == [[*REPLACED, [[1, "new"]]]]
        assert written(packed(*order)) == [[*REPLACED, [[1, "new"]]]]


def test_a_delete_comes_before_the_upsert_of_the_same_commit_ts() -> None:
    rows = put(5, 1, "kept", offset=1), gone(5, 1, "gone", offset=2)
    assert written(packed(*rows)) == [[*REPLACED, [[1, "kept"]]]]


def test_within_one_commit_ts_and_kind_the_later_offset_and_then_the_later_event_decides() -> None:
    assert written(packed(put(5, 1, "b", offset=2), put(5, 1, "a", offset=1, index=9))) == [[*REPLACED, [[1, "b"]]]]
    assert written(packed(put(5, 1, "b", index=1), put(5, 1, "a", index=0))) == [[*REPLACED, [[1, "b"]]]]


def test_a_key_whose_last_version_is_a_delete_is_deleted() -> None:
    assert written(packed(put(5, 1, "x"), gone(6, 1, "x"))) == [["delete", "orders", ["id"], [[1]]]]


def test_rows_outside_of_the_window_are_left_out() -> None:
    rows = [put(ts, ts, "x") for ts in (9, 10, 11, 20, 21)]
    assert written(packed(*rows), window=between(10, 20)) == [[*REPLACED, [[11, "x"], [20, "x"]]]]


def test_a_newer_version_above_the_window_does_not_hide_the_one_inside() -> None:
    assert written(packed(put(10, 1, "in"), put(30, 1, "above")), window=between(0, 20)) == [[*REPLACED, [[1, "in"]]]]


def test_rows_at_the_checkpoint_are_applied_again_with_the_segment() -> None:
    data = packed(put(10, 1, "x"), put(9, 2, "x"), put(11, 3, "x"))
    assert written(data, window=between(10, 20, again=True)) == [[*REPLACED, [[1, "x"], [3, "x"]]]]


def test_rows_at_the_checkpoint_of_tables_touched_by_its_ddl_are_dropped() -> None:
    data = packed(put(10, 1, "x"), put(11, 3, "x"))
    window = between(10, 20, again=True, settled=[FoldedName("shop", "orders")])
    assert written(data, window=window) == [[*REPLACED, [[3, "x"]]]]


def test_keyless_rows_at_an_applied_checkpoint_are_dropped() -> None:
    assert written(packed(put(10, 1, "x", shape=KEYLESS)), window=between(10, 20, again=True)) == []


def test_the_image_of_a_superseded_version_is_never_decoded() -> None:
    assert written(packed(put(5, 1, "x", image=b"rubbish"), put(6, 1, "y"))) == [[*REPLACED, [[1, "y"]]]]


def test_the_image_of_a_deleted_row_is_never_decoded() -> None:
    assert written(packed(gone(5, 1, "x", image=b"rubbish"))) == [["delete", "orders", ["id"], [[1]]]]


def test_an_unreadable_final_image_stops_and_is_never_replaced_by_an_older_version() -> None:
    data = packed(put(5, 1, "x", offset=40), put(6, 1, "y", offset=41, image=b"rubbish"))
    with pytest.raises(ProtocolError) as caught:
        plan(data)
    place = {"table": "shop.orders", "commit_ts": 6, "topic": "feed", "partition": 3, "offset": 41}
    assert place.items() <= caught.value.facts.items()


def test_a_value_that_is_not_of_its_columns_type_stops_with_its_place() -> None:
    broken = b'{"id":{"t":3,"f":11,"v":"7"},"name":{"t":15,"f":64,"v":"x"}}'
    with pytest.raises(ProtocolError) as caught:
        plan(packed(put(6, 1, "y", offset=41, image=broken)))
    assert (caught.value.facts["offset"], caught.value.facts["commit_ts"]) == (41, 6)


def test_errors_survive_the_way_to_the_driver() -> None:
    with pytest.raises(ProtocolError) as caught:
        plan(packed(put(6, 1, "y", image=b"rubbish")))
    assert pickle.loads(pickle.dumps(caught.value)).facts == caught.value.facts  # noqa: S301


def test_all_deletes_of_a_table_come_before_its_first_replace() -> None:
    statements, _ = plan(packed(put(5, 1, "x"), gone(6, 2, "x"), put(7, 3, "x"), gone(8, 4, "x")), dialect=PlainDialect(most=1))
    assert [(statement.phase, statement.rows) for statement in statements] == [(Phase.DELETE, 1)] * 2 + [(Phase.REPLACE, 1)] * 2


@pytest.mark.parametrize(
    ("primary", "unique"),
    [((), ()), (("name",), ()), (("id", "name"), ()), ((), [("name",), ("name", "id")])],
    ids=["no key", "other key", "wider key", "others"],
)
def test_without_a_unique_index_on_exactly_the_handle_key_rows_are_deleted_before_they_are_inserted(
    primary: tuple[str, ...], unique: list[tuple[str, ...]]
) -> None:
    data = packed(put(5, 1, "x"), gone(6, 2, "x"))
    assert written(data, tables=[sink_table("id", "name", primary=primary, unique=unique)]) == [
        ["delete", "orders", ["id"], [[1], [2]]],
        [*REPLACED, [[1, "x"]]],
    ]


def test_a_unique_index_on_the_handle_key_serves_in_any_order_and_spelling() -> None:
    pair = shape(("b", INT, KEY), ("a", INT, KEY))
    table = sink_table("B", "A", primary=(), unique=[("B", "A")])
    assert written(packed(put(5, 1, 2, shape=pair)), tables=[table]) == [["replace", "orders", ["B", "A"], [[1, 2]]]]


def test_key_columns_of_a_delete_are_spelled_as_the_sink_spells_them_and_in_the_order_of_the_key() -> None:
    pair = shape(("b", INT, KEY), ("A", INT, KEY))
    table = sink_table("B", "a", primary=("a", "B"))
    assert written(packed(gone(5, 1, 2, shape=pair)), tables=[table]) == [["delete", "orders", ["a", "B"], [[2, 1]]]]


def test_rows_of_two_streams_and_two_column_orders_share_one_statement() -> None:
    turned = shape(("name", 15, 64), ("id", INT, KEY))
    data = packed(put(5, 1, "x")), packed(put(6, "y", 2, shape=turned), stream=Stream("feed", 4))
    assert written(*data) == [[*REPLACED, [[1, "x"], [2, "y"]]]]


def test_tables_are_one_whatever_the_case_of_their_names() -> None:
    shouting = shape(("id", INT, KEY), ("name", 15, 64), table="ORDERS")
    assert written(packed(put(5, 1, "x"), gone(6, 1, "x", shape=shouting))) == [["delete", "orders", ["id"], [[1]]]]


def test_tables_of_one_bucket_are_planned_apart() -> None:
    carts = shape(("id", INT, KEY), table="carts")
    tables = [sink_table("id", "name"), sink_table("id", table="carts")]
    assert written(packed(put(5, 1, "x"), put(5, 1, shape=carts)), tables=tables) == [
        [*REPLACED, [[1, "x"]]],
        ["replace", "carts", ["id"], [[1]]],
    ]


def test_a_row_without_a_handle_key_needs_the_operator() -> None:
    with pytest.raises(NeedsOperator) as caught:
        plan(packed(put(5, 1, "x", shape=KEYLESS, offset=8)))
    assert (caught.value.facts["table"], caught.value.facts["offset"]) == ("shop.orders", 8)


def test_a_missing_table_stops_with_table_and_commit_ts() -> None:
    with pytest.raises(FatalSinkError, match="missing in the sink") as caught:
        plan(packed(put(5, 1, "x"), put(4, 2, "x")), tables=[])
    assert (caught.value.facts["table"], caught.value.facts["commit_ts"]) == ("shop.orders", 4)
    assert caught.value.remedy


def test_a_table_that_has_rows_only_above_the_window_need_not_exist_yet() -> None:
    later = shape(("id", INT, KEY), table="later")
    assert written(packed(put(5, 1, "x"), put(30, 1, shape=later)), window=between(0, 20)) == [[*REPLACED, [[1, "x"]]]]


def test_statements_carry_their_rows_and_the_bounds_of_their_timestamps() -> None:
    rows = [put(ts, ts, "x") for ts in (7, 5, 6, 9, 8)]
    statements, _ = plan(packed(*rows), dialect=PlainDialect(most=3))
    assert [(s.table, s.rows, s.min_ts, s.max_ts) for s in statements] == [("shop.orders", 3, 5, 7), ("shop.orders", 2, 8, 9)]


def test_a_row_that_no_statement_can_hold_is_named() -> None:
    rows = [put(5, 1, "x"), put(6, 2, "y" * 50, offset=77), put(7, 3, "z")]
    with pytest.raises(FatalSinkError) as caught:
        plan(packed(*rows), dialect=PlainDialect(longest=40))
    assert (caught.value.facts["commit_ts"], caught.value.facts["offset"], caught.value.facts["bytes"]) == (6, 77, 56)


def test_an_empty_bucket_gives_no_statements_and_no_transactions() -> None:
    assert plan() == ([], TransactionSet(b""))


def test_transactions_are_counted_once_over_buckets_superseded_rows_included() -> None:
    _, first = plan(packed(put(5, 1, "x"), put(6, 1, "y"), put(6, 2, "y")))
    _, second = plan(packed(put(6, 3, "x"), put(7, 3, "x"), put(101, 4, "x")))
    assert count_transactions([first, second]) == 3


def test_transactions_that_are_applied_again_are_not_counted_again() -> None:
    _, commits = plan(packed(put(10, 1, "x"), put(11, 1, "x")), window=between(10, 20, again=True))
    assert count_transactions([commits]) == 1
