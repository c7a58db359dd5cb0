"""``applier ddl``: the ledger of DDLs, and the operator's word about one that a run could not settle by itself."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from applier.cli.option import DEFAULT_CONFIG, AsJson, ConfigPath, read_config
from applier.cli.output import print_json, print_line
from applier.cli.place import parse_table
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator
from applier.model.events import DdlEvent, DdlIdentity
from applier.model.position import MAX_TS, Ts
from applier.telemetry.wording import count, moment, one_line

if TYPE_CHECKING:
    from applier.config import Config
    from applier.sinks.port import DdlState, LedgerEntry, Sink

app = typer.Typer(help="Show the ledger of DDLs, or settle one that is unfinished.")

DdlTs = Annotated[int | None, typer.Option("--ts", metavar="TSO", min=0, max=MAX_TS, help="Commit timestamp of the DDL.")]
TABLE_HELP: Final = "The table that the DDL's event names; SCHEMA. if it names none."
DdlTable = Annotated[str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help=TABLE_HELP)]
SKIPPED_UNREAD: Final = "/* skipped by the operator before it was read */"
DONE_HELP: Final = "Record that an unfinished DDL is done: its effect is in the sink."


@app.command("list")
def list_ddls(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None, as_json: AsJson = False) -> None:
    """Show the DDLs that the ledger knows, by timestamp."""
    with open_sink_of(read_config(config)) as sink:
        entries = chosen(_ledger(sink), ts, table)
    if as_json:
        print_json([as_object(entry) for entry in entries])
        return
    for entry in entries:
        for line in as_lines(entry):
            print_line(line)
    if not entries:
        print_line("the ledger holds no such DDL")


@app.command("done", help=DONE_HELP)
def done(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None) -> None:
    """Record that an unfinished DDL is done."""
    from applier.sinks.port import DdlState  # noqa: PLC0415 - --help need not wait for it

    with open_sink_of(read_config(config)) as sink:
        _resolve(sink, ts, table, DdlState.DONE)


@app.command("retry")
def retry(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None) -> None:
    """Let an unfinished DDL run again at the next start."""
    with open_sink_of(read_config(config)) as sink:
        _resolve(sink, ts, table, None)


@app.command("skip")
def skip(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None) -> None:
    """Record that a DDL is not to be run: one that is unfinished, or (with --ts and --table) one that has not begun."""
    with open_sink_of(read_config(config)) as sink:
        skip_by_time(sink, ts, table)


def skip_by_time(sink: "Sink", ts: int | None, table: str | None) -> None:
    """Settle the unfinished DDL that is meant as skipped, or record one that has not begun."""
    from applier.sinks.port import DdlState  # noqa: PLC0415 - as above

    entries = _ledger(sink)
    if ts is None or table is None or is_unfinished(entries, ts) or chosen(entries, ts, table):
        _resolve(sink, ts, table, DdlState.SKIPPED)
    else:
        _skip_unread(sink, Ts(ts), table)


def is_unfinished(entries: "Sequence[LedgerEntry]", ts: int | None) -> bool:
    """Tell whether a DDL with that timestamp (None: with any) was begun and not ended."""
    from applier.sinks.port import DdlState  # noqa: PLC0415 - as above

    return any(entry.state is DdlState.INTENT for entry in chosen(entries, ts, None))


def chosen(entries: "Sequence[LedgerEntry]", ts: int | None, table: str | None) -> "list[LedgerEntry]":
    """Return the entries with that timestamp and table (without regard to case; of a schema with or without a dot); None restricts not."""
    wanted = None if table is None else table.casefold().removesuffix(".")
    return [e for e in entries if ts in {None, e.ddl.commit_ts} and wanted in {None, str(e.ddl.name.fold())}]


def as_object(entry: "LedgerEntry") -> dict[str, Any]:
    """Return an entry for programs."""
    return {
        "ts": entry.ddl.commit_ts,
        "schema": entry.ddl.schema,
        "table": entry.ddl.table,
        "ddl_type": entry.ddl.ddl_type,
        "query": entry.ddl.query,
        "state": str(entry.state),
        "began_at": entry.began_at.isoformat(),
        "ended_at": None if entry.ended_at is None else entry.ended_at.isoformat(),
        "error": entry.error,
    }


def as_lines(entry: "LedgerEntry") -> list[str]:
    """Return an entry for people."""
    lines = [f"{entry.ddl.commit_ts}  {moment(entry.ddl.commit_ts)}  {entry.state:8}{one_line(f'{entry.ddl.name}: {entry.ddl.query}')}"]
    return [*lines, f"    {one_line(entry.error)}"] if entry.error else lines


def unfinished(entries: "Sequence[LedgerEntry]", ts: int | None, table: str | None) -> "LedgerEntry":
    """Return the one unfinished DDL that is meant; ConfigError if there is none, NeedsOperator if there are several."""
    from applier.sinks.port import DdlState  # noqa: PLC0415 - as above

    intents = [e for e in entries if e.state is DdlState.INTENT]
    meant = chosen(intents, ts, table)
    if not meant:
        if not intents:
            raise ConfigError("no DDL is unfinished", remedy="There is nothing to settle. See: applier ddl list", ts=ts, table=table)
        remedy = "Unfinished are: " + "; ".join(map(_named, intents))
        raise ConfigError("no unfinished DDL has this timestamp and table", remedy=remedy, ts=ts, table=table)
    if len(meant) > 1:
        remedy = "Say which one with --ts and --table: " + "; ".join(map(_named, meant))
        raise NeedsOperator(f"{count(len(meant), 'DDL')} are unfinished", remedy=remedy)
    return meant[0]


def _named(entry: "LedgerEntry") -> str:
    return f"--ts {entry.ddl.commit_ts} --table {entry.ddl.name}"


def open_sink_of(settings: "Config") -> "Sink":
    """Open the sink that a command is about. A command reads its configuration once: the environment is not there a second time."""
    from applier.sinks.factory import open_sink  # noqa: PLC0415 - imports SQLAlchemy: --help need not wait for it

    return open_sink(settings.sink_settings())


def _ledger(sink: "Sink") -> "Sequence[LedgerEntry]":
    """Read the ledger; looking at a sink does not create it there."""
    try:
        return sink.ledger()
    except FatalSinkError as error:
        remedy = f"{error.remedy.rstrip('.')}. If no run has begun here yet, there is no ledger: applier migrate creates it"
        raise FatalSinkError(error.message, remedy=remedy, **error.facts) from error


def _skip_unread(sink: "Sink", ts: Ts, table: str) -> None:
    """Record a DDL before it is read: whatever statement comes with this timestamp and table will not run."""
    name = parse_table(table)
    ddl = DdlEvent(commit_ts=ts, schema=name.schema, table=name.table, query=SKIPPED_UNREAD, ddl_type=0)
    write_skipped(sink, ddl, DdlIdentity(ts, name.fold(), None))
    print_line(f"skipped: the DDL of {name} at ts {ts} will not run")


def write_skipped(sink: "Sink", ddl: DdlEvent, key: DdlIdentity) -> None:
    """Write a DDL into the ledger as skipped while owning the replica (Fenced, exit 5, if a run is alive)."""
    from applier.sinks.port import ProgressCommit  # noqa: PLC0415 - as above

    sink.migrate()
    sink.acquire()
    progress = sink.load()
    if progress is None:
        raise ConfigError("the replica has not begun: there is no DDL to skip", remedy="Run applier catchup first")
    sink.skip_ddl(progress.fence, key, ddl, after=ProgressCommit(checkpoint_ts=progress.checkpoint_ts, positions={}))


def _resolve(sink: "Sink", ts: int | None, table: str | None, state: "DdlState | None") -> None:
    """Settle one intent while owning the replica: a run that is alive would settle it at the same time (Fenced, exit 5)."""
    sink.migrate()
    sink.acquire()
    ddl = unfinished(sink.ledger(), ts, table).ddl
    matched = sink.resolve_ddl(Ts(ddl.commit_ts), ddl.schema, ddl.table, state)
    if not matched:
        raise NeedsOperator(
            "the DDL was settled by another run meanwhile", remedy="See: applier ddl list", ts=ddl.commit_ts, table=str(ddl.name)
        )
    print_line(f"{'will run again' if state is None else state}: {one_line(ddl.query)} (ts {ddl.commit_ts})")
