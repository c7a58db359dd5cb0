"""How a run is shown while it runs: a live display on a terminal, plain lines elsewhere, nothing for programs.

The live display is designed for 80 columns and drawn from the newest state several times a second. It has two clocks: how long the run
does what it does now (``writing for 12 s``), and how long it runs.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from applier.cli.output import DEFAULT_CONFIG, command_line, fact
from applier.model.position import DIGITS, Timeline
from applier.telemetry.activity import DDL, FAILING, PAUSED, STREAM
from applier.telemetry.failing import Failing
from applier.telemetry.log import LOGGER_NAME, spelled
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Observer, SilentObserver
from applier.telemetry.run_state import RunState
from applier.telemetry.wording import count, ddls_text, duration, one_line, time_text

BAR_WIDTH: Final = 30
SPINNER: Final = Spinner("dots")
"""One for all drawings: a new one would start with its first frame."""
STYLES: Final = {FAILING: "bold red", PAUSED: "yellow", STREAM: "yellow", DDL: "cyan"}


def render_run(state: RunState, unix_s: float, config: Path = DEFAULT_CONFIG) -> RenderableType:
    """Draw the state at ``unix_s``. ``config`` is the file in the commands that are shown."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    # Long texts continue in their own column; nothing is cut.
    table.add_column(overflow="fold")
    for label, shown in _rows(state, unix_s, config):
        table.add_row(label, shown)
    return table


def _rows(state: RunState, unix_s: float, config: Path) -> Iterator[tuple[str, RenderableType]]:
    # A long segment changes no number for minutes; the spinner shows that the program is alive.
    SPINNER.update(text=Text(_doing(state, unix_s), style=STYLES.get(state.phase, "")))
    yield "now", SPINNER
    if state.failing is not None:
        yield "failing", Text(_failing(state.failing, unix_s), style="bold red")
        yield "", Text(one_line(state.failing.error), style="red")
    if state.paused is not None:
        since = f"for {duration(unix_s - state.paused.since_s)}, by {one_line(state.paused.said_by)}"
        yield "paused", Text(f"{since}: {command_line('resume', config)}", "yellow")
    # Another run may own the replica until this one does: its numbers are not ours to show.
    if state.epoch is None:
        return
    yield "read", _bar(state)
    counts = state.counts
    yield "applied", Text(f"{count(counts.rows, 'row')} in {count(counts.transactions, 'transaction')}, {_rate(state, unix_s)}")
    yield "DDLs", Text(_ddls(state, unix_s))
    lag_s = state.lag_s(unix_s)
    yield "checkpoint", Text(time_text(state.checkpoint_ts, state.timeline) + (f", {duration(lag_s)} behind" if lag_s is not None else ""))
    yield (
        "watermark",
        Text(time_text(state.watermark, state.timeline) + (f", held back by {state.streams.holding}" if state.streams.holding else "")),
    )
    if (stall := state.streams.stall) is not None:
        yield "stalled", Text(f"{stall.stream} shows no resolved event for {duration(stall.silent_s)}", "yellow")
    if state.quarantined:
        yield "quarantine", Text(f"{count(state.quarantined, 'event')} to settle: {command_line('quarantine list', config)}", "yellow")


def _doing(state: RunState, unix_s: float) -> str:
    since = f" for {duration(max(0.0, unix_s - state.phase_since_s))}" if state.phase_since_s else ""
    runs = f"; running for {duration(max(0.0, unix_s - state.started_at_s))}" if state.started_at_s else ""
    return f"{state.phase}{since}{runs}"


def _failing(failing: Failing, unix_s: float) -> str:
    text = f"for {duration(max(0.0, unix_s - failing.since_s))}, attempt {failing.attempt}"
    if failing.next_attempt_at_s is not None and failing.next_attempt_at_s > unix_s:
        text += f", the next one in {duration(failing.next_attempt_at_s - unix_s)}"
    if failing.gives_up_at_s is None:
        return text
    left = duration(max(0.0, failing.gives_up_at_s - unix_s))
    return f"{text}; stops retrying at {datetime.fromtimestamp(failing.gives_up_at_s, UTC):%H:%M:%S}Z, in {left}"


def _ddls(state: RunState, unix_s: float) -> str:
    counts = state.counts
    done = f"{counts.ddls:,}" + (f" ({counts.skipped_ddls:,} skipped)" if counts.skipped_ddls else "")
    if not state.current_ddl:
        return done
    ran = f" for {duration(max(0.0, unix_s - state.ddl_since_s))}" if state.ddl_since_s else ""
    return f"{done}, running{ran}: {one_line(state.current_ddl)}"


def progress_text(state: RunState) -> str:
    """Write how many records were read, and of how many."""
    # The end offsets are not known yet: a total of 0 would show a full bar.
    if not state.records_total:
        return f"{count(state.counts.records, 'record')}"
    return f"{state.counts.records:,} of {count(state.records_total, 'record')}"


def _bar(state: RunState) -> RenderableType:
    if not state.records_total:
        return Text(progress_text(state))
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=state.records_total, completed=state.counts.records, width=BAR_WIDTH), progress_text(state))
    return line


def _rate(state: RunState, unix_s: float) -> str:
    elapsed_s = unix_s - state.started_at_s
    return f"{state.counts.rows / elapsed_s:,.0f} rows/s on average" if elapsed_s > 0 else "0 rows/s"


LOGGER: Final = logging.getLogger(LOGGER_NAME)
PLAIN_INTERVAL_S: Final = 5.0
"""Without a terminal these lines go to a log, where one every few seconds is enough."""
REFRESH_PER_S: Final = 8


class PlainObserver:
    """Prints each note and each DDL at once, and the state at most once per ``PLAIN_INTERVAL_S``. ``now`` is any monotonic clock."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._shown_at: float | None = None
        self._ddl = self._shown_ddl = ""
        self._timeline = DIGITS

    def update(self, state: RunState) -> None:
        """Print a DDL when it begins, and the state if the last line is old enough."""
        self._timeline = state.timeline
        # Another run may own the replica: it is shown when this one does.
        if state.epoch is None:
            return
        if state.current_ddl != self._ddl:
            self._ddl = state.current_ddl
            if self._ddl:
                self._shown_ddl = self._ddl
                self._line(f"ddl: {one_line(self._ddl)}")
        now = self._now()
        if self._shown_at is None or now - self._shown_at >= PLAIN_INTERVAL_S:
            self._shown_at = now
            self._line(summary(state))

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Print at once, unless the log does; of a DDL whose beginning was printed, without its text."""
        if event is LogEvent.DDL_APPLIED and facts.get("query") == self._shown_ddl:
            facts = {name: value for name, value in facts.items() if name != "query"}
        if not _is_logged(event):
            self._line(note_line(event, facts, self._timeline))

    def _line(self, text: str) -> None:
        # A statement or a cause may contain [brackets], which Rich would take for markup.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveObserver:
    """Redraws the newest state, so that its clocks continue while nothing happens; notes scroll above it."""

    def __init__(self, console: Console, config: Path = DEFAULT_CONFIG) -> None:
        self._console, self._state, self._config = console, RunState(), config

    def update(self, state: RunState) -> None:
        """Take the newest state."""
        self._state = state

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Print above the display, unless the log does."""
        if not _is_logged(event):
            self._console.print(note_line(event, facts, self._state.timeline), markup=False, highlight=False)

    def render(self) -> RenderableType:
        """Draw the newest state, as it is now."""
        return render_run(self._state, time.time(), self._config)


@contextmanager
def observer_for(console: Console, config: Path = DEFAULT_CONFIG, *, silent: bool) -> Iterator[Observer]:
    """Yield the observer for what standard error is: a terminal, or a file or pipe. ``config``: the file that shown commands name."""
    if silent:
        yield SilentObserver()
    elif console.is_terminal and not console.is_dumb_terminal:
        # transient: what remains on the screen is the result, not the last state.
        observer = LiveObserver(console, config)
        with Live(console=console, refresh_per_second=REFRESH_PER_S, transient=True, get_renderable=observer.render):
            yield observer
    else:
        yield PlainObserver(console)


def _is_logged(event: LogEvent) -> bool:
    # The log shows a failure at growing intervals; what it shows goes to the same screen.
    return event is LogEvent.RETRY or LOGGER.isEnabledFor(event.level)


def note_line(event: LogEvent, facts: dict[str, Any], timeline: Timeline) -> str:
    """Write an event with its facts on one line; a timestamp with its time."""
    return one_line(" ".join([event, *(f"{name}={fact(name, value, timeline)}" for name, value in spelled(facts, timeline).items())]))


def summary(state: RunState) -> str:
    """Write the state on one line."""
    parts = [f"{state.phase}:", f"read {progress_text(state)},", f"applied {count(state.counts.rows, 'row')}"]
    parts.append(f"in {count(state.counts.transactions, 'transaction')}, {ddls_text(state.counts.ddls, state.counts.skipped_ddls)},")
    parts.append(f"checkpoint {time_text(state.checkpoint_ts, state.timeline)}")
    if state.streams.holding:
        parts[-1] += f", watermark held back by {state.streams.holding}"
    return " ".join(parts)
