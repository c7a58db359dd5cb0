"""What ``applier check`` says about a sink that no run has seen yet."""

import sqlite3
from contextlib import closing

from applier.check.shared_facts import SharedFacts
from applier.check.sink import LISTED, TABLES, examine_sink
from applier.config import load_config
from applier.model.events import TableName
from applier.model.finding import Severity
from applier.sources.binlog.catalogue import UpstreamCatalogue
from tests.builders.first_version import text


def test_a_file_that_does_not_exist_yet_is_no_error_and_is_not_made(tmp_path):
    file = tmp_path / "replica.db"
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"]}
    config = load_config(None, {"source": source, "sink": {"url": f"sqlite:///{file}"}}, environment={})
    found = list(examine_sink(config, SharedFacts()))
    assert [finding.level for finding in found] == [Severity.OK, Severity.OK]
    assert not file.exists()


def test_tables_of_a_sink_without_bookkeeping_are_checked_and_absent_ones_are_counted(tmp_path):
    file, shared = tmp_path / "replica.db", SharedFacts()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute('CREATE TABLE "shop.a" (id INTEGER PRIMARY KEY)')
        connection.execute("PRAGMA journal_mode = WAL")
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"]}
    config = load_config(None, {"source": source, "sink": {"url": f"sqlite:///{file}"}}, environment={})
    shared.set_tables(frozenset({TableName("shop", "a"), TableName("shop", "b")}))
    assert "passes for 1 table; 1 other of upstream not there yet" in tables_line(config, shared).detail
    with closing(sqlite3.connect(file)) as connection:
        connection.execute('CREATE TRIGGER mine AFTER INSERT ON "shop.a" BEGIN DELETE FROM "shop.a"; END')
    assert tables_line(config, shared).level is Severity.ERROR


def tables_line(config, shared):
    return next(finding for finding in examine_sink(config, shared, patience_s=1) if finding.check == TABLES)


def test_tables_beside_older_bookkeeping_are_left_to_the_run_that_upgrades_it(tmp_path):
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.executescript(text("sqlite.sql"))
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"]}
    config = load_config(None, {"source": source, "sink": {"url": f"sqlite:///{tmp_path}/replica.db"}}, environment={})
    shared = SharedFacts()
    shared.set_tables(frozenset({TableName("shop", "orders")}))
    found = list(examine_sink(config, shared, patience_s=1))
    assert [finding.level for finding in found if finding.check != TABLES] == [Severity.OK, Severity.OK]
    assert TABLES not in {finding.check for finding in found}


def test_tables_of_a_primary_that_no_load_has_made_are_named(tmp_path, monkeypatch):
    file, shared = tmp_path / "replica.db", SharedFacts()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute('CREATE TABLE "shop.a" (id INTEGER PRIMARY KEY)')
        connection.execute("PRAGMA journal_mode = WAL")
    source = {"kind": "binlog", "url": "mysql+pymysql://applier@127.0.0.1:1/", "start": "now"}
    config = load_config(None, {"source": source, "sink": {"url": f"sqlite:///{file}"}}, environment={})
    # The server's answers: nothing that the table check needs.
    monkeypatch.setattr(UpstreamCatalogue, "check_names", lambda *_: None)
    shared.set_silent_changes({})
    shared.set_tables(frozenset({TableName("shop", "a"), TableName("shop", "b"), TableName("shop", "c")}))
    found = [finding for finding in examine_sink(config, shared, patience_s=1) if finding.check in {TABLES, LISTED}]
    assert [finding.level for finding in found] == [Severity.OK, Severity.WARNING]
    assert "2 tables of upstream: shop.b, shop.c" in found[1].detail
