"""The help of every command as a newcomer sees it, in ``help/``: a change of it is read once, in the difference of its file.

``APPLIER_WRITE_HELP=1 pytest tests/unit/cli/test_help.py`` writes the files again.
"""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from applier.cli.command_group import COMMANDS, EXAMPLES
from applier.cli.main import app, run

DIRECTORY = Path(__file__).parent / "help"
MAX_WIDTH = 80


def named(command, name: str) -> Iterator[tuple[str, object]]:
    yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from named(inner, f"{name} {part}")


def all_commands() -> dict[str, object]:
    program = get_command(app)
    context = typer.Context(program)
    found = {"": program}
    for name in COMMANDS:
        found |= dict(named(program.resolve_command(context, [name])[1], name))
    return found


ALL = all_commands()


@pytest.mark.parametrize("name", sorted(ALL), ids=lambda name: name or "applier")
def test_the_help_is_what_was_read(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(MAX_WIDTH))
    assert run([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    path = DIRECTORY / f"{name.replace(' ', '_') or 'applier'}.txt"
    if os.environ.get("APPLIER_WRITE_HELP"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")
    assert max(map(len, shown.splitlines())) <= MAX_WIDTH


def test_no_file_of_help_is_left_of_a_command_that_is_gone():
    assert sorted(path.stem for path in DIRECTORY.glob("*.txt")) == sorted(name.replace(" ", "_") or "applier" for name in ALL)


@pytest.mark.parametrize("name", sorted(set(ALL) - {""}))
def test_every_command_has_examples_whose_options_exist(name):
    for example in EXAMPLES[name]:
        program, *words = shlex.split(example)
        assert program == "applier"
        words = [word for word in words if word != "--verbose"]
        command = ALL[name]
        if words[: len(name.split())] == name.split():
            words = words[len(name.split()) :]
        command.make_context(name, words, resilient_parsing=True)
