"""``applier load``: load a dump of upstream into the sink, and remember its timestamp for the first run."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from applier.cli.default_config import DEFAULT_CONFIG
from applier.cli.option import AsJson, ConfigPath, read_config, tso
from applier.cli.output import print_json, print_line, stderr_console
from applier.dump.into_sink import LoadOptions, load_dump
from applier.model.errors import ConfigError
from applier.model.position import Ts
from applier.telemetry.wording import count, named_text

Directory = Annotated[Path, typer.Argument(metavar="DUMP", help="Directory of Dumpling or mydumper; file of mysqldump or mariadb-dump.")]


def load(  # noqa: PLR0913 - one parameter per option of the command line
    directory: Directory,
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    start_ts: Annotated[int | None, typer.Option(metavar="TSO", parser=tso, help="TSO of a dump that does not say it.")] = None,
    threads: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Load so many tables at once.")] = 4,
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Zone of TIMESTAMP values in files that do not name one.")] = "+00:00",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Drop the tables of the dump first.")] = False,
    accept_file_times: Annotated[bool, typer.Option("--accept-file-times", help="Load files that look older than the dump.")] = False,
    accept_missing_files: Annotated[
        bool, typer.Option("--accept-missing-files", help="Load files of rows whose numbers have gaps.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Load a dump into the sink; the first run begins there."""
    if "'" in time_zone or "\\" in time_zone:
        raise ConfigError(f"--time-zone is not a time zone: {time_zone!r}", remedy='Give an offset such as "+08:00", or a name')
    options = LoadOptions(
        start_ts=None if start_ts is None else Ts(start_ts),
        threads=threads,
        time_zone=time_zone,
        overwrite=overwrite,
        accept_file_times=accept_file_times,
        accept_missing_files=accept_missing_files,
    )
    console = stderr_console()
    result = load_dump(read_config(config), directory, options, lambda line: console.print(line, highlight=False, markup=False))
    if as_json:
        counted = {"tables": result.tables, "files": result.files, "rows": result.rows, "bytes": result.size_bytes}
        print_json({"start_ts": result.start_ts, **counted, "left_out": list(result.left_out), "floats": list(result.floats)})
        return
    loaded = f"{count(result.tables, 'table')} with {count(result.rows, 'row')} from {count(result.files, 'file')}"
    print_line(f"loaded {loaded}, {result.size_bytes / 1_000_000:,.1f} MB")
    if result.left_out:
        print_line(f"left out, because a replica has no use for them: {', '.join(result.left_out)}")
    if result.floats:
        print_line(
            f"FLOAT columns, of which dumps have six digits: {', '.join(result.floats)}. `applier verify --fix-sql FILE` writes the rest"
        )
    print_line(f"the replica begins at {named_text(result.start_ts)}: applier catchup --config {quote(str(config))}")
