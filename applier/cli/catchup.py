"""``applier catchup``: apply what the source holds now, stop, and print what was applied."""

from contextlib import nullcontext
from typing import Annotated, Any

import typer

from applier.cli.display import observer_for
from applier.cli.interrupt import interrupts_announced
from applier.cli.option import TAKE_OVER_HELP, AsJson, ConfigPath, limit_text, ms_of_time, read_config, source_kit, ts_of_text, tso
from applier.cli.output import DEFAULT_CONFIG, print_json, print_line, remedy_for, stderr_console
from applier.model.errors import ConfigError, Remedy
from applier.model.position import Ts
from applier.model.segment import is_ahead
from applier.run.catchup import CatchupOptions, CatchupResult, catch_up
from applier.run.preflight import refuse_wrong_setup
from applier.telemetry.log import level_of, use_level
from applier.telemetry.wording import count, ddls_text, duration, named_text, one_line


def catchup(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    start_ts: Annotated[
        int | None, typer.Option(metavar="TSO", parser=tso, help="TSO of the snapshot that the sink was loaded from.")
    ] = None,
    until_ts: Annotated[
        str | None, typer.Option(metavar="TS", parser=limit_text, help="Stop at this commit timestamp: a TSO; of a binlog, FILE:POS.")
    ] = None,
    until_time: Annotated[str | None, typer.Option(metavar="ISO8601", help="Stop at this time, for instance 2025-06-01T12:00:00Z.")] = None,
    take_over: Annotated[bool, typer.Option("--take-over", help=TAKE_OVER_HELP)] = False,
    accept_gap: Annotated[bool, typer.Option("--accept-gap", help="Start even if topics may have lost their first records.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply what the source holds now, then stop. Run it again to continue.

    Exit code 0: each stream has reached the end that it had at the start, or the limit.
    """
    if until_ts is not None and until_time is not None:
        raise ConfigError("--until-ts and --until-time cannot be combined", remedy=Remedy("cli.use-one-end", "Use one of them"))
    until_time_ms = None if until_time is None else ms_of_time(until_time)
    settings = read_config(config)
    start = None if start_ts is None else Ts(start_ts)
    source_kit(settings).refuse_start_ts(start)
    options = CatchupOptions(
        start_ts=start,
        until_ts=ts_of_text(settings, until_ts),
        until_time_ms=until_time_ms,
        take_over=take_over,
        accept_gap=accept_gap,
    )
    refuse_wrong_setup(settings, command="catchup")
    # JSON is for a collector: the log says what the lines on a terminal would.
    is_json_log = settings.log.format == "json"
    if is_json_log:
        use_level(level_of(settings.log.level))
    announced = nullcontext() if is_json_log else interrupts_announced()
    with observer_for(stderr_console(), config, silent=as_json or is_json_log) as observer, announced:
        result = catch_up(settings, options, observer)
    if as_json:
        print_json(as_object(result))
    else:
        for line in as_lines(result, settings.sink.address):
            print_line(remedy_for(line, config))


def as_object(result: CatchupResult) -> dict[str, Any]:
    """Return the result for programs."""
    return {
        "checkpoint_ts": result.checkpoint_ts,
        "rows": result.rows,
        "transactions": result.transactions,
        "ddls": result.ddls,
        "streams": result.streams,
        "seconds": result.seconds,
        "pending_ddls": result.pending_ddls,
        "quarantined": result.quarantined,
    }


def as_lines(result: CatchupResult, sink: str) -> list[str]:
    """Return the result for people."""
    lines = [_outcome(result), f"checkpoint {named_text(result.checkpoint_ts, result.timeline)} in {sink}"]
    if result.quarantined:
        lines.append(f"{count(result.quarantined, 'event')} in quarantine, not applied: `applier quarantine list` names them")
    lines += [f"pending DDL: {one_line(ddl)} (it runs when the watermark has passed its commit timestamp)" for ddl in result.pending_ddls]
    # With --until-ts every stream may have resolved more: then the limit holds back the watermark, not a stream.
    ahead = [name for name, stream in result.streams.items() if is_ahead(stream["resolved_ts"], result.checkpoint_ts)]
    if ahead and result.holding_stream not in {"", *ahead}:
        lines.append(f"{result.holding_stream} holds back the watermark: {count(len(ahead), 'stream')} resolved beyond it")
    return lines


def _outcome(result: CatchupResult) -> str:
    if not (result.rows or result.transactions or result.ddls or result.skipped_ddls):
        return f"nothing to apply: the replica is up to date ({duration(result.seconds)})"
    rows = f"{count(result.rows, 'row')} in {count(result.transactions, 'transaction')}"
    return f"caught up: {rows}, {ddls_text(result.ddls, result.skipped_ddls)}, {duration(result.seconds)}"
