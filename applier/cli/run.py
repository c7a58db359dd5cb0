"""``applier run``: the daemon. It follows the topics until a signal asks it to stop."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from applier.cli.display import observer_for
from applier.cli.option import DEFAULT_CONFIG, ConfigPath, read_config
from applier.cli.output import stderr_console
from applier.replica.shutdown import Shutdown, stopped_by_signals
from applier.telemetry import Observer
from applier.telemetry.log import level_of, use_level

if TYPE_CHECKING:
    from applier.config import LogConfig


def run(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    take_over: Annotated[bool, typer.Option("--take-over", help="Take the replica from a run that holds it.")] = False,
) -> None:
    """Follow the topics until SIGTERM or Ctrl-C.

    Then it finishes what runs, saves the progress and exits 0. A second signal ends it at once.
    """
    settings = read_config(config)
    shutdown = Shutdown()
    with stopped_by_signals(shutdown, timeout_s=settings.run.shutdown_timeout_s):
        from applier.run.daemon import follow  # noqa: PLC0415 - imports Spark: --help and usage errors need not wait for it

        with _observer(settings.log) as observer:
            follow(settings, take_over=take_over, observer=observer, shutdown=shutdown)


@contextmanager
def _observer(log: "LogConfig") -> Iterator[Observer]:
    """Show the run on a terminal; elsewhere, and for whoever collects JSON, the log tells it."""
    console = stderr_console()
    is_drawn = log.format == "text" and console.is_terminal and not console.is_dumb_terminal
    if not is_drawn:
        use_level(level_of(log.level))
    with observer_for(console, silent=not is_drawn) as observer:
        yield observer
