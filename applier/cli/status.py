"""``applier status``: health, checkpoint, owner and lag. The sink alone is enough; Kafka and a daemon add to it if they answer."""

import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from applier.cli.option import AsJson, ConfigPath, read_config, source_kit
from applier.cli.output import DEFAULT_CONFIG, command_line, print_json, print_line, remedy_for
from applier.model.errors import RetryableSinkError
from applier.model.position import NO_TS, Stream, Timeline, Ts, moment_at
from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.loaded_dump import InitialState
from applier.sinks.overview import OwnerState, OwnerView, StoredEnd
from applier.sources.kit import LogStatus
from applier.status.query import StatusQuery, StatusTarget
from applier.status.replica_status import Health, ReplicaStatus, StreamSummary, Verdict, as_object, copy_state, verdict_of
from applier.telemetry.wording import count, ddls_text, duration, one_line, position_text, time_text

MOST: Final = 20
"""Streams that are shown one by one, unless all are asked for."""
UNKNOWN: Final = "?"
LEAST_NAME: Final = 12
ELLIPSIS: Final = "…"


class Line(NamedTuple):
    """A line, and whether its stream holds back the watermark."""

    text: str
    is_holding: bool = False


class StreamColumn(NamedTuple):
    """A heading, and what is below it."""

    heading: str
    cell: Callable[[StreamSummary, Timeline], str]
    is_number: bool = False


def _number(value: int | None, otherwise: str = UNKNOWN) -> str:
    return otherwise if value is None else f"{value:,}"


def short_time(ts: Ts, timeline: Timeline) -> str:
    """Write the time of a timestamp in few characters: without its year, to the second."""
    moment = moment_at(ts, timeline)
    return "none" if moment is None else f"{moment:%m-%d %H:%M:%S}Z"


def _remarks(each: StreamSummary, timeline: Timeline) -> Iterator[str]:
    if each.holds_watermark:
        yield "holds back the watermark"
    if each.applied_ts:
        yield f"rows are written up to {time_text(each.applied_ts, timeline)}"


def _short_remarks(each: StreamSummary, timeline: Timeline) -> Iterator[str]:
    if each.holds_watermark:
        yield "holds back"
    if (moment := moment_at(each.applied_ts, timeline)) is not None:
        yield f"rows to {moment:%H:%M:%S}Z"


NAME: Final = StreamColumn("stream", lambda each, _: str(each.stream))
NEXT: Final = StreamColumn("next offset", lambda each, _: _number(each.next_offset, "not read"), is_number=True)
END: Final = StreamColumn("end", lambda each, _: _number(each.end_offset), is_number=True)
BEHIND: Final = StreamColumn("behind", lambda each, _: _number(each.behind), is_number=True)
RESOLVED: Final = StreamColumn("resolved", lambda each, timeline: time_text(each.resolved_ts, timeline))
RESOLVED_SHORT: Final = StreamColumn("resolved", lambda each, timeline: short_time(each.resolved_ts, timeline))
LAG: Final = StreamColumn("lag", lambda each, _: "" if each.lag_s is None else duration(each.lag_s), is_number=True)
REMARK: Final = StreamColumn("", lambda each, timeline: "; ".join(_remarks(each, timeline)))
REMARK_SHORT: Final = StreamColumn("", lambda each, timeline: "; ".join(_short_remarks(each, timeline)))

LAYOUTS: Final = (
    (NAME, NEXT, END, BEHIND, RESOLVED, LAG, REMARK),
    (NAME, BEHIND, RESOLVED, LAG, REMARK),
    (NAME, BEHIND, RESOLVED_SHORT, LAG, REMARK_SHORT),
)
"""From wide to narrow: the first that fits is taken."""


def stream_lines(streams: Sequence[StreamSummary], timeline: Timeline, width: int | None, *, shows_all: bool = False) -> list[Line]:
    """Return a heading and a line per stream, at most ``width`` characters each (None: as wide as they are).

    Of many streams, show the ones with the greatest lag, and a summary of the others.
    """
    shown = streams if shows_all or len(streams) <= MOST else sorted(sorted(streams, key=_urgency)[:MOST], key=lambda each: each.stream)
    columns, cells, widths = _fitting(shown, timeline, width)
    lines = [Line(_aligned([column.heading for column in columns], columns, widths))]
    lines += [Line(_aligned(row, columns, widths), each.holds_watermark) for row, each in zip(cells, shown, strict=True)]
    if len(shown) < len(streams):
        chosen = {each.stream for each in shown}
        lines += [Line(text) for text in _summary(timeline, [each for each in streams if each.stream not in chosen])]
    return lines


def _urgency(each: StreamSummary) -> tuple[bool, Ts, int]:
    return not each.holds_watermark, each.resolved_ts, -(each.behind or 0)


def _fitting(
    shown: Sequence[StreamSummary], timeline: Timeline, width: int | None
) -> tuple[Sequence[StreamColumn], list[list[str]], list[int]]:
    for columns in LAYOUTS:
        cells, widths = _cells(shown, timeline, columns)
        if width is None or _total(widths) <= width:
            return columns, cells, widths
    # Names give way, in their middle.
    room = max(LEAST_NAME, widths[0] - (_total(widths) - (width or 0)))
    for row, each in zip(cells, shown, strict=True):
        row[0] = _shortened(each.stream, room)
    return columns, cells, [room, *widths[1:]]


def _cells(shown: Sequence[StreamSummary], timeline: Timeline, columns: Sequence[StreamColumn]) -> tuple[list[list[str]], list[int]]:
    cells = [[column.cell(each, timeline) for column in columns] for each in shown]
    return cells, [max(len(text) for text in (column.heading, *(row[at] for row in cells))) for at, column in enumerate(columns)]


def _total(widths: Sequence[int]) -> int:
    used = [width for width in widths if width]
    return sum(used) + 2 * (len(used) - 1)


def _shortened(stream: Stream, room: int) -> str:
    """Shorten a topic's name: its partition is what tells streams apart."""
    name, end = str(stream), f"/{stream.partition}"
    if len(name) <= room:
        return name
    kept = room - len(end) - len(ELLIPSIS)
    head = kept - kept // 2
    return stream.topic[:head] + ELLIPSIS + stream.topic[len(stream.topic) - kept // 2 :] + end


def _aligned(row: Sequence[str], columns: Sequence[StreamColumn], widths: Sequence[int]) -> str:
    cells = (
        f"{text:>{width}}" if column.is_number else f"{text:{width}}" for text, column, width in zip(row, columns, widths, strict=True)
    )
    return "  ".join(cells).rstrip()


def _summary(timeline: Timeline, others: Sequence[StreamSummary]) -> list[str]:
    behind = [each.behind for each in others if each.behind is not None]
    told = f", {count(sum(behind), 'record')} behind" if behind else ""
    times = [each.resolved_ts for each in others]
    return [
        f"and {count(len(others), 'more stream')}{told}: --all shows them",
        f"  resolved from {short_time(min(times), timeline)} to {short_time(max(times), timeline)}",
    ]


LABEL_WIDTH: Final = 10
OWNER_STATES: Final = {
    OwnerState.ALIVE: "alive",
    OwnerState.FROZEN: "frozen: its lease has expired, the next run takes over",
    OwnerState.DEAD: "dead: its lock is free, the next run takes over at once",
}
STYLES: Final = {OwnerState.ALIVE: "green", OwnerState.FROZEN: "bold red", OwnerState.DEAD: "bold red"}
HEALTH_STYLES: Final = {Health.HEALTHY: "green", Health.LAGGING: "yellow", Health.STOPPED: "bold red", Health.HINDERED: "bold red"}


DIED: Final = "it did not store how it ended: it was killed, or could not reach the sink. See its log, or the system's"


class View(NamedTuple):
    """How a status is shown. ``width``: of the terminal (None: lines as long as they are); ``shows_all``: every stream of many.

    ``config`` is the file in the commands that are shown.
    """

    width: int | None = None
    shows_all: bool = False
    config: Path = DEFAULT_CONFIG


class Fact(NamedTuple):
    """One fact about the whole replica; without a label it belongs to the one before."""

    label: str
    text: str
    style: str = ""


def as_lines(status: ReplicaStatus, verdict: Verdict | None = None, view: View = View()) -> list[str]:  # noqa: B008 - it is frozen
    """Return the status as lines of plain text."""
    return [text for _, text, _ in _lines(status, verdict or verdict_of(status), view)]


def render_status(status: ReplicaStatus, verdict: Verdict, view: View) -> Text:
    """Draw the same lines for a terminal."""
    drawn = [Text.assemble((label, "bold"), (text[len(label) :], style)) for label, text, style in _lines(status, verdict, view)]
    found = Text("\n").join(drawn)
    found.no_wrap, found.overflow = True, "ignore"
    return found


def _lines(status: ReplicaStatus, verdict: Verdict, view: View) -> Iterator[tuple[str, str, str]]:
    """Yield each line: what of it is a label, all of it, and its style."""
    for fact in (Fact("health", verdict.reason, HEALTH_STYLES[verdict.health]), *_facts(status, view.config)):
        first = f"{fact.label:{LABEL_WIDTH}}  "
        width = None if view.width is None else max(20, view.width - len(first))
        for number, text in enumerate([fact.text] if width is None else textwrap.wrap(fact.text, width) or [""]):
            yield fact.label if number == 0 else "", (first if number == 0 else " " * len(first)) + text, fact.style
    if status.streams and status.has_topics:
        yield "", "", ""
        heading, *rows = stream_lines(status.streams, status.timeline, view.width, shows_all=view.shows_all)
        yield heading.text, heading.text, ""
        for row in rows:
            yield "", row.text, "yellow" if row.is_holding else ""


def _facts(status: ReplicaStatus, config: Path) -> Iterator[Fact]:
    """Yield what is known of the whole replica."""
    overview, live = status.overview, status.live
    yield Fact("replica", f"{status.replica} in {status.sink}")
    if status.sink_problem:
        yield Fact("sink", one_line(f"{status.sink_problem}. What follows is what the run says"), "bold red")
    yield from _positions(status)
    if status.log is not None:
        yield from _log(status.log)
    if status.streams and status.has_topics:
        held = f", held back by {status.holding_stream}" if status.holding_stream else ""
        yield Fact("watermark", f"{time_text(status.watermark, status.timeline)}{held}")
    if not status.sink_problem:
        yield _owner(overview.owner)
        yield from _end(status, config)
    if live is not None:
        yield from _live(live, status.asked_at_s)
    yield from _pause_facts(status, config)
    for entry in overview.undecided:
        yield Fact("DDL", one_line(f"{_state_of(entry, overview.owner)}: {entry.ddl.query}"), "yellow")
        # A live run settles it, and holds the lock that the command needs.
        if not _is_running(overview.owner):
            place = f" --ts {entry.ddl.commit_ts} --table {one_line(str(entry.ddl.name))}"
            yield Fact("", f"to settle it: {command_line('ddl done|retry|skip', config, place)}", "yellow")
    if overview.quarantined:
        yield Fact("quarantine", f"{count(overview.quarantined, 'event')} to settle: {command_line('quarantine list', config)}", "yellow")
    if status.source_problem:
        name, unknown = ("kafka", "the end offsets are unknown") if status.has_topics else ("primary", "the end of its binlog is unknown")
        yield Fact(name, one_line(f"{status.source_problem}: {unknown}"), "yellow")


def _checkpoint(status: ReplicaStatus) -> Fact:
    progress = status.overview.progress
    if progress is None and not status.sink_problem:
        return Fact("checkpoint", "none: no run has started this replica", "yellow")
    checkpoint_ts = progress.checkpoint_ts if progress is not None else Ts((status.live or {}).get("checkpoint_ts") or NO_TS)
    lag = "" if status.lag_s is None else f", {duration(abs(status.lag_s))} {'behind' if status.lag_s >= 0 else 'in the future'}"
    return Fact("checkpoint", f"{position_text(checkpoint_ts, status.timeline)}{lag}")


_INITIAL: Final[Mapping[InitialState, str]] = {
    InitialState.LOADED: "a dump that applier load has loaded",
    InitialState.DECLARED: "declared as loaded by other programs",
    InitialState.EMPTY: "upstream had no table",
    InitialState.LOADING: "a part of a dump: its load runs, or has failed",
    InitialState.COPIED: "a copy of upstream",
    InitialState.COPYING: "a part of a copy of upstream: it runs, or the next run continues it",
}


def _positions(status: ReplicaStatus) -> Iterator[Fact]:
    """Say where the replica is, and what the sink held when it began."""
    yield _checkpoint(status)
    dump, progress = status.overview.loaded, status.overview.progress
    if dump is not None:
        at = position_text(dump.start_ts, status.timeline)
        yield Fact("began with", one_line(f"{_INITIAL[dump.kind]}, at {at}, recorded by {dump.loaded_by}"))
        yield from _copy(status)
    elif progress is not None:
        taken = "" if progress.start_ts else ": the source is taken to hold all that upstream ever had"
        yield Fact("began with", f"no load is recorded{taken}")


def _copy(status: ReplicaStatus) -> Iterator[Fact]:
    """Say how far the initial copy is, until the replica is consistent."""
    view = status.overview.copy
    if view is None or status.overview.is_consistent:
        return
    done = f"{view.tables_done} of {count(view.tables, 'table')}, {count(view.rows, 'row')}, {view.size_bytes / 1_000_000:,.1f} MB"
    yield Fact("copy", f"{copy_state(status.overview)}: {done}", "yellow")
    yield Fact("consistent", "no: the sink does not equal upstream at any time yet", "yellow")


def _log(log: LogStatus) -> Iterator[Fact]:
    """Say where the replica is in the log of its primary."""
    end = "" if log.end is None else f"; {log.primary} is at {log.end}, {count(log.behind_bytes or 0, 'byte')} ahead"
    yield Fact("position", f"{log.position}{end}")
    if log.prepared:
        yield Fact("keep", f"{log.oldest_file} and later: {count(log.prepared, 'XA transaction')} prepared and not committed", "yellow")
    if log.gtid_set:
        yield Fact("GTID set", one_line(log.gtid_set))


def _owner(view: OwnerView | None) -> Fact:
    if view is None:
        return Fact("owner", "none: no run owns the replica", "yellow")
    owner = view.owner
    since = f"{owner.started_at:%Y-%m-%d %H:%M:%S}Z"
    heartbeat = f"heartbeat {duration(max(0.0, view.silent_s))} ago"
    text = f"process {owner.process} on {owner.host} since {since}, {heartbeat}, {OWNER_STATES[view.state]}"
    return Fact("owner", text, STYLES[view.state])


def _end(status: ReplicaStatus, config: Path) -> Iterator[Fact]:
    """Say why no run is there."""
    overview = status.overview
    if overview.progress is None and overview.last_end is None:
        return
    if overview.owner is not None and overview.owner.state is not OwnerState.DEAD:
        return
    stored = overview.last_end
    if stored is None:
        yield Fact("last run", DIED, "yellow")
        return
    yield from _stored(stored, status.asked_at_s, config)


def _stored(stored: StoredEnd, asked_at_s: float, config: Path) -> Iterator[Fact]:
    end = stored.end
    ago = duration(max(0.0, asked_at_s - stored.ended_at.timestamp()))
    when = f"applier {end.command} ended {ago} ago, at {stored.ended_at:%Y-%m-%d %H:%M:%S}Z, with exit code {end.exit_code}"
    yield Fact("last run", when, "bold red" if end.error_class else "")
    facts = ", ".join(f"{name}={value}" for name, value in end.facts.items())
    yield Fact("", one_line(f"{end.message} [{facts}]" if facts else end.message), "red" if end.error_class else "")
    if end.remedy:
        yield Fact("remedy", " ".join(remedy_for(end.remedy, config).split()), "green")


def _pause_facts(status: ReplicaStatus, config: Path) -> Iterator[Fact]:
    # The sink's, which a run follows within seconds; while it is away, what the run last knew.
    pause, live = status.overview.pause, status.live or {}
    since = pause.said_at.isoformat() if pause is not None else live.get("paused_since")
    if since:
        said_by = pause.said_by if pause is not None else live["paused_by"]
        yield Fact("paused", one_line(f"for {_ago(since, status.asked_at_s)}, by {said_by}: {command_line('resume', config)}"), "yellow")


def _state_of(entry: LedgerEntry, view: OwnerView | None) -> str:
    since = f"since {entry.began_at:%Y-%m-%d %H:%M:%S}Z"
    if entry.error:
        return f"failed ({entry.error}), unfinished {since}"
    where = " in the background" if entry.state is DdlState.BACKGROUND else ""
    return f"{'running' if _is_running(view) else 'unfinished'}{where} {since}"


def _is_running(view: OwnerView | None) -> bool:
    return view is not None and view.state is OwnerState.ALIVE


def _live(live: Any, now_s: float) -> Iterator[Fact]:
    since = _ago(live.get("phase_since"), now_s)
    doing = live["phase"] + (f" for {since}" if since else "") + f", {'following' if live['is_ready'] else 'catching up'}"
    ddls = ddls_text(live["ddls"], live.get("skipped_ddls", 0))
    done = f"{count(live['rows'], 'row')} in {count(live['transactions'], 'transaction')}, {ddls}"
    retries = sum(live["retries"].values())
    yield Fact("run", f"{doing}; {done} in {duration(live['uptime_s'])}" + (f", retries: {retries:,}" if retries else ""))
    if live.get("failing_since"):
        text = f"for {_ago(live['failing_since'], now_s)}, since {_clock(live['failing_since'])}; attempt {live['attempt']}"
        text += f", the next one at {_clock(live['next_attempt_at'])}" if live.get("next_attempt_at") else ""
        text += f", stops retrying at {_clock(live['gives_up_at'])}" if live.get("gives_up_at") else ""
        yield Fact("failing", text, "bold red")
        yield Fact("", one_line(live["error"]), "red")
    if live["current_ddl"]:
        ran = _ago(live.get("ddl_since"), now_s)
        yield Fact("running", (f"for {ran}: " if ran else "") + one_line(live["current_ddl"]))
    if missing := sum(stream.get("offsets_without_record", 0) for stream in live.get("streams", {}).values()):
        causes = "records that compaction has deleted, or markers of transactions"
        yield Fact("gaps", f"{count(missing, 'offset')} held no record since the start of this run: {causes}", "yellow")
    if absent := live.get("deletes_without_row"):
        absent_rows = f"{count(absent, 'row')} deleted upstream since the start of this run did not exist in the sink"
        text = f'{absent_rows}: see `applier docs runbook --section "Deletes that find no row"`'
        yield Fact("deletes", text, "yellow")
    if skipped := live.get("skipped_statements"):
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in skipped.items())
        yield Fact("skipped", f"statements of the log since the start of this run: {kinds}")
    if live["stall"]:
        silent = duration(live["stall"]["silent_s"])
        yield Fact("stalled", f"{live['stall']['stream']} holds back the watermark: no resolved event for {silent}", "bold yellow")


def _ago(iso: str | None, now_s: float) -> str:
    return duration(max(0.0, now_s - datetime.fromisoformat(iso).timestamp())) if iso else ""


def _clock(iso: str) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S}Z"


REFRESH_S: Final = 2.0
Show = Callable[[ReplicaStatus | str], None]


def status(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    max_lag: Annotated[float | None, typer.Option(metavar="SECONDS", min=0, help="Exit with 1 if the lag is greater.")] = None,
    shows_all: Annotated[bool, typer.Option("--all", help="Show every stream, also if there are many.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show whether the replica is well, its owner and its lag.

    Exit codes, for monitoring: 0 healthy, 1 lagging (--max-lag), 2 stopped, 3 failing, paused or waiting for an operator, 4 cannot be told:
    neither the sink nor the run answers.
    """
    settings = read_config(config)
    listen = settings.http.listen
    target = StatusTarget(
        sink=settings.sink_settings(),
        sink_address=settings.sink.address,
        source=source_kit(settings),
        required_partitions=settings.source.required_partitions(),
        http=None if listen is None else (listen.reached_at, listen.port),
    )
    with StatusQuery(target) as query:
        first = query.ask()
        with _screen(max_lag, View(shows_all=shows_all, config=config), as_json=as_json, watch=watch) as show:
            show(first)
            if watch:
                keep_watching(query.ask, show, _pause)
                return Health.HEALTHY
    return verdict_of(first, max_lag).health


def _pause() -> None:
    time.sleep(REFRESH_S)


def keep_watching(ask: Callable[[], ReplicaStatus], show: Show, pause: Callable[[], None]) -> None:
    """Ask and show until Ctrl-C. A sink that does not answer for a while does not end it."""
    try:
        while True:
            pause()
            try:
                show(ask())
            except RetryableSinkError as error:
                # A restart of the database is what one watches for.
                show(str(error))
    except KeyboardInterrupt:
        # Not 130: Ctrl-C is the way to end a watch.
        return


@contextmanager
def _screen(max_lag: float | None, view: View, *, as_json: bool, watch: bool) -> Iterator[Show]:
    """Yield the function that shows a status, or a sentence that says why there is none now."""
    console = Console()
    is_drawn = not as_json and console.is_terminal and not console.is_dumb_terminal
    # Refreshed by hand: the library's own thread would redraw the same status several times a second.
    live = Live(console=console, auto_refresh=False) if is_drawn and watch else None

    def show(found: ReplicaStatus | str) -> None:
        if as_json:
            print_json({"problem": found} if isinstance(found, str) else _for_programs(found, max_lag))
        elif not is_drawn:
            for line in [found] if isinstance(found, str) else as_lines(found, verdict_of(found, max_lag), view):
                print_line(line)
            if watch:
                print_line("")
        else:
            wide = view._replace(width=console.width)
            drawn = found if isinstance(found, str) else render_status(found, verdict_of(found, max_lag), wide)
            if live is not None:
                live.update(drawn, refresh=True)
            else:
                console.print(drawn)

    with live or nullcontext():
        yield show


def _for_programs(found: ReplicaStatus, max_lag: float | None) -> dict[str, object]:
    verdict = verdict_of(found, max_lag)
    return {"health": verdict.health.name.lower(), "reason": verdict.reason, **as_object(found)}
