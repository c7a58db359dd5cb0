"""``applier status``: checkpoint, owner and lag. The sink alone is enough; Kafka and a daemon add to it if they answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from applier.cli.option import DEFAULT_CONFIG, AsJson, ConfigPath, read_config
from applier.cli.output import print_json, print_line
from applier.cli.status_view import as_lines, render_status
from applier.model.errors import RetryableSinkError
from applier.status.query import StatusQuery, StatusTarget
from applier.status.replica_status import ReplicaStatus, as_object

REFRESH_S: Final = 2.0


def status(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the checkpoint, the owner and the lag of each stream."""
    settings = read_config(config)
    listen = settings.http.listen
    target = StatusTarget(
        sink=settings.sink_settings(),
        sink_address=settings.sink.address,
        kafka=settings.kafka_settings(),
        required_partitions=settings.source.required_partitions(),
        http=None if listen is None else (listen.reached_at, listen.port),
    )
    with StatusQuery(target) as query:
        first = query.ask()
        with _screen(as_json=as_json, watch=watch) as show:
            show(first)
            if watch:
                _keep_watching(query.ask, show)


def _keep_watching(ask: Callable[[], ReplicaStatus], show: Callable[[ReplicaStatus | str], None]) -> None:
    """Ask and show until Ctrl-C. A sink that does not answer for a while does not end it."""
    try:
        while True:
            time.sleep(REFRESH_S)
            try:
                show(ask())
            except RetryableSinkError as error:
                # A restart of the database is what one watches for.
                show(str(error))
    except KeyboardInterrupt:
        # Not 130: Ctrl-C is the way to end a watch.
        return


@contextmanager
def _screen(*, as_json: bool, watch: bool) -> Iterator[Callable[[ReplicaStatus | str], None]]:
    """Yield the function that shows a status, or a sentence that says why there is none now."""
    console = Console()
    is_drawn = not as_json and console.is_terminal and not console.is_dumb_terminal
    # Refreshed by hand: the library's own thread would redraw the same status several times a second.
    live = Live(console=console, auto_refresh=False) if is_drawn and watch else None

    def show(found: ReplicaStatus | str) -> None:
        if as_json:
            print_json({"problem": found} if isinstance(found, str) else as_object(found))
        elif not is_drawn:
            for line in [found] if isinstance(found, str) else as_lines(found):
                print_line(line)
            if watch:
                print_line("")
        elif live is not None:
            live.update(found if isinstance(found, str) else render_status(found), refresh=True)
        else:
            console.print(found if isinstance(found, str) else render_status(found))

    with live or nullcontext():
        yield show
