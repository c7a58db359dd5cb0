"""``applier copy``: copy upstream into the sink, apply what has changed meanwhile, and stop when the replica is consistent."""

from contextlib import nullcontext
from typing import Annotated, Any

import typer

from applier.cli.display import observer_for
from applier.cli.interrupt import interrupts_announced
from applier.cli.option import TAKE_OVER_HELP, AsJson, ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, command_line, print_json, print_line, remedy_for, stderr_console
from applier.config import Config
from applier.model.errors import NeedsOperator, Remedy
from applier.model.position import Ts
from applier.run.catchup import CatchupOptions, CatchupResult, catch_up
from applier.run.copy import CopyOptions
from applier.run.preflight import refuse_wrong_setup
from applier.sinks.bookkeeping.copy_table import TableSum
from applier.sinks.copy_state import CopyRow
from applier.sinks.registry import open_sink
from applier.telemetry.log import level_of, use_level
from applier.telemetry.wording import count, duration, named_text

BEGUN = Remedy(
    "cli.reset-replica-before-copy",
    "To keep it up to date: `applier run`. To copy it again from nothing: `applier replicas reset`, then `applier copy --replace`, "
    "which drops its tables",
)
LATER = Remedy("cli.catch-up-after-copy", "Run `applier catchup`, or `applier run`: both continue it")


def copy(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Drop tables that the copy would make: their rows are lost.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Begin an unfinished copy again, and drop the tables that it has made.")] = False,
    take_over: Annotated[bool, typer.Option("--take-over", help=TAKE_OVER_HELP)] = False,
    as_json: AsJson = False,
) -> None:
    """Copy upstream into the sink of a new replica.

    Then apply what upstream has changed meanwhile. Exit code 0: the replica is consistent. An interrupted copy continues where it was.
    """
    settings = read_config(config)
    refuse_wrong_setup(settings, command="copy")
    _refuse_begun(settings)
    options = CatchupOptions(take_over=take_over, copy=CopyOptions(is_asked=True, replace=replace, again=again))
    # JSON is for a collector: the log says what the lines on a terminal would.
    is_json_log = settings.log.format == "json"
    if is_json_log:
        use_level(level_of(settings.log.level))
    announced = nullcontext() if is_json_log else interrupts_announced()
    with observer_for(stderr_console(), config, silent=as_json or is_json_log) as observer, announced:
        result = catch_up(settings, options, observer)
    row, sums = _copied(settings)
    if not row.is_consistent_at(result.checkpoint_ts):
        raise NeedsOperator(
            "all rows are copied, and the replica has not applied yet what changed meanwhile",
            remedy=LATER,
            checkpoint_ts=result.checkpoint_ts,
            upto_ts=row.upto_ts,
        )
    if as_json:
        print_json(as_object(row, sums, result))
        return
    for line in as_lines(row, sums, result):
        print_line(remedy_for(line, config))
    print_line(f"next: {command_line('run', config)}")


def _refuse_begun(settings: Config) -> None:
    """Refuse a replica that has begun. One whose copy is read, and not consistent yet, is continued."""
    with open_sink(settings.sink_settings(retries=2)) as sink:
        sink.migrate()
        progress = sink.load()
        row = sink.bookkeeping.copy.read()
    if progress is not None and (row is None or row.is_consistent_at(progress.checkpoint_ts)):
        raise NeedsOperator("the replica has begun: it is not copied again", remedy=BEGUN, checkpoint_ts=progress.checkpoint_ts)


def _copied(settings: Config) -> tuple[CopyRow, dict[str, TableSum]]:
    with open_sink(settings.sink_settings(retries=2)) as sink:
        row, sums = sink.bookkeeping.copy.read(), sink.bookkeeping.copy.sums()
    if row is None:
        raise NeedsOperator("the replica has begun with a dump: nothing was copied", remedy=BEGUN)
    return row, {str(table): each for table, each in sums.items()}


def as_object(row: CopyRow, sums: dict[str, TableSum], result: CatchupResult) -> dict[str, Any]:
    """Return the result for programs."""
    return {
        "consistent": True,
        "start_ts": row.start_ts,
        "upto_ts": row.upto_ts,
        "checkpoint_ts": Ts(result.checkpoint_ts),
        "tables": len(sums),
        "rows": sum(each.rows for each in sums.values()),
        "bytes": sum(each.size_bytes for each in sums.values()),
        "left_out": dict(row.left_out),
        "seconds": result.seconds,
    }


def as_lines(row: CopyRow, sums: dict[str, TableSum], result: CatchupResult) -> list[str]:
    """Return the result for people."""
    rows, size = sum(each.rows for each in sums.values()), sum(each.size_bytes for each in sums.values())
    lines = [
        f"copied {count(len(sums), 'table')} with {count(rows, 'row')}, {size / 1_000_000:,.1f} MB, {duration(result.seconds)}",
        f"consistent: the checkpoint is {named_text(result.checkpoint_ts, result.timeline)}",
    ]
    left_out = [f"{count(number, kind)}" for kind, number in sorted(row.left_out.items()) if number]
    if left_out:
        lines.append(f"not copied, because a replica does not need them: {', '.join(left_out)}")
    return lines
