"""``applier skip`` leaves out one transaction of a binlog, by its place or by its GTID; the quarantine keeps what it held."""

import json
import sqlite3

import pytest

from applier.cli.main import run
from applier.model.errors import FatalSinkError, ProtocolError
from applier.planner.table_check import DifferenceKind
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.upstream import NAME


class SkippingReplica:
    """A replica of ``primary`` in a SQLite file, and the commands about it."""

    def __init__(self, primary, sink, directory, capsys):
        self.primary, self.capsys, self.file = primary, capsys, sink.removeprefix("sqlite:///")
        self.began = primary.place()
        self.replica = BinlogReplica(sink, BinlogSettings(url=primary.url, start=self.began))
        self.path = directory / "applier.toml"
        text = f'name = "{NAME}"\n[source]\nkind = "binlog"\nurl = "{primary.url}"\n[sink]\nurl = "{sink}"\n'
        self.path.write_text(text, encoding="utf-8")

    def command(self, *words, code=0):
        self.capsys.readouterr()
        name, *options = words
        assert run([*name.split(), "--config", str(self.path), *options]) == code
        out, err = self.capsys.readouterr()
        return out if code == 0 else err

    def transactions(self, table):
        """Return the events of a table as ``inspect`` shows them."""
        return [json.loads(line) for line in self.command("inspect", "--from", self.began, "--table", table, "--json").splitlines()]

    def rows(self, table):
        with sqlite3.connect(self.file) as connection:
            return [row for (row,) in connection.execute(f'SELECT id FROM "{table}" ORDER BY id')]


@pytest.fixture
def skipping(primary, sqlite_sink, tmp_path, capsys):
    return SkippingReplica(primary, sqlite_sink, tmp_path, capsys)


def test_transactions_are_skipped_by_place_and_by_gtid_and_kept_in_the_quarantine(skipping):
    skipping.primary.run("CREATE DATABASE skipped", "CREATE TABLE skipped.t (id INT PRIMARY KEY)", "INSERT INTO skipped.t VALUES (1)")
    skipping.replica.catch_up()
    inserts = ("INSERT INTO skipped.t VALUES (2), (3)", "INSERT INTO skipped.t VALUES (4)", "INSERT INTO skipped.t VALUES (5)")
    skipping.primary.run(*inserts, "CREATE TABLE skipped.u (id INT PRIMARY KEY)")
    first, _, second, _ = [one for one in skipping.transactions("skipped.t") if one["type"] == "row"][1:]
    (ddl,) = skipping.transactions("skipped.u")
    shown = skipping.command("skip", "--position", first["position"])
    assert f"skipped: {first['position']};" in shown
    skipping.command("skip", "--gtid", second["gtid"])
    skipping.command("skip", "--position", ddl["position"])
    skipping.replica.catch_up()
    assert skipping.rows("skipped.t") == [1, 5]
    entries = json.loads(skipping.command("quarantine list", "--all", "--json"))
    assert [(entry["state"], entry["key"]) for entry in entries] == [("skipped", "id=2"), ("skipped", "id=3"), ("skipped", "id=4")]
    assert [entry["position"] for entry in entries] == [first["position"], first["position"], second["position"]]
    place = ["--stream", "binlog/0", "--offset", str(entries[0]["offset"]), "--event", str(entries[0]["event"])]
    assert "skipped.t" in skipping.command("quarantine show", *place)
    with sqlite3.connect(skipping.file) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'skipped.u'").fetchone() == (0,)
    assert skipping.command("skip list").count("passed") == 3
    assert "already passed" in skipping.command("skip", "--position", first["position"], code=2)


def test_what_names_no_transaction_is_refused(skipping):
    skipping.primary.run("CREATE DATABASE nothing_skipped")
    skipping.replica.catch_up()
    name, _, end = skipping.primary.place().partition(":")
    assert "no transaction begins" in skipping.command("skip", "--position", f"{name}:{int(end) + 7}", code=3)
    gtid = "0-1-99999999" if skipping.primary.gtid().count("-") < 4 else "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"
    assert "no such transaction" in skipping.command("skip", "--gtid", gtid, code=2)
    assert "a transaction alone" in skipping.command("skip", "--gtid", gtid, "--ts", "5", code=2)


def test_a_row_that_the_sink_has_refused_is_applied_later_unless_a_later_transaction_has_changed_it(skipping):
    skipping.replica.quarantines, skipping.replica.accept = frozenset({"rejected"}), {"refused.t": (DifferenceKind.TRIGGER,)}
    skipping.primary.run("CREATE DATABASE refused", "CREATE TABLE refused.t (id INT PRIMARY KEY, n INT)")
    skipping.replica.catch_up()
    with sqlite3.connect(skipping.file) as connection:
        check = "SELECT RAISE(ABORT, 'too much') WHERE NEW.n >= 100"
        connection.execute(f'CREATE TRIGGER strict BEFORE INSERT ON "refused.t" BEGIN {check}; END')
    skipping.primary.run(
        "INSERT INTO refused.t VALUES (1, 100)", "INSERT INTO refused.t VALUES (2, 100)", "INSERT INTO refused.t VALUES (3, 5)"
    )
    skipping.replica.catch_up()
    assert skipping.rows("refused.t") == [3]
    with sqlite3.connect(skipping.file) as connection:
        connection.execute("DROP TRIGGER strict")
    skipping.primary.run("UPDATE refused.t SET n = 7 WHERE id = 2")
    skipping.replica.catch_up()
    places = [
        ["--stream", "binlog/0", "--offset", str(entry["offset"]), "--event", str(entry["event"])]
        for entry in json.loads(skipping.command("quarantine list", "--json"))
    ]
    assert "applied" in skipping.command("quarantine retry", *places[0])
    assert "a later event has changed the same row" in skipping.command("quarantine retry", *places[1], code=6)
    assert skipping.rows("refused.t") == [1, 2, 3]


def test_the_sink_is_compared_with_the_primary(skipping):
    skipping.primary.run(
        "CREATE DATABASE compared", "CREATE TABLE compared.t (id INT PRIMARY KEY, n INT)", "INSERT INTO compared.t VALUES (1, 1)"
    )
    skipping.replica.catch_up()
    tables = ["--tables", "compared.*", "--json"]
    assert json.loads(skipping.command("verify", *tables).splitlines()[-1])
    with sqlite3.connect(skipping.file) as connection:
        connection.execute('UPDATE "compared.t" SET n = 2')
    skipping.command("verify", *tables, code=6)


@pytest.mark.on_one_server("mariadb", reason="MySQL has no SEQUENCE")
def test_a_rename_of_a_sequence_is_skipped_as_its_error_says(skipping):
    skipping.primary.run("CREATE DATABASE sequences", "CREATE SEQUENCE sequences.q", "RENAME TABLE sequences.q TO sequences.r")
    with pytest.raises(FatalSinkError, match="does not exist in the sink") as stopped:
        skipping.replica.catch_up()
    assert "SEQUENCE" in stopped.value.remedy
    skipping.command("ddl skip", "--ts", str(stopped.value.facts["commit_ts"]), "--table", stopped.value.facts["table"])
    skipping.primary.run("CREATE TABLE sequences.t (id INT PRIMARY KEY)", "INSERT INTO sequences.t VALUES (NEXTVAL(sequences.r))")
    skipping.replica.catch_up()
    assert skipping.rows("sequences.t") == [1]


REPLACED = {
    Kind.MARIADB: "REPLACE INTO minimal.t (u, v) VALUES (1, 2)",
    Kind.MYSQL: "UPDATE minimal.t SET id = 3, v = 2 WHERE u = 1",
}
"""Both change the key, and the binlog has the changed columns only. MySQL writes all columns of a REPLACE."""


def test_a_changed_key_without_all_columns_is_skipped_and_its_rows_are_repaired(skipping, tmp_path):
    primary = skipping.primary
    table = "CREATE TABLE minimal.t (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, v INT, w INT DEFAULT 5)"
    primary.run("CREATE DATABASE minimal", table, "INSERT INTO minimal.t VALUES (1, 1, 1, 1), (2, 2, 1, 1)")
    skipping.replica.catch_up()
    primary.run("SET SESSION binlog_row_image = MINIMAL", REPLACED[primary.kind])
    with pytest.raises(ProtocolError, match="changes the key of a row") as stopped:
        skipping.replica.catch_up()
    assert stopped.value.facts["table"] == "t"
    primary.run("INSERT INTO minimal.t VALUES (9, 9, 9, 9)")
    position = BinlogPosition.of(stopped.value.facts["offset"]).text(skipping.began.partition(".")[0])
    skipping.command("skip", "--position", position)
    skipping.replica.catch_up()
    skipping.command("verify", "--tables", "minimal.*", "--fix-sql", str(tmp_path / "fix.sql"), code=6)
    with sqlite3.connect(skipping.file) as sink:
        sink.executescript((tmp_path / "fix.sql").read_text(encoding="utf-8"))
        found = sink.execute('SELECT id, u, v, w FROM "minimal.t" ORDER BY id').fetchall()
    assert found == [tuple(row) for row in primary.ask("SELECT id, u, v, w FROM minimal.t ORDER BY id")]
