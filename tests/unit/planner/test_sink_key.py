"""Tables whose events disagree about the key: the sink's own key decides."""

from typing import NamedTuple

import pytest

from applier.model.chunk import PackedChunk, bucket_of, bucket_seed, pack, unpack
from applier.model.errors import FatalSinkError, InvariantViolation, NeedsOperator, ProtocolError
from applier.model.position import Stream
from applier.planner import Moved, route, sink_key_of
from tests.builders.planning import INT, KEY, ORDERS, TEXT, between, chunk, gone, packed, plan, put, shape, sink_column, sink_table, written

BY_ID = shape(("id", INT, KEY), ("code", INT, 1), ("name", TEXT, 64))
BY_CODE = shape(("id", INT, 1), ("code", INT, KEY), ("name", TEXT, 64))
UNKEYED = shape(("id", INT, 1), ("code", INT, 1), ("name", TEXT, 64))
TABLE = sink_table("id", "code", "name", unique=[("code",)])
COLUMNS = ["id", "code", "name"]
CARTS = shape(("id", INT, KEY), table="carts")
BUCKETS = 7


class Rows(NamedTuple):
    handle_key: tuple[str, ...]
    bytes_key: tuple[str, ...] = ()
    unique_columns: tuple[str, ...] = ()

    @property
    def identifying(self) -> frozenset[str]:
        return frozenset(self.unique_columns or self.handle_key)


def test_events_that_agree_keep_their_key() -> None:
    assert sink_key_of([Rows(("id",)), Rows(("id",))], TABLE) is None


def test_events_that_disagree_are_keyed_by_the_sinks_primary_key() -> None:
    assert sink_key_of([Rows(("id",)), Rows(("code",))], TABLE) == ("id",)


def test_events_that_have_a_key_here_and_none_there_disagree() -> None:
    assert sink_key_of([Rows(("id",)), Rows(())], TABLE) == ("id",)


def test_without_a_primary_key_the_sinks_first_unique_key_decides() -> None:
    table = sink_table("id", "code", primary=(), unique=[("code",), ("id",)])
    assert sink_key_of([Rows(("id",)), Rows(("code",))], table) == ("code",)


def test_without_any_key_in_the_sink_the_operator_decides() -> None:
    with pytest.raises(NeedsOperator) as caught:
        sink_key_of([Rows(("id",)), Rows(())], sink_table("id", "code", primary=()))
    assert caught.value.facts == {"table": "shop.orders", "handle_keys": "none / id"}


def test_a_handle_key_that_is_no_unique_key_of_the_sink_gives_way_to_the_sinks_own() -> None:
    assert sink_key_of([Rows(("name",))], TABLE) == ("id",)
    assert sink_key_of([Rows(("id", "name"))], TABLE) == ("id",)
    assert sink_key_of([Rows(("code",))], TABLE) is None


def test_a_handle_key_stands_where_the_sinks_table_has_no_key_at_all() -> None:
    assert sink_key_of([Rows(("code",))], sink_table("id", "code", primary=())) is None


def test_rows_without_any_handle_key_go_by_the_sinks_key_if_it_has_one() -> None:
    assert sink_key_of([Rows(())], TABLE) == ("id",)
    assert sink_key_of([Rows(())], sink_table("id", "code", primary=())) is None


def test_s21_where_a_column_selector_leaves_out_the_handle_key_a_unique_key_that_all_images_hold_identifies_the_row() -> None:
    assert sink_key_of([Rows((), (), ("code", "name"))], TABLE) == ("code",)
    assert sink_key_of([Rows((), (), ("code", "id"))], TABLE) == ("id",)
    assert sink_key_of([Rows((), (), ("code", "id")), Rows((), (), ("code",))], TABLE) == ("code",)
    assert sink_key_of([Rows((), (), ("code",)), Rows((), (), ("name",))], TABLE) == ("id",)


def test_s21_a_part_of_the_handle_key_is_no_key_where_a_whole_unique_key_is_sent() -> None:
    table = sink_table("a", "b", "code", primary=("a", "b"), unique=[("code",)])
    assert sink_key_of([Rows(("a",), (), ("a", "code"))], table) == ("code",)
    assert sink_key_of([Rows(("a", "b"), (), ("a", "b", "code"))], table) is None


def test_a_key_that_is_text_in_some_events_and_bytes_in_others_is_read_from_the_images() -> None:
    assert sink_key_of([Rows(("code",)), Rows(("code",), ("code",))], TABLE) == ("code",)
    assert sink_key_of([Rows(("name",)), Rows(("name",), ("name",))], TABLE) == ("id",)


def test_a_delete_under_a_handle_key_that_is_not_unique_goes_by_the_sinks_key() -> None:
    stale = shape(("id", INT, 1), ("name", TEXT, 2))
    table = sink_table("id", "name")
    data = packed(put(5, 1, "same", shape=stale), gone(6, 2, "same", shape=stale))
    assert written(data, tables=[table], rekeyed={ORDERS: ("id",)}) == [
        ["delete", "orders", ["id"], [[2]]],
        ["replace", "orders", ["id", "name"], [[1, "same"]]],
    ]


def test_rows_under_different_handle_keys_are_compacted_by_the_sinks_key() -> None:
    data = packed(put(5, 1, 70, "a", shape=BY_ID)), packed(put(6, 1, 71, "b", shape=BY_CODE)), packed(gone(4, 1, 69, "", shape=UNKEYED))
    assert written(*data, tables=[TABLE], rekeyed={ORDERS: ("id",)}) == [["replace", "orders", COLUMNS, [[1, 71, "b"]]]]


def test_a_delete_under_another_handle_key_goes_by_the_sinks_key() -> None:
    data = packed(put(5, 1, 70, "a", shape=BY_ID), gone(6, 1, 70, "a", shape=BY_CODE))
    assert written(data, tables=[TABLE], rekeyed={ORDERS: ("id",)}) == [["delete", "orders", ["id"], [[1]]]]


def test_rekeyed_rows_at_an_applied_checkpoint_count_as_keyed() -> None:
    data = packed(put(10, 1, 70, "a", shape=UNKEYED))
    window = between(10, 20, again=True)
    assert written(data, tables=[TABLE], rekeyed={ORDERS: ("id",)}, window=window) == [["replace", "orders", COLUMNS, [[1, 70, "a"]]]]


def test_the_sinks_key_is_read_as_bytes_where_its_column_is_binary() -> None:
    stale = shape(("id", TEXT, 2), ("name", TEXT, 64))
    fresh = shape(("id", TEXT, 3), ("name", TEXT, 64))
    table = sink_table(sink_column("id", binary=True), "name")
    data = packed(put(5, "\\x00", "a", shape=stale), put(6, "\\x00", "b", shape=fresh))
    assert written(data, tables=[table], rekeyed={ORDERS: ("id",)}) == [["replace", "orders", ["id", "name"], [[{"bytes": "00"}, "b"]]]]


def test_an_unreadable_image_of_a_rekeyed_table_stops_even_if_superseded() -> None:
    data = packed(put(5, 1, 70, "a", shape=BY_ID, offset=9, image=b"rubbish"), put(6, 1, 70, "b", shape=BY_CODE))
    with pytest.raises(ProtocolError) as caught:
        plan(data, tables=[TABLE], rekeyed={ORDERS: ("id",)})
    assert (caught.value.facts["offset"], caught.value.facts["table"]) == (9, "shop.orders")


def test_an_image_without_the_sinks_key_columns_needs_the_operator() -> None:
    keys_only = shape(("code", INT, KEY))
    with pytest.raises(NeedsOperator) as caught:
        plan(packed(gone(5, 70, shape=keys_only)), tables=[TABLE], rekeyed={ORDERS: ("id",)})
    assert caught.value.facts["columns"] == "id"


def test_a_rekeyed_table_that_the_sink_lacks_is_reported_as_missing() -> None:
    with pytest.raises(FatalSinkError, match="missing in the sink"):
        plan(packed(put(5, 1, 70, "a", shape=BY_ID)), tables=[], rekeyed={ORDERS: ("id",)})


def test_disagreement_that_nobody_announced_is_a_defect() -> None:
    with pytest.raises(InvariantViolation, match="disagree"):
        plan(packed(put(5, 1, 70, "a", shape=BY_ID), put(6, 1, 70, "b", shape=BY_CODE)), tables=[TABLE])


def test_a_key_as_text_and_as_bytes_that_nobody_announced_is_a_defect() -> None:
    texts, bytes_ = shape(("id", TEXT, 2), ("name", TEXT, 64)), shape(("id", TEXT, 3), ("name", TEXT, 64))
    with pytest.raises(InvariantViolation, match="disagree"):
        plan(packed(put(5, "a", "x", shape=texts), put(6, b"a".decode(), "y", shape=bytes_)), tables=[sink_table("id", "name")])


def test_disagreement_above_the_window_does_not_count() -> None:
    data = packed(put(5, 1, 70, "a", shape=BY_ID), put(30, 1, 70, "b", shape=BY_CODE))
    assert written(data, tables=[TABLE], window=between(0, 20)) == [["replace", "orders", COLUMNS, [[1, 70, "a"]]]]


def own_bucket() -> int:
    return bucket_of(bucket_seed(BY_ID), b"", BUCKETS)


def foreign(*rows: object) -> PackedChunk:
    return pack((own_bucket() + 1) % BUCKETS, chunk(*rows))


def test_without_rekeyed_tables_chunks_pass_untouched() -> None:
    original = foreign(put(5, 1, 70, "a", shape=BY_ID))
    [(bucket, data)] = route(original, Moved({}), BUCKETS)
    assert bucket == original.bucket
    assert data is original.data


def test_a_chunk_without_rows_of_rekeyed_tables_passes_untouched() -> None:
    original = foreign(put(5, 1, shape=CARTS))
    [(bucket, data)] = route(original, Moved({ORDERS: ("id",)}), BUCKETS)
    assert bucket == original.bucket
    assert data is original.data


def test_a_chunk_that_lies_in_the_tables_own_bucket_passes_untouched() -> None:
    original = pack(own_bucket(), chunk(put(5, 1, 70, "a", shape=BY_ID)))
    assert route(original, Moved({ORDERS: ("id",)}), BUCKETS) == [(own_bucket(), original.data)]


def test_rows_of_a_rekeyed_table_go_to_the_tables_own_bucket_and_the_others_stay() -> None:
    rows = [put(5, 1, shape=CARTS), put(6, 1, 70, "a", shape=BY_ID), put(7, 2, shape=CARTS), put(8, 1, 70, "b", shape=BY_CODE)]
    original = foreign(*rows)
    parts = {bucket: unpack(data) for bucket, data in route(original, Moved({ORDERS: ("id",)}), BUCKETS)}
    assert parts == {original.bucket: chunk(rows[0], rows[2]), own_bucket(): chunk(rows[1], rows[3])}


def test_all_rows_of_a_rekeyed_table_meet_in_one_bucket_whichever_stream_and_key_they_have() -> None:
    first = foreign(put(6, 1, 70, "a", shape=BY_ID))
    second = pack((own_bucket() + 2) % BUCKETS, chunk(put(8, 1, 70, "b", shape=BY_CODE), stream=Stream("other", 0)))
    buckets = {bucket for packed_chunk in (first, second) for bucket, _ in route(packed_chunk, Moved({ORDERS: ("id",)}), BUCKETS)}
    assert buckets == {own_bucket()}


@pytest.mark.parametrize("rekeyed", [set(), {BY_ID.name.fold()}])
def test_divided_buckets_hold_all_rows_and_all_versions_of_a_key_in_one_part(rekeyed) -> None:
    rows = [put(ts, number, ts, "x", shape=BY_ID) for ts in (1, 2) for number in range(40)]
    whole = pack(0, chunk(*rows))
    divided = {target: unpack(data) for target, data in route(whole, Moved(rekeyed), 1, 5)}
    assert sum(len(part.key) for part in divided.values()) == len(rows)
    keys = [set(part.key) for part in divided.values()]
    assert sum(map(len, keys)) == len(set().union(*keys)) == 40
    assert divided.keys() <= set(range(5))
    assert len(divided) == (1 if rekeyed else 5)


@pytest.mark.parametrize("splits", [1, 3])
def test_rows_that_are_written_in_order_meet_in_one_bucket_whatever_their_table(splits) -> None:
    other = BY_ID._replace(table="items")
    rows = [put(1, number, 1, "x", shape=shape) for number in range(20) for shape in (BY_ID, other)]
    moved = Moved({}, {BY_ID.name.fold(), other.name.fold()})
    assert {target for bucket in range(BUCKETS) for target, _ in route(pack(bucket, chunk(*rows)), moved, BUCKETS, splits)} == {0}
