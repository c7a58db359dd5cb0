"""Examines the sink: whether it is reached, its bookkeeping, the replica and its tables. The kit of its database examines the server."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from applier.check.shared_facts import SharedFacts
from applier.config import Config
from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator, Remedy, SinkError
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.finding import CheckFinding, Severity, of_error, ok, problem, warning
from applier.model.position import Ts
from applier.planner.ordered_rows import KeyGroups, KeyLink
from applier.planner.table_check import Acceptance, DifferenceKind
from applier.replica.missing_tables import missing_at, refuse_missing
from applier.replica.sink_tables import NOT_EXECUTED, TableGuard
from applier.replica.starting_ts import LOAD, not_loaded, starting_ts
from applier.sinks.kit import SinkDemand
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.overview import Overview, OwnerState
from applier.sinks.port import Sink
from applier.sinks.registry import open_sink
from applier.sources.factory import kit_of
from applier.telemetry.wording import count, named_some, named_text, one_line
from applier.upstream.catalogue import tables_of
from applier.upstream.tables import lister_of

REACHED: Final = "sink"
BOOKKEEPING: Final = "sink: bookkeeping"
REPLICA: Final = "sink: replica"
BEGINNING: Final = "sink: initial state"
TABLES: Final = "sink: tables"
LISTED: Final = "sink: tables of upstream"
NEWER: Final = "revision"
"""The fact of the error about bookkeeping tables of a newer applier."""
NOT_LOADED: Final = "no dump is loaded: right only if upstream had no table when the changefeed began"
LOAD_FIRST: Final = Remedy("check.load-dump-first", "If upstream had tables then, run `applier load DUMP` first")
LACKS_REMEDY: Final = Remedy(
    "check.load-later-tables",
    "Right only if upstream has created them after the start of the replica. "
    "Else dump them too and load again, or exclude them by source.tables",
)
MISSING: Final = "missing_revisions"
KEYS: Final = "sink: foreign keys"
LACKING_REMEDY: Final = Remedy(
    "check.add-missing-key",
    "If the replica has caught up, add the key to the sink's table as upstream has it, then give back what its actions have missed: "
    "`applier verify --fix-sql`",
)
FIRST: Final = "0001"
"""The revision that makes the bookkeeping."""


def examine_sink(config: Config, shared: SharedFacts, *, patience_s: float | None = None) -> Iterator[CheckFinding]:
    """Examine the sink. ``patience_s``: how long to wait for the tables of the topics; None: examine what takes no time alone."""
    shared.start_ts = Ts(config.source.start_ts)
    try:
        if config.sink.kit.local and not (yield from _local_is_there(config, shared, is_whole=patience_s is not None)):
            return
        # Without retries: someone waits for the answer. In UTC: whether the server knows the zone is a finding of its own.
        with open_sink(replace(config.sink_settings(retries=0), time_zone="UTC")) as sink:
            overview, is_older = None, False
            try:
                overview = sink.bookkeeping.overview()
            except FatalSinkError as error:
                if MISSING not in error.facts:
                    yield of_error(BOOKKEEPING if NEWER in error.facts else REACHED, error)
                    # A user who may not read the bookkeeping may lack more: all of it is named in one round.
                    if config.sink.kit.is_denied(error):
                        shared.set_progress(None)
                        yield from _server(config, shared, patience_s, is_new=True)
                    return
                is_older = FIRST not in str(error.facts[MISSING]).split()
            # At the beginning of a run only its command line tells the start.
            if patience_s is not None and not is_older:
                dump = sink.bookkeeping.loaded_dump.read() if overview is not None else None
                yield from _beginning(config, shared, overview, dump)
            yield from _server(config, shared, patience_s, is_new=overview is None)
            yield from _replica(config, overview)
            # In older bookkeeping are statements that explain differences, and they cannot be read.
            if patience_s is not None and not is_older:
                yield from _tables(config, sink, overview, shared, patience_s)
    except SinkError as error:
        yield of_error(REACHED, error)
    finally:
        shared.set_progress(None)


def _local_is_there(config: Config, shared: SharedFacts, *, is_whole: bool) -> Generator[CheckFinding, None, bool]:
    """Examine the directory of a local database; return whether there is more to examine."""
    try:
        is_there = config.sink.kit.is_there(config.sink_settings())
    except FatalSinkError as error:
        yield of_error(REACHED, error)
        return False
    yield ok(REACHED, f"{config.sink.address} can be written")
    if is_there:
        return True
    yield ok(BOOKKEEPING, "is missing, as is the file; the next run makes both")
    if is_whole:
        yield from _beginning(config, shared, None, None)
    return False


def _server(config: Config, shared: SharedFacts, patience_s: float | None, *, is_new: bool) -> Iterator[CheckFinding]:
    demand = SinkDemand(
        is_new=is_new,
        ddl_time_zone=config.source.ddl_time_zone,
        updates_rows=kit_of(config.source_settings()).decoder().keeps_order,
        schemas=None if patience_s is None else lambda: target_schemas(config, shared, patience_s),
    )
    return config.sink.kit.examine_server(config.sink_settings(retries=0), demand)


def target_schemas(config: Config, shared: SharedFacts, patience_s: float) -> list[str]:
    """Return the schemas that the replica writes, by its tables, the topics and the table filter."""
    progress, selection = shared.progress(patience_s), config.source.selection()
    known = {name.schema: name.schema for name in (progress.known_tables if progress is not None else ())}
    seen = {table.schema.casefold(): table.schema for table in shared.tables(patience_s)}
    named = [rule.partition(".")[0] for rule in config.source.tables if not rule.startswith("!")]
    filtered = {selection.schema_name(name).casefold(): selection.schema_name(name) for name in named if name.replace("_", "").isalnum()}
    return sorted(set({**known, **filtered, **seen}.values()))


def _beginning(config: Config, shared: SharedFacts, overview: Overview | None, dump: LoadedDump | None) -> Iterator[CheckFinding]:
    """Tell where the replica begins, as its first run will decide."""
    progress = overview.progress if overview is not None else None
    try:
        shared.start_ts, shared.declared = (
            starting_ts(shared.start_ts, progress, dump),
            "" if dump is None else dump.declared_as,
        )
        shared.is_loaded = dump is not None
        if progress is None:
            yield _initial_state(config, shared.start_ts, dump)
    except ApplierError as error:
        yield of_error(BEGINNING, error)
    shared.set_progress(progress)


def _initial_state(config: Config, start_ts: Ts, dump: LoadedDump | None) -> CheckFinding:
    """Tell what the sink of a new replica holds at its start. Raises if no load has recorded it."""
    kit = kit_of(config.source_settings())
    if dump is not None:
        read = "at the start of its copy" if dump.is_copy else f"at the dump of {dump.directory}"
        loaded = "at what was declared as loaded" if dump.is_declared else read
        whose = "at a position where upstream had no table" if dump.is_empty else loaded
        return ok(BEGINNING, f"{whose}: {named_text(start_ts, kit.timeline())}")
    if kit.begins_with_copy:
        return ok(BEGINNING, "at a copy of upstream, which its first run makes")
    if start_ts or kit.names_start:
        error = not_loaded(start_ts)
        # The position of a named start is for the server to tell.
        return of_error(BEGINNING, error) if start_ts else problem(BEGINNING, error.message, LOAD)
    if not kit.may_begin_empty:
        return problem(BEGINNING, "no dump is loaded, and source.start is not set", LOAD)
    return warning(BEGINNING, NOT_LOADED, LOAD_FIRST)


def _replica(config: Config, overview: Overview | None) -> Iterator[CheckFinding]:
    if overview is None:
        yield ok(BOOKKEEPING, "is missing or older; the next run makes it")
        return
    yield ok(BOOKKEEPING, "has this applier's version")
    progress = overview.progress
    if progress is None:
        yield ok(REPLICA, f"{config.name!r} has not begun")
        return
    timeline = kit_of(config.source_settings()).timeline(progress.source_state)
    yield ok(REPLICA, f"{config.name!r} is at {named_text(progress.checkpoint_ts, timeline)}")
    owner = overview.owner
    if owner is not None and owner.state is OwnerState.ALIVE:
        yield ok(REPLICA, f"a run owns it: process {owner.owner.process} on {owner.owner.host}")
    elif overview.undecided:
        first = one_line(overview.undecided[0].ddl.query)
        yield warning(
            REPLICA,
            f"{count(len(overview.undecided), 'DDL')} began and did not end: {first}",
            Remedy("check.list-ddls", "Look at `applier ddl list`"),
        )
    if overview.quarantined:
        detail = f"{count(overview.quarantined, 'event')} in quarantine"
        yield warning(REPLICA, detail, Remedy("check.list-quarantine", "Look at `applier quarantine list`"))


def _tables(config: Config, sink: Sink, overview: Overview | None, shared: SharedFacts, patience_s: float) -> Iterator[CheckFinding]:
    """Run the table check on the tables of the replica and of the topics. Only what the replica knows stops a start."""
    seen = shared.tables(patience_s)
    known = overview.progress.known_tables if overview is not None and overview.progress is not None else frozenset()
    tables = {name: TableName(*name) for name in known}
    new = [name for name in seen if name.fold() not in tables]
    upstream = kit_of(config.source_settings()).upstream_tables(config.source.selection())
    # No statement of upstream has run in a sink without bookkeeping.
    statements = sink.bookkeeping.statements if overview is not None else tuple[DdlEvent, ...]
    guard = TableGuard(
        sink,
        statements,
        config.acceptance,
        lambda *_, **__: None,
        upstream or tables_of(config.source.upstream_settings(), config.source.selection()),
    )
    try:
        guard.check(list(tables.values()), {})
    except NeedsOperator as error:
        yield of_error(TABLES, error)
        return
    if not _passes(guard, new):
        for name in sorted(new):
            try:
                guard.check([name], {})
            except NeedsOperator as error:
                yield of_error(TABLES, error)
        return
    # Of a local database ``primary`` tells it, before there is one.
    if upstream is not None and not config.sink.kit.local:
        changes = {table: what for table, what in shared.silent_changes(patience_s).items() if table in tables}
        yield from lacking_keys(sink.foreign_keys(), changes, config.acceptance)
    expected = [*tables.values(), *new]
    present = sink.examine(expected) if expected else {}
    missing = sorted(str(name) for name in expected if name.fold() not in present)
    absent = f"; {count(len(missing), 'other')} of upstream not there yet" if missing else ""
    yield ok(TABLES, f"the table check passes for {count(len(present), 'table')}{absent}")
    yield from _missing(config, sink, overview, shared, missing if upstream is not None and not known else [])


def _missing(config: Config, sink: Sink, overview: Overview | None, shared: SharedFacts, seen: list[str]) -> Iterator[CheckFinding]:
    """Tell which tables of upstream the sink lacks at its position, as a run will. ``seen``: tables that upstream has now, and it lacks."""
    progress = None if overview is None else overview.progress
    kit, upstream = kit_of(config.source_settings()), config.source.upstream_settings()
    lister = lister_of(kit, upstream, config.source.selection(), None if progress is None else progress.source_state)
    ts = shared.start_ts if progress is None else progress.checkpoint_ts
    # Without a recorded load no one says what the sink should have: the initial state is a finding of its own.
    if overview is None or lister is None or not ts or (progress is None and not shared.is_loaded):
        if seen:
            yield warning(LISTED, f"the sink lacks {count(len(seen), 'table')} of upstream: {named_some(seen)}", LACKS_REMEDY)
        return
    try:
        missing = missing_at(sink, lister, ts)
    except ApplierError as error:
        yield of_error(LISTED, error, level=Severity.WARNING)
        return
    if missing:
        yield of_error(LISTED, refuse_missing(missing, ts))
    elif missing is not None:
        yield ok(LISTED, "the sink has the tables that upstream has at this position")
    elif seen:
        yield warning(LISTED, f"the sink lacks {count(len(seen), 'table')} of upstream: {named_some(seen)}", LACKS_REMEDY)
    else:
        yield ok(LISTED, "not compared: upstream does not say which tables it has at this position. A run compares later")


def lacking_keys(links: Sequence[KeyLink] | None, changes: Mapping[FoldedName, str], accept: Acceptance) -> Iterator[CheckFinding]:
    """Tell which keys with actions upstream's tables have today (``changes``) and the sink's lack, or does not execute (None).

    Their DDL is still to come, or the sink's tables were made without them.
    """
    groups = KeyGroups(links or (), accept)
    lacking = {what for table, what in changes.items() if not groups.group(table) and not accept.accepts(table, DifferenceKind.FOREIGN_KEY)}
    named = named_some(sorted(lacking))
    if lacking and links is None:
        yield problem(KEYS, f"the sink does not execute {named}", NOT_EXECUTED)
    elif lacking:
        yield warning(KEYS, f"the sink lacks {named}", LACKING_REMEDY)


def _passes(guard: TableGuard, tables: list[TableName]) -> bool:
    try:
        guard.check(tables, {})
    except NeedsOperator:
        return False
    return True
