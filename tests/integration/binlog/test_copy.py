"""``applier copy`` of real servers: each value as the log would bring it, with writers beside it, and after a kill at each point."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from applier.cli.main import run as run_command
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.test_verify_types import EVERY_CASE, SCHEMA, fill
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect
from tests.rig.upstream import clear_sink
from tests.rig.verifying import of_schemas, verify, wrong

pytestmark = pytest.mark.timeout(240)

CASES = {f"t{at}": case for at, case in enumerate(EVERY_CASE)}
TEXTS = {
    "latin": "VARCHAR(40) CHARACTER SET latin1", "gbk": "VARCHAR(40) CHARACTER SET gbk", "wide": "TEXT CHARACTER SET utf16",
    "cyrillic": "CHAR(9) CHARACTER SET koi8r",
}  # fmt: skip
WORDS = {"latin": "naïve € ''q''\\\\", "gbk": "中文\\\\", "wide": "日本😀", "cyrillic": "Привет"}
OWN_TYPES = {
    "u": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'", "'018f3c5e-7b2a-7c11-8a3b-0123456789ab'"]),
    "i": ("INET6", ["'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.1'"]),
    "j": ("INET4", ["'192.0.2.1'", "'0.0.0.0'"]),
}
ENVIRONMENT = dict(os.environ)
KILLED = -9


@pytest.fixture
def upstream(primary):
    """A primary with an empty schema."""
    primary.clear()
    primary.run(f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    return primary


class Copying:
    """The command with a configuration: in this process, or in one that a named point kills."""

    def __init__(self, path, sink, capsys):
        self.path, self.sink, self._capsys = path, sink, capsys

    def __call__(self, *options, command="copy"):
        code = run_command([command, "--config", str(self.path), *options])
        shown = self._capsys.readouterr()
        return code, shown.out + shown.err

    def killed_at(self, point):
        """Run it until it reaches the point."""
        words = [sys.executable, "-m", "applier", "copy", "--config", str(self.path)]
        return subprocess.run(words, env={**ENVIRONMENT, "APPLIER_FAILPOINT": point}, timeout=120, check=False, capture_output=True)

    def status(self):
        run_command(["status", "--config", str(self.path), "--json"])
        return json.loads(self._capsys.readouterr().out)


@pytest.fixture
def copying(tmp_path, primary, capsys):
    """Make the command for a sink."""

    def made(sink, lines=""):
        path = tmp_path / "applier.toml"
        source = f'[source]\nkind = "binlog"\nurl = "{primary.url}"\nstart = "copy"\ntables = ["{SCHEMA}.*"]\n'
        path.write_text(f'name = "copied"\n{source}[sink]\nurl = "{sink}"\n{lines}\n[spark]\nmaster = "local[2]"\n')
        return Copying(path, sink, capsys)

    return made


def stored(path):
    """Return all that a file stores of the schema: table -> rows of (storage class, value)."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        names = [name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%.%'")]
        return {name: _rows(connection, name) for name in names}


def _rows(connection, name):
    columns = [row[1].decode() for row in connection.execute(f'PRAGMA table_xinfo("{name}")')]
    listed = ", ".join(f'typeof("{column}"), "{column}"' for column in columns)
    return sorted(connection.execute(f'SELECT {listed} FROM "{name}"').fetchall(), key=repr)


def fill_all(upstream):
    fill(upstream.url, CASES)
    for name, sql_type in TEXTS.items():
        upstream.run(
            f"CREATE TABLE {SCHEMA}.{name} (id INT PRIMARY KEY, v {sql_type}, g INT AS (id + 1), s INT AS (id + 2) STORED)",
            f"INSERT INTO {SCHEMA}.{name} (id, v) VALUES (1, '{WORDS[name]}'), (2, ''), (3, NULL)",
        )
    upstream.run(f"INSERT INTO {SCHEMA}.latin (id, v) VALUES (4, UNHEX('C3A9818D8F909D'))")
    upstream.run(f"CREATE TABLE {SCHEMA}.separators (id INT PRIMARY KEY, v VARBINARY(20), w VARCHAR(20))")
    upstream.run(f"INSERT INTO {SCHEMA}.separators VALUES (0, x'1e1f1b', CONCAT('a', x'1e', 'b', x'1f1b', 'N')), (1, x'1b4e', x'1b4e')")
    upstream.run(
        f"CREATE VIEW {SCHEMA}.seen AS SELECT id FROM {SCHEMA}.latin", f"CREATE VIEW {SCHEMA}.again AS SELECT * FROM {SCHEMA}.seen"
    )


def test_a_copy_into_a_file_is_stored_as_the_rows_of_the_log_are(copying, upstream, tmp_path):
    begun = upstream.place()
    fill_all(upstream)
    for name, (sql_type, values) in OWN_TYPES.items() if upstream.kind is Kind.MARIADB else ():
        upstream.run(f"CREATE TABLE {SCHEMA}.{name} (id INT PRIMARY KEY, v {sql_type})")
        upstream.run(*(f"INSERT INTO {SCHEMA}.{name} VALUES ({at}, {value})" for at, value in enumerate(values)))
    followed = f"sqlite:///{tmp_path}/followed.db"
    BinlogReplica(followed, BinlogSettings(url=upstream.url, start=begun)).catch_up()
    wanted = stored(tmp_path / "followed.db")
    code, shown = copying(f"sqlite:///{tmp_path}/replica.db")()
    assert code == 0, shown
    found = stored(tmp_path / "replica.db")
    assert found.keys() == wanted.keys()
    assert {name for name in wanted if found[name] != wanted[name]} == set()


def test_a_copy_into_a_server_equals_upstream(copying, upstream, databases):
    fill_all(upstream)
    sink = clean(databases, upstream.kind)
    command = copying(sink)
    code, shown = command()
    assert code == 0, shown
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}
    status = command.status()
    assert status["consistent"] is True
    assert status["copy"]["state"] == "consistent"
    assert status["copy"]["tables"] == status["copy"]["tables_done"] == len(CASES) + len(TEXTS) + 1
    # What the log brings then.
    upstream.run(f"UPDATE {SCHEMA}.latin SET v = 'ü' WHERE id = 2", f"CREATE TABLE {SCHEMA}.later (id INT PRIMARY KEY)")
    upstream.run(f"INSERT INTO {SCHEMA}.later VALUES (1)")
    code, shown = command(command="catchup")
    assert code == 0, shown
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}
    code, shown = command()
    assert code == 6, shown
    assert "replicas reset" in shown


def clean(databases, kind):
    url = databases.plain(kind).url
    clear_sink(url)
    return url


def sized(upstream, tables, rows=50):
    for at in range(tables):
        upstream.run(f"CREATE TABLE {SCHEMA}.n{at} (id INT PRIMARY KEY, v INT UNIQUE, w VARCHAR(20))")
        upstream.run(f"INSERT INTO {SCHEMA}.n{at} VALUES {','.join(f'({n}, {n + at * 1000}, {at})' for n in range(rows))}")


def test_tables_that_swap_their_names_while_they_are_copied_are_copied_again(copying, upstream, databases):
    sized(upstream, 6)
    sink = clean(databases, upstream.kind)
    command = copying(sink)
    assert command.killed_at("copy.after_round:1").returncode == KILLED
    status = command.status()
    assert status["consistent"] is False
    assert status["copy"]["state"] == "copying"
    assert 0 < status["copy"]["tables_done"] < 6
    upstream.run(f"RENAME TABLE {SCHEMA}.n0 TO {SCHEMA}.x, {SCHEMA}.n5 TO {SCHEMA}.n0, {SCHEMA}.x TO {SCHEMA}.n5")
    code, shown = command()
    assert code == 0, shown
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}


def test_a_kill_at_each_point_loses_nothing(copying, upstream, databases):
    sized(upstream, 6)
    upstream.run(f"CREATE TABLE {SCHEMA}.keyless (a INT, b VARCHAR(9))")
    upstream.run(f"INSERT INTO {SCHEMA}.keyless VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    sink = clean(databases, upstream.kind)
    command = copying(sink, 'keyless = "best_effort"')
    points = ("copy.tables_made", "copy.after_keyless", "copy.after_round:1", "copy.after_round:1", "copy.before_end", "copy.after_end")
    for at, point in enumerate(points):
        assert command.killed_at(point).returncode == KILLED, point
        assert command.status()["consistent"] is False
        upstream.run(
            f"UPDATE {SCHEMA}.n{at} SET v = v + 500 WHERE id % 2 = 0",
            f"DELETE FROM {SCHEMA}.n0 WHERE id = {at}",
            f"INSERT INTO {SCHEMA}.n1 VALUES ({1000 + at}, {5000 + at}, 'new')",
            f"INSERT INTO {SCHEMA}.keyless VALUES ({at}, 'later')",
        )
    code, shown = command()
    assert code == 0, shown
    assert command.status()["consistent"] is True
    found = wrong(verify(upstream.url, sink, of_schemas(SCHEMA)))
    assert found == {}
    with closing(connect(sink)) as one, closing(connect(upstream.url)) as other:
        query = f"SELECT a, b FROM {SCHEMA}.keyless ORDER BY a, b"
        assert asked(one, query) == asked(other, query)


def asked(connection, query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def test_a_ddl_on_a_table_that_is_not_copied_yet_stops_the_copy(copying, upstream, databases):
    sized(upstream, 6)
    sink = clean(databases, upstream.kind)
    command = copying(sink)
    assert command.killed_at("copy.after_round:1").returncode == KILLED
    upstream.run(f"ALTER TABLE {SCHEMA}.n5 ADD COLUMN x INT DEFAULT 7")
    code, shown = command()
    assert code == 6, shown
    assert f"{SCHEMA}.n5" in shown
    assert "--again`" in shown
    code, shown = command("--again")
    assert code == 0, shown
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}


def test_a_table_that_is_in_the_way_is_replaced_on_demand_only(copying, upstream, databases):
    sized(upstream, 2)
    sink = clean(databases, upstream.kind)
    with closing(connect(sink)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        cursor.execute(f"CREATE TABLE {SCHEMA}.n1 (other INT PRIMARY KEY)")
    command = copying(sink)
    code, shown = command()
    assert code == 6, shown
    assert f"{SCHEMA}.n1" in shown
    code, shown = command("--replace")
    assert code == 0, shown
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}


def test_a_catch_up_of_a_new_replica_copies_first_where_the_settings_say_so(copying, upstream, databases):
    sized(upstream, 2)
    sink = clean(databases, upstream.kind)
    command = copying(sink)
    code, shown = command(command="check")
    assert code == 0, shown
    code, shown = command(command="catchup")
    assert code == 0, shown
    assert command.status()["consistent"] is True
    assert wrong(verify(upstream.url, sink, of_schemas(SCHEMA))) == {}
