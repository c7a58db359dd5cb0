"""Upstream's tables as of a TSO, for a replica of topics: those that the sink lacks there and that no DDL of the topics creates."""

import json
import sqlite3
from contextlib import closing

import pytest

from applier.check.shared_facts import SharedFacts
from applier.check.sink import LISTED, examine_sink
from applier.cli.main import run
from applier.config import load_config
from applier.model.errors import ConfigError, NeedsOperator
from applier.model.events import TableName
from applier.model.finding import Severity
from applier.run.assembly import open_components
from applier.selection import EVERYTHING, EventFilter, TableFilter, TableSelection
from applier.sinks.registry import open_sink
from applier.sources.ticdc.tso import later_by
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver
from applier.upstream.catalogue import TidbCatalogue
from applier.upstream.settings import UpstreamSettings
from applier.upstream.tables import TidbTables
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, ddl, log_of, resolved, row
from tests.builders.wire import column
from tests.rig.dump_directory import TS
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.tidb import UNKNOWN_TABLE, VARIABLES, MysqlError, tidb_server

ORDERS, LINES = TableName("shop", "orders"), TableName("shop", "lines")
COLUMNS = {"id": "bigint(20)"}
ROWS = [
    (ONE, CREATE_SCHEMA),
    (ONE, ddl(10, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")),
    (ONE, row(20, id=column(8, KEY, 1))),
    (ONE, resolved(30)),
]


@pytest.fixture
def upstream():
    """A TiDB that has ``orders`` from 10 on, and ``lines`` from 4 to 40."""
    with tidb_server() as server:
        server.create(10, "shop", "orders", COLUMNS, ["id"])
        server.create(4, "shop", "lines", COLUMNS, ["id"])
        server.create(1, "mysql", "user", COLUMNS, ["id"])
        server.create(1, "__TiDB_BR_Temporary_mysql", "user", COLUMNS, ["id"])
        yield server


def tables(server, selection=EVERYTHING):
    return TidbTables(UpstreamSettings(url=server.url), selection)


def test_the_tables_are_those_of_the_snapshot(upstream):
    assert dict(tables(upstream).listed_at(9).names) == {LINES: LINES}
    found = tables(upstream).listed_at(10)
    assert (sorted(found.names), found.is_exact, found.is_whole) == ([LINES, ORDERS], True, True)


def test_ten_thousand_tables_cost_as_many_statements_as_one(upstream):
    for number in range(10_000):
        upstream.create(4, "shop", f"t{number}", COLUMNS, ["id"])
    del upstream.asked[:]
    assert len(tables(upstream).listed_at(20).names) == 10_002
    assert sum("information_schema" in asked.sql for asked in upstream.asked) == 2


def test_only_what_the_replica_would_have_is_listed(upstream):
    upstream.create(4, "shop", "keyless", COLUMNS, [])
    chosen = TableSelection(TableFilter.parse(["shop.*", "!shop.lines"]))
    found = tables(upstream, chosen).listed_at(20)
    assert (list(found.names), found.is_whole) == ([ORDERS], False)
    filtered = TableSelection(event_filters=(EventFilter.parse(TableFilter.parse(["shop.lines"]), ["insert"]),))
    assert list(tables(upstream, filtered).listed_at(20).names) == [ORDERS]


def test_a_user_who_sees_some_tables_only_is_not_told_that_there_are_no_others(upstream):
    upstream.grants = ["GRANT SELECT ON `shop`.* TO 'reader'@'%'"]
    assert tables(upstream).listed_at(2).is_whole is False


def test_behind_the_garbage_collection_and_at_no_time_nothing_is_told(upstream):
    upstream.gc_below = 20
    assert tables(upstream).listed_at(19) is None
    assert tables(upstream).listed_at(0) is None


def test_another_server_is_refused_by_name(upstream):
    del upstream.variables["tidb_snapshot"]
    with pytest.raises(ConfigError, match="not a TiDB server"):
        tables(upstream).listed_at(20)
    assert "tidb_snapshot" in VARIABLES


@pytest.mark.parametrize("start_ts", [0, 5])
def test_a_replica_of_topics_stops_for_an_empty_table_whose_create_is_not_in_them(upstream, tmp_path, start_ts):
    replica = sqlite_replica(tmp_path, FakeSource(log_of(*ROWS)), lister=tables(upstream))
    with pytest.raises(NeedsOperator, match="1 table that upstream has at this position") as caught:
        replica.catch_up(start_ts=start_ts)
    assert caught.value.facts["tables"] == "shop.lines"
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('CREATE TABLE "shop.lines" (id INTEGER PRIMARY KEY)')
    replica.catch_up(start_ts=start_ts)


def test_a_table_that_the_topics_have_dropped_is_not_missing_although_the_snapshot_still_shows_it(upstream, tmp_path):
    # TiDB's own transaction that removes a table commits a little later than the time of its DDL.
    log = log_of(*ROWS, (ONE, ddl(31, "DROP TABLE `lines`", "lines", 4)), (ONE, resolved(32)))
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('CREATE TABLE "shop.lines" (id INTEGER PRIMARY KEY)')
    sqlite_replica(tmp_path, FakeSource(log), lister=tables(upstream)).catch_up()


@pytest.mark.parametrize("refusal", ["a server that fails", "garbage collection"])
def test_an_upstream_that_cannot_tell_stops_no_replica(upstream, tmp_path, refusal):
    def fail(sql):
        if "information_schema" in sql:
            raise MysqlError("no", UNKNOWN_TABLE)

    if refusal == "garbage collection":
        upstream.gc_below = 100
    else:
        upstream.before_each = fail
    sqlite_replica(tmp_path, FakeSource(log_of(*ROWS)), lister=tables(upstream)).catch_up()


def config_of(tmp_path, **source):
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["feed"], **source}
    return load_config(None, {"name": "replica", "source": source, "sink": {"url": f"sqlite:///{tmp_path}/replica.db"}}, environment={})


def listers(config):
    with open_components(config, config.source_settings(), config.sink_settings(), Monitor(SilentObserver())) as components:
        return components.upstream_lister


def test_a_run_lists_the_tables_of_source_upstream(tmp_path):
    found = listers(config_of(tmp_path, upstream="mysql+pymysql://reader@127.0.0.1:1/", tables=["shop.*"]))
    assert isinstance(found, TidbCatalogue)
    assert found.settings == config_of(tmp_path, upstream="mysql+pymysql://reader@127.0.0.1:1/").source.upstream_settings()
    assert found.selection.has(ORDERS)
    assert not found.selection.has(TableName("other", "t"))
    assert listers(config_of(tmp_path)) is None


def test_a_check_fails_as_the_run_would_stop(upstream, tmp_path):
    sqlite_replica(tmp_path, FakeSource(log_of(*ROWS))).catch_up()

    def finding():
        shared = SharedFacts()
        shared.set_tables(frozenset())
        shared.set_progress(None)
        (found,) = [one for one in examine_sink(config_of(tmp_path, upstream=upstream.url), shared, patience_s=1) if one.check == LISTED]
        return found

    assert (finding().level, "shop.lines" in finding().detail) == (Severity.ERROR, True)
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute('CREATE TABLE "shop.lines" (id INTEGER PRIMARY KEY)')
    assert finding().level is Severity.OK
    upstream.gc_below = 100
    assert "not compared" in finding().detail
    upstream.gc_below = 0
    del upstream.variables["tidb_snapshot"]
    assert finding().level is Severity.WARNING


def test_an_upstream_without_tables_is_recorded_as_empty_and_status_says_so(upstream, tmp_path, capsys):
    path = tmp_path / "applier.toml"
    source = f'[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["feed"]\nupstream = "{upstream.url}"\n'
    path.write_text(f'{source}[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n', encoding="utf-8")
    upstream.create(later_by(TS, 1_000), "shop", "later", COLUMNS, ["id"])
    for name in (ORDERS, LINES):
        del upstream.tables[name]
    assert run(["load", "--declared", "--start-ts", str(TS), "--json", "--config", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["empty"] is True
    with open_sink(load_config(path, environment={}).sink_settings()) as sink:
        assert sink.bookkeeping.overview().loaded.is_empty
    run(["status", "--json", "--config", str(path)])
    assert json.loads(capsys.readouterr().out)["initial_state"]["kind"] == "empty"
    run(["status", "--config", str(path)])
    assert "began with  upstream had no table, at " in capsys.readouterr().out
    # A table that was there before the position, and that the sink lacks.
    upstream.create(4, "shop", "lines", COLUMNS, ["id"])
    assert run(["load", "--declared", "--start-ts", str(TS), "--config", str(path)]) == 6
    assert "shop.lines" in capsys.readouterr().err
