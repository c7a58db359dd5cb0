"""`applier verify` as an operator runs it: what it prints, its exit codes, its files, and which rights it needs."""

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from applier.cli.main import run as applier
from tests.integration.mysql_replica import commit_at, replica
from tests.rig.clean_server import clean_server
from tests.rig.least_privilege import make_user
from tests.rig.verifying import execute_file, run

UP, DOWN = "applier_test_up", "applier_test_down"
SECRET = "hunter2-is-a-secret"  # noqa: S105


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    """A server with upstream's schema and the sink's, which a route connects, and no replica."""
    clean_server(mysql_url, UP, DOWN)
    for schema in (UP, DOWN):
        run(
            mysql_url,
            f"CREATE DATABASE {schema} DEFAULT CHARACTER SET utf8mb4",
            f"CREATE TABLE {schema}.orders (id INT PRIMARY KEY, name VARCHAR(40), total DECIMAL(10,2), UNIQUE (name))",
            f"INSERT INTO {schema}.orders VALUES (1,'{SECRET}',1.00),(2,'b',2.00),(3,'c',3.00)",
            f"CREATE VIEW {schema}.names AS SELECT name FROM {schema}.orders",
        )
    yield mysql_url
    clean_server(mysql_url, UP, DOWN)


@pytest.fixture
def verify(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]):
    """Run the command; return its exit code, standard output and standard error."""
    config = tmp_path / "applier.toml"

    def call(*options: str, sink: str = url, upstream: str = url, tables: str = UP, more: str = "") -> tuple[int, str, str]:
        config.write_text(
            f'[source]\nbootstrap_servers = "127.0.0.1:1"\ntopics = ["feed"]\ntables = ["{tables}.*"]\n'
            f'[[source.route]]\nfrom = "{UP}.*"\nto = "{DOWN}.{{table}}"\n{more}[sink]\nurl = "{sink}"\n'
        )
        code = applier(["verify", "--config", str(config), "--upstream", upstream, *options])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def test_equal_sides_exit_0_and_say_how_many_rows_were_compared(verify):
    code, out, err = verify()
    assert (code, err) == (0, "")
    assert f"{DOWN}.orders: 3 rows, equal" in out
    assert "1 view skipped" in out
    assert "equal: 1 table, 3 rows upstream" in out


def test_differences_exit_6_with_counts_and_columns_and_no_value(verify, url):
    run(url, f"UPDATE {DOWN}.orders SET total = 9 WHERE id = 1", f"DELETE FROM {DOWN}.orders WHERE id = 2")
    run(url, f"INSERT INTO {DOWN}.orders VALUES (77,'extra',7)")
    code, out, err = verify()
    assert code == 6
    assert f"{DOWN}.orders: 1 missing, 1 extra, 1 different of 3 rows; columns that differ: total" in out
    assert "--rows-in-flight" in out
    assert SECRET not in out + err


def test_json_has_everything_and_no_value(verify, url):
    run(url, f"UPDATE {DOWN}.orders SET total = 9, name = 'x' WHERE id = 1")
    code, out, err = verify("--json")
    (table,) = json.loads(out)["tables"]
    assert (code, err) == (6, "")
    assert (table["schema"], table["table"], table["different"], table["missing"], table["extra"]) == (DOWN, "orders", 1, 0, 0)
    assert table["columns"] == {"total": 1, "name": 1}
    assert SECRET not in out


def test_the_repair_makes_the_sides_equal_where_rows_have_swapped_a_unique_value(verify, url, tmp_path):
    run(url, f"UPDATE {DOWN}.orders SET name = 'z' WHERE id = 1", f"UPDATE {DOWN}.orders SET name = '{SECRET}' WHERE id = 2")
    run(url, f"UPDATE {DOWN}.orders SET name = 'b' WHERE id = 1", f"INSERT INTO {DOWN}.orders VALUES (9,'q',9)")
    fix = tmp_path / "fix.sql"
    code, out, err = verify("--fix-sql", str(fix))
    assert code == 6
    assert str(fix) in out
    assert SECRET not in out + err
    assert stat.S_IMODE(fix.stat().st_mode) == 0o600
    text = fix.read_text()
    assert text.index("DELETE FROM") < text.index("REPLACE INTO")
    assert "never" not in text.splitlines()[0]
    execute_file(url, fix)
    assert verify()[0] == 0
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_password_comes_from_the_environment_or_a_file_and_is_never_shown(verify, url, tmp_path, monkeypatch):
    reader = make_user(url, "grants_verify.sql", "applier_verify", schemas=(UP, DOWN))
    bare, password = reader.replace(reader.split("@")[0], reader.split(":")[0] + "://applier_verify"), reader.split(":")[2].split("@")[0]
    monkeypatch.setenv("APPLIER_UPSTREAM_PASSWORD", password)
    assert verify(upstream=bare)[0] == 0
    assert "APPLIER_UPSTREAM_PASSWORD" not in os.environ
    file = tmp_path / "password"
    file.write_text(f"{password}\n")
    assert verify("--upstream-password-file", str(file), upstream=bare)[0] == 0
    monkeypatch.setenv("APPLIER_UPSTREAM_PASSWORD", SECRET)
    code, out, err = verify(upstream=bare)
    assert code == 4
    assert "database: upstream" in err
    assert "APPLIER_UPSTREAM_PASSWORD" in err
    assert SECRET not in out + err


def test_select_is_enough_on_both_sides(verify, url):
    reader = make_user(url, "grants_verify.sql", "applier_verify", schemas=(UP, DOWN))
    run(url, f"DELETE FROM {DOWN}.orders WHERE id = 2")
    assert verify(sink=reader, upstream=reader)[0] == 6


@pytest.mark.parametrize(
    ("upstream", "message"),
    [("sqlite:///x.db", "of the MySQL family"), ("postgresql://h/", "of the MySQL family"), ("mysql+pymysql://u:p@ss@h/", "not encoded")],
)
def test_a_url_that_is_none_of_a_server_exits_2(verify, upstream, message):
    code, out, err = verify(upstream=upstream)
    assert code == 2
    assert message in err
    assert "p@ss" not in out + err


def test_a_table_of_which_an_event_filter_leaves_out_rows_is_not_compared(verify, url):
    run(url, f"DELETE FROM {DOWN}.orders")
    code, out, _ = verify(more=f'[[source.event_filter]]\ntables = ["{UP}.orders"]\nignore = ["insert"]\n')
    assert (code, "orders" in out) == (0, False)


def test_a_run_that_was_killed_continues_with_its_state(verify, url, tmp_path):
    for schema in (UP, DOWN):
        numbers = "(WITH RECURSIVE s(n) AS (SELECT 100 UNION ALL SELECT n+1 FROM s WHERE n < 1000) SELECT n FROM s) q"
        run(url, f"INSERT INTO {schema}.orders SELECT n, n, n FROM {numbers}")
    with replica(url) as owned:
        owned.sink.save(owned.fence, commit_at(owned.tick()))
        assert verify()[0] == 0
        state = tmp_path / "state"
        slow = ["--chunk-rows", "10", "--max-rows-per-second", "50", "--jobs", "1"]
        options = ["--config", str(tmp_path / "applier.toml"), "--upstream", url, "--state", str(state), *slow]
        program = subprocess.Popen([sys.executable, "-m", "applier", "verify", *options], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        program.kill()
        program.wait()
        code, out, _ = verify("--state", str(state), "--chunk-rows", "10", "--json")
    found = json.loads(out)
    assert (code, found["tables"][0]["rows_upstream"]) == (0, 904)
    assert 1 <= found["ranges_of_an_earlier_run"] < 90


def test_the_upstream_of_the_configuration_is_the_default(verify, url, tmp_path, capsys):
    assert verify()[0] == 0
    config = tmp_path / "applier.toml"
    assert applier(["verify", "--config", str(config)]) == 2
    assert "nothing says where upstream is" in capsys.readouterr().err
    config.write_text(config.read_text().replace("[source]", f'[source]\nupstream = "{url}"'))
    assert applier(["verify", "--config", str(config)]) == 0


def test_a_filter_without_a_table_exits_2(verify):
    code, _, err = verify("--tables", "orders")
    assert code == 2
    assert "--tables" in err


def test_tables_that_are_missing_too_many_or_of_other_columns_are_named(verify, url):
    run(url, f"CREATE TABLE {UP}.missing (id INT PRIMARY KEY)", f"CREATE TABLE {DOWN}.extra (id INT PRIMARY KEY)")
    for schema, column in ((UP, "a INT"), (DOWN, "a JSON, b INT")):
        run(url, f"CREATE TABLE {schema}.shape (id INT PRIMARY KEY, {column})")
    code, out, _ = verify("--tables", "*.*")
    assert code == 6
    assert f"{DOWN}.missing: not compared: the sink does not have the table" in out
    assert f"{DOWN}.extra: not compared: upstream does not have the table" in out
    assert "column b is too many" in out
    assert "column a has types that cannot be compared" in out
    assert verify("--tables", f"{UP}.orders")[0] == 0


def test_a_file_that_cannot_be_used_is_deleted_or_named_elsewhere(verify, url, tmp_path):
    state = tmp_path / "state"
    state.write_text("{}")
    code, _, err = verify("--state", str(state))
    assert (code, "Name another file, or delete this one" in err) == (2, True)
    state.unlink()
    assert verify("--state", str(state))[0] == 0
    run(url, f"DELETE FROM {DOWN}.orders WHERE id = 2")
    code, _, err = verify("--fix-sql", str(tmp_path / "absent" / "fix.sql"))
    assert (code, "Check the path, and the free space" in err) == (2, True)
    assert verify("--fix-sql", str(tmp_path / "fix.sql"))[0] == 6
    assert (tmp_path / "fix.sql").exists()
