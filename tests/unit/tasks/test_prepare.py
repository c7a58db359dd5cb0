"""What the plan says reaches the planner."""

from dataclasses import replace

import pytest

from applier.planner.statement import Phase, Statement
from applier.planner.table_plan import BULK_ROWS
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.tasks.plan import PreparePlan
from applier.tasks.prepare import render
from tests.builders.planning import ORDERS, between, packed, put, sink_column, sink_table

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
