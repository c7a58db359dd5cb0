"""Loads a dump into the sink of a replica that has not begun, and tells the bookkeeping from which timestamp the replica begins.

Refused before anything is changed: a dump of no or of another point in time, files of two dumps, tables that are there already, a replica
that has begun. While the load runs, and after one that failed, the bookkeeping records it, and no run starts.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Final

from applier.config import Config
from applier.dump.completeness import check_complete
from applier.dump.definitions import Definitions
from applier.dump.inventory import FileKind, Inventory, inventory_of
from applier.dump.loading import DumpLoad
from applier.dump.numbering import check_files
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator, Remedy, errors_spelled_by
from applier.model.events import TableName
from applier.model.position import Timeline, Ts
from applier.sinks.dump_loader import DumpLoader
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.port import Sink
from applier.sinks.registry import open_sink
from applier.sources.changefeed import METADATA_FILES
from applier.sources.factory import kit_of
from applier.telemetry.wording import named_some, operator

LOADER: Final = "applier"
SLACK_S: Final = 60.0
RENAME: Final = Remedy(
    "dump.rename-existing-tables",
    "Rename them if their rows matter, and load again. --overwrite loads over them: their own rows are lost",
)
_TIMES: Final = re.compile(r"(Started|Finished) dump at: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What the command line says. ``start_ts`` of None: the dump's own."""

    start_ts: Ts | None = None
    threads: int = 4
    time_zone: str = "+00:00"
    overwrite: bool = False
    accept_file_times: bool = False
    accept_missing_files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What was loaded."""

    start_ts: Ts
    timeline: Timeline
    tables: int
    files: int
    rows: int
    size_bytes: int
    left_out: Sequence[str]
    """Objects of the dump that a replica does not need: triggers, routines, sequences."""
    floats: Sequence[str] = ()
    """Columns whose values have lost digits in the dump."""


def load_dump(config: Config, directory: Path, options: LoadOptions, note: Callable[[str], None]) -> LoadResult:
    """Load the dump. ConfigError, NeedsOperator or SinkError with a remedy; after a SinkError the sink may hold a part of it."""
    directory = directory.resolve()
    inventory = _chosen(config, inventory_of(directory))
    start_ts, timeline = kit_of(config.source_settings()).start_of_dump(directory, options.start_ts, Ts(config.source.start_ts))
    check_complete(inventory, options.threads)
    counts = check_files(directory, inventory, accept_missing=options.accept_missing_files)
    if not options.accept_file_times:
        check_file_times(directory, inventory)
    with errors_spelled_by(timeline), open_sink(config.sink_settings(retries=2)) as sink:
        check_replica(sink, directory, overwrite=options.overwrite)
        loader, (tables, views) = config.sink.kit.loader(config.sink_settings()), _target_names(config, inventory)
        found = [] if options.overwrite else loader.present([*tables, *views])
        if found:
            raise NeedsOperator("the sink has tables of the dump already", remedy=RENAME, tables=named_some(found))
        sink.bookkeeping.loaded_dump.begin(LoadedDump(start_ts=start_ts, directory=str(directory), loader=LOADER, loaded_by=operator()))
        if options.overwrite:
            loader.drop(tables, views)
        definitions = _definitions(config, sink, start_ts, options)
        progress = DumpLoad(inventory, definitions, config.sink_settings(), options.threads, note).run()
        _check_counts(progress.rows, counts)
        _check_rows(loader, {definitions.selection.name(table): rows for table, rows in progress.rows.items()})
        sink.bookkeeping.loaded_dump.end()
    return LoadResult(
        start_ts=start_ts,
        timeline=timeline,
        tables=len(set(tables)),
        files=len(inventory.files),
        rows=sum(progress.rows.values()),
        size_bytes=progress.read_bytes,
        left_out=definitions.left_out,
        floats=definitions.floats,
    )


def _definitions(config: Config, sink: Sink, start_ts: Ts, options: LoadOptions) -> Definitions:
    return Definitions(
        sink=sink,
        selection=config.source.selection(),
        policies=config.ddl.policies,
        start_ts=start_ts,
        zone=options.time_zone,
        to_log=kit_of(config.source_settings()).dumped_ddl,
    )


def _target_names(config: Config, inventory: Inventory) -> tuple[list[TableName], list[TableName]]:
    """Return the tables and views of the chosen files under the sink's names. ConfigError: two of them would have one name."""
    selection = config.source.selection()
    tables, views = inventory.tables, inventory.views
    there, those_views = ([selection.name(table) for table in names if selection.has(table)] for names in (tables, views))
    twice = [name for name, times in Counter(table.fold() for table in there).items() if times > 1]
    if twice:
        remedy = Remedy(
            "dump.route-to-distinct-names", 'Give each table a name of its own: use {schema} and {table} in the "to" of source.route'
        )
        raise ConfigError("two tables of the dump would be one in the sink", remedy=remedy, table=str(twice[0]))
    return there, those_views


def _check_rows(loader: DumpLoader, rows: Mapping[TableName, int]) -> None:
    """Check that each table of the sink holds as many rows as were loaded into it. FatalSinkError."""
    found = loader.count(list(rows))
    wrong = [f"{name}: {found[name]} of {count}" for name, count in rows.items() if found[name] != count]
    if wrong:
        raise FatalSinkError(
            "tables of the sink do not hold all rows that were loaded into them",
            remedy=Remedy(
                "dump.find-other-writer", "Find the other program that writes to the sink's tables, then load again with --overwrite"
            ),
            tables=named_some(wrong),
        )


def _check_counts(rows: Mapping[TableName, int], counts: Mapping[TableName, int]) -> None:
    wrong = [f"{table}: {rows.get(table, 0)} of {count}" for table, count in counts.items() if rows.get(table, 0) != count]
    if wrong:
        raise FatalSinkError(
            "the sink lacks rows that the dump counts",
            remedy=Remedy("dump.load-with-overwrite", "Dump again, then load with --overwrite"),
            wrong_rows=named_some(wrong),
        )


def check_file_times(directory: Path, inventory: Inventory) -> None:
    """Refuse files from before or after the dump: another dump into the same directory has left them. ConfigError names them."""
    metadata = directory / METADATA_FILES[0]
    if not metadata.is_file():
        return
    times = dict(_TIMES.findall(metadata.read_text(encoding="utf-8", errors="replace")))
    if len(times) != 2:
        return
    lasted_s = (datetime.fromisoformat(times["Finished"]) - datetime.fromisoformat(times["Started"])).total_seconds()
    # By the times of files alone: the metadata's clock has no zone, and may be another machine's.
    newest = metadata.stat().st_mtime + SLACK_S
    times_of = {file.path.name: file.path.stat().st_mtime for file in inventory.files}
    old = [name for name, at in times_of.items() if at < newest - lasted_s - 2 * SLACK_S]
    # Dumpling writes the metadata last: a dump that failed later has left newer files beside them.
    foreign = old or [name for name, at in times_of.items() if at > newest]
    if foreign:
        raise ConfigError(
            f"files are {'older' if old else 'newer'} than the dump: they may be of another dump",
            remedy=Remedy(
                "dump.dump-into-empty-directory",
                "Dump into an empty directory. If a copy has changed the times of the files, use --accept-file-times",
            ),
            files=named_some(foreign),
            count=len(foreign),
        )


def _chosen(config: Config, inventory: Inventory) -> Inventory:
    """Skip the files of tables that the table filter excludes; in a file with everything its statements are chosen."""
    selection = config.source.selection()
    files = [file for file in inventory.files if file.kind in {FileKind.SCHEMA, FileKind.WHOLE} or selection.has(file.table)]
    return Inventory(tuple(files))


def check_replica(sink: Sink, directory: Path, *, overwrite: bool) -> None:
    """Refuse a replica that has begun, or a sink that holds a dump already. NeedsOperator."""
    sink.migrate()
    if sink.load() is not None:
        remedy = Remedy(
            "dump.give-new-replica-name",
            "Give the new replica another name, and its tables another sink or remove them (`applier docs setting_up`)",
        )
        raise NeedsOperator("the replica has begun: a dump would put its tables back in time", remedy=remedy)
    dump = sink.bookkeeping.loaded_dump.read()
    if dump is not None and dump.is_copy:
        remedy = Remedy("dump.reset-copy", "Continue it: `applier copy`. To load a dump instead, first `applier replicas reset`")
        raise NeedsOperator("the sink holds a copy of upstream", remedy=remedy, start_ts=dump.start_ts, copied_by=dump.loaded_by)
    # A declaration has loaded nothing: tables that are in the way stop a load by name.
    if dump is not None and not dump.is_declared and not overwrite:
        state = "holds a dump already" if dump.is_whole else "holds a part of a dump: its load runs, or has failed"
        remedy = Remedy(
            "dump.overwrite-loaded-tables", f"To load it again, which drops its tables: `applier load {quote(str(directory))} --overwrite`"
        )
        raise NeedsOperator(f"the sink {state}", remedy=remedy, directory=dump.directory, start_ts=dump.start_ts, loaded_by=dump.loaded_by)
