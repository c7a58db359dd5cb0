"""``applier run``: the daemon. It follows the source until a signal stops it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from applier.cli.display import observer_for
from applier.cli.option import TAKE_OVER_HELP, ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG, stderr_console
from applier.config import LogConfig
from applier.replica.shutdown import Shutdown, shutdown_on_signals
from applier.telemetry.log import level_of, use_level
from applier.telemetry.observer import Observer


def run(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    take_over: Annotated[bool, typer.Option("--take-over", help=TAKE_OVER_HELP)] = False,
) -> None:
    """Follow the source until SIGTERM or Ctrl-C.

    What is read, and where it is written, is in the configuration file. A transient error is retried for run.retry_for_s.

    The first signal ends the run after the current segment or DDL, with a checkpoint and exit code 0. A second signal ends it at once.
    """
    settings = read_config(config)
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown, timeout_s=settings.run.shutdown_timeout_s), _observer(settings.log, config) as observer:
        # Signals are handled before the daemon is imported: Spark's Python side takes a second, and a SIGTERM in it ends with exit code 0.
        from applier.run.daemon import follow  # noqa: PLC0415 - after the signal handlers, see above
        from applier.run.preflight import refuse_wrong_setup  # noqa: PLC0415 - as above

        refuse_wrong_setup(settings, command="run")
        follow(settings, take_over=take_over, observer=observer, shutdown=shutdown)


@contextmanager
def _observer(log: LogConfig, config: Path) -> Iterator[Observer]:
    """Show the run on a terminal. Elsewhere, and with JSON logs, the log is all there is."""
    console = stderr_console()
    # JSON is for a collector, also on the terminal that a container runtime may attach.
    is_drawn = log.format == "text" and console.is_terminal and not console.is_dumb_terminal
    if not is_drawn:
        use_level(level_of(log.level))
    with observer_for(console, config, silent=not is_drawn) as observer:
        yield observer
