"""What the demo prints."""

import io

import pytest
from rich.console import Console

from applier.demo.comparison import DurableState, TableVerdict
from applier.demo.directory import DemoDirectory
from applier.demo.report import DemoReport
from applier.demo.simulator.history import History, HistoryOptions, volume_of

HISTORY = History(5, HistoryOptions(transactions=40, ddl_share=0.3))


@pytest.fixture
def files(tmp_path):
    files = DemoDirectory(tmp_path / "demo")
    files.clear()
    return files


KILLED = DurableState(checkpoint_ts=HISTORY.last_ts(), epoch=1, window_id=12, ddls_at_checkpoint=0)

EQUAL = [TableVerdict(name="a.b", rows=1200, problems=()), TableVerdict(name="views", rows=0, problems=())]

DIFFERING = [TableVerdict(name="a.b", rows=3, problems=("row of a.b is missing: [id]='1'",)), EQUAL[1]]


def shown(section):
    console = Console(file=io.StringIO(), width=100, soft_wrap=True)
    section(DemoReport(console))
    return console.file.getvalue()


def test_the_kill_is_reported():
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


def test_the_second_run_is_reported_with_its_checkpoint():
    result = {"rows": 10, "transactions": 1, "ddls": 2, "seconds": 3.0}
    end = DurableState(checkpoint_ts=HISTORY.last_ts(), epoch=2, window_id=20, ddls_at_checkpoint=0)
    text = shown(lambda report: report.resumed(KILLED, end, result))
    assert "as run 2 (killed: run 1)" in text
    assert "applied 10 rows of 1 transaction, 2 DDLs, in 3.0 s" in text
