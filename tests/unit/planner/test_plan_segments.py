"""Several contiguous windows in one pass: each says what it says alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.model.errors import InvariantViolation
from applier.model.rejected_event import RejectedEvent
from applier.planner import PlanTarget, QuarantinePolicy, TransactionSet, plan_bucket, plan_segments
from applier.planner.port import Phase, Statement
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import INT, KEY, ORDERS, ORDERS_TABLE, PlainDialect, between, gone, packed, put, shape, sink_table

CARTS = shape(("id", INT, KEY), table="carts")
TARGET = PlanTarget({table.folded: table for table in (ORDERS_TABLE, sink_table("id", table="carts"))}, {}, PlainDialect())
QUARANTINE = QuarantinePolicy(unreadable=True)
RUBBISH = b"rubbish"


def test_each_window_has_its_own_statements_and_transactions():
    data = packed(put(5, 1, "x"), put(15, 1, "y"), gone(16, 2, "y"), put(25, 1, "z"), put(40, 9, "beyond"))
    found = list(plan_segments([data], [between(0, 10), between(10, 20), between(20, 30)], TARGET, OPEN_PROTOCOL))
    assert [(number, item.text) for number, item in found if isinstance(item, Statement)] == [
        (0, b'["replace", "orders", ["id", "name"], [[1,"x"]]]'),
        (1, b'["delete", "orders", ["id"], [[2]]]'),
        (1, b'["replace", "orders", ["id", "name"], [[1,"y"]]]'),
        (2, b'["replace", "orders", ["id", "name"], [[1,"z"]]]'),
    ]
    assert [(number, item) for number, item in found if isinstance(item, TransactionSet)] == [
        (0, TransactionSet.of([5])),
        (1, TransactionSet.of([15, 16])),
        (2, TransactionSet.of([25])),
    ]


def test_a_rejected_row_belongs_to_its_window():
    data = packed(put(5, 1, "x"), put(15, 2, "y", image=RUBBISH), put(25, 3, "z"))
    found = plan_segments([data], [between(0, 10), between(10, 20), between(20, 30)], TARGET, OPEN_PROTOCOL, QUARANTINE)
    assert [(number, item.commit_ts) for number, item in found if isinstance(item, RejectedEvent)] == [(1, 15)]


def test_rows_at_the_checkpoint_come_again_with_the_first_window_only():
    data = packed(put(9, 1, "x"), put(10, 2, "y"), put(20, 3, "z"), put(30, 4, "z"))
    windows = [between(10, 20, again=True), between(20, 30)]
    assert [
        (n, item.min_ts, item.max_ts) for n, item in plan_segments([data], windows, TARGET, OPEN_PROTOCOL) if isinstance(item, Statement)
    ] == [
        (0, 10, 20),
        (1, 30, 30),
    ]


def test_windows_with_a_gap_are_a_defect_and_no_lost_rows():
    with pytest.raises(InvariantViolation, match="contiguous"):
        list(plan_segments([], [between(0, 10), between(11, 20)], TARGET, OPEN_PROTOCOL))


@st.composite
def cases(draw):
    times = st.integers(0, 40)
    offsets = iter(range(10_000))
    row = st.builds(
        lambda make, ts, key, table: (
            make(ts, key, "x", offset=next(offsets)) if table else make(ts, key, shape=CARTS, offset=next(offsets))
        ),
        st.sampled_from([put, gone]),
        times,
        st.integers(0, 4),
        st.booleans(),
    )
    chunks = draw(st.lists(st.lists(row, min_size=1, max_size=12), max_size=5))
    bounds = sorted(draw(st.sets(times, min_size=2, max_size=5)))
    again, settled = draw(st.booleans()), draw(st.sampled_from([(), (ORDERS,)]))
    windows = [between(*pair, again=again and not n, settled=settled) for n, pair in enumerate(pairwise(bounds))]
    return [packed(*rows) for rows in chunks], windows


def table_of(item):
    return (item.table, item.phase) if isinstance(item, Statement) else ("", 0)


@given(cases())
def test_what_a_window_yields_among_others_is_what_it_yields_alone(case):
    chunks, windows = case
    together = [[] for _ in windows]
    for number, item in plan_segments(chunks, windows, TARGET, OPEN_PROTOCOL):
        together[number].append(item)
    alone = [list(plan_bucket(chunks, window, TARGET, OPEN_PROTOCOL)) for window in windows]
    assert [sorted(items, key=table_of) for items in together] == [sorted(items, key=table_of) for items in alone]
    assert all(isinstance(items[-1], TransactionSet) for items in together)
    for items in together:
        phases = [(item.table, item.phase) for item in items if isinstance(item, Statement)]
        assert all((table, Phase.REPLACE) not in phases[:at] for at, (table, phase) in enumerate(phases) if phase is Phase.DELETE)
