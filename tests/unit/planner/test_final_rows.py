"""What waits in memory: the latest version of each key, and hardly more, whatever was superseded."""

import json
import sys
from array import array

from hypothesis import given
from hypothesis import strategies as st

from applier.model.chunk import pack
from applier.model.position import Stream
from applier.planner import PlanTarget, TransactionSet, count_transactions, plan_bucket, route
from applier.planner.final_rows import SUPERSEDED_ROWS, FinalRows
from applier.planner.statement import Statement
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import ORDERS_TABLE, PlainDialect, between, chunk, gone, put

TARGET = PlanTarget({ORDERS_TABLE.folded: ORDERS_TABLE}, {}, PlainDialect())


def fed(*chunks):
    rows = FinalRows()
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


@given(st.lists(st.lists(versions, min_size=1, max_size=10), min_size=1, max_size=5))
def test_the_latest_version_of_each_key_is_kept_however_rows_are_divided_and_ordered(chunks):
    rows = fed(*[chunk(*one) for one in chunks])
    rows.finish()
    expected = {}
    for row in (row for one in chunks for row in one):
        version = row.commit_ts, int(row.kind), row.offset, row.index
        expected[row.key()] = max(expected.get(row.key(), version), version)
    found = zip(rows.commit_ts, rows.kind, rows.offset, rows.index, strict=True)
    assert dict(zip(rows.keys, found, strict=True)) == expected
    assert len(rows) == len(expected) == len(rows.image) == len(rows.origin)


@given(st.lists(st.lists(versions, min_size=1, max_size=10), min_size=1, max_size=4), st.integers(1, 3), st.integers(2, 4))
def test_a_bucket_that_is_split_over_several_reducers_gives_what_it_gives_whole(chunks, buckets, splits):
    found, sets = [], []
    reducers: dict[int, list[bytes]] = {}
    for number, one in enumerate(chunks):
        packed = pack(0, chunk(*one, stream=Stream("feed", number)))
        for bucket, data in route(packed, (), buckets, splits):
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
