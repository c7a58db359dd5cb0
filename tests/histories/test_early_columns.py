"""A column that rows carry before the DDL that adds it (pingcap/tiflow issue 12760: a changefeed restarts during ADD COLUMN)."""

from types import SimpleNamespace

import pytest

from applier.coordinator import StreamStatus
from applier.model.errors import FatalSinkError
from applier.model.events import FoldedName
from applier.model.position import Offset, Ts
from applier.planner.column_match import LACKS_COLUMN
from applier.replica.lanes import early_column
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.programs import PROGRAMS

ORDERS = FoldedName("shop", "orders")
BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(resolved(11)))
ADDS = "ALTER TABLE orders ADD COLUMN early INT DEFAULT 7"


def plain(ts, number):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, ts))


def with_column(ts, number, value):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, ts), early=column(3, PLAIN, value))


def log(*later):
    early = (ONE, with_column(20, 1, None)), (ONE, plain(21, 2)), (ONE, with_column(22, 3, 7))
    return log_of(*BEGINNING, *early, *everywhere(resolved(30)), *later)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_early_value_is_dropped_and_the_ddl_gives_its_own(tmp_path, program):
    later = (*everywhere(ddl(40, ADDS, t=5)), (ONE, with_column(41, 4, 8)), (ONE, with_column(42, 1, 9)), *everywhere(resolved(50)))
    replica = sqlite_replica(tmp_path, FakeSource(log(*later)))
    program(replica)
    assert rows_of(tmp_path) == [(1, 42, 9), (2, 21, 7), (3, 22, 7), (4, 41, 8)]


def test_without_such_a_ddl_the_message_names_the_cause_and_a_later_start_goes_on(tmp_path):
    replica = sqlite_replica(tmp_path, FakeSource(log()))
    for _ in range(2):
        with pytest.raises(FatalSinkError, match=LACKS_COLUMN) as caught:
            replica.catch_up()
        assert "12760" in caught.value.remedy
    replica.source = FakeSource(log(*everywhere(ddl(40, ADDS, t=5)), *everywhere(resolved(50))))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, 20, 7), (2, 21, 7), (3, 22, 7)]


@pytest.mark.parametrize(
    "other",
    [
        "ALTER TABLE orders ADD COLUMN late INT",
        "ALTER TABLE orders ADD INDEX early (n)",
        "ALTER TABLE orders RENAME COLUMN n TO early",
        "CREATE TABLE others (early INT PRIMARY KEY)",
    ],
)
def test_another_ddl_is_no_reason_to_drop_a_value(tmp_path, other):
    replica = sqlite_replica(tmp_path, FakeSource(log(*everywhere(ddl(40, other)), *everywhere(resolved(50)))))
    with pytest.raises(FatalSinkError, match=LACKS_COLUMN):
        replica.catch_up()


@pytest.mark.parametrize(("upto", "found"), [(7, None), (10, (ORDERS, "early"))])
def test_ddls_that_were_not_read_yet_are_looked_for_in_the_topics(upto, found):
    source = FakeSource(log(*everywhere(ddl(40, ADDS, t=5)), *everywhere(resolved(50))))
    (extent,) = [extent for stream, extent in source.listing().extents.items() if stream == ONE]
    status = StreamStatus(
        stream=ONE, resolved_ts=Ts(30), next_offset=Offset(0), read_offset=Offset(7), end_offset=Offset(min(upto, extent.end)),
        cached_ranges=0, cached_bytes=0, replays=0, fallbacks=0,
    )  # fmt: skip
    coordinator = SimpleNamespace(pending_ddls=(), streams=(status,))
    error = FatalSinkError(LACKS_COLUMN, column="Early", table="shop.orders")
    assert early_column(error, [ORDERS], coordinator, source) == found
    assert early_column(FatalSinkError("another", column="early", table="shop.orders"), [ORDERS], coordinator, source) is None
