"""What a primary holds against what a sink holds, value by value: at a moment at which nobody writes on the primary."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from applier.demo.simulator.compare import DatabaseFacts, differences
from applier.demo.simulator.history import History
from applier.demo.simulator.schema import Table
from applier.model.events import TableName
from applier.model.position import Ts
from tests.rig.database import kind_of
from tests.rig.mysql_oracle import MysqlOracle, connect, read_facts
from tests.rig.oltp import TABLES as OLTP_TABLES
from tests.rig.oracle import read_facts as read_sink
from tests.rig.primary import Primary


def execute_history(primary: Primary, history: History) -> None:
    """Execute the simulator's transactions and DDLs on the primary, in the schemas of upstream."""
    with MysqlOracle(primary.url, prefix="") as upstream:
        upstream.apply(history)


def tables_of(history: History, upto_ts: Ts | None = None) -> dict[TableName, Table]:
    """Return the definitions that a history leaves behind, and those of the load beside it."""
    made = {state.table.name: state.table for state in history.catalogue(upto_ts)}
    return made | {table.name: table for table in OLTP_TABLES}


def differences_from(primary: Primary, sink_url: str, tables: Mapping[TableName, Table]) -> list[str]:
    """List what differs in the sink; [] if it is identical. ``tables``: the definitions of all tables that the primary has."""
    with closing(connect(primary.url)) as connection:
        expected = read_facts(connection)
    actual = read_sink(sink_url)
    if not sink_url.startswith("sqlite") and kind_of(sink_url) is not primary.kind:
        # The catalogues of two servers spell one type in two ways: bigint and bigint(20), json and longtext.
        expected, actual = _without_spelling(expected), _without_spelling(actual)
    return differences(expected, actual, tables)


def _without_spelling(facts: DatabaseFacts) -> DatabaseFacts:
    tables = {
        name: replace(table, columns=tuple(replace(column, type_text="") for column in table.columns))
        for name, table in facts.tables.items()
    }
    return DatabaseFacts(tables=tables, views=facts.views)
