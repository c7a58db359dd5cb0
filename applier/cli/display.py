"""How a run is shown while it runs: a live display on a terminal, plain lines elsewhere, nothing for programs.

Everything goes to standard error; standard output belongs to the result.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.live import Live

from applier.cli.default_config import DEFAULT_CONFIG
from applier.cli.output import fact
from applier.cli.run_screen import progress_text, render_run
from applier.telemetry.log import LOGGER_NAME, spelled
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Observer, SilentObserver
from applier.telemetry.run_state import RunState
from applier.telemetry.wording import count, ddls_text, one_line, time_text

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

    def update(self, state: RunState) -> None:
        """Print a DDL when it begins, and the state if the last line is old enough."""
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
            self._line(note_line(event, facts))

    def _line(self, text: str) -> None:
        # A statement or a cause may contain [brackets], which Rich would take for markup.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveObserver:
    """Has the newest state drawn again and again, so that its clocks go on while nothing happens; notes scroll above it."""

    def __init__(self, console: Console, config: Path = DEFAULT_CONFIG) -> None:
        self._console, self._state, self._config = console, RunState(), config

    def update(self, state: RunState) -> None:
        """Take the newest state."""
        self._state = state

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Print above the display, unless the log does."""
        if not _is_logged(event):
            self._console.print(note_line(event, facts), markup=False, highlight=False)

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


def note_line(event: LogEvent, facts: dict[str, Any]) -> str:
    """Write an event with its facts on one line; a timestamp with its time."""
    return one_line(" ".join([event, *(f"{name}={fact(name, value)}" for name, value in spelled(facts).items())]))


def summary(state: RunState) -> str:
    """Write the state on one line."""
    parts = [f"{state.phase}:", f"read {progress_text(state)},", f"applied {count(state.counts.rows, 'row')}"]
    parts.append(f"in {count(state.counts.transactions, 'transaction')}, {ddls_text(state.counts.ddls, state.counts.skipped_ddls)},")
    parts.append(f"checkpoint {time_text(state.checkpoint_ts)}")
    if state.streams.holding:
        parts[-1] += f", watermark held back by {state.streams.holding}"
    return " ".join(parts)
