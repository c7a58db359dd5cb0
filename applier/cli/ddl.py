"""``applier ddl``: the ledger of DDLs, and the operator's decision about a DDL whose outcome a run could not determine."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

import typer

from applier.cli.command_group import COMMANDS
from applier.cli.option import (
    AcceptFuture,
    AsJson,
    ConfigPath,
    KnownSink,
    known_sink,
    parse_table,
    read_config,
    refuse_future,
    ts_of_text,
    ts_text,
)
from applier.cli.output import DEFAULT_CONFIG, print_entries, print_line
from applier.config import Config
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator, Remedy
from applier.model.events import DdlEvent, DdlIdentity, TableName
from applier.model.position import Timeline, Ts
from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.port import Sink
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.telemetry.wording import count, one_line, operator, option_and_time

ddl = typer.Typer(help=COMMANDS["ddl"])

DdlTs = Annotated[
    str | None, typer.Option("--ts", metavar="TS", parser=ts_text, help="Commit timestamp of the DDL; of a binlog, FILE:POS.")
]
TABLE_HELP: Final = "Table that the DDL's event names; SCHEMA. for a DDL of a schema."
DdlTable = Annotated[str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help=TABLE_HELP)]
SKIPPED_BY: Final = "skipped by the operator "
AFTER_BEGIN: Final = ", after it had begun"
SKIPPED_UNREAD: Final = "/* skipped by the operator before it was read */"


@ddl.command("list")
def list_ddls(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None, as_json: AsJson = False) -> None:
    """List the DDLs of the ledger by commit timestamp."""
    settings = read_config(config)
    with known_sink(settings) as known:
        entries = chosen(_ledger(known.sink), ts_of_text(settings, ts, known.sink), table)
    print_entries(entries, as_object if as_json else None, partial(as_lines, timeline=known.timeline), "the ledger has no such DDL")


@ddl.command("done")
def done(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None) -> None:
    """Record that an unfinished DDL is done: the sink has its result."""
    settings = read_config(config)
    with known_sink(settings) as known:
        _resolve(known, ts_of_text(settings, ts, known.sink), table, DdlState.DONE)


@ddl.command("retry")
def retry(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None) -> None:
    """Run an unfinished DDL again at the next start."""
    settings = read_config(config)
    with known_sink(settings) as known:
        _resolve(known, ts_of_text(settings, ts, known.sink), table, None)


@ddl.command("skip")
def skip(config: ConfigPath = DEFAULT_CONFIG, *, ts: DdlTs = None, table: DdlTable = None, accept_future: AcceptFuture = False) -> None:
    """Skip an unfinished DDL or, by --ts and --table, an unread one."""
    settings = read_config(config)
    with known_sink(settings) as known:
        wanted = ts_of_text(settings, ts, known.sink)
        if wanted is not None and not accept_future:
            refuse_future(wanted, known.timeline)
        skip_by_time(known, wanted, table)


def skip_by_time(known: KnownSink, ts: Ts | None, table: str | None) -> None:
    """Record the chosen unfinished DDL as skipped, or one that no run has begun."""
    entries = _ledger(known.sink)
    # A DDL that the ledger knows is settled there. Any other one is recorded before it is read.
    if ts is None or table is None or is_unfinished(entries, ts) or chosen(entries, ts, table):
        _resolve(known, ts, table, DdlState.SKIPPED)
    else:
        _skip_unread(known, Ts(ts), table)


def is_unfinished(entries: Sequence[LedgerEntry], ts: int | None) -> bool:
    """Return whether a DDL with that timestamp (None: with any) is unfinished."""
    return any(entry.state.is_open for entry in chosen(entries, ts, None))


def chosen(entries: Sequence[LedgerEntry], ts: int | None, table: str | None) -> list[LedgerEntry]:
    """Return the entries with that timestamp and table (in any case; a schema with or without its dot). None matches all."""
    # A schema DDL is named (schema, ''), and shown with a dot: shop. is what `ddl list` prints.
    wanted = None if table is None else table.casefold().removesuffix(".")
    return [e for e in entries if ts in {None, e.ddl.commit_ts} and wanted in {None, str(e.ddl.name.fold())}]


def as_object(entry: LedgerEntry) -> dict[str, Any]:
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


def as_lines(entry: LedgerEntry, timeline: Timeline) -> list[str]:
    """Return an entry for people."""
    what = one_line(f"{entry.ddl.name}: {entry.ddl.query}")
    lines = [f"{'  '.join(filter(None, option_and_time(entry.ddl.commit_ts, timeline)))}  {entry.state:7} {what}"]
    return [*lines, f"    {one_line(entry.error)}"] if entry.error else lines


def unfinished(entries: Sequence[LedgerEntry], ts: int | None, table: str | None, timeline: Timeline) -> LedgerEntry:
    """Return the one unfinished DDL that matches; ConfigError if none does, NeedsOperator if several do."""
    intents, named = [e for e in entries if e.state.is_open], partial(_named, timeline=timeline)
    matching = chosen(intents, ts, table)
    if not matching:
        if not intents:
            raise ConfigError(
                "the ledger has no unfinished DDL", remedy=Remedy("cli.list-ddls", "See `applier ddl list`"), ts=ts, table=table
            )
        remedy = Remedy("cli.show-unfinished-ddls", "The unfinished ones are: " + "; ".join(map(named, intents)))
        raise ConfigError("no unfinished DDL has this timestamp and table", remedy=remedy, ts=ts, table=table)
    if len(matching) > 1:
        remedy = Remedy("cli.choose-unfinished-ddl", "Choose one with --ts and --table: " + "; ".join(map(named, matching)))
        raise NeedsOperator(f"{count(len(matching), 'DDL')} are unfinished", remedy=remedy)
    return matching[0]


def _named(entry: LedgerEntry, timeline: Timeline) -> str:
    return f"--ts {timeline.text(entry.ddl.commit_ts)} --table {entry.ddl.name}"


def open_sink_of(settings: Config) -> Sink:
    """Open the sink of a configuration. A command reads its configuration once: that removes it from the environment."""
    return open_sink(settings.sink_settings())


def _ledger(sink: Sink) -> Sequence[LedgerEntry]:
    """Read the ledger, which a read does not create."""
    try:
        return sink.bookkeeping.ledger()
    except FatalSinkError as error:
        remedy = Remedy(
            "cli.create-ledger", f"{error.remedy.rstrip('.')}. If no run has used this sink yet, create the ledger with `applier migrate`"
        )
        raise FatalSinkError(error.message, remedy=remedy, **error.facts) from error


def _skip_unread(known: KnownSink, ts: Ts, table: str) -> None:
    """Record a DDL before it is read: whatever statement comes with this timestamp and table will not run."""
    # A statement of a session without a schema, which could not be read, has no name at all.
    name = TableName("", "") if table == "." else parse_table(table)
    ddl = DdlEvent(commit_ts=ts, schema=name.schema, table=name.table, query=SKIPPED_UNREAD, ddl_type=0)
    write_skipped(known.sink, ddl, DdlIdentity(ts, name.fold(), None))
    print_line(f"skipped: the DDL of {name} at ts {known.timeline.text(ts)} will not run")


def write_skipped(sink: Sink, ddl: DdlEvent, key: DdlIdentity) -> None:
    """Write a DDL into the ledger as skipped, as the replica's owner (Fenced, exit 5, if a run is alive)."""
    sink.migrate()
    sink.acquire()
    # Loaded as the owner: until then another run could have moved the progress.
    progress = sink.load()
    if progress is None:
        raise ConfigError(
            "the replica has no checkpoint yet, so no DDL can be skipped",
            remedy=Remedy("cli.run-catchup-first", "Run `applier catchup` first"),
        )
    sink.skip_ddl(progress.fence, key, ddl, after=ProgressCommit(checkpoint_ts=progress.checkpoint_ts, positions={}))
    sink.bookkeeping.note_skipped_ddl(key, f"{SKIPPED_BY}{operator()}")


def _resolve(known: KnownSink, ts: int | None, table: str | None, state: DdlState | None) -> None:
    """Settle one intent as the replica's owner: a run that is alive could settle it at the same time (Fenced, exit 5)."""
    sink, timeline = known
    sink.migrate()
    sink.acquire()
    entry = unfinished(sink.bookkeeping.ledger(), ts, table, timeline)
    ddl = entry.ddl
    matched = sink.bookkeeping.resolve_ddl(Ts(ddl.commit_ts), ddl.schema, ddl.table, state)
    # The update names the state that it expects: a run that ended just now may have settled the DDL itself.
    if not matched:
        raise NeedsOperator(
            "another run settled the DDL first",
            remedy=Remedy("cli.list-ddls-of-table", "See `applier ddl list`"),
            ts=ddl.commit_ts,
            table=str(ddl.name),
        )
    if state is DdlState.SKIPPED:
        sink.bookkeeping.note_skipped_ddl(entry.identity, f"{SKIPPED_BY}{operator()}{AFTER_BEGIN}")
    print_line(f"{'will run again' if state is None else state}: {one_line(ddl.query)} (ts {timeline.text(ddl.commit_ts)})")
