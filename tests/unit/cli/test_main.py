"""The command as a whole: help, usage, and one exit code per kind of error."""

import json
import logging
import os
import subprocess
import sys

import pytest
import typer

import applier
from applier.cli.main import DEBUG_VARIABLE, run
from applier.model.errors import (
    ConfigError,
    FatalSinkError,
    Fenced,
    InvariantViolation,
    NeedsOperator,
    ProtocolError,
    Remedy,
    RetryableSinkError,
    SourceError,
    UnknownOutcome,
)
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.log import StderrHandler, configure_logging, use_format


@pytest.fixture(autouse=True)
def outside_as_it_was(monkeypatch):
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    level = logging.getLogger("applier").level
    yield
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if not isinstance(handler, StderrHandler)]
    logging.getLogger("applier").setLevel(level)


def commands_raising(error: BaseException) -> typer.Typer:
    commands = typer.Typer()

    @commands.command()
    def fail() -> None:
        raise error

    return commands


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvariantViolation("m"), 1),
        (ConfigError("m"), 2),
        (SourceError("m"), 3),
        (ProtocolError.at(RecordPosition(Stream("feed", 1), Offset(7)), "json", "m"), 3),
        (FatalSinkError("m"), 4),
        (RetryableSinkError("m"), 4),
        (UnknownOutcome("m"), 4),
        (Fenced("m"), 5),
        (NeedsOperator("m"), 6),
        (KeyboardInterrupt(), 130),
        (ValueError("m"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error, code):
    assert run([], commands_raising(error)) == code


def test_an_expected_error_names_place_and_remedy_without_a_traceback(capsys):
    error = NeedsOperator("the rows are gone", remedy=Remedy("test.remedy", "Take a [dump]."), topic="feed", offset=5, table="", cause=None)

    assert run([], commands_raising(error)) == 6
    assert capsys.readouterr().err == "error: the rows are gone\n  topic: feed\n  offset: 5\n  remedy: Take a [dump].\n"


@pytest.mark.parametrize(("timeline", "shown"), [(TSO_TIMELINE, " (2026-11-21 20:40:16.060Z)"), (None, "")])
def test_a_timestamp_is_printed_with_its_time_where_the_source_is_known(timeline, shown, capsys):
    error = NeedsOperator("m", commit_ts=470625449688432640)
    error.timeline = timeline
    run([], commands_raising(error))
    assert capsys.readouterr().err == f"error: m\n  commit_ts: 470625449688432640{shown}\n"


@pytest.mark.parametrize(("remedy", "shown"), [("Do it", "Do it."), ("Do it.", "Do it."), ("Did you mean it?", "Did you mean it?")])
def test_a_remedy_ends_as_a_sentence_does(remedy, shown, capsys):
    run([], commands_raising(ConfigError("m", remedy=Remedy("test.remedy", remedy))))
    assert capsys.readouterr().err == f"error: m\n  remedy: {shown}\n"


def test_text_that_no_terminal_can_show_does_not_hide_the_error(capsys):
    assert run([], commands_raising(SourceError("bad \udcff", table="a.\udcfe"))) == 3
    assert capsys.readouterr().err == "error: bad \\udcff\n  table: a.\\udcfe\n"


def test_debug_adds_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    assert run([], commands_raising(SourceError("m"))) == 3
    assert "Traceback" in capsys.readouterr().err


def test_an_unexpected_error_shows_its_traceback_and_says_what_it_is(capsys):
    assert run([], commands_raising(ZeroDivisionError("the cause"))) == 1
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "ZeroDivisionError: the cause" in text
    assert "Please report it" in text


def test_a_collector_gets_an_unexpected_error_as_one_object_with_its_traceback(capsys):
    configure_logging()
    use_format("json")
    assert run([], commands_raising(ZeroDivisionError("the cause"))) == 1
    (line,) = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["error"], entry["exit_code"]) == ("error", "ZeroDivisionError", 1)
    assert entry["message"] == "unexpected_error"
    assert "Please report it" in entry["error_message"]
    assert entry["traceback"].endswith("ZeroDivisionError: the cause")


INTERRUPT_AT_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "rich.text":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from applier.__main__ import main
main()
"""


def test_an_interrupt_while_the_program_is_imported_says_one_sentence():
    done = subprocess.run([sys.executable, "-c", INTERRUPT_AT_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted: the command had not begun, so nothing has changed\n")


def test_an_interrupt_says_what_it_means_for_the_command(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("applier.cli.catchup.read_config", interrupted)
    assert run(["catchup"]) == 130
    assert capsys.readouterr().err == (
        "interrupted: the sink holds whole transactions up to its checkpoint. Run applier catchup again to continue\n"
    )


def test_a_collector_gets_an_interrupt_as_one_object(capsys):
    configure_logging()
    use_format("json")
    assert run([], commands_raising(KeyboardInterrupt())) == 130
    assert json.loads(capsys.readouterr().err)["message"] == "command_interrupted"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_the_shell_that_is_named(shell, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["--install-completion", shell]) == 0
    assert str(tmp_path) in capsys.readouterr().out
    assert run(["--show-completion", shell]) == 0
    assert f"_APPLIER_COMPLETE=complete_{shell}" in capsys.readouterr().out


def test_the_tab_key_completes_options_of_a_command():
    environment = {**os.environ, "_APPLIER_COMPLETE": "complete_bash", "COMP_WORDS": "applier migrate --c", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-m", "applier"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["--config"])


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_printed(option, capsys):
    assert run([option]) == 0
    assert capsys.readouterr().out == f"applier {applier.__version__}\n"


def test_help_advertises_what_there_is_and_nothing_else(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run(["--help"])
    commands = capsys.readouterr().out.partition("Commands:")[2].partition("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in commands] == [
        "demo",
        "init",
        "check",
        "grants",
        "load",
        "copy",
        "run",
        "catchup",
        "status",
        "pause",
        "resume",
        "inspect",
        "replicas",
        "migrate",
        "verify",
        "skip",
        "ddl",
        "quarantine",
        "docs",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["catchup", "--fast"],
        ["inspect", "--partition", "x"],
        ["inspect", "--limit", "-1"],
        ["catchup", "--start-ts", "-5"],
        ["catchup", "--start-ts", "1763942400"],
        ["catchup", "--until-ts", str(2**62)],
        ["load", "dump", "--start-ts", "7"],
        ["ddl", "undo"],
    ],
)
def test_wrong_usage_is_2_and_points_to_help(arguments, capsys):
    assert run(arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert "--help" in text


def test_without_a_command_there_is_help_and_2(capsys):
    assert run([]) == 2
    assert "Commands:" in capsys.readouterr().out
    assert run(["ddl"]) == 2
    assert capsys.readouterr().err == "error: Missing command.\ntry: applier ddl --help\n"


def test_a_missing_configuration_is_2(capsys, tmp_path):
    for command in (["catchup"], ["inspect"], ["migrate"], ["ddl", "list"], ["ddl", "done"], ["ddl", "retry"], ["ddl", "skip"]):
        assert run([*command, "--config", str(tmp_path / "none.toml")]) == 2
        text = capsys.readouterr().err
        assert "the configuration file does not exist" in text
        assert "none.toml" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until-ts", "458173202432000001", "--until-time", "2025-01-01T00:00:00Z"], "cannot be combined"),
        (["--until-time", "tomorrow"], "is not an ISO 8601 time"),
        (["--until-time", "2025-01-01T00:00:00"], "has no offset from UTC"),
        (["--until-time", "1960-01-01T00:00:00Z"], "is before 1970"),
    ],
)
def test_a_limit_that_is_none_is_2(options, message, capsys):
    assert run(["catchup", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "applier", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"applier {applier.__version__}\n")


def test_a_reader_that_goes_away_ends_the_command_quietly():
    code = (
        "import sys, typer; from applier.cli.main import run; commands = typer.Typer()\n"
        "@commands.command()\n"
        "def talk() -> None:\n"
        "    for _ in range(100_000): typer.echo('x' * 50)\n"
        "sys.exit(run([], commands))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as talker:
        talker.stdout.readline()
        talker.stdout.close()
        assert talker.stderr.read() == b""
        assert talker.wait(timeout=60) == 1


def test_a_start_ts_that_upstream_cannot_have_given_is_2(capsys, tmp_path):
    path = tmp_path / "applier.toml"
    path.write_text(
        f'[source]\nbootstrap_servers = "h:1"\ntopics = ["feed"]\nstart_ts = 1763942400\n[sink]\nurl = "sqlite:///{tmp_path / "r.db"}"\n'
    )
    assert run(["catchup", "--config", str(path)]) == 2
    assert "source.start_ts = 1763942400 is a Unix time in seconds" in capsys.readouterr().err
