"""What waits in memory: the latest version of each key, and hardly more, whatever was superseded."""

import json
import sys
from array import array

from hypothesis import given
from hypothesis import strategies as st

from applier.model.chunk import pack
from applier.model.position import Stream
from applier.planner import Moved, PlanTarget, TransactionSet, count_transactions, plan_bucket, route
from applier.planner.final_rows import SUPERSEDED_ROWS, FinalRows
from applier.planner.port import Statement
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.open_protocol.decoder import OpenProtocolDecoder
from tests.builders.planning import ORDERS_TABLE, PlainDialect, between, chunk, gone, put

TARGET = PlanTarget({ORDERS_TABLE.folded: ORDERS_TABLE}, {}, PlainDialect())


def fed(*chunks, keeps_order=False):
    rows = FinalRows(keeps_order=keeps_order)
    for one in chunks:
        rows.feed(one, one.key, array("i", (0,)) * len(one.key))
    return rows


def test_one_key_that_is_updated_a_hundred_thousand_times_takes_the_memory_of_some_rows():
    data = chunk(*[put(5 + n, 1, "x", offset=n) for n in range(1_000)])
    rows = FinalRows()
    most = 0
    for _ in range(100):
        rows.feed(data, data.key, array("i", (0,)) * len(data.key))
        most = max(most, len(rows.image))
    assert most <= SUPERSEDED_ROWS + 1
    rows.finish()
    assert (len(rows), rows.image, list(rows.commit_ts), list(rows.offset)) == (1, [data.image[-1]], [1004], [999])


def test_a_row_that_waits_takes_few_bytes_beside_its_key_and_image():
    data = chunk(*[put(5 + n, n, "x", offset=n) for n in range(10_000)])
    rows = fed(data)
    rows.finish()
    columns = (rows.commit_ts, rows.kind, rows.offset, rows.index, rows.origin, rows.image, rows.keys)
    assert sum(map(sys.getsizeof, columns)) / 10_000 < 50


versions = st.builds(
    lambda make, ts, key, offset, index: make(ts, key, "x", offset=offset, index=index),
    st.sampled_from([put, gone]),
    st.integers(1, 6),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2),
)


@given(st.lists(st.lists(versions, min_size=1, max_size=10), min_size=1, max_size=5), st.booleans())
def test_the_latest_version_of_each_key_is_kept_however_rows_are_divided_and_ordered(chunks, keeps_order):
    rows = fed(*[chunk(*one) for one in chunks], keeps_order=keeps_order)
    rows.finish()
    expected = {}
    for row in (row for one in chunks for row in one):
        kind = int(row.kind)
        version = (row.commit_ts, row.offset, row.index, kind) if keeps_order else (row.commit_ts, kind, row.offset, row.index)
        expected[row.key()] = max(expected.get(row.key(), version), version)
    found = map(rows.version, range(len(rows)))
    assert dict(zip(rows.keys, found, strict=True)) == expected
    assert len(rows) == len(expected) == len(rows.image) == len(rows.origin)


class OrderedDecoder(OpenProtocolDecoder):
    keeps_order = True


def test_a_transaction_may_delete_and_write_a_key_in_any_order_where_the_source_keeps_it():
    many = 5_000 * 1_000_000
    rows = [put(5, 1, "a", index=many), gone(5, 1, "a", index=many + 1), gone(5, 2, "b", index=many + 2), put(5, 2, "c", index=many + 3)]
    found = {}
    for decoder in (OPEN_PROTOCOL, OrderedDecoder()):
        planned = plan_bucket([pack(0, chunk(*rows)).data], between(), TARGET, decoder)
        found[decoder.keeps_order] = [json.loads(one.text)[::3] for one in planned if isinstance(one, Statement)]
    assert found == {False: [["replace", [[1, "a"], [2, "c"]]]], True: [["delete", [[1]]], ["replace", [[2, "c"]]]]}


@given(st.lists(st.lists(versions, min_size=1, max_size=10), min_size=1, max_size=4), st.integers(1, 3), st.integers(2, 4))
def test_a_bucket_that_is_split_over_several_reducers_gives_what_it_gives_whole(chunks, buckets, splits):
    found, sets = [], []
    reducers: dict[int, list[bytes]] = {}
    for number, one in enumerate(chunks):
        packed = pack(0, chunk(*one, stream=Stream("feed", number)))
        for bucket, data in route(packed, Moved(()), buckets, splits):
            reducers.setdefault(bucket, []).append(data)
    for data in reducers.values():
        *statements, commits = plan_bucket(data, between(), TARGET, OPEN_PROTOCOL)
        found += [line for one in statements if isinstance(one, Statement) for line in lines_of(one)]
        sets.append(commits)
    *whole, commits = plan_bucket([pack(0, chunk(*one)).data for one in chunks], between(), TARGET, OPEN_PROTOCOL)
    assert sorted(found) == sorted(line for one in whole if isinstance(one, Statement) for line in lines_of(one))
    assert isinstance(commits, TransactionSet)
    assert count_transactions(sets) == count_transactions([commits])


def lines_of(statement):
    return [(statement.phase, row) for row in json.loads(statement.text)[3]]


def test_a_delete_says_how_many_rows_upstream_had_when_the_segment_began():
    def counted(*rows):
        planned = plan_bucket([pack(0, chunk(*rows)).data], between(), TARGET, OPEN_PROTOCOL)
        return [(each.rows, each.present) for each in planned if isinstance(each, Statement)]

    new = [put(5, 2, "x"), gone(6, 2, "x", offset=1)]
    assert counted(gone(5, 1, "x"), *new, gone(7, 3, "x", offset=2), put(8, 4, "x", offset=3)) == [(3, 2), (1, 0)]
    assert counted(gone(5, 1, "x"), gone(6, 2, "x")) == [(2, 2)]
