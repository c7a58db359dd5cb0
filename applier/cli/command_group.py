"""The commands of ``applier``, each imported when it is called; and the examples that the help of each ends with.

A command's module imports plainly what it needs: Spark, SQLAlchemy, librdkafka. Together that takes seconds, so ``applier --help``,
``--version`` and a misspelled command must not wait for it.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from applier.cli.interrupt import let_interrupts_raise

UNWRAPPED: Final = "\b\n"
"""What tells the library to leave the lines of a paragraph as they are."""

ALL: Final = f"""{UNWRAPPED}Begin with:
  applier demo       try it: no server is needed
  applier init       write a configuration file
  applier check      see whether a replica can run
  applier run        keep the replica up to date

{UNWRAPPED}Exit codes:
  0   done
  1   an unexpected error
  2   the command line or the configuration is wrong
  3   Kafka failed, or its records are wrong
  4   the database failed or refused
  5   another run owns the replica
  6   an operator must decide; the message names the choices
  75  a transient error outlasted run.retry_for_s
  130 Ctrl-C
"""

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "demo": ("applier demo", "applier demo --live", "applier demo --dir /tmp/demo --transactions 5000"),
    "init": (
        "applier init",
        "applier init --config orders.toml",
        "applier init --primary mysql+pymysql://applier@primary:3306/ --start now",
    ),
    "check": ("applier check", "applier check --config orders.toml --json"),
    "grants": ("applier grants sink", "applier grants binlog --schema shop --user reader"),
    "load": ("applier load /backup/dump", "applier load --declared --start-ts 458173202432000001"),
    "copy": ("applier copy", "applier copy --config orders.toml --replace"),
    "run": ("applier run", "applier run --config orders.toml", "applier --verbose run"),
    "catchup": ("applier catchup", "applier catchup --until-time 2025-06-01T12:00:00Z"),
    "status": ("applier status", "applier status --watch", "applier status --max-lag 60 --json"),
    "inspect": (
        "applier inspect --table shop.orders --key 42",
        "applier inspect --since 2025-06-01T12:00:00Z --limit 100",
        "applier inspect --follow",
        "applier inspect --from mariadb-bin.000042:4 --limit 100",
    ),
    "replicas": ("applier replicas list", "applier replicas reset --config orders.toml"),
    "replicas list": ("applier replicas list", "applier replicas list --json"),
    "replicas reset": ("applier replicas reset", "applier replicas reset orders --yes"),
    "replicas remove": ("applier replicas remove orders",),
    "migrate": ("applier migrate --config orders.toml",),
    "verify": ("applier verify", "applier verify --tables 'shop.*' --fix-sql repair.sql"),
    "pause": ("applier pause", "applier pause --config orders.toml"),
    "resume": ("applier resume", "applier resume --config orders.toml"),
    "skip": (
        "applier skip --stream changefeed/0 --offset 157",
        "applier skip --ts 458173202432000001 --table shop.orders",
        "applier skip --position mariadb-bin.000042:1234",
        "applier skip list",
    ),
    "skip list": ("applier skip list", "applier skip list --json"),
    "skip undo": ("applier skip undo --stream changefeed/0 --offset 157", "applier skip undo --ts 458173202432000001 --table shop.orders"),
    "ddl": ("applier ddl list", "applier ddl done --ts 458173202432000001"),
    "ddl list": ("applier ddl list", "applier ddl list --table shop.orders --json"),
    "ddl done": ("applier ddl done", "applier ddl done --ts 458173202432000001 --table shop.orders"),
    "ddl retry": ("applier ddl retry", "applier ddl retry --ts 458173202432000001 --table shop.orders"),
    "ddl skip": ("applier ddl skip", "applier ddl skip --ts 458173202432000001 --table shop.orders"),
    "quarantine": ("applier quarantine list", "applier quarantine show --stream changefeed/0 --offset 157"),
    "quarantine list": ("applier quarantine list", "applier quarantine list --all --json"),
    "quarantine show": (
        "applier quarantine show --stream changefeed/0 --offset 157",
        "applier quarantine show --stream changefeed/0 --offset 157 --raw record.bin",
    ),
    "quarantine drop": ("applier quarantine drop --stream changefeed/0 --offset 157",),
    "quarantine retry": ("applier quarantine retry --stream changefeed/0 --offset 157 --event 3",),
    "docs": ("applier docs", "applier docs quickstart", 'applier docs runbook --section "Exit codes"'),
}
"""Command, with its subcommand -> lines for a shell."""


def add_examples(command: Any, name: str) -> None:
    """Let the help of a command, and of its subcommands, end with their examples."""
    lines = EXAMPLES.get(name, ())
    if lines:
        command.epilog = f"{UNWRAPPED}{'Example' if len(lines) == 1 else 'Examples'}:\n" + "\n".join(f"  {line}" for line in lines)
    for part, inner in getattr(command, "commands", {}).items():
        add_examples(inner, f"{name} {part}")


COMMANDS: Final[Mapping[str, str]] = {
    "demo": "Run the whole pipeline on this machine. No server is needed.",
    "init": "Write a commented configuration file from a few answers.",
    "check": "Check whether a replica can run, before it runs.",
    "grants": "Print all GRANTs of a user, for an administrator to run.",
    "load": "Load a dump into the sink; the first run begins there.",
    "copy": "Copy upstream into the sink of a new replica.",
    "run": "Follow the source until SIGTERM or Ctrl-C.",
    "catchup": "Apply what the source holds now, then stop.",
    "status": "Show whether the replica is well, its owner and its lag.",
    "pause": "Pause the replica: a run keeps it, and applies nothing more.",
    "resume": "End a pause: the daemon continues from the checkpoint.",
    "inspect": "Show the events of the source without applying them.",
    "replicas": "List, reset or remove the replicas of a sink.",
    "migrate": "Create or upgrade the bookkeeping tables.",
    "verify": "Compare the sink with upstream.",
    "skip": "Skip an event by its position or its commit timestamp.",
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
    # The package's own settings: a Typer of a module does not inherit the program's.
    parent = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(command, typer.Typer):
        parent.add_typer(command, name=name)
    else:
        parent.command(name)(command)
    found = get_group(parent).commands[name]
    add_examples(found, name)
    return found  # type: ignore[return-value] # the library's type of a command is private
