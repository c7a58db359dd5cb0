"""Which events are shown: table, key, timestamp, kind."""

import pytest

from applier.cli.inspect import Inspected, ShownEvents
from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, Column, DdlEvent, ResolvedEvent, RowEvent, RowOperation, TableName
from applier.model.position import Offset, RecordPosition, Stream, Ts

PLACE = RecordPosition(Stream("feed", 0), Offset(1))
ORDERS, EARLY, LATE = TableName("shop", "orders"), Ts(1 << 18), Ts(9 << 18)


def row(key, ts=EARLY, before=None, table="orders", flags=11):
    def image(value):
        return None if value is None else {"Id": Column(3, flags, value, bool(flags & 2)), "v": Column(15, 0, "x")}

    operation = RowOperation.UPDATE if before is not None else RowOperation.INSERT
    return RowEvent(
        commit_ts=ts,
        schema="shop",
        table=table,
        partition_id=None,
        operation=operation,
        only_handle_key=False,
        claim_check=None,
        after=image(key),
        before=image(before),
    )


DDL = DdlEvent(commit_ts=LATE, schema="shop", table="orders", query="ALTER TABLE orders ADD c INT", ddl_type=5)
RESOLVED, ADMIN = ResolvedEvent(LATE), AdminEvent(LATE, 4)
BINARY = row(b"\xff\x00")
EVENTS = [row(5), row(7, LATE, before=5), row(5, table="items"), row(5, flags=0), DDL, RESOLVED, ADMIN, BINARY]


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ({}, [0, 1, 2, 3, 4, 6, 7]),
        ({"resolved": True}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"table": TableName("Shop", "ORDERS")}, [0, 1, 3, 4, 7]),
        ({"keys": ("5",)}, [0, 1, 2]),
        ({"keys": ("id=5",)}, [0, 1, 2]),
        ({"keys": ("id=5",), "table": ORDERS}, [0, 1]),
        ({"keys": ("v=x",)}, []),
        ({"keys": ("0xff00",)}, [7]),
        ({"ts": LATE}, [1, 4, 6]),
        ({"since": Ts(LATE + 1)}, []),
        ({"since": LATE, "resolved": True}, [1, 4, 5, 6]),
        ({"until": EARLY}, [0, 2, 3, 7]),
    ],
)
def test_an_event_is_shown_if_it_is_all_that_is_asked_for(choice, numbers):
    found = ShownEvents(**choice).of(Inspected(PLACE, EVENTS))
    shown = [] if found is None else found.content
    assert [EVENTS.index(event) for event in shown] == numbers


def test_a_record_that_may_be_what_is_looked_for_is_shown_though_it_cannot_be_read():
    choice = ShownEvents(table=ORDERS, since=LATE)
    for facts, is_shown in [
        ({}, True),
        ({"schema": "shop", "table": "orders", "commit_ts": LATE}, True),
        ({"schema": "shop", "table": "items", "commit_ts": LATE}, False),
        ({"schema": "shop", "table": "orders", "commit_ts": EARLY}, False),
    ]:
        found = choice.of(Inspected(PLACE, ProtocolError("broken", kind="json", **facts)))
        assert (found is not None) == is_shown, facts


def test_a_record_without_events_is_shown_where_nothing_is_looked_for():
    assert ShownEvents().of(Inspected(PLACE, [])) == Inspected(PLACE, [])
    assert ShownEvents(table=ORDERS).of(Inspected(PLACE, [])) is None
