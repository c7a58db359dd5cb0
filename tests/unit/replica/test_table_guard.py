"""The table check, and the statements of upstream that explain what it finds."""

import pytest

from applier.ddl import identity
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.position import Offset, Ts
from applier.model.range_report import TableRows
from applier.planner.table_check import Acceptance
from applier.replica.sink_tables import SinkTables, TableGuard, row_keys
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings


@pytest.fixture
def sink(tmp_path):
    with open_sink(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")) as sink:
        sink.migrate()
        sink.acquire()
        sink.begin(Ts(0))
        yield sink


def run(sink, ts, query, name, ddl_type):
    ddl = DdlEvent(commit_ts=Ts(ts), schema="shop", table=name, query=query, ddl_type=ddl_type)
    commit = ProgressCommit(checkpoint_ts=Ts(ts), positions={})
    sink.run_ddl(sink.load().fence, identity(ddl), ddl, before=commit, after=commit)


def test_a_statement_that_a_reload_has_settled_explains_what_it_has_made(sink):
    guard = TableGuard(sink, sink.bookkeeping.statements, Acceptance(), lambda *_, **__: None)
    run(sink, 10, "CREATE TABLE orders (id INT PRIMARY KEY)", "orders", 3)
    run(sink, 11, "CREATE VIEW seen AS SELECT id FROM orders", "seen", 21)
    guard.check([TableName("shop", "seen")], {})
    # Its outcome was lost, so the run did not learn it; the ledger calls it done since.
    run(sink, 12, "CREATE VIEW later AS SELECT id FROM orders", "later", 21)
    with pytest.raises(NeedsOperator, match="view"):
        guard.check([TableName("shop", "later")], {})
    guard.forget()
    guard.check([TableName("shop", "later")], {})


def test_unique_indexes_that_rows_do_not_tell_are_explained_when_the_table_is_described_and_still_count(sink):
    run(sink, 10, "CREATE TABLE orders (id INT PRIMARY KEY, email VARCHAR(9), UNIQUE KEY by_email (email))", "orders", 3)
    told = TableRows(TableName("shop", "orders"), ("id",), 1, Ts(20), Ts(20), Offset(0))
    silent, name = told._replace(tells_indexes=False), told.name.fold()
    tables = SinkTables(sink)
    described = tables.describe([silent])[name]
    assert (described.unique_indexes, len(described.explained_indexes)) == ((), 2)
    assert len(SinkTables(sink).describe([told])[name].unique_indexes) == 2
    # The second index lets a row replace another one, so rows are not written ahead.
    assert row_keys(sink, tables, [silent], by_table=True) == {name: None}
