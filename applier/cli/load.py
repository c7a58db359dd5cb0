"""``applier load``: load a dump of upstream into the sink, or record that it is loaded; the first run begins at its timestamp."""

from pathlib import Path
from typing import Annotated

import typer

from applier.cli.option import AsJson, ConfigPath, read_config, tso
from applier.cli.output import DEFAULT_CONFIG, command_line, print_json, print_line, stderr_console
from applier.dump.declared import declare_loaded
from applier.dump.into_sink import LoadOptions, LoadResult, load_dump
from applier.model.errors import ConfigError, Remedy
from applier.model.position import Timeline, Ts
from applier.telemetry.wording import count, named_text

Directory = Annotated[
    Path | None,
    typer.Argument(metavar="DUMP", help="Directory of Dumpling or mydumper; file of mysqldump or mariadb-dump.", show_default=False),
]


def load(  # noqa: PLR0913 - one parameter per option of the command line
    directory: Directory = None,
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    start_ts: Annotated[int | None, typer.Option(metavar="TSO", parser=tso, help="TSO of a dump that does not say it.")] = None,
    threads: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Load so many tables at once.")] = 4,
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Zone of TIMESTAMP values in files that do not name one.")] = "+00:00",
    declared: Annotated[
        bool, typer.Option("--declared", help="Load nothing: record that the sink equals upstream at the dump, or at the configured start.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Drop the tables of the dump first.")] = False,
    accept_file_times: Annotated[bool, typer.Option("--accept-file-times", help="Load files that look older than the dump.")] = False,
    accept_missing_files: Annotated[
        bool, typer.Option("--accept-missing-files", help="Load files of rows whose numbers have gaps.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Load a dump into the sink; the first run begins there.

    With --declared, record that another program has loaded it.
    """
    if "'" in time_zone or "\\" in time_zone:
        raise ConfigError(
            f"--time-zone is not a time zone: {time_zone!r}",
            remedy=Remedy("cli.give-zone-of-load", 'Give an offset such as "+08:00", or a name'),
        )
    given = None if start_ts is None else Ts(start_ts)
    if declared:
        if overwrite or accept_file_times or accept_missing_files:
            raise ConfigError(
                "--declared loads nothing",
                remedy=Remedy("cli.remove-declared-or-options", "Remove the options of a load, or remove --declared"),
            )
        _declare(config, directory, given, as_json=as_json)
        return
    if directory is None:
        raise ConfigError("the dump is missing", remedy=Remedy("cli.give-dump-to-load", "Give its directory or file: applier load DUMP"))
    options = LoadOptions(
        start_ts=given,
        threads=threads,
        time_zone=time_zone,
        overwrite=overwrite,
        accept_file_times=accept_file_times,
        accept_missing_files=accept_missing_files,
    )
    console = stderr_console()
    result = load_dump(read_config(config), directory, options, lambda line: console.print(line, highlight=False, markup=False))
    _print_result(config, result, as_json=as_json)


def _print_result(config: Path, result: LoadResult, *, as_json: bool) -> None:
    if as_json:
        counted = {"tables": result.tables, "files": result.files, "rows": result.rows, "bytes": result.size_bytes}
        print_json({"start_ts": result.start_ts, **counted, "left_out": list(result.left_out), "floats": list(result.floats)})
        return
    loaded = f"{count(result.tables, 'table')} with {count(result.rows, 'row')} from {count(result.files, 'file')}"
    print_line(f"loaded {loaded}, {result.size_bytes / 1_000_000:,.1f} MB")
    if result.left_out:
        print_line(f"skipped, because a replica does not need them: {', '.join(result.left_out)}")
    if result.floats:
        print_line(
            f"FLOAT columns, which dumps write with six digits: {', '.join(result.floats)}. `applier verify --fix-sql FILE` writes the rest"
        )
    _print_next(config, result.start_ts, result.timeline)


def _declare(config: Path, directory: Path | None, given: Ts | None, *, as_json: bool) -> None:
    dump, tables, timeline = declare_loaded(read_config(config), directory, given)
    if as_json:
        print_json({"start_ts": dump.start_ts, "declared": True, "empty": dump.is_empty, "tables": tables})
        return
    if dump.is_empty:
        print_line("recorded that upstream has no table there")
    elif tables is None:
        print_line("recorded that the sink is loaded. Nothing was loaded or compared")
    else:
        print_line(f"recorded that the sink is loaded. It has all {count(tables, 'table')} of upstream; no rows were compared")
    _print_next(config, dump.start_ts, timeline)


def _print_next(config: Path, start_ts: Ts, timeline: Timeline) -> None:
    print_line(f"the replica begins at {named_text(start_ts, timeline)}")
    print_line(f"next: {command_line('check', config)}")
