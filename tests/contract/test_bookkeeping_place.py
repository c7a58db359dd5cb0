"""Where the bookkeeping lies in a SQLite file, and that upstream's names never meet it there."""

import sqlite3
from contextlib import closing

import pytest

from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.names import stored_name
from applier.sinks.sqlite.sink import SqliteSink
from tests.builders.handwritten import KEY, ONE, everywhere, log_of, resolved, rows_of
from tests.builders.wire import column, head
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica


def tables(path):
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def begun(path, **settings):
    with SqliteSink(SinkSettings(url=f"sqlite:///{path}", lock_timeout_s=0.2, **settings)) as sink:
        sink.migrate()
        sink.acquire()
        return sink.load() or sink.begin(Ts(7))


def test_the_bookkeeping_lies_in_tables_with_the_prefix_of_the_configuration(tmp_path):
    assert begun(tmp_path / "replica.db", schema="books").start_ts == 7
    assert begun(tmp_path / "replica.db", schema="books").start_ts == 7
    assert "books_progress" in tables(tmp_path / "replica.db")
    assert not any(name.startswith("applier") for name in tables(tmp_path / "replica.db"))


def test_a_replica_that_has_begun_under_the_default_prefix_does_not_begin_again_under_another(tmp_path):
    begun(tmp_path / "replica.db")
    with pytest.raises(NeedsOperator, match="is not in the schema that"):
        begun(tmp_path / "replica.db", schema="books")


@pytest.mark.parametrize("name", [("applier", "progress"), ("applier_", "x"), ("", "applier_progress"), ("applier_progress", "")])
def test_no_name_of_upstream_is_that_of_a_bookkeeping_table(name):
    assert "." in stored_name(TableName(*name))


def test_a_schema_of_upstream_may_be_called_as_the_bookkeeping_is(tmp_path):
    def on_applier(ts, query, t, table="progress"):
        return head(ts, table=table, t=2) | {"scm": "applier"}, {"q": query, "t": t}

    log = log_of(
        *everywhere(on_applier(5, "CREATE DATABASE applier", 1, "")),
        *everywhere(on_applier(6, "CREATE TABLE progress (id INT PRIMARY KEY)", 3)),
        (ONE, (head(7, table="progress") | {"scm": "applier"}, {"u": {"id": column(3, KEY, 1)}})),
        *everywhere(on_applier(8, "CREATE TABLE kept LIKE progress", 3, "kept")),
        *everywhere(resolved(9)),
    )
    sqlite_replica(tmp_path, FakeSource(log)).catch_up()
    assert rows_of(tmp_path, "applier.progress") == [(1,)]
    dropped = log_of(*everywhere(on_applier(20, "DROP DATABASE applier", 2, "")), *everywhere(resolved(21)))
    replica = sqlite_replica(tmp_path, FakeSource([*log, *dropped]))
    replica.catch_up()
    assert [name for name in tables(tmp_path / "replica.db") if "." in name] == []
    assert "applier_progress" in tables(tmp_path / "replica.db")
    assert len(replica.done_ddls()) == 4
