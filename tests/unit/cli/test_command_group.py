"""The commands and the modules that they are imported from."""

import subprocess
import sys

import pytest

from applier.cli.command_group import COMMANDS
from applier.cli.main import run

HEAVY = ("pyspark", "confluent_kafka", "sqlalchemy", "alembic", "sqlglot", "applier.config", "applier.coordinator", "applier.sinks")


def loaded_by(arguments):
    """Run a command in its own process; return which of the heavy libraries it has imported."""
    code = f"import sys; from applier.cli.main import run; run({arguments!r}); print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["fly"]])
def test_without_a_command_no_heavy_library_is_imported(arguments):
    assert loaded_by(arguments) == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_shows_the_first_sentence_of_each_help(command, capsys):
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: applier {command} ")
    assert text.partition("\n\n  ")[2].startswith(COMMANDS[command])


@pytest.mark.parametrize("command", ["", "ddl", "quarantine"])
def test_a_list_of_commands_cuts_no_line_short(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command.split(), "--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]
