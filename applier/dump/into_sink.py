"""Loads a dump into the sink of a replica that has not begun, and tells the bookkeeping from which timestamp the replica begins.

Refused before anything is changed: a dump of no or of another moment, files of two dumps, tables that are there already, a replica that
has begun. While the load runs, and after one that failed, the bookkeeping says so, and no run starts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Final

from applier.config import Config
from applier.dump.commands import commands_of
from applier.dump.completeness import check_complete
from applier.dump.compressed import ZSTD
from applier.dump.inventory import FileKind, Inventory, inventory_of
from applier.dump.loader import AUTO, LoadTarget, find_loader, version_of
from applier.dump.loading import DumpLoad
from applier.dump.log_place import start_of_dump
from applier.dump.moment import METADATA, moment_of
from applier.dump.numbering import check_files
from applier.dump.target_tables import TargetTables
from applier.model.errors import ConfigError, NeedsOperator
from applier.model.position import NO_TS, Ts
from applier.sinks.factory import open_sink
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.port import Sink
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.stored_timeline import StoredTimeline, read_state
from applier.sources.factory import open_source
from applier.telemetry.log import use_timeline
from applier.telemetry.wording import operator

SLACK_S: Final = 60.0
_TIMES: Final = re.compile(r"(Started|Finished) dump at: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What the command line says. ``start_ts`` of None: the dump's own."""

    start_ts: Ts | None = None
    loader: str = AUTO
    threads: int = 4
    time_zone: str = "+00:00"
    overwrite: bool = False
    accept_file_times: bool = False
    accept_missing_files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What was loaded."""

    start_ts: Ts
    tables: int
    files: int
    loader: str


def load_dump(config: Config, directory: Path, options: LoadOptions, note: Callable[[str], None]) -> LoadResult:
    """Load the dump. ConfigError, NeedsOperator or SinkError with a remedy; after a SinkError the sink may hold a part of it."""
    if config.sink.is_sqlite:
        raise ConfigError("a dump cannot be loaded into SQLite", remedy="Use a MariaDB or MySQL sink, or begin with an empty upstream")
    if config.source.route:
        remedy = "Load the dump by hand under the sink's names, and set source.start_ts to its TSO, of a binlog source.start to dump:PATH"
        raise ConfigError("applier load cannot rename tables, and the configuration has routes", remedy=remedy)
    directory = directory.resolve()
    everything = inventory_of(directory)
    inventory, start_ts = _chosen(config, everything), starting_ts_of(config, directory, options.start_ts)
    check_complete(inventory, options.threads)
    counts = check_files(directory, inventory, accept_missing=options.accept_missing_files)
    if not options.accept_file_times:
        check_file_times(directory, inventory)
    target = LoadTarget(config.sink_settings(), options.time_zone)
    # myloader loads whole directories, none without its metadata, and no zstd before 0.12.
    is_plain = not any(file.path.suffix == ZSTD for file in inventory.files)
    is_cut = inventory.is_whole_file or inventory != everything or not is_plain or not (directory / METADATA[0]).is_file()
    program = find_loader(options.loader, needs_client=is_cut)
    if program is None:
        remedy = "Install the client of MariaDB or MySQL, or mydumper (for myloader). Or load it by hand:\n" + "\n".join(
            commands_of(directory, inventory, target, start_ts)
        )
        raise ConfigError("there is no program on this machine that loads a dump", remedy=remedy)
    with open_sink(config.sink_settings(retries=2)) as sink:
        tables = TargetTables(config.sink_settings(), inventory)
        if not program.is_client:
            tables.check_zone(options.time_zone)
        _check_replica(sink, directory, overwrite=options.overwrite)
        tables.check_absent(overwrite=options.overwrite)
        loader = version_of(program)
        sink.loaded_dump.begin(LoadedDump(start_ts=start_ts, directory=str(directory), loader=loader, loaded_by=operator()))
        tables.prepare(overwrite=options.overwrite)
        DumpLoad(directory, inventory, program, target, options.threads, note).run()
        tables.check_loaded(counts)
        sink.loaded_dump.end()
    return LoadResult(start_ts=start_ts, tables=len(inventory.tables), files=len(inventory.files), loader=loader)


def starting_ts_of(config: Config, directory: Path, given: Ts | None) -> Ts:
    """Return the timestamp of the dump. ConfigError: nobody tells it, or two tell different ones."""
    settings = config.source_settings()
    if isinstance(settings, BinlogSettings):
        return _start_in_log(settings, directory, given)
    moment = moment_of(directory) if given is None else None
    start_ts = given if given is not None else None if moment is None else moment.start_ts
    if start_ts is None:
        raise ConfigError(
            "the dump does not say its timestamp",
            remedy="Give it with --start-ts TSO: the `Pos` of Dumpling's file metadata, or tidb_snapshot if you dumped with it",
            directory=directory,
        )
    if config.source.start_ts not in {NO_TS, start_ts}:
        raise ConfigError(
            "source.start_ts is not the timestamp of the dump",
            remedy="Remove source.start_ts: the dump's is used",
            configured=config.source.start_ts,
            dump=start_ts,
        )
    return start_ts


def _start_in_log(settings: BinlogSettings, directory: Path, given: Ts | None) -> Ts:
    if given is not None:
        raise ConfigError("--start-ts is for dumps of TiDB", remedy="Remove it: a dump says its place in the binlog itself")
    with open_source(replace(settings, start=start_of_dump(directory))) as source:
        point = source.start_point()
    # Messages about the place name its file from now on.
    use_timeline(StoredTimeline.of(read_state(None if point is None else point.state)))
    return NO_TS if point is None else point.start_ts


def check_file_times(directory: Path, inventory: Inventory) -> None:
    """Refuse files from before or after the dump: another dump into the same directory has left them. ConfigError names them."""
    metadata = directory / METADATA[0]
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
            remedy="Dump into an empty directory. If a copy has changed the times of the files, use --accept-file-times",
            files=", ".join(foreign[:5]),
            count=len(foreign),
        )


def _chosen(config: Config, inventory: Inventory) -> Inventory:
    """Leave out the tables that the table filter leaves out. A file with everything cannot be divided."""
    selection = config.source.selection()
    if not config.source.tables:
        return inventory
    if inventory.is_whole_file:
        raise ConfigError(
            "source.tables cannot be applied to a dump in one file",
            remedy="Dump with Dumpling or mydumper, which write a file for each table. Or load the file by hand, and set source.start_ts "
            "to its TSO, of a binlog source.start to dump:PATH",
        )
    files = [file for file in inventory.files if file.kind is FileKind.SCHEMA or selection.has(file.table)]
    return Inventory(tuple(files))


def _check_replica(sink: Sink, directory: Path, *, overwrite: bool) -> None:
    sink.migrate()
    if sink.load() is not None:
        remedy = "Give the new replica another name, and its tables another sink or remove them (docs/setting_up.md)"
        raise NeedsOperator("the replica has begun: a dump would put its tables back in time", remedy=remedy)
    dump = sink.loaded_dump.read()
    if dump is not None and not overwrite:
        state = "holds a dump already" if dump.is_whole else "holds a part of a dump: its load runs, or has failed"
        remedy = f"To load it again, which drops its tables: `applier load {quote(str(directory))} --overwrite`"
        raise NeedsOperator(f"the sink {state}", remedy=remedy, directory=dump.directory, start_ts=dump.start_ts, loaded_by=dump.loaded_by)
