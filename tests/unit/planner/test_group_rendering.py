"""Rows rendered many at a time, or loaded in bulk: nothing is lost, and what cannot be rendered so is rendered row by row."""

import json
from dataclasses import dataclass

import pytest

from applier.model.errors import InvariantViolation, ProtocolError
from applier.model.rejected_event import RejectedEvent
from applier.planner import STOP, PlanTarget, QuarantinePolicy, TransactionSet, plan_segments
from applier.planner.plan import BULK_ROWS
from applier.planner.port import Phase
from applier.planner.rendering import GROUP_BYTES, GROUP_ROWS
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.open_protocol import OPEN_PROTOCOL
from tests.builders.planning import (
    INT,
    KEY,
    ORDERS_TABLE,
    TEXT,
    PlainDialect,
    between,
    chunk,
    gone,
    packed,
    put,
    shape,
    sink_column,
    sink_table,
)

RUBBISH = b"rubbish"
MANY = 2 * BULK_ROWS
TURNED = shape(("name", TEXT, 64), ("id", INT, KEY))


@dataclass(frozen=True)
class Grouping(PlainDialect):
    """Renders many rows at once as JSON too. Leaves groups with a ``hard`` value; loads no table with an ``unproven`` column."""

    rows: int = 1000
    hard: tuple[object, ...] = ()
    unproven: str = ""
    loses: int = 0

    def rows_text(self, table, columns):
        return lambda values: None if self._is_hard(values) else json.dumps(list(zip(*values, strict=True)))[1:-1].encode()

    def _is_hard(self, values):
        return any(value in self.hard for column in values for value in column)

    def most_rows(self, table):
        return self.rows

    def joined_replaces(self, table, columns):
        head = json.dumps(["at once", table.table, columns]).encode()[:-1]
        return lambda texts: ((b"%b, [%b]]" % (head, text), number - self.loses) for text, number in texts)

    def bulk_line(self, columns):
        if self.unproven in [column.column.name for column in columns]:
            return None
        return lambda values: (
            None if self._is_hard(values) else b"".join(json.dumps(row).encode() + b"\n" for row in zip(*values, strict=True))
        )

    def bulk_loads(self, table, columns, lines):
        batch = list(lines)
        if batch:
            yield (
                b'["load", "%b", %b]' % (table.table.encode(), json.dumps(columns).encode()),
                b"".join(b for b, _ in batch),
                sum(n for _, n in batch),
            )


def planned(*chunks, dialect=None, policy=STOP, bulk=False, tables=(ORDERS_TABLE,)):
    target = PlanTarget({table.folded: table for table in tables}, {}, dialect or Grouping())
    items = [item for _, item in plan_segments(chunks, [between(0, 10**6)], target, OPEN_PROTOCOL, policy, bulk=bulk)]
    assert isinstance(items.pop(), TransactionSet)
    rejected = [item for item in items if isinstance(item, RejectedEvent)]
    return [item for item in items if not isinstance(item, RejectedEvent)], rejected


def ways(statements):
    return [(json.loads(one.text)[0], one.rows) for one in statements]


def rows_in(statements):
    """What the statements write, whichever way."""
    found = []
    for one in statements:
        found += [json.loads(line) for line in one.data.splitlines()] if one.data else json.loads(one.text)[3]
    return sorted(found)


def rows(number, **more):
    return [put(5 + n, n, f"{n}", offset=n, **more) for n in range(number)]


def test_rows_are_rendered_in_groups_and_none_is_lost():
    statements, _ = planned(packed(*rows(GROUP_ROWS + 7)))
    assert ways(statements) == [("at once", GROUP_ROWS), ("at once", 7)]
    assert [(one.min_ts, one.max_ts) for one in statements] == [(5, 4 + GROUP_ROWS), (5 + GROUP_ROWS, 11 + GROUP_ROWS)]
    assert rows_in(statements) == sorted([n, f"{n}"] for n in range(GROUP_ROWS + 7))


def test_a_group_has_no_more_rows_than_a_statement_may_have_and_no_more_bytes_than_are_held_at_once():
    assert ways(planned(packed(*rows(5)), dialect=Grouping(rows=2))[0]) == [("at once", 2), ("at once", 2), ("at once", 1)]
    large = [put(5 + n, n, "x" * (GROUP_BYTES // 3)) for n in range(7)]
    statements, _ = planned(packed(*large))
    assert sum(one.rows for one in statements) == 7
    assert max(one.rows for one in statements) < 3


def test_shapes_are_grouped_apart_and_streams_are_not():
    mixed = [one for n in range(4) for one in (put(5 + n, n, "a"), put(5 + n, "b", 10 + n, shape=TURNED))]
    statements, _ = planned(packed(*mixed), packed(put(9, 20, "c"), stream=chunk(put(1, 1, "x")).origins[0][0]._replace(partition=9)))
    assert ways(statements) == [("at once", 5), ("at once", 4)]
    assert rows_in(statements) == sorted([[n, "a"] for n in range(4)] + [[10 + n, "b"] for n in range(4)] + [[20, "c"]])


def test_deletes_and_markers_are_not_among_the_rows():
    statements, _ = planned(packed(put(5, 1, "x"), gone(6, 2, "x"), put(7, 3, "x"), put(8, 4, "x", image=b"")))
    assert [(one.phase, one.rows) for one in statements] == [(Phase.DELETE, 1), (Phase.REPLACE, 2)]
    assert rows_in(statements[1:]) == [[1, "x"], [3, "x"]]


def test_only_the_group_of_a_hard_row_is_rendered_row_by_row():
    statements, _ = planned(packed(*rows(3 * GROUP_ROWS)), dialect=Grouping(hard=(GROUP_ROWS + 3,)))
    assert ways(statements) == [("at once", GROUP_ROWS), ("at once", GROUP_ROWS), ("replace", GROUP_ROWS)]
    assert len(rows_in(statements)) == 3 * GROUP_ROWS


def test_an_unreadable_image_in_a_group_stops_with_its_place_or_is_quarantined_alone():
    data = packed(*rows(5), put(99, 7, "y", offset=41, image=RUBBISH), *[put(100 + n, 10 + n, "z") for n in range(5)])
    with pytest.raises(ProtocolError) as caught:
        planned(data)
    assert (caught.value.facts["offset"], caught.value.facts["commit_ts"]) == (41, 99)
    statements, rejected = planned(data, policy=QuarantinePolicy(unreadable=True))
    assert [event.commit_ts for event in rejected] == [99]
    assert [row[0] for row in rows_in(statements)] == [*range(5), *range(10, 15)]


def test_a_table_with_many_rows_is_loaded_and_one_with_few_is_not():
    statements, _ = planned(packed(*rows(MANY), gone(9, MANY, "x")), bulk=True)
    assert [json.loads(one.text)[0] for one in statements] == ["delete", "load"]
    assert (statements[1].rows, statements[1].min_ts, statements[1].max_ts) == (MANY, 5, 4 + MANY)
    assert len(rows_in(statements[1:])) == MANY
    assert ways(planned(packed(*rows(BULK_ROWS - 1)), bulk=True)[0]) == [("at once", GROUP_ROWS), ("at once", BULK_ROWS - 1 - GROUP_ROWS)]
    assert all(not one.data for one in planned(packed(*rows(MANY)))[0])


def test_a_group_that_cannot_be_loaded_is_replaced():
    statements, _ = planned(packed(*rows(3 * GROUP_ROWS)), bulk=True, dialect=Grouping(hard=(3,)))
    assert ways(statements) == [("load", 2 * GROUP_ROWS), ("replace", GROUP_ROWS)]
    assert len(rows_in(statements)) == 3 * GROUP_ROWS


def test_a_table_with_a_type_that_is_not_proven_is_replaced():
    statements, _ = planned(packed(*rows(MANY)), bulk=True, dialect=Grouping(unproven="name"))
    assert {way for way, _ in ways(statements)} == {"at once"}
    assert len(rows_in(statements)) == MANY


def test_a_statement_that_must_know_its_rows_is_rendered_row_by_row():
    statements, _ = planned(packed(*rows(MANY)), bulk=True, policy=QuarantinePolicy(refused=True, trace_rows=True))
    assert {way for way, _ in ways(statements)} == {"replace"}
    assert sum(len(one.source_rows.rows) for one in statements) == MANY


@pytest.mark.parametrize("loses", [1, -1])
def test_a_dialect_that_loses_rows_of_a_group_is_a_defect(loses):
    with pytest.raises(InvariantViolation, match="other rows"):
        planned(packed(*rows(3)), dialect=Grouping(loses=loses))


def test_rows_for_mysql_are_the_same_text_at_once_and_row_by_row():
    table = sink_table(sink_column("id", sql_type="int"), sink_column("name", sql_type="text", nullable=True))
    names = ["plain", "it's", "\\", "a\0b", None, "é😀", "'"]
    data = packed(*[put(5 + n, n, names[n % len(names)] if n % 50 < 9 else "x") for n in range(1500)])
    at_once, _ = planned(data, dialect=MysqlDialect(), tables=(table,))
    traced, _ = planned(data, dialect=MysqlDialect(), tables=(table,), policy=QuarantinePolicy(trace_rows=True))
    assert [one._replace(source_rows=None) for one in traced] == at_once
    assert [one.rows for one in at_once] == [1000, 500]


def test_mysql_loads_what_it_replaces():
    table = sink_table(sink_column("id", sql_type="int"), sink_column("name", sql_type="varchar(20)", nullable=True))
    statements, _ = planned(packed(*rows(MANY)), dialect=MysqlDialect(), tables=(table,), bulk=True)
    (load,) = statements
    assert load.text.startswith(b"LOAD DATA LOCAL INFILE")
    assert (load.rows, load.data.count(b"\x1e")) == (MANY, MANY)
