"""Rows that are written in their order, with the actions of foreign keys."""

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator, RowRefused
from applier.model.rejected_event import RejectedEvent
from applier.planner import STOP, PlanTarget, QuarantinePolicy, TransactionSet, plan_bucket
from applier.planner.port import Phase, Statement
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import INT, KEY, TEXT, between, gone, packed, put, shape, sink_column, sink_table

PARENT = shape(("id", INT, KEY), ("n", INT, 0), table="parent")._replace(hides_actions=True)
CHILD = PARENT._replace(table="child")
UNCHECKED = PARENT._replace(hides_actions=False)
KEYLESS = shape(("n", INT, 0), table="bare")._replace(hides_actions=True)
ID, N = sink_column("id", sql_type="int"), sink_column("n", sql_type="int")
TABLES = [sink_table(ID, N, table="parent"), sink_table(ID, N, table="child"), sink_table(N, primary=(), table="bare")]
NAMES = frozenset(table.folded for table in TABLES)
NEW = "/*!80019 AS `new`*/ ON DUPLICATE KEY UPDATE `id`=/*!80019 `new`.`id`*//*M!VALUES(`id`)*/,`n`=/*!80019 `new`.`n`*//*M!VALUES(`n`)*/"
TRACED = QuarantinePolicy(refused=True, unreadable=True, trace_rows=True)


def planned(*chunks, tables=TABLES, window=None, policy=STOP, dialect=None, rekeyed=None):
    target = PlanTarget({table.folded: table for table in tables}, rekeyed or {}, dialect or MysqlDialect(), {}, ordered=NAMES)
    items = list(plan_bucket(chunks, window or between(), target, OPEN_PROTOCOL, policy))
    assert isinstance(items.pop(), TransactionSet)
    return items


def texts(*chunks, **options):
    statements = planned(*chunks, **options)
    assert all(isinstance(one, Statement) and one.phase is Phase.ORDERED for one in statements)
    return [(one.text.decode().replace(NEW, "<new>").replace("`", ""), one.checks_keys) for one in statements]


def test_rows_of_several_tables_are_written_in_the_order_of_their_events():
    rows = [
        put(5, 1, 1, shape=PARENT, offset=1, index=0),
        put(5, 7, 1, shape=CHILD, offset=1, index=1),
        put(5, 8, 1, shape=CHILD, offset=1, index=2),
        gone(6, 1, 1, shape=PARENT, offset=2),
        put(6, 1, 2, shape=PARENT, offset=2, index=1),
        put(9, 1, 3, shape=PARENT, offset=4),
    ]
    # Chunks come in any order, and one of them twice.
    assert texts(packed(*rows[3:]), packed(*rows[:3]), packed(*rows[:3])) == [
        ("INSERT INTO shop.parent (id,n) VALUES (1,1)<new>", True),
        ("INSERT INTO shop.child (id,n) VALUES (7,1),(8,1)<new>", True),
        ("DELETE FROM shop.parent WHERE id IN (1)", True),
        ("INSERT INTO shop.parent (id,n) VALUES (1,2),(1,3)<new>", True),
    ]


def test_a_changed_key_is_an_update_and_no_delete():
    rows = [gone(5, 1, 2, shape=PARENT, index=3), put(5, 10, 2, shape=PARENT, index=3)]
    assert texts(packed(*rows)) == [
        ("UPDATE shop.parent SET id=10,n=2 WHERE id IN (1)", True),
        ("INSERT INTO shop.parent (id,n) VALUES (10,2)<new>", True),
    ]


def test_rows_without_actions_are_written_without_them_in_the_same_order():
    rows = [gone(5, 1, 1, shape=PARENT), gone(6, 2, 2, shape=UNCHECKED), put(7, 3, 3, shape=UNCHECKED), put(7, 4, 4, shape=PARENT, index=1)]
    assert [checks_keys for _, checks_keys in texts(packed(*rows))] == [True, False, False, True]


def test_rows_of_a_table_without_a_key_are_found_whole():
    rows = [put(5, 1, shape=KEYLESS), gone(6, 1, shape=KEYLESS), put(6, 2, shape=KEYLESS), gone(7, 2, shape=KEYLESS)]
    assert texts(packed(*rows)) == [
        ("INSERT INTO shop.bare (n) VALUES (1)", True),
        ("DELETE FROM shop.bare WHERE n=1 LIMIT 1", True),
        ("INSERT INTO shop.bare (n) VALUES (2)", True),
        ("DELETE FROM shop.bare WHERE n=2 LIMIT 1", True),
    ]


def test_rows_at_the_checkpoint_are_not_written_again():
    rows = packed(put(10, 1, 1, shape=PARENT), put(11, 2, 2, shape=PARENT))
    assert texts(rows, window=between(10, 20, again=True)) == [("INSERT INTO shop.parent (id,n) VALUES (2,2)<new>", True)]


def test_other_tables_are_compacted_as_ever():
    other = shape(("id", INT, KEY), ("n", INT, 0), table="other")
    statements = planned(
        packed(put(5, 1, 1, shape=PARENT), put(6, 1, 1, shape=other), gone(7, 1, 1, shape=other)),
        tables=[*TABLES, sink_table(ID, N, table="other")],
    )
    assert [(one.phase, one.table) for one in statements] == [(Phase.DELETE, "shop.other"), (Phase.ORDERED, "shop.parent")]


def test_the_sinks_own_key_finds_rows_whose_events_have_none():
    bare = shape(("n", INT, 0), ("m", INT, 0), table="bare")._replace(hides_actions=True)
    table = sink_table(N, sink_column("m", sql_type="int"), primary=("n",), table="bare")
    rows = [put(5, 1, 1, shape=bare), gone(6, 1, 1, shape=bare), put(6, 2, 1, shape=bare), gone(7, 2, 1, shape=bare)]
    found = texts(packed(*rows), tables=[table], rekeyed={table.folded: ("n",)})
    assert [text.partition(" ON ")[0].partition("/*")[0] for text, _ in found] == [
        "INSERT INTO shop.bare (n,m) VALUES (1,1)",
        "UPDATE shop.bare SET n=2,m=1 WHERE n IN (1)",
        "INSERT INTO shop.bare (n,m) VALUES (2,1)",
        "DELETE FROM shop.bare WHERE n IN (2)",
    ]


def test_a_table_that_has_lost_its_key_stops():
    with pytest.raises(NeedsOperator, match="lacks the key") as caught:
        planned(packed(put(5, 1, 1, shape=PARENT, offset=7)), tables=[sink_table(ID, N, primary=(), table="parent")])
    assert (caught.value.facts["table"], caught.value.facts["offset"]) == ("shop.parent", 7)


def test_a_row_that_lacks_columns_keeps_those_that_the_sinks_row_has():
    partial = shape(("id", INT, KEY), table="parent")._replace(hides_actions=True)
    rows = packed(put(5, 1, 1, shape=PARENT), put(6, 2, shape=partial), gone(7, 2, shape=partial))
    assert texts(rows) == [
        ("INSERT INTO shop.parent (id,n) VALUES (1,1)<new>", True),
        ("UPDATE shop.parent SET id=2 WHERE id IN (2)", True),
        ("INSERT INTO shop.parent (n,id) SELECT NULL,2 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM shop.parent WHERE id IN (2))", True),
        ("DELETE FROM shop.parent WHERE id IN (2)", True),
    ]


def test_a_missing_table_stops():
    with pytest.raises(FatalSinkError, match="missing in the sink"):
        planned(packed(put(5, 1, 1, shape=PARENT)), tables=[])


def test_each_statement_knows_its_row_where_refused_rows_are_looked_for():
    rows = [put(5, 1, 1, shape=PARENT), put(6, 2, 2, shape=PARENT, offset=9), gone(7, 1, 1, shape=PARENT)]
    statements = planned(packed(*rows), policy=TRACED)
    assert [[event.position.offset for event in one.source_rows.rows] for one in statements] == [[0], [9], [0]]


def test_a_row_that_cannot_be_read_is_quarantined_and_the_others_keep_their_order():
    rows = [put(5, 1, 1, shape=PARENT), put(6, 2, 2, shape=PARENT, image=b"rubbish"), put(7, 3, 3, shape=PARENT)]
    items = planned(packed(*rows), policy=QuarantinePolicy(unreadable=True))
    assert [type(one) for one in items] == [Statement, RejectedEvent]
    assert items[0].text.startswith(b"INSERT INTO `shop`.`parent` (`id`,`n`) VALUES (1,1),(3,3)")


def test_a_row_that_is_too_large_is_named():
    wide = shape(("id", INT, KEY), ("n", TEXT, 0), table="parent")._replace(hides_actions=True)
    rows = packed(put(5, 1, "x", shape=wide), put(6, 2, "y" * 300, shape=wide, offset=9))
    options = {"dialect": MysqlDialect(max_packet_bytes=300), "tables": [sink_table(ID, "n", table="parent")]}
    with pytest.raises(RowRefused):
        planned(rows, **options)
    with pytest.raises(RowRefused) as caught:
        planned(rows, **options, policy=QuarantinePolicy(trace_rows=True))
    assert caught.value.facts["offset"] == 9


def test_a_binlog_keeps_the_order():
    assert BinlogDecoder.keeps_order
