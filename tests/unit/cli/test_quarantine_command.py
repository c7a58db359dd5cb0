"""``applier quarantine`` and ``applier skip`` on a SQLite sink and librdkafka's mock cluster."""

import json
import sqlite3
from base64 import b64encode
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from applier.cli.main import run
from applier.demo.simulator.kafka_log import produce_log
from applier.model.errors import NeedsOperator, ProtocolError
from applier.model.position import Stream
from applier.model.rejected_event import QuarantineState
from applier.sinks.ledger_entry import DdlState
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, ddl, everywhere, log_of, resolved, row
from tests.builders.wire import column, head
from tests.rig.local_replica import STRICT, sqlite_replica

BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(resolved(11)))
"""Offsets 0 to 2 of both streams."""
ACCEPT = '[sink.accept]\n"shop.orders" = ["trigger"]\n'
CONFIG, SOURCE, SINK, OPERATOR = 2, 3, 4, 6


def order(ts, number, n, **more):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, n), **more)


BROKEN = row(20, id=column(3, KEY, 3), n=column(3, PLAIN, "not a number"))


@dataclass
class Deployment:
    """A replica with its own topic, and the command line beside it."""

    directory: Path
    servers: str
    topic: str

    def produce(self, *placed):
        self.log = [r._replace(stream=Stream(self.topic, r.stream.partition)) for r in log_of(*placed)]
        produce_log(self.log, self.servers)

    def catch_up(self, *quarantines, **more):
        with open_source(KafkaSettings(bootstrap_servers=self.servers, topics=(self.topic,), group_id="test")) as source:
            self.replica = sqlite_replica(self.directory, source, quarantines=frozenset(quarantines), accept=STRICT)
            return self.replica.catch_up(**more)

    def run(self, command, *options):
        return run([*command.split(), "--config", str(self.directory / "applier.toml"), *map(str, options)])

    def run_from_environment(self, monkeypatch, command, *options):
        """Run a command whose file names another replica, and whose environment says what is right."""
        path = self.directory / "elsewhere.toml"
        path.write_text(
            f'name = "elsewhere"\n[sink]\nurl = "sqlite:///{self.directory}/elsewhere.db"\n{ACCEPT}[run]\nlock_timeout_s = 0.2\n'
        )
        said = {
            "APPLIER_NAME": "replica",
            "APPLIER_SOURCE__BOOTSTRAP_SERVERS": self.servers,
            "APPLIER_SOURCE__TOPICS": self.topic,
            "APPLIER_SINK__URL": f"sqlite:///{self.directory}/replica.db",
        }
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        code = run([*command.split(), "--config", str(path), *map(str, options)])
        assert not (self.directory / "elsewhere.db").exists()
        return code

    def at(self, offset, partition=0):
        return "--stream", f"{self.topic}/{partition}", "--offset", offset

    @property
    def rows(self):
        return self.execute('SELECT * FROM "shop.orders" ORDER BY 1')

    def execute(self, statement):
        with closing(sqlite3.connect(self.directory / "replica.db", isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def deployment(tmp_path, mock_kafka):
    return deployed(tmp_path, mock_kafka, f"bad-{uuid4().hex[:8]}")


def deployed(tmp_path, mock_kafka, topic):
    (tmp_path / "applier.toml").write_text(
        f'[source]\nbootstrap_servers = "{mock_kafka}"\ntopics = ["{topic}"]\n[sink]\nurl = "sqlite:///{tmp_path}/replica.db"\n'
        f"{ACCEPT}[run]\nlock_timeout_s = 0.2\n"
    )
    return Deployment(tmp_path, mock_kafka, topic)


@pytest.fixture
def held(deployment):
    """One row was refused, one record could not be read, and one row could be applied."""
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    deployment.execute(
        "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END"
    )
    deployment.produce((ONE, order(20, 1, 100)), (ONE, order(21, 2, 2)), (ONE, BROKEN), *everywhere(resolved(30)))
    deployment.catch_up("unreadable", "rejected")
    return deployment


def test_undecided_events_are_listed_for_people_and_for_programs(held, capsys):
    assert held.run("quarantine list") == 0
    lines = capsys.readouterr().out.splitlines()
    # In the order in which they were stored: what cannot be read when its range is read, before what the sink refuses later.
    assert [line.partition("  ")[0] for line in lines[::2]] == [f"{held.topic}/0@5#0", f"{held.topic}/0@3#0"]
    assert "held      shop.orders id=1" in lines[2]
    assert "too much" in lines[3]
    assert held.run("quarantine list", "--json") == 0
    (unread, refused) = json.loads(capsys.readouterr().out)
    assert (refused["offset"], refused["event"], refused["state"], refused["key"], refused["commit_ts"]) == (3, 0, "held", "id=1", 20)
    assert (unread["topic"], unread["partition"], unread["settled_at"]) == (held.topic, 0, None)


def test_a_long_error_is_shown_whole(held, capsys):
    reason = "\n".join(["the reason " + "x" * 500, "and more\x1b[2J"])
    with closing(sqlite3.connect(held.directory / "replica.db", isolation_level=None)) as connection:
        connection.execute("UPDATE applier_quarantine SET error = ?", (reason,))
    assert held.run("quarantine show", *held.at(3)) == 0
    shown = capsys.readouterr().out
    assert "    error: the reason " + "x" * 500 + "\n           and more\N{REPLACEMENT CHARACTER}[2J\n" in shown
    assert "    key: id=1\n" in shown


def test_one_record_is_shown_decoded_and_as_it_came(held, tmp_path, capsys):
    raw = tmp_path / "raw"
    record = held.log[0]
    assert held.run("quarantine show", *held.at(3), "--raw", raw) == 0
    text = capsys.readouterr().out
    assert "insert" in text
    assert f"a value of {len(record.value)} bytes" in text
    assert (raw.read_bytes(), (tmp_path / "raw.key").read_bytes()) == (record.value, record.key)
    assert held.run("quarantine show", *held.at(5), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["value_b64"] == b64encode(held.log[2].value).decode()
    assert shown["events"][0]["error"] == "value_type"
    assert [entry["offset"] for entry in shown["entries"]] == [5]


def test_what_was_dropped_leaves_the_list_and_stays_in_the_history(held, capsys):
    assert held.run("quarantine drop", *held.at(3), "--event", 0) == 0
    assert capsys.readouterr().out == f"dropped: {held.topic}/0@3#0\n"
    assert held.run("quarantine drop", *held.at(3)) == CONFIG
    assert "it was dropped" in capsys.readouterr().err
    assert held.run("quarantine list") == 0
    assert "@3#0" not in capsys.readouterr().out
    assert held.run("quarantine list", "--all") == 0
    assert "dropped by " in capsys.readouterr().out


def test_a_row_is_retried_once_its_obstacle_is_gone(held, capsys):
    assert held.run("quarantine retry", *held.at(3)) == SINK
    assert "too much" in capsys.readouterr().err
    held.execute("DROP TRIGGER strict")
    assert held.run("quarantine retry", *held.at(3)) == 0
    assert capsys.readouterr().out == f"applied: {held.topic}/0@3#0 (1 row)\n"
    assert held.rows == [(1, 100), (2, 2)]
    assert held.run("quarantine retry", *held.at(5)) == SOURCE


def test_a_row_to_which_something_happened_since_is_not_retried(held, capsys):
    held.execute("DROP TRIGGER strict")
    held.produce((ONE, order(40, 1, 1)), *everywhere(resolved(50)))
    assert held.run("quarantine retry", *held.at(3)) == OPERATOR
    assert "a later event has changed the same row" in capsys.readouterr().err
    assert held.rows == [(2, 2)]


def test_a_topic_that_is_called_binlog_is_a_topic(tmp_path, mock_kafka, capsys):
    held = deployed(tmp_path, mock_kafka, "binlog")
    held.produce(*BEGINNING, (ONE, order(20, 1, 1)), (ONE, BROKEN), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    held.catch_up("unreadable")
    assert held.run("quarantine list") == 0
    assert capsys.readouterr().out.startswith("binlog/0@4#0  ")
    assert held.run("quarantine show", *held.at(4), "--json") == 0
    assert json.loads(capsys.readouterr().out)["events"][0]["error"] == "value_type"
    held.produce((ONE, BROKEN), *everywhere(resolved(40)))
    assert held.run("skip", *held.at(7)) == 0
    assert capsys.readouterr().out.startswith("skipped: binlog/0@7;")
    assert held.run("skip list") == 0
    assert "--stream binlog/0 --offset 7" in capsys.readouterr().out
    assert held.run("skip undo", *held.at(7)) == 0
    assert held.run("quarantine drop", *held.at(4)) == 0
    assert "dropped: binlog/0@4#0" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "drop", "retry"])
def test_an_event_that_is_not_there_is_a_mistake_of_usage(command, held, capsys):
    assert held.run(f"quarantine {command}", *held.at(4)) == CONFIG
    assert held.run(f"quarantine {command}", "--stream", held.topic, "--offset", 3) == CONFIG
    assert "TOPIC/PARTITION" in capsys.readouterr().err


def test_a_sink_without_bookkeeping_is_4_and_looking_creates_nothing(deployment, capsys):
    assert deployment.run("quarantine list") == SINK
    assert "applier migrate" in capsys.readouterr().err
    assert not (deployment.directory / "replica.db").exists() or deployment.execute("SELECT * FROM sqlite_master") == []


# Skipping


def test_the_record_that_stops_the_replica_is_skipped_by_its_place(deployment, capsys):
    deployment.produce(*BEGINNING, (ONE, BROKEN), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    with pytest.raises(ProtocolError):
        deployment.catch_up()
    assert deployment.run("skip", *deployment.at(3)) == 0
    assert "unreadable (value_type)" in capsys.readouterr().out
    deployment.catch_up()
    assert deployment.rows == [(2, 2)]
    ((place, entry),) = deployment.replica.quarantine().items()
    assert (place, entry.event.state) == (f"{deployment.topic}/0@3#0", QuarantineState.SKIPPED)
    assert "@" in entry.event.error, "who said so"


def test_a_ddl_that_stops_the_replica_is_skipped_in_the_ledger_by_its_place(deployment, capsys):
    alter = ddl(20, "ALTER TABLE orders ADD COLUMN g BFILE", t=5)
    deployment.produce(*BEGINNING, *everywhere(alter), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    with pytest.raises(NeedsOperator):
        deployment.catch_up()
    assert deployment.run("skip", *deployment.at(3)) == 0
    assert deployment.run("skip", *deployment.at(3, partition=1)) == 0
    assert "already skipped" in capsys.readouterr().out
    deployment.catch_up()
    assert deployment.rows == [(2, 2)]
    assert [entry.state for entry in deployment.replica.ledger() if entry.ddl.commit_ts == 20] == [DdlState.SKIPPED]
    assert deployment.replica.quarantine() == {}


def test_the_environment_counts_for_all_of_a_skip_by_place(deployment, monkeypatch):
    alter = ddl(20, "ALTER TABLE orders ADD COLUMN g GEOMETRY", t=5)
    deployment.produce(*BEGINNING, (ONE, BROKEN), *everywhere(alter), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    with pytest.raises(ProtocolError):
        deployment.catch_up()
    assert deployment.run_from_environment(monkeypatch, "skip", *deployment.at(3)) == 0
    assert deployment.run_from_environment(monkeypatch, "skip", *deployment.at(4)) == 0
    deployment.catch_up()
    assert deployment.rows == [(2, 2)]
    assert [entry.state for entry in deployment.replica.ledger() if entry.ddl.commit_ts == 20] == [DdlState.SKIPPED]


@pytest.mark.parametrize("command", ["skip", "ddl skip"])
def test_the_environment_counts_for_all_of_a_skip_by_timestamp(command, deployment, monkeypatch):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    assert deployment.run_from_environment(monkeypatch, command, "--ts", 20, "--table", "shop.orders") == 0
    deployment.produce(*everywhere(ddl(20, "ALTER TABLE orders ADD COLUMN m INT", t=5)), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    deployment.catch_up()
    assert deployment.rows == [(2, 2)]


@pytest.mark.parametrize("command", ["skip", "ddl skip"])
def test_the_environment_counts_for_all_of_the_decision_about_an_unfinished_ddl(command, deployment, monkeypatch):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    deployment.execute("UPDATE applier_ddl_ledger SET state = 'intent', ended_at = NULL WHERE table_name = 'orders'")
    assert deployment.run_from_environment(monkeypatch, command, "--ts", 10, "--table", "shop.orders") == 0
    assert [entry.state for entry in deployment.replica.ledger() if entry.ddl.table == "orders"] == [DdlState.SKIPPED]


def test_the_environment_counts_for_all_of_a_retry(held, monkeypatch):
    held.execute("DROP TRIGGER strict")
    assert held.run_from_environment(monkeypatch, "quarantine retry", *held.at(3)) == 0
    assert held.rows == [(1, 100), (2, 2)]


def test_what_was_passed_or_is_not_there_cannot_be_skipped(held, capsys):
    for options, words in (
        (held.at(0), "already passed"),
        (held.at(99), "no record"),
        (("--stream", "elsewhere/0", "--offset", 9), "source.topics"),
        (("--stream", f"{held.topic}/0"), "do not name one event"),
        (("--ts", 20, "--offset", 3), "do not name one event"),
        (("--ts", 11), "--table"),
    ):
        assert held.run("skip", *options) == CONFIG, options
        assert words in capsys.readouterr().err, options
    held.produce((ONE, order(40, 1, 1)))
    assert held.run("skip", *held.at(7), "--event", 4) == CONFIG
    assert "It has 1 event" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["skip", "ddl skip"])
def test_a_skip_rule_for_a_table_without_its_schema_is_refused(command, deployment, capsys):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    assert deployment.run(command, "--ts", 20, "--table", "orders") == CONFIG
    assert "SCHEMA.TABLE" in capsys.readouterr().err
    assert [entry.ddl.commit_ts for entry in deployment.replica.ledger()] == [5, 10]
    assert deployment.execute("SELECT COUNT(*) FROM applier_skip_rule") == [(0,)]


@pytest.mark.parametrize("command", ["skip", "ddl skip"])
def test_a_timestamp_that_is_later_than_now_is_refused_unless_the_operator_says_so(command, deployment, capsys):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    future = ("--ts", 2**62, "--table", "shop.orders")
    assert deployment.run(command, *future) == CONFIG
    assert "later than now" in capsys.readouterr().err
    assert deployment.run(command, *future, "--accept-future") == 0


def test_a_ddl_without_a_name_is_skipped_before_it_is_read(deployment):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    assert deployment.run("ddl skip", "--ts", 25, "--table", "") == CONFIG
    assert deployment.run("ddl skip", "--ts", 25, "--table", ".") == 0
    (entry,) = [entry for entry in deployment.replica.ledger() if entry.ddl.commit_ts == 25]
    assert (entry.identity.name, entry.state) == (("", ""), DdlState.SKIPPED)


def test_what_is_skipped_is_listed_with_who_said_so_and_can_be_undone_until_it_is_passed(deployment, capsys):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    deployment.produce((ONE, BROKEN), (ONE, order(20, 1, 1)), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    assert deployment.run("skip", *deployment.at(3)) == 0
    assert deployment.run("skip", "--ts", 20, "--table", "shop.orders") == 0
    assert deployment.run("ddl skip", "--ts", 25, "--table", "shop.orders") == 0
    capsys.readouterr()
    assert deployment.run("skip list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[1] for line in lines[::2]] == [
        "--ts 20 --table shop.orders",
        f"--stream {deployment.topic}/0 --offset 3",
        "--ts 25 --table shop.orders",
    ]
    assert all(line.startswith("    by ") and "@" in line for line in lines[1::2])
    for options in (("--ts", 20), ("--ts", 25, "--table", "shop.orders")):
        assert deployment.run("skip undo", *options) == 0
    capsys.readouterr()
    assert deployment.run("skip list", "--json") == 0
    (left,) = json.loads(capsys.readouterr().out)
    assert (left["offset"], left["passed"]) == (3, False)
    deployment.catch_up()
    assert deployment.rows == [(1, 1), (2, 2)]
    assert deployment.run("skip undo", *deployment.at(3)) == CONFIG
    assert "has passed" in capsys.readouterr().err
    assert deployment.run("skip undo", "--ts", 77) == CONFIG
    assert "nothing like this is skipped" in capsys.readouterr().err
    assert run(["skip", "--ts", "5", "list"]) == CONFIG
    assert "after list" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["skip", "ddl skip"])
def test_a_ddl_of_a_schema_is_skipped_by_the_schema_with_a_dot(command, deployment):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    assert deployment.run(command, "--ts", 20, "--table", "Other.") == 0
    bad = (head(20, "other", table="", t=2), {"q": "CREATE DATABASE other CHARACTER SET of_none", "t": 1})
    deployment.produce(*everywhere(bad), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    deployment.catch_up()
    assert deployment.rows == [(2, 2)]
    (entry,) = [entry for entry in deployment.replica.ledger() if entry.ddl.commit_ts == 20]
    assert entry.state is DdlState.SKIPPED
    deployment.execute("UPDATE applier_ddl_ledger SET state = 'intent', ended_at = NULL WHERE lower(schema_name) = 'other'")
    assert deployment.run("ddl done", "--ts", 20, "--table", "other.") == 0


def test_everything_of_a_timestamp_and_table_is_skipped_by_the_next_run(deployment, capsys):
    deployment.produce(*BEGINNING)
    deployment.catch_up()
    assert deployment.run("skip", "--ts", 20, "--table", "Shop.Orders") == 0
    assert "effective from the next start" in capsys.readouterr().out
    deployment.produce((ONE, order(20, 1, 1)), (ONE, order(21, 2, 2)), *everywhere(resolved(30)))
    deployment.catch_up()
    assert deployment.rows == [(2, 2)]
