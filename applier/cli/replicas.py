"""``applier replicas``: the replicas whose bookkeeping the sink holds, and how one starts over or is forgotten.

Nothing here touches a replicated table: an operator may still query it, and only a load or an operator drops it.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, NamedTuple

import typer

from applier.cli.command_group import COMMANDS
from applier.cli.option import AsJson, ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, command_line, print_entries, print_line
from applier.config import Config
from applier.model.errors import ConfigError, Fenced, Remedy
from applier.sinks.bookkeeping.replica_tables import DECISIONS, OTHERS
from applier.sinks.overview import Overview, OwnerState
from applier.sinks.port import Sink
from applier.sinks.registry import open_sink
from applier.sources.factory import stored_timeline
from applier.telemetry.wording import count, operator, position_text

replicas = typer.Typer(help=COMMANDS["replicas"])

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for the name of the replica.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the replica.", show_default=False)]
OwnName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the replica. Default: that of the configuration.", show_default=False)
]

NOUNS: Final[Mapping[str, str]] = {
    "progress": "checkpoint",
    "stream": "position",
    "known_table": "known table",
    "table_location": "table location",
    "ddl_ledger": "DDL",
    "quarantine": "quarantined event",
    "loaded_dump": "recorded load",
    "prepared_transaction": "piece of a prepared transaction",
    "copy": "copy",
    "copy_table": "copied table",
    "copy_chunk": "copied chunk",
    "skip_rule": "skip rule",
    "pause": "pause",
    "run_end": "end of a run",
}
KEPT_BY_RESET: Final = frozenset((*DECISIONS, *OTHERS))


class StoredReplica(NamedTuple):
    """One replica of the bookkeeping, from outside."""

    name: str
    overview: Overview
    holdings: Mapping[str, int]

    @property
    def state(self) -> str:
        """What an operator asks first."""
        owner, progress = self.overview.owner, self.overview.progress
        if owner is not None and owner.state is not OwnerState.DEAD:
            return f"runs on {owner.owner.host}, process {owner.owner.process}" if owner.state is OwnerState.ALIVE else "its run is frozen"
        paused = ", paused" if self.overview.pause is not None else ""
        return ("has not begun" if progress is None else "stopped") + paused


@replicas.command("list")
def list_replicas(config: ConfigPath = DEFAULT_CONFIG, *, as_json: AsJson = False) -> None:
    """Show the replicas whose bookkeeping the sink holds."""
    settings = read_config(config)
    with _opened(settings, settings.name) as sink:
        sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        names = sink.bookkeeping.replicas.names()
    found = [_stored(settings, name) for name in names]
    print_entries(found, as_object if as_json else None, as_lines, f"{settings.sink.address} holds no replica")


@replicas.command("reset")
def reset(name: OwnName = "", config: ConfigPath = DEFAULT_CONFIG, *, yes: Yes = False) -> None:
    """Let a replica start over: forget how far it is.

    Skip rules and a pause stay, and so does every replicated table with its rows. A load comes next.
    """
    settings = read_config(config)
    wanted = name or settings.name
    _forget(settings, wanted, KEPT_BY_RESET, lambda sink: sink.bookkeeping.replicas.reset(operator()), yes=yes)
    print_line(f"reset: {wanted} has no checkpoint any more. Its tables stay as they are")
    load = command_line("load", config, " DUMP --overwrite")
    print_line(f"next: {load}, which drops the tables of the dump first; then {command_line('check', config)}")


@replicas.command("remove")
def remove(name: Name, config: ConfigPath = DEFAULT_CONFIG, *, yes: Yes = False) -> None:
    """Forget a replica: delete all that the bookkeeping holds of it. Every replicated table stays, with its rows."""
    settings = read_config(config)
    _forget(settings, name, frozenset(), lambda sink: sink.bookkeeping.replicas.remove(), yes=yes)
    print_line(f"removed: the bookkeeping holds nothing of {name} any more. Its tables stay as they are")


def _forget(settings: Config, name: str, kept: frozenset[str], forget: Callable[[Sink], None], *, yes: bool) -> None:
    """Say what goes and what stays, ask, and do it as the replica's owner. Fenced: a run is alive."""
    found = _stored(settings, name)
    if not found.holdings:
        raise ConfigError(
            "the bookkeeping holds no replica of this name", remedy=Remedy("cli.list-replicas", "See `applier replicas list`"), replica=name
        )
    _refuse_running(found)
    going = {table: rows for table, rows in found.holdings.items() if table not in kept}
    staying = {table: rows for table, rows in found.holdings.items() if table in kept}
    print_line(f"replica {name} in {settings.sink.address}: {found.state}")
    print_line(f"  deletes: {_counted(going) or 'nothing'}")
    print_line(f"  keeps: {', '.join(filter(None, ['every replicated table with its rows', _counted(staying)]))}")
    if not yes:
        _ask(name)
    with _opened(settings, name) as sink:
        sink.acquire()
        forget(sink)


def _refuse_running(found: StoredReplica) -> None:
    owner = found.overview.owner
    if owner is not None and owner.state is not OwnerState.DEAD:
        remedy = Remedy("cli.stop-run-to-delete-replica", "Stop the run first; `applier status` shows when it has ended")
        raise Fenced("a run owns the replica", remedy=remedy, replica=found.name, host=owner.owner.host, process=owner.owner.process)


def _ask(name: str) -> None:
    if not sys.stdin.isatty():
        raise ConfigError(
            "this is not done without a confirmation, and there is no terminal to ask", remedy=Remedy("cli.add-yes", "Add --yes")
        )
    if typer.prompt("Type the name of the replica to continue", err=True).strip() != name:
        raise ConfigError(
            "this is not the name of the replica; nothing was changed",
            remedy=Remedy("cli.type-replica-name", "Type the name as it is shown above, or add --yes"),
        )


def _stored(settings: Config, name: str) -> StoredReplica:
    with _opened(settings, name) as sink:
        return StoredReplica(name, sink.bookkeeping.overview(), sink.bookkeeping.replicas.holdings())


def _opened(settings: Config, name: str) -> Sink:
    return open_sink(replace(settings.sink_settings(), name=name))


def _counted(holdings: Mapping[str, int]) -> str:
    return ", ".join(count(rows, NOUNS[table]) for table, rows in holdings.items())


def as_object(found: StoredReplica) -> dict[str, Any]:
    """Return a replica for programs."""
    progress, owner = found.overview.progress, found.overview.owner
    return {
        "name": found.name,
        "checkpoint_ts": None if progress is None else progress.checkpoint_ts,
        "start_ts": None if progress is None else progress.start_ts,
        "owner": None if owner is None else {"state": str(owner.state), "host": owner.owner.host, "process": owner.owner.process},
        "paused": found.overview.pause is not None,
        "quarantined": found.overview.quarantined,
        "stored": dict(found.holdings),
    }


def as_lines(found: StoredReplica) -> list[str]:
    """Return a replica for people."""
    progress = found.overview.progress
    at = "" if progress is None else f", checkpoint {position_text(progress.checkpoint_ts, stored_timeline(progress.source_state))}"
    return [f"{found.name}: {found.state}{at}", f"    {_counted(found.holdings)}"]
