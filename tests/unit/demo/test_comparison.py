"""The demo's parts: its directory, the comparison, the report, and a process that is killed with its children."""

import io
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from applier.demo.comparison import DurableState, TableVerdict, compare, money_in, steps_until
from applier.demo.directory import DemoDirectory
from applier.demo.process import WatchedProcess, catchup_command
from applier.demo.report import DemoReport
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.sqlite_oracle import SqliteOracle
from applier.demo.volume import volume_of
from applier.model.errors import ApplierError, ConfigError

HISTORY = History(5, HistoryOptions(transactions=40, ddl_share=0.3))


@pytest.fixture
def files(tmp_path):
    files = DemoDirectory(tmp_path / "demo")
    files.clear()
    return files


def write_replica(files, steps):
    """Write the replica with the oracle's own code: the two must then be equal."""
    with closing(SqliteOracle(files.replica)) as replica:
        replica.apply(steps)


def step_with_several_ddls():
    for seed in range(100):
        for step in History(seed, HISTORY.options):
            if len(step.ddls) > 1 and step.rows:
                return seed, step
    raise AssertionError("no history has such a step")


def test_the_demo_writes_a_configuration_that_its_runs_can_read(files):
    config = files.write_config("127.0.0.1:5")
    assert config.source.bootstrap_servers == "127.0.0.1:5"
    assert config.sink_settings().url == f"sqlite:///{files.replica.resolve()}"
    assert config.spark.conf == {"spark.local.dir": str(files.spark.resolve())}


def test_a_second_demo_clears_what_the_first_one_left(files):
    files.write_config("h:1")
    files.spark.mkdir()
    for name in ("replica.db", "replica.db-wal", "oracle.db", "oracle_at_kill.db", "catchup.log", "notes.txt"):
        (files.path / name).write_text("x")
    files.clear()
    assert sorted(path.name for path in files.path.iterdir()) == ["applier.toml", "notes.txt"]


def test_a_directory_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "replica.db").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        DemoDirectory(tmp_path).clear()
    assert (tmp_path / "replica.db").read_text() == "mine"


def test_the_volume_is_what_the_history_holds(files):
    steps = list(HISTORY)
    volume = volume_of(HISTORY)
    assert (volume.rows, volume.ddls) == (sum(len(s.rows) for s in steps), sum(len(s.ddls) for s in steps))
    assert volume.transactions == sum(bool(s.rows) for s in steps)
    assert (volume.middle_ts, volume.last_ts) == (steps[len(steps) // 2].ts, steps[-1].ts)


def test_an_equal_replica_has_a_verdict_per_table_without_problems(files):
    write_replica(files, HISTORY)
    verdicts = compare(files.replica, HISTORY, files.oracle)
    assert [v.problems for v in verdicts] == [()] * len(verdicts)
    assert {"bank.accounts", "shop.orders"} <= {v.name for v in verdicts}
    assert sum(v.rows for v in verdicts) > 0
    assert money_in(files.replica) == HISTORY.money_total()


@pytest.mark.parametrize(
    ("damage", "table"),
    [
        ('UPDATE "bank.accounts" SET balance = balance + 1 WHERE id = (SELECT MIN(id) FROM "bank.accounts")', "bank.accounts"),
        ('DELETE FROM "shop.wallets" WHERE owner = (SELECT MIN(owner) FROM "shop.wallets")', "shop.wallets"),
        ('DROP TABLE "shop.order_items"', "shop.order_items"),
        ('CREATE TABLE "shop.surplus" (id)', "shop.surplus"),
        ('CREATE VIEW "shop.watch" AS SELECT 1 AS one', "views"),
    ],
)
def test_a_difference_is_found_in_its_table_and_only_there(files, damage, table):
    write_replica(files, HISTORY)
    with closing(sqlite3.connect(files.replica, isolation_level=None)) as connection:
        connection.execute(damage)
    assert [v.name for v in compare(files.replica, HISTORY, files.oracle) if v.problems] == [table]


def test_at_a_ddls_own_ts_upstream_is_what_the_ledger_says(tmp_path):
    seed, step = step_with_several_ddls()
    history = History(seed, HISTORY.options)
    for done in range(len(step.ddls) + 1):
        state = DurableState(checkpoint_ts=step.ts, epoch=1, window_id=1, ddls_at_checkpoint=done)
        last = list(steps_until(history, state))[-1]
        assert (last.ts, last.rows, last.ddls) == (step.ts, step.rows, step.ddls[:done])


def test_a_killed_replica_is_compared_with_upstream_at_its_checkpoint(files):
    steps = list(HISTORY)
    half = steps[: len(steps) // 2]
    state = DurableState(checkpoint_ts=half[-1].ts, epoch=1, window_id=1, ddls_at_checkpoint=len(half[-1].ddls))
    write_replica(files, half)
    assert not any(v.problems for v in compare(files.replica, steps_until(HISTORY, state), files.oracle_at_kill))
    next_step = steps[len(half)]
    files.replica.unlink()
    write_replica(files, [*half, next_step])
    assert any(v.problems for v in compare(files.replica, steps_until(HISTORY, state), files.oracle_at_kill)) == bool(
        next_step.rows or next_step.ddls
    )


TREE = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(600)"])
time.sleep(600)
"""


def lines_of(path):
    return path.read_text().split() if path.exists() else []


def is_gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_kill_reaches_everything_that_the_process_started(tmp_path):
    told = tmp_path / "told"
    code = TREE.replace("print(os.getpid(), flush=True)", f"open({str(told)!r}, 'w').write(str(os.getpid()))")
    with WatchedProcess([sys.executable, "-c", code], tmp_path / "log") as process:
        assert process.wait_until(lambda: bool(lines_of(told)))
        grandchild = int(lines_of(told)[0])
        process.kill()
        assert is_gone(grandchild)


def test_a_result_is_the_object_that_the_process_prints(tmp_path):
    with WatchedProcess([sys.executable, "-c", "print('{\"rows\": 5}')"], tmp_path / "log") as process:
        assert process.wait_until(lambda: False) is False
        assert process.result() == {"rows": 5}


def test_a_failed_catch_up_is_reported_with_the_end_of_its_log(tmp_path):
    with (
        WatchedProcess(catchup_command(tmp_path / "none.toml"), tmp_path / "log") as process,
        pytest.raises(ApplierError, match="the configuration file does not exist") as caught,
    ):
        process.result()
    assert caught.value.facts == {"exit_code": 2}


def shown(section):
    console = Console(file=io.StringIO(), width=100, soft_wrap=True)
    section(DemoReport(console))
    return console.file.getvalue()


KILLED = DurableState(checkpoint_ts=HISTORY.last_ts(), epoch=1, window_id=12, ddls_at_checkpoint=0)
EQUAL = [TableVerdict(name="a.b", rows=1200, problems=()), TableVerdict(name="views", rows=0, problems=())]
DIFFERING = [TableVerdict(name="a.b", rows=3, problems=("row of a.b is missing: [id]='1'",)), EQUAL[1]]


def test_the_kill_is_reported(files):
    text = shown(lambda report: report.killed(KILLED, EQUAL, 5000, volume_of(HISTORY)))
    assert "killed with SIGKILL: driver, JVM and workers" in text
    assert "the killed replica equals upstream at that checkpoint: 1 table, 1,200 rows, money total 5,000" in text
    assert "row of a.b is missing: [id]='1'" in shown(lambda report: report.killed(KILLED, DIFFERING, 5000, volume_of(HISTORY)))


def test_the_end_names_the_file_and_what_to_try(files):
    text = shown(lambda report: report.summary(files, EQUAL, seed=5, seconds=42.0))
    assert "the replica equals upstream (42 s)" in text
    assert f"The replica is {files.replica}" in text
    assert f"ddl list --config {files.config}" in text


def test_a_difference_at_the_end_is_not_hidden(files):
    text = shown(lambda report: report.summary(files, DIFFERING, seed=5, seconds=42.0))
    assert "equals" not in text
    assert "row of a.b is missing: [id]='1'" in text
    assert "This is a defect" in text


def test_the_second_run_says_where_it_went_on():
    result = {"rows": 10, "transactions": 1, "ddls": 2, "seconds": 3.0}
    end = DurableState(checkpoint_ts=HISTORY.last_ts(), epoch=2, window_id=20, ddls_at_checkpoint=0)
    text = shown(lambda report: report.resumed(KILLED, end, result))
    assert "as run 2 (killed: run 1)" in text
    assert "applied 10 rows of 1 transaction, 2 DDLs, in 3.0 s" in text
