"""The commands of ``applier``, each imported when it is called.

A command's module imports plainly what it needs: Spark, SQLAlchemy, librdkafka. Together that takes seconds, so ``applier --help``,
``--version`` and a misspelled command must not wait for it.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from applier.cli.example import add_examples
from applier.cli.interrupt import let_interrupts_raise

COMMANDS: Final[Mapping[str, str]] = {
    "demo": "Run the whole pipeline on this machine. No server is needed.",
    "init": "Write a commented configuration file from a few answers.",
    "check": "Check whether a replica can run, before it runs.",
    "grants": "Print all GRANTs of a user, for an administrator to run.",
    "load": "Load a dump into the sink; the first run begins there.",
    "run": "Follow the source until SIGTERM or Ctrl-C.",
    "catchup": "Apply what the source holds now, then stop.",
    "status": "Show whether the replica is well, its owner and its lag.",
    "pause": "Pause the replica: a run keeps it, and applies nothing more.",
    "resume": "End a pause: the daemon continues from the checkpoint.",
    "inspect": "Show the events of the source without applying them.",
    "replicas": "List, reset or remove the replicas of a sink.",
    "migrate": "Create or upgrade the bookkeeping tables.",
    "verify": "Compare the sink with upstream.",
    "skip": "Skip an event by its place or its commit timestamp.",
    "ddl": "Show the ledger of DDLs, or settle an unfinished DDL.",
    "quarantine": "Show the quarantined events, or settle them.",
    "docs": "Print a page of the documentation.",
}
"""Name of a command -> the first sentence of its help. Command ``x`` is ``applier.cli.x.x``: a function, or a Typer with subcommands."""


class CommandGroup(TyperGroup):
    """Lists the commands without importing them, and imports only the called one (or the one whose ``--help`` is requested)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Placeholders: with them the listing and "Did you mean …?" are the library's own, and only the call is ours.
        for name, line in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that the arguments name; usage errors are the library's."""
        name, _, rest = super().resolve_command(ctx, args)
        command = _imported(str(name))
        let_interrupts_raise()
        return name, command, rest


def _imported(name: str) -> TyperCommand | TyperGroup:
    """Import a command's module and return the command."""
    command = getattr(import_module(f"applier.cli.{name}"), name)
    # The package's own settings: a Typer of a module does not inherit those of the program's.
    parent = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(command, typer.Typer):
        parent.add_typer(command, name=name)
    else:
        parent.command(name)(command)
    found = get_group(parent).commands[name]
    add_examples(found, name)
    return found  # type: ignore[return-value] # the library's type of a command is private
