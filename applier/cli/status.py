"""``applier status``: health, checkpoint, owner and lag. The sink alone is enough; Kafka and a daemon add to it if they answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from applier.cli.option import AsJson, ConfigPath, read_config
from applier.cli.output import print_json, print_line
from applier.cli.position import source_kit
from applier.cli.remedy import DEFAULT_CONFIG
from applier.cli.status_view import View, as_lines, render_status
from applier.model.errors import RetryableSinkError
from applier.status.health import Health, verdict_of
from applier.status.query import StatusQuery, StatusTarget
from applier.status.replica_status import ReplicaStatus, as_object

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
