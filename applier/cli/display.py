"""How a run is shown while it runs: a live display on a terminal, plain lines elsewhere, nothing for programs.

Everything goes to standard error; standard output belongs to the result.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from applier.cli.output import fact
from applier.telemetry.log import LOGGER_NAME
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Observer, SilentObserver
from applier.telemetry.run_state import RunState
from applier.telemetry.wording import count, duration, one_line, time_text

LOGGER: Final = logging.getLogger(LOGGER_NAME)
PLAIN_INTERVAL_S: Final = 5.0
"""Without a terminal these lines go to a log, where one every few seconds is enough."""
REFRESH_PER_S: Final = 8
BAR_WIDTH: Final = 30


class PlainObserver:
    """Prints each note and each DDL at once, and the state at most once per ``PLAIN_INTERVAL_S``. ``now`` is any monotonic clock."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._shown_at: float | None = None
        self._ddl = ""

    def update(self, state: RunState) -> None:
        """Print a DDL when it begins, and the state if the last line is old enough."""
        # Another run may own the replica: it is shown when this one does.
        if state.epoch is None:
            return
        if state.current_ddl != self._ddl:
            self._ddl = state.current_ddl
            if self._ddl:
                self._line(f"ddl: {one_line(self._ddl)}")
        now = self._now()
        if self._shown_at is None or now - self._shown_at >= PLAIN_INTERVAL_S:
            self._shown_at = now
            self._line(summary(state))

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Print at once, unless the log does."""
        if not _is_logged(event):
            self._line(note_line(event, facts))

    def _line(self, text: str) -> None:
        # A statement or a cause may contain [brackets], which Rich would take for markup.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveObserver:
    """Redraws the state in place; notes scroll above it."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def update(self, state: RunState) -> None:
        """Draw the newest state."""
        self._live.update(render_run(state, time.time()))

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Print above the display, unless the log does."""
        if not _is_logged(event):
            self._live.console.print(note_line(event, facts), markup=False, highlight=False)


@contextmanager
def observer_for(console: Console, *, silent: bool) -> Iterator[Observer]:
    """Yield the observer for what standard error is: a terminal, or a file or pipe."""
    if silent:
        yield SilentObserver()
    elif console.is_terminal and not console.is_dumb_terminal:
        # transient: what remains on the screen is the result, not the last state.
        with Live(console=console, refresh_per_second=REFRESH_PER_S, transient=True) as live:
            yield LiveObserver(live)
    else:
        yield PlainObserver(console)


def _is_logged(event: LogEvent) -> bool:
    # The log shows a failure at growing intervals; what it shows goes to the same screen.
    return event is LogEvent.RETRY or LOGGER.isEnabledFor(event.level)


def note_line(event: LogEvent, facts: dict[str, Any]) -> str:
    """Write an event with its facts on one line; a timestamp with its time."""
    return one_line(" ".join([event, *(f"{name}={fact(name, value)}" for name, value in facts.items())]))


def summary(state: RunState) -> str:
    """Write the state on one line."""
    parts = [f"{state.phase}:", f"read {_progress(state)},", f"applied {count(state.counts.rows, 'row')}"]
    parts.append(f"in {count(state.counts.transactions, 'transaction')}, {count(state.counts.ddls, 'DDL')},")
    parts.append(f"checkpoint {time_text(state.checkpoint_ts)}")
    if state.streams.holding:
        parts[-1] += f", watermark held back by {state.streams.holding}"
    return " ".join(parts)


def render_run(state: RunState, unix_s: float) -> RenderableType:
    """Draw the state: a progress bar of the records read, and what was applied."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    # A long segment changes no number for minutes; the spinner shows that the program is alive.
    table.add_row("phase", Spinner("dots", f"{state.phase} ({duration(state.elapsed_s)})"))
    table.add_row("read", _bar(state))
    table.add_row("applied", f"{count(state.counts.rows, 'row')} in {count(state.counts.transactions, 'transaction')}, {_rate(state)}")
    table.add_row("DDLs", Text(str(state.counts.ddls) + (f", running {one_line(state.current_ddl)}" if state.current_ddl else "")))
    lag_s = state.lag_s(unix_s)
    table.add_row("checkpoint", time_text(state.checkpoint_ts) + (f", {duration(lag_s)} behind" if lag_s is not None else ""))
    table.add_row("watermark", time_text(state.watermark) + (f", held back by {state.streams.holding}" if state.streams.holding else ""))
    return table


def _progress(state: RunState) -> str:
    # The end offsets are not known yet: a total of 0 would show a full bar.
    if not state.records_total:
        return f"{count(state.counts.records, 'record')}"
    return f"{state.counts.records:,} of {count(state.records_total, 'record')}"


def _bar(state: RunState) -> RenderableType:
    if not state.records_total:
        return Text(_progress(state))
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=state.records_total, completed=state.counts.records, width=BAR_WIDTH), _progress(state))
    return line


def _rate(state: RunState) -> str:
    return f"{state.counts.rows / state.elapsed_s:,.0f} rows/s" if state.elapsed_s > 0 else "0 rows/s"
