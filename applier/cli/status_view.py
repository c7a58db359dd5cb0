"""How ``applier status`` shows a replica: a table on a terminal, aligned lines elsewhere, with the same words."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.overview import OwnerState, OwnerView
from applier.status.replica_status import ReplicaStatus, StreamSummary
from applier.telemetry.wording import count, duration, one_line, time_text

HEADINGS: Final = ("stream", "next offset", "end", "behind", "resolved", "lag", "")
NUMBERS: Final = frozenset({"next offset", "end", "behind", "lag"})
UNKNOWN: Final = "?"
OWNER_STATES: Final = {
    OwnerState.ALIVE: "alive",
    OwnerState.FROZEN: "frozen: its lease has expired, the next run takes over",
    OwnerState.DEAD: "dead: its lock is free, the next run takes over at once",
}
STYLES: Final = {OwnerState.ALIVE: "green", OwnerState.FROZEN: "bold red", OwnerState.DEAD: "bold red"}


def as_lines(status: ReplicaStatus) -> list[str]:
    """Return the status as lines of plain text."""
    facts = list(_facts(status))
    width = max(len(label) for label, _, _ in facts)
    lines = [f"{label:{width}}  {text}" for label, text, _ in facts]
    if status.streams:
        rows = [HEADINGS, *(_cells(each) for each in status.streams)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        lines += ["", *(_aligned(row, widths) for row in rows)]
    return lines


def render_status(status: ReplicaStatus) -> RenderableType:
    """Draw the status for a terminal."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column()
    for label, text, style in _facts(status):
        grid.add_row(label, Text(text, style=style))
    if not status.streams:
        return grid
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in NUMBERS else "left", no_wrap=True)
    for each in status.streams:
        table.add_row(*_cells(each), style="yellow" if each.holds_watermark else "")
    return Group(grid, Text(), table)


def _facts(status: ReplicaStatus) -> Iterator[tuple[str, str, str]]:
    """Yield label, text and style of what is known of the whole replica."""
    overview, progress = status.overview, status.overview.progress
    yield "replica", f"{status.replica} in {status.sink}", ""
    if progress is None:
        yield "checkpoint", "none: no run has started this replica", "yellow"
    else:
        lag = f", {duration(status.lag_s)} behind" if status.lag_s is not None else ""
        yield "checkpoint", f"{time_text(progress.checkpoint_ts)} (ts {progress.checkpoint_ts}){lag}", ""
    if progress is not None and status.streams:
        held = f", held back by {status.holding_stream}" if status.holding_stream else ""
        yield "watermark", f"{time_text(status.watermark)}{held}", ""
    yield _owner(overview.owner)
    if status.live is not None:
        yield from _live(status.live)
    for entry in overview.undecided:
        yield "DDL", one_line(f"{_state_of(entry, overview.owner)}: {entry.ddl.query}"), "yellow"
        # A live run settles it, and holds the lock that the command needs.
        if not _is_running(overview.owner):
            yield (
                "",
                f"to settle it: applier ddl done|retry|skip --ts {entry.ddl.commit_ts} --table {one_line(str(entry.ddl.name))}",
                "yellow",
            )
    if overview.quarantined:
        yield "quarantine", f"{count(overview.quarantined, 'event')} to settle: applier quarantine list", "yellow"
    if status.kafka_problem:
        yield "kafka", one_line(f"{status.kafka_problem}: the end offsets are unknown"), "yellow"


def _owner(view: OwnerView | None) -> tuple[str, str, str]:
    if view is None:
        return "owner", "none: no run owns the replica", "yellow"
    owner = view.owner
    since = f"{owner.started_at:%Y-%m-%d %H:%M:%S}Z"
    heartbeat = f"heartbeat {duration(max(0.0, view.silent_s))} ago"
    text = f"process {owner.process} on {owner.host} since {since}, {heartbeat}, {OWNER_STATES[view.state]}"
    return "owner", text, STYLES[view.state]


def _state_of(entry: LedgerEntry, view: OwnerView | None) -> str:
    since = f"since {entry.began_at:%Y-%m-%d %H:%M:%S}Z"
    if entry.error:
        return f"failed ({entry.error}), unfinished {since}"
    where = " in the background" if entry.state is DdlState.BACKGROUND else ""
    return f"{'running' if _is_running(view) else 'unfinished'}{where} {since}"


def _is_running(view: OwnerView | None) -> bool:
    return view is not None and view.state is OwnerState.ALIVE


def _live(live: Any) -> Iterator[tuple[str, str, str]]:
    doing = f"{live['phase']}, {'following' if live['is_ready'] else 'catching up'}"
    done = f"{count(live['rows'], 'row')} in {count(live['transactions'], 'transaction')}, {count(live['ddls'], 'DDL')}"
    retries = sum(live["retries"].values())
    yield "run", f"{doing}; {done} in {duration(live['uptime_s'])}" + (f", retries: {retries:,}" if retries else ""), ""
    if live["current_ddl"]:
        yield "running", one_line(live["current_ddl"]), ""
    if live["stall"]:
        silent = duration(live["stall"]["silent_s"])
        yield "stalled", f"{live['stall']['stream']} holds back the watermark: no resolved event for {silent}", "bold yellow"


def _cells(each: StreamSummary) -> tuple[str, ...]:
    return (
        str(each.stream),
        "not read" if each.next_offset is None else f"{each.next_offset:,}",
        UNKNOWN if each.end_offset is None else f"{each.end_offset:,}",
        UNKNOWN if each.behind is None else f"{each.behind:,}",
        time_text(each.resolved_ts),
        "" if each.lag_s is None else duration(each.lag_s),
        "; ".join(_remarks(each)),
    )


def _remarks(each: StreamSummary) -> Iterator[str]:
    if each.holds_watermark:
        yield "holds back the watermark"
    if each.applied_ts:
        yield f"rows are written up to {time_text(each.applied_ts)}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        f"{cell:>{width}}" if heading in NUMBERS else f"{cell:{width}}" for cell, width, heading in zip(row, widths, HEADINGS, strict=True)
    )
    return "  ".join(cells).rstrip()
