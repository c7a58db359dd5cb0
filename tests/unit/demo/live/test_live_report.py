"""What ``applier demo --live`` prints."""

import io

import pytest
from rich.console import Console

from applier.demo.comparison import TableVerdict
from applier.demo.directory import DemoDirectory
from applier.demo.live.feed import Written
from applier.demo.live.live_report import LiveReport
from applier.demo.report import DemoReport

ANSWER = {"process": 4711, "paused_since": None, "error": None, "lag_s": 0.8}
WRITTEN = Written(rows=1234, ddls=1)


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200, soft_wrap=True)


@pytest.fixture
def report(console, tmp_path):
    return LiveReport(DemoReport(console), DemoDirectory(tmp_path / "d"), 4321)


def test_where_to_look_is_printed_once_when_the_page_answers(report, console, tmp_path):
    report.begun()
    report.state(None, WRITTEN, waits=False)
    assert "How to look" not in console.file.getvalue()
    report.state(ANSWER, WRITTEN, waits=False)
    report.state(ANSWER, WRITTEN, waits=False)
    text = console.file.getvalue()
    assert text.count("The page of the replica: http://127.0.0.1:4321/") == 1
    assert f"status --config {tmp_path / 'd' / 'applier.toml'}" in text
    assert "ddl list --config" in text
    assert text.count("upstream has written 1,234 row changes, 1 DDL; the replica is 0.8 s behind; process 4711") == 2


@pytest.mark.parametrize(
    ("changed", "waits", "said"),
    [
        ({"paused_since": "2026-01-01T00:00:00.000+00:00"}, True, "and waits for the replica; the replica is paused"),
        ({"error": "disk full"}, False, "the replica is failing: disk full"),
        ({"lag_s": None}, False, "the replica starts"),
        ({"lag_s": 31_000_000.0}, False, "the replica starts"),
    ],
)
def test_a_line_says_how_the_replica_is(report, console, changed, waits, said):
    report.state(ANSWER | changed, WRITTEN, waits=waits)
    assert said in console.file.getvalue()


def test_a_daemon_that_ends_or_does_not_answer_is_told(report, console):
    report.state(ANSWER, WRITTEN, waits=False)
    report.restarted("was killed by signal 9")
    report.state(None, WRITTEN, waits=False)
    text = console.file.getvalue()
    assert "the daemon was killed by signal 9. It starts again" in text
    assert "the daemon does not answer" in text


def test_a_demo_whose_replica_differs_does_not_live_on(report, console):
    equal = TableVerdict(name="a.b", rows=1, problems=())
    differing = TableVerdict(name="a.b", rows=1, problems=("row of a.b is missing",))
    assert not report.demo_is_equal([differing])
    # The summary prints it.
    assert console.file.getvalue() == ""
    assert report.demo_is_equal([equal])
    assert "equal" in console.file.getvalue()
