"""``applier ddl`` and ``applier migrate`` on a SQLite sink."""

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from applier.cli.main import run
from applier.ddl import identity, same_ddl
from applier.model.events import DdlEvent
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.sinks.ledger_entry import DdlState
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings

FIRST, SECOND = Ts(1_700_000_000_123 << 18), Ts(1_700_000_000_456 << 18 | 3)
DDLS = (
    DdlEvent(commit_ts=FIRST, schema="shop", table="", query="CREATE DATABASE `shop`", ddl_type=1),
    DdlEvent(commit_ts=SECOND, schema="shop", table="Orders", query="CREATE TABLE `Orders`\n(`id` INT PRIMARY KEY)", ddl_type=3),
    DdlEvent(commit_ts=SECOND, schema="shop", table="items", query="CREATE TABLE `items` (`id` INT PRIMARY KEY)", ddl_type=3),
)


@pytest.fixture
def database(tmp_path):
    return tmp_path / "replica.db"


@pytest.fixture
def config(database, tmp_path):
    path = tmp_path / "applier.toml"
    path.write_text(
        f'[source]\nbootstrap_servers = "h:1"\ntopics = ["feed"]\n[sink]\nurl = "sqlite:///{database}"\n[run]\nlock_timeout_s = 0.1\n'
    )
    return str(path)


def open_replica(database):
    return open_sink(SinkSettings(url=f"sqlite:///{database}", lock_timeout_s=0.1))


@pytest.fixture
def ledger(database):
    """Three DDLs are done."""
    with open_replica(database) as sink:
        sink.migrate()
        sink.acquire()
        fence = sink.begin(Ts(0)).fence
        positions = {Stream("feed", 0): StreamPosition(next_offset=Offset(1), resolved_ts=SECOND)}
        for ddl in DDLS:
            commit = ProgressCommit(checkpoint_ts=ddl.commit_ts, positions=positions)
            fence = sink.run_ddl(fence, identity(ddl), ddl, before=commit, after=commit)


def unfinish(database, *tables, state="intent"):
    """Leave these DDLs as a run that was killed between intent and done leaves them."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for table in tables:
            connection.execute("UPDATE applier_ddl_ledger SET state = ?, ended_at = NULL WHERE table_name = ?", (state, table))


def states(config, capsys):
    assert run(["ddl", "list", "--config", config, "--json"]) == 0
    return [entry["state"] for entry in json.loads(capsys.readouterr().out)]


def test_the_ledger_is_shown_by_ts(ledger, config, capsys):
    assert run(["ddl", "list", "--config", config]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{FIRST}  2023-11-14 22:13:20.123Z  done    shop: CREATE DATABASE `shop`",
        f"{SECOND}  2023-11-14 22:13:20.456Z  done    shop.Orders: CREATE TABLE `Orders` (`id` INT PRIMARY KEY)",
        f"{SECOND}  2023-11-14 22:13:20.456Z  done    shop.items: CREATE TABLE `items` (`id` INT PRIMARY KEY)",
    ]


def test_programs_get_the_ledger_as_one_list(ledger, config, capsys):
    assert run(["ddl", "list", "--config", config, "--ts", str(SECOND), "--table", "shop.orders", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert {name: entry[name] for name in ("ts", "schema", "table", "ddl_type", "query", "state", "error")} == {
        "ts": SECOND,
        "schema": "shop",
        "table": "Orders",
        "ddl_type": 3,
        "query": "CREATE TABLE `Orders`\n(`id` INT PRIMARY KEY)",
        "state": "done",
        "error": "",
    }


def test_a_ddl_in_the_background_is_unfinished_too(ledger, config, database, capsys):
    unfinish(database, "items", state="background")
    assert run(["ddl", "list", "--config", config]) == 0
    assert f"{SECOND}  2023-11-14 22:13:20.456Z  background shop.items: CREATE TABLE" in capsys.readouterr().out
    assert run(["ddl", "done", "--config", config]) == 0
    capsys.readouterr()
    assert states(config, capsys) == ["done", "done", "done"]


def test_nothing_found_is_said(ledger, config, capsys):
    assert run(["ddl", "list", "--config", config, "--ts", "5"]) == 0
    assert capsys.readouterr().out == "the ledger has no such DDL\n"


def test_a_sink_without_bookkeeping_is_4_and_looking_creates_nothing(config, database, capsys):
    assert run(["ddl", "list", "--config", config]) == 4
    assert "applier migrate" in capsys.readouterr().err
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,)


@pytest.mark.parametrize("decision", [("done", "done", "done"), ("skip", "skipped", "skipped"), ("retry", "intent", "will run again")])
def test_the_operators_decision_settles_the_one_unfinished_ddl(ledger, config, database, capsys, decision):
    command, state, text = decision
    unfinish(database, "items")
    assert run(["ddl", command, "--config", config]) == 0
    assert capsys.readouterr().out == f"{text}: CREATE TABLE `items` (`id` INT PRIMARY KEY) (ts {SECOND})\n"
    assert states(config, capsys) == ["done", "done", state]


def test_of_several_unfinished_ddls_the_operator_must_name_one(ledger, config, database, capsys):
    unfinish(database, "Orders", "items")
    assert run(["ddl", "skip", "--config", config, "--ts", str(SECOND)]) == 6
    text = capsys.readouterr().err
    assert f"--ts {SECOND} --table shop.Orders; --ts {SECOND} --table shop.items" in text
    assert states(config, capsys) == ["done", "intent", "intent"]

    assert run(["ddl", "skip", "--config", config, "--ts", str(SECOND), "--table", "SHOP.orders"]) == 0
    capsys.readouterr()
    assert states(config, capsys) == ["done", "skipped", "intent"]


def test_a_finished_ddl_is_not_touched(ledger, config, database, capsys):
    assert run(["ddl", "skip", "--config", config, "--ts", str(SECOND)]) == 2
    assert "no unfinished DDL" in capsys.readouterr().err
    unfinish(database, "items")
    assert run(["ddl", "retry", "--config", config, "--ts", str(FIRST)]) == 2
    assert f"The unfinished ones are: --ts {SECOND} --table shop.items" in capsys.readouterr().err
    assert states(config, capsys) == ["done", "done", "intent"]


def test_a_ddl_that_stopped_the_applier_before_it_began_is_skipped_by_its_timestamp_and_table(ledger, config, database, capsys):
    unread = DdlEvent(commit_ts=Ts(SECOND + 9), schema="shop", table="Orders", query="ALTER TABLE `orders` ADD PARTITION x", ddl_type=19)
    assert run(["ddl", "skip", "--config", config, "--ts", str(unread.commit_ts), "--table", "SHOP.orders"]) == 0
    with open_replica(database) as sink:
        (entry,) = [entry for entry in sink.bookkeeping.ledger() if entry.ddl.commit_ts == unread.commit_ts]
    assert entry.state is DdlState.SKIPPED
    assert same_ddl(entry.identity, identity(unread))


def test_a_ddl_cannot_be_skipped_before_the_replica_has_begun(config, database, capsys):
    with open_replica(database) as sink:
        sink.migrate()
    assert run(["ddl", "skip", "--config", config, "--ts", "5", "--table", "shop.orders"]) == 2
    assert "has no checkpoint yet" in capsys.readouterr().err


def test_a_running_applier_is_not_disturbed(ledger, config, database, capsys):
    unfinish(database, "items")
    with open_replica(database) as sink:
        sink.acquire()
        assert run(["ddl", "done", "--config", config]) == 5
    assert states(config, capsys) == ["done", "done", "intent"]


def test_log_lines_have_the_format_that_the_configuration_asks_for(config, capsys):
    with Path(config).open("a", encoding="utf-8") as file:
        file.write('[log]\nformat = "json"\n')
    assert run(["ddl", "list", "--config", config]) == 4
    capsys.readouterr()
    logging.getLogger("applier").warning("trouble", extra={"code": 7})
    assert json.loads(capsys.readouterr().err)["code"] == 7


def test_migrate_creates_the_tables_once(config, capsys):
    assert run(["migrate", "--config", config]) == 0
    assert capsys.readouterr().out.startswith("applied ")
    assert run(["migrate", "--config", config]) == 0
    assert capsys.readouterr().out.startswith("nothing to do: the bookkeeping tables in sqlite:///")
