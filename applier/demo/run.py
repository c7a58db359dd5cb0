"""The demo, step by step: upstream, Kafka, a catch-up that is killed in the middle, a second one, the comparison."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from applier.demo.comparison import DurableState, TableVerdict, compare, durable_state, money_in, steps_until
from applier.demo.directory import TOPIC, DemoDirectory
from applier.demo.live.feed import LiveTopic
from applier.demo.live.live_report import LiveReport
from applier.demo.live.session import LiveOptions, LiveReplica, live_on
from applier.demo.process import WatchedProcess, catchup_command
from applier.demo.report import DemoReport
from applier.demo.simulator.broker import KEPT_BYTES, MockBroker
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, Volume, volume_of
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer import LogRecord, Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import ConfigError, InvariantViolation, Remedy, RetryableSinkError
from applier.model.position import Stream, Ts
from applier.model.segment import has_reached
from applier.sinks.port import Sink
from applier.sinks.registry import open_sink
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.wording import count, time_text

REPLAYS: Final = 4
RECORD_BYTES: Final = 24
"""The most bytes that a record takes in a batch, without key and value."""
_FEWER: Final = Remedy("demo.fewer-transactions", "Run the demo again with fewer --transactions")


def run_demo(
    directory: DemoDirectory,
    history: History,
    report: DemoReport,
    live: LiveOptions | None = None,
    form: WireFormat = WireFormat.OPEN_PROTOCOL,
) -> list[TableVerdict]:
    """Run the demo in the directory and return the verdicts of the comparison at the end. ``live``: let the replica live until a signal.

    ``form``: what the changefeed writes.
    """
    directory.clear()
    try:
        volume = volume_of(history)
        report.upstream(volume, history.seed)
        # INDEX_VALUE: the rows of one transaction are spread over all partitions.
        options = ProducerOptions(
            seed=history.seed, topic=TOPIC, dispatcher=Dispatcher.INDEX_VALUE, partitions=4, replays=REPLAYS, form=form
        )
        log = _whole(list(Producer(history, options).log()))
        with MockBroker() as broker:
            records = produce_log(log, broker.bootstrap_servers)
            report.feed(records, broker.bootstrap_servers, REPLAYS, form)
            config = directory.write_config(broker.bootstrap_servers, None if live is None else live.port, form.protocol)
            with open_sink(config.sink_settings()) as sink:
                sink.migrate()
                killed = _catch_up_until_killed(directory, history, sink, report, volume)
                if killed is not None:
                    _resume(directory, sink, report, killed)
                if live is not None:
                    topic = LiveTopic(broker.bootstrap_servers, form)
                    replica = LiveReplica(files=directory, topic=topic, sink=sink, history=history, volume=volume)
                    return live_on(replica, live, LiveReport(report, directory, live.port))
        return compare(directory.replica, history, directory.oracle)
    finally:
        shutil.rmtree(directory.spark, ignore_errors=True)


def _whole(log: Sequence[LogRecord]) -> Sequence[LogRecord]:
    """Return a log. ConfigError if a partition has more of it than the embedded broker keeps."""
    sizes = Counter[Stream]()
    for record in log:
        sizes[record.stream] += RECORD_BYTES + len(record.key or b"") + len(record.value)
        if sizes[record.stream] > KEPT_BYTES:
            raise ConfigError("the log of so many transactions is larger than the embedded broker keeps", remedy=_FEWER)
    return log


def _catch_up_until_killed(
    directory: DemoDirectory, history: History, sink: Sink, report: DemoReport, volume: Volume
) -> DurableState | None:
    """Catch up until half of the history is durable, kill everything, and compare the replica with upstream at its checkpoint."""
    with WatchedProcess(catchup_command(directory.config), directory.log) as process, report.progress("catching up") as show:
        # The sink says how far it is, not the process: only what is committed survives the kill.
        if not process.wait_until(_is_reached(sink, show, volume.middle_ts)):
            process.result()
            report.line("  the catch-up ended before it could be killed, so there is nothing to resume", "yellow")
            return None
        process.kill()
    killed = durable_state(sink)
    if killed is None:
        raise InvariantViolation("the replica has lost its progress", remedy=Remedy("demo.see-log-of-run", f"See {directory.log}"))
    # Compared before the second run: a half transaction would be repaired by it.
    verdicts = compare(directory.replica, steps_until(history, killed), directory.oracle_at_kill)
    report.killed(killed, verdicts, money_in(directory.replica), volume)
    return killed


def _resume(directory: DemoDirectory, sink: Sink, report: DemoReport, killed: DurableState) -> None:
    """Start the catch-up again and let it end."""
    with WatchedProcess(catchup_command(directory.config), directory.log) as process, report.progress("resuming") as show:
        process.wait_until(_is_reached(sink, show, None))
        result = process.result()
    end = durable_state(sink)
    if end is not None:
        report.resumed(killed, end, result)


def _is_reached(sink: Sink, show: Callable[[str], None], until_ts: Ts | None) -> Callable[[], bool]:
    """Return a function that shows the durable progress and returns whether ``until_ts`` is reached (None: never)."""

    def is_reached() -> bool:
        try:
            progress = sink.load()
        except RetryableSinkError:  # the catch-up is writing; the next look will succeed
            return False
        if progress is None:
            return False
        show(f"checkpoint {time_text(progress.checkpoint_ts, TSO_TIMELINE)}, {count(progress.fence.window_id, 'commit')}")
        return until_ts is not None and has_reached(progress.checkpoint_ts, until_ts)

    return is_reached
