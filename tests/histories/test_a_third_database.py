"""A database that is nothing but a folder (``tests/vault``) is a sink like the others: no module of the applier names it."""

import json
import sqlite3
from contextlib import closing

import pytest

from applier.check.shared_facts import SharedFacts
from applier.check.sink import TABLES, examine_sink
from applier.cli.main import run
from applier.config import load_config
from applier.model.errors import ConfigError, NeedsOperator, ProtocolError
from applier.model.events import TableName
from applier.model.finding import Severity
from applier.model.position import Offset
from applier.model.rejected_event import EventPosition
from applier.planner.table_check import Acceptance
from applier.replica.quarantine_retry import QuarantineRetry
from applier.sinks import registry
from applier.sinks.registry import open_sink, register
from applier.sinks.settings import SinkSettings
from applier.sources import formats
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.replica_access import SinkAccess
from applier.status.replica_status import Health
from applier.verify.difference import RowState
from applier.verify.verification import ComparedTables, Options, Task, perform
from tests.histories.test_a_third_format import BEGINNING, KEY, PLAIN, PROTOCOL, TEXT, Feed, changelog_of
from tests.histories.test_another_format import CREATE, STREAM, source_of
from tests.line_format.decoder import LineDecoder
from tests.line_format.encoder import ddl, put, resolved
from tests.rig.dump_directory import DUMPLING, TS
from tests.rig.local_replica import Replica
from tests.vault import ENTRY

ROWS = (b"10 put 1 one\n10 put 2 two", b"11 put 1 uno\n12 del 2\n12 put 3 three", b"13 resolved")


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_SINKS", [*registry._SINKS])
    register(ENTRY)


def url_of(directory):
    return f"vault:///{directory}/replica.vault"


def replica_of(directory, *values, **more):
    return Replica(url_of(directory), source_of(*values), **more)


def rows_of(directory):
    with closing(sqlite3.connect(directory / "replica.vault")) as connection:
        return connection.execute("SELECT id, note FROM [shop!orders] ORDER BY id").fetchall()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "applier.toml"
    path.write_text(f'[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["feed"]\n[sink]\nurl = "{url_of(tmp_path)}"\n')
    return str(path)


def test_it_catches_up_and_goes_on_after_a_restart(tmp_path):
    replica = replica_of(tmp_path, *CREATE, *ROWS)
    replica.catch_up(until_ts=10)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, "uno"), (3, "three")]
    assert [ts for ts, _ in replica.done_ddls()] == [5, 6]
    with open_sink(replica.sink_settings()) as sink:
        overview = sink.bookkeeping.overview()
        assert (overview.progress.checkpoint_ts, overview.progress.fence.epoch, overview.owner) == (13, 2, None)
        assert [len(overview.undecided), overview.quarantined] == [0, 0]


def test_a_ddl_that_it_cannot_say_leaves_nothing(tmp_path):
    replica = replica_of(tmp_path, *CREATE, b"10 ddl ALTER TABLE orders ADD x INT", b"13 resolved")
    with pytest.raises(NeedsOperator, match="cannot say this DDL"):
        replica.catch_up()
    assert [ts for ts, _ in replica.done_ddls()] == [5, 6]


def test_its_refused_rows_are_quarantined_and_applied_later(tmp_path):
    replica = replica_of(tmp_path, *CREATE, b"10 put 1 one\n10 put 2 two", b"13 resolved", quarantines=frozenset({"rejected"}))
    replica.catch_up(until_ts=7)
    with closing(sqlite3.connect(tmp_path / "replica.vault")) as connection:
        connection.execute("CREATE TRIGGER strict BEFORE INSERT ON [shop!orders] WHEN new.id = 1 BEGIN SELECT RAISE(ABORT, 'no'); END")
    replica.catch_up()
    (entry,) = replica.quarantine().values()
    assert (rows_of(tmp_path), entry.event.key) == ([(2, "two")], "id=1")
    with closing(sqlite3.connect(tmp_path / "replica.vault")) as connection:
        connection.execute("DROP TRIGGER strict")
    with open_sink(replica.sink_settings()) as sink:
        sink.acquire()
        assert QuarantineRetry(replica.source, sink, "me@here", Acceptance(replica.accept)).retry(EventPosition(STREAM, Offset(3), 0)) == 1
    assert rows_of(tmp_path) == [(1, "one"), (2, "two")]


def test_the_commands_and_the_page_ask_its_kit(tmp_path, config, capsys):
    replica_of(tmp_path, *CREATE, b"10 pat 1 one", b"13 resolved", quarantines=frozenset({"unreadable"})).catch_up()
    found = {}
    for command in ("ddl list", "quarantine list", "replicas list", "skip list"):
        assert run([*command.split(), "--config", config, "--json"]) == 0, capsys.readouterr().err
        found[command] = json.loads(capsys.readouterr().out)
    assert found["replicas list"][0]["name"] == "replica"
    assert run(["pause", "--config", config]) == 0
    assert run(["status", "--config", config]) == Health.STOPPED
    assert "paused" in capsys.readouterr().out
    access = SinkAccess(SinkSettings(url=url_of(tmp_path)))
    access.resume()
    assert [ddl["state"] for ddl in access.ddls()["ddls"]] == ["done", "done"]
    assert access.quarantine()["held"] == 1
    assert run(["grants", "sink", "--config", config]) == 2
    assert "a vault has no users" in capsys.readouterr().err


def test_a_made_up_format_reaches_it_and_inspect_check_skip_and_the_dataframe_take_its_configuration(
    tmp_path, mock_kafka, monkeypatch, capsys
):
    monkeypatch.setitem(formats.FORMATS, PROTOCOL, LineDecoder)
    feed = Feed(tmp_path, mock_kafka)
    feed.config.write_text(feed.config.read_text().replace(f"sqlite:///{tmp_path}/replica.db", url_of(tmp_path)))
    create = ddl(10, "shop", "orders", 3, "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))")
    row = put(20, "shop", "orders", id=(3, KEY, 1), note=(TEXT, PLAIN, "one"))
    feed.produce([BEGINNING[0], create, resolved(11)], ["no event"], [row], [resolved(30)])
    assert feed.run("inspect", "--json") == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["offset"], one.get("error", one.get("table"))) for one in shown if one.get("table") == "orders" or "error" in one] == [
        (0, "orders"),
        (1, "event_type"),
        (2, "orders"),
    ]
    with feed.source() as source, pytest.raises(ProtocolError, match="the line is no event"):
        Replica(url_of(tmp_path), source).catch_up()
    assert feed.run("skip", *feed.at(1)) == 0
    with feed.source() as source:
        Replica(url_of(tmp_path), source).catch_up()
    assert rows_of(tmp_path) == [(1, "one")]
    capsys.readouterr()
    feed.run("check", "--wait", 0, "--json")
    found = {line["check"]: line["level"] for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {level for check, level in found.items() if check.startswith("sink")} == {"ok"}, found
    rows = changelog_of(config=str(feed.config), on_unreadable="keep")
    assert [(row["op"], row["commit_ts"]) for row in rows] == [("ddl", 5), ("ddl", 10), ("unreadable", None), ("update", 20)]


def test_check_examines_it(tmp_path, config):
    loaded = load_config(None, {"source": {"bootstrap_servers": "h:1", "topics": ["t"]}, "sink": {"url": url_of(tmp_path)}}, environment={})
    before = list(examine_sink(loaded, SharedFacts()))
    assert [finding.level for finding in before] == [Severity.OK, Severity.OK]
    replica_of(tmp_path, *CREATE, *ROWS).catch_up()
    shared = SharedFacts()
    shared.set_tables(frozenset({TableName("shop", "orders")}))
    found = {finding.check: finding for finding in examine_sink(loaded, shared, patience_s=1)}
    assert {finding.level for finding in found.values()} == {Severity.OK}
    assert "passes for 1 table" in found[TABLES].detail


class Silent:
    def begin(self, rows):
        pass

    def advance(self, table, rows):
        pass

    def say(self, line):
        pass


def test_verify_compares_it_and_writes_the_repair(tmp_path):
    sides = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        replica_of(tmp_path / name, *CREATE, *ROWS).catch_up()
        sides.append(SinkSettings(url=url_of(tmp_path / name)))
    repair = tmp_path / "fix.sql"
    task = Task(upstream=sides[0], sink=sides[1], tables=ComparedTables(), options=Options(jobs=1), timeline=TSO_TIMELINE, fix_sql=repair)
    assert perform(task, Silent()).is_equal
    with closing(sqlite3.connect(tmp_path / "other/replica.vault")) as connection, connection:
        connection.executescript("UPDATE [shop!orders] SET note = 'wrong' WHERE id = 1; DELETE FROM [shop!orders] WHERE id = 3")
    report = perform(task, Silent())
    (table,) = report.tables
    assert {(each.key, each.state) for each in table.differences} == {((b"1",), RowState.DIFFERENT), ((b"3",), RowState.MISSING)}
    with closing(sqlite3.connect(tmp_path / "other/replica.vault")) as connection:
        connection.executescript(repair.read_text())
    assert perform(task, Silent()).is_equal
    assert rows_of(tmp_path / "other") == rows_of(tmp_path / "one")


def test_a_dump_is_loaded_into_it(tmp_path, config, capsys):
    dump = tmp_path / "dump"
    dump.mkdir()
    for name, text in {
        "metadata": DUMPLING.format(log="tidb-binlog", ts=TS),
        "shop-schema-create.sql": "CREATE DATABASE `shop`;\n",
        "shop.orders-schema.sql": "CREATE TABLE `orders` (`id` int PRIMARY KEY, `note` varchar(9));\n",
        "shop.orders.sql": "INSERT INTO `orders` VALUES (1,'uno'),(3,NULL);\nINSERT INTO `orders` VALUES (4,'');\n",
    }.items():
        (dump / name).write_text(text)
    assert run(["load", str(dump), "--config", config]) == 0, capsys.readouterr().err
    assert rows_of(tmp_path) == [(1, "uno"), (3, None), (4, "")]
    assert run(["load", str(dump), "--overwrite", "--config", config]) == 0, capsys.readouterr().err
    assert rows_of(tmp_path) == [(1, "uno"), (3, None), (4, "")]


def test_what_is_only_local_is_refused_for_it_by_its_own_name(tmp_path):
    source = {"bootstrap_servers": "h:1", "topics": ["t"]}
    for more, words in (
        ({"spark": {"master": "yarn"}}, "a vault as a sink needs a local"),
        ({"ddl": {"background": True}}, "a vault has one"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_config(None, {"source": source, "sink": {"url": url_of(tmp_path)}, **more}, environment={})
    with pytest.raises(ConfigError, match="names no vault"):
        load_config(None, {"source": source, "sink": {"url": "vault://host/x"}}, environment={})
