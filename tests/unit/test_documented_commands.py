"""Every ``applier …`` command that a document shows is one that the program takes: its name, its options, its arguments."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.main import get_command, get_group

from applier.cli.command_group import COMMANDS
from applier.cli.main import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACEHOLDERS = {"TSO": "458173202432000000", "P": "2", "O": "7", "N": "7", "S.T": "shop.orders", "T/P": "changefeed/2", "…": "1h"}
TASKS = {"listen", "prepare", "write"}
"""What a worker calls itself: ``applier listen``."""
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(applier [a-z-]+(?: [^`]+)?)`")


def lines_of(document):
    text = document.read_text(encoding="utf-8")
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.strip().partition("  #")[0].strip()
            if command.startswith("applier "):
                yield command
    yield from INLINE.findall(text)


def spelled_out(command):
    """Yield the command without what a document abbreviates: ``[--all]``, ``done|retry``, TSO."""
    command = re.sub(r"[\[\]]", "", command)
    choice = re.search(r"\S+\|\S+", command)
    for word in choice[0].split("|") if choice else [""]:
        yield [PLACEHOLDERS.get(part, part) for part in shlex.split(command.replace(choice[0], word) if choice else command)][1:]


COMMAND_LINES = sorted(
    {
        (document.name, command, tuple(arguments))
        for document in DOCUMENTS
        for command in lines_of(document)
        for arguments in spelled_out(command)
        if arguments[0] not in {"…", *TASKS}
    }
)


@pytest.mark.parametrize("arguments", [pytest.param(a, id=f"{d}: {' '.join(a)}") for d, _, a in COMMAND_LINES])
def test_a_documented_command_is_one_of_the_program(arguments):
    name, *rest = arguments
    is_option = name.startswith("-")
    command = get_command(app) if is_option else command_of(name)
    while not is_option and hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, arguments
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    assert {argument for argument in arguments if argument.startswith("-")} <= known


def command_of(name):
    assert name in COMMANDS
    found = getattr(import_module(f"applier.cli.{name}"), name)
    parent = typer.Typer()
    parent.add_typer(found, name=name) if isinstance(found, typer.Typer) else parent.command(name)(found)
    return get_group(parent).commands[name]
