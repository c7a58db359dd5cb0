"""The table check, and the statements of upstream that explain what it finds."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from applier.ddl import identity
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.position import Offset, Ts
from applier.model.range_report import TableRows
from applier.planner.table_check import Acceptance, DifferenceKind, UpstreamKeys
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


class PlainUpstream:
    """Upstream with some plain columns; notes for which tables it is asked."""

    def __init__(self, *columns):
        self.columns, self.asked = frozenset(columns), []

    def definitions(self, tables):
        self.asked += tables
        return dict.fromkeys(tables, UpstreamKeys(plain_columns=self.columns))

    def check_names(self, tables):
        pass

    def is_left_out(self, table):
        return False

    def forget(self):
        pass


def made_by_hand(sink, tmp_path):
    with closing(sqlite3.connect(tmp_path / "replica.db", isolation_level=None)) as file:
        file.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER AS (a + 1) VIRTUAL)')
    rows = TableRows(TableName("shop", "orders"), ("id",), 1, Ts(20), Ts(20), Offset(0))
    return rows._replace(tells_generated=False), rows.name.fold()


class PortableSink:
    """A sink whose expressions give what upstream's give, as those of a server may."""

    def __init__(self, sink):
        self._sink = sink

    def __getattr__(self, name):
        return getattr(self._sink, name)

    def describe(self, tables):
        return {
            name: replace(found, columns=tuple(replace(column, computes_otherwise=False) for column in found.columns))
            for name, found in self._sink.describe(tables).items()
        }


def computed_otherwise(tables, rows):
    return [column.name for column in tables.describe([rows])[rows.name.fold()].columns if column.computes_otherwise]


def test_a_generated_column_of_the_sink_that_upstream_has_as_a_plain_one_stops_rows_that_do_not_tell(sink, tmp_path):
    rows, name = made_by_hand(sink, tmp_path)
    sink = PortableSink(sink)
    assert computed_otherwise(SinkTables(sink), rows) == []
    upstream = PlainUpstream("id", "a", "b")
    assert computed_otherwise(SinkTables(sink, upstream=upstream), rows) == ["b"]
    assert upstream.asked == [name]
    # Upstream computes it too; the rows tell it themselves; the operator accepts it.
    assert computed_otherwise(SinkTables(sink, upstream=PlainUpstream("id", "a")), rows) == []
    upstream.asked.clear()
    assert computed_otherwise(SinkTables(sink, upstream=upstream), rows._replace(tells_generated=True)) == []
    accepted = Acceptance({"shop.orders": (DifferenceKind.GENERATED,)})
    assert computed_otherwise(SinkTables(sink, accepted, upstream=upstream), rows) == []
    assert upstream.asked == []


def test_upstream_is_not_asked_about_a_generated_column_that_its_own_statement_made(sink):
    run(sink, 10, "CREATE TABLE orders (id INT PRIMARY KEY, a INT, b INT AS (a + 1) STORED)", "orders", 3)
    rows = TableRows(TableName("shop", "orders"), ("id",), 1, Ts(20), Ts(20), Offset(0), tells_generated=False)
    upstream = PlainUpstream("id", "a", "b")
    assert computed_otherwise(SinkTables(PortableSink(sink), upstream=upstream), rows) == []
    assert upstream.asked == []
