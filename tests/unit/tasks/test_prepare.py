"""What the plan says reaches the planner."""

from dataclasses import replace

import pytest

from applier.planner.plan import BULK_ROWS
from applier.planner.port import Phase, Statement
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.tasks.plan import PreparePlan
from applier.tasks.prepare import Rendered, render
from tests.builders.planning import INT, KEY, ORDERS, between, packed, put, shape, sink_column, sink_table

PLAN = PreparePlan(
    windows=(between(0, 10),),
    ranges={},
    tables={ORDERS: sink_table(sink_column("id", sql_type="int"), sink_column("name", sql_type="varchar(9)"))},
    rekeyed={},
    rows=BULK_ROWS,
    buckets=1,
    dialect=MysqlDialect(),
)


@pytest.mark.parametrize("bulk", [True, False])
def test_tables_are_loaded_in_bulk_where_the_plan_says_so(bulk):
    chunks = [packed(*(put(5, number, "x") for number in range(BULK_ROWS)))]
    [statement] = [item for _, item in render(replace(PLAN, bulk=bulk), 0, chunks, OPEN_PROTOCOL) if isinstance(item, Statement)]
    assert (statement.phase, statement.rows, bool(statement.data)) == (Phase.REPLACE, BULK_ROWS, bulk)


def test_partial_rows_are_read_and_counted_and_no_whole_row_under_one_is_loaded():
    only_key = shape(("id", INT, KEY))
    rows = [put(5, number, "x") for number in range(BULK_ROWS + 1)]
    chunks = [packed(*rows, put(6, 0, shape=only_key), put(6, 999, shape=only_key))]
    items = [item for _, item in render(replace(PLAN, bulk=True), 0, chunks, OPEN_PROTOCOL)]
    statements = [(item.phase, item.rows, bool(item.data)) for item in items if isinstance(item, Statement)]
    assert sorted(statements) == [(Phase.READ, 1, False), (Phase.REPLACE, 1, False), (Phase.REPLACE, BULK_ROWS, True)]
    announced, arriving = (item for item in items if isinstance(item, Rendered))
    assert (announced.statements, announced.reads, announced.rows) == (3, 1, BULK_ROWS + 2)
    assert announced.size == arriving.size == sum(item.size for item in items if isinstance(item, Statement))


def test_loads_of_several_buckets_are_dealt_to_all_writers_of_rows_ahead():
    chunks = [packed(*(put(5, number, "x") for number in range(BULK_ROWS)))]
    plan = replace(PLAN, bulk=True, writers=3, buckets=3)
    rendered = [list(render(plan, reducer, chunks, OPEN_PROTOCOL)) for reducer in range(plan.buckets)]
    addressed = [at for items in rendered for at, item in items if isinstance(item, Statement)]
    assert sorted(addressed) == [4, 5, 6]
