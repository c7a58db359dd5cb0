"""``applier demo``: an upstream, a Kafka and a replica on one machine; the catch-up is killed in the middle, goes on, and is checked.

What is shown is measured: every number comes from the history, the sink or the comparison.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from applier.demo.process import WatchedProcess, catchup_command
from applier.demo.screen import Screen
from applier.demo.simulator.broker import MockBroker
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.stage import TOPIC, DurableState, Stage, Verdict, Volume, moment_of_replica
from applier.model.errors import InvariantViolation, RetryableSinkError
from applier.model.segment import has_reached
from applier.sinks.factory import open_sink
from applier.sinks.port import Sink
from applier.telemetry.wording import count, moment

DEFAULT_DIRECTORY: Final = Path("demo")
MAX_TRANSACTIONS: Final = 8000
"""The embedded broker forgets what is beyond about 5 MB per partition."""
DDL_SHARE: Final = 0.012
"""Each DDL is a barrier that all streams wait for: some dozens show what they do, hundreds take minutes."""
REPLAYS: Final = 4


def demo(
    *,
    directory: Annotated[Path, typer.Option("--dir", help="Where the demo leaves its files.")] = DEFAULT_DIRECTORY,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another history.")] = 1,
    transactions: Annotated[int, typer.Option(min=100, max=MAX_TRANSACTIONS, help="How many transactions upstream makes.")] = 3000,
) -> None:
    """Run the whole pipeline on this machine. No server is needed.

    A simulated upstream writes to an embedded Kafka broker. A catch-up writes to a SQLite file, is killed with SIGKILL, and starts again.
    At the end every value of the replica is compared with upstream.
    """
    started = time.monotonic()
    screen = Screen(Console(highlight=False, soft_wrap=True))
    stage = Stage(directory, History(seed, HistoryOptions(transactions=transactions, ddl_share=DDL_SHARE)))
    stage.clear()
    try:
        verdicts = play(stage, screen, seed)
    finally:
        shutil.rmtree(stage.spark, ignore_errors=True)
    screen.closing(stage, verdicts, time.monotonic() - started)
    if any(verdict.problems for verdict in verdicts):
        raise typer.Exit(InvariantViolation.exit_code)


def play(stage: Stage, screen: Screen, seed: int) -> list[Verdict]:
    """Perform the acts and return the verdicts of the last one."""
    volume = stage.volume()
    screen.upstream(volume, seed)
    options = ProducerOptions(seed=seed, topic=TOPIC, dispatcher=Dispatcher.INDEX_VALUE, partitions=4, replays=REPLAYS)
    with MockBroker() as broker:
        records = produce_log(Producer(stage.history, options).log(), broker.bootstrap_servers)
        screen.feed(records, broker.bootstrap_servers, REPLAYS)
        config = stage.write_config(broker.bootstrap_servers)
        with open_sink(config.sink_settings()) as sink:
            sink.migrate()
            killed = first_run(stage, sink, screen, volume)
            second_run(stage, sink, screen, killed)
    return stage.verdicts()


def first_run(stage: Stage, sink: Sink, screen: Screen, volume: Volume) -> DurableState | None:
    """Catch up until half of the history is durable, kill everything, and compare what is left with upstream at that moment."""
    with WatchedProcess(catchup_command(stage.config), stage.log) as process, screen.waiting("catching up") as tell:
        if not process.wait_until(_watch(sink, tell, volume.middle_ts)):
            process.result()
            screen.line("  the catch-up was through before it could be killed: nothing to resume", "yellow")
            return None
        process.kill()
    killed = moment_of_replica(sink)
    if killed is None:
        raise InvariantViolation("the replica has lost its progress", remedy=f"See {stage.log}")
    screen.killed(killed, stage.verdicts(killed), stage.money(), volume)
    return killed


def second_run(stage: Stage, sink: Sink, screen: Screen, killed: DurableState | None) -> None:
    """Start again and let it come to the end."""
    if killed is None:
        return
    with WatchedProcess(catchup_command(stage.config), stage.log) as process, screen.waiting("going on") as tell:
        process.wait_until(_watch(sink, tell, None))
        result = process.result()
    end = moment_of_replica(sink)
    if end is not None:
        screen.resumed(killed, end, result)


def _watch(sink: Sink, tell: Callable[[str], None], until_ts: int | None) -> Callable[[], bool]:
    """Return a look at the durable progress that shows it and says whether ``until_ts`` is reached (None: never)."""

    def is_reached() -> bool:
        try:
            progress = sink.load()
        except RetryableSinkError:
            return False
        if progress is None:
            return False
        tell(f"checkpoint {moment(progress.checkpoint_ts)}, {count(progress.fence.window_id, 'commit')}")
        return until_ts is not None and has_reached(progress.checkpoint_ts, until_ts)

    return is_reached
