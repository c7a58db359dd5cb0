"""The demo while it lives: upstream writes, the daemon follows, until a signal. Then all ends in order, and everything is compared.

One thread does it all, several times a second: it writes what is due, looks after the daemon, and prints a line now and then. The daemon,
the broker and their children end with this process, however it ends (``applier.demo.guard``).
"""

import time
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Final

from applier.demo.comparison import TableVerdict, new_oracle, verdicts_of
from applier.demo.directory import DemoDirectory
from applier.demo.live.daemon import LiveDaemon, run_command
from applier.demo.live.endless_history import endless_steps
from applier.demo.live.feed import LiveFeed, LiveTopic
from applier.demo.live.live_report import LiveReport
from applier.demo.simulator.history import History, Volume
from applier.model.errors import ApplierError, Remedy, RetryableSinkError
from applier.replica.shutdown import Shutdown, shutdown_on_signals
from applier.sinks.port import Sink

TICK_S: Final = 0.2
LINE_EVERY_S: Final = 15.0
PAGE_EVERY_S: Final = 1.0
CATCH_UP_S: Final = 120.0
END_S: Final = 240.0
"""Longer than all that an orderly end waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """``port``: of the page; ``rows_per_s``: how much upstream writes."""

    port: int
    rows_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReplica:
    """What the demo leaves for its life: files, topic, sink, and the history that the replica has up to the end of ``volume``."""

    files: DemoDirectory
    topic: LiveTopic
    sink: Sink
    history: History
    volume: Volume


def live_on(replica: LiveReplica, options: LiveOptions, report: LiveReport) -> list[TableVerdict]:
    """Compare the replica, let it live until a signal, and compare it again. Return the last verdicts."""
    steps = endless_steps(replica.history)
    with closing(new_oracle(replica.files.oracle)) as oracle:
        oracle.apply(islice(steps, replica.volume.steps))
        verdicts = verdicts_of(replica.files.replica, oracle)
        if not report.demo_is_equal(verdicts):
            return verdicts
        feed = LiveFeed(steps, oracle, replica.topic, after_ts=replica.volume.last_ts, rows_per_s=options.rows_per_s)
        shutdown = Shutdown()
        with (
            shutdown_on_signals(shutdown, timeout_s=END_S),
            LiveDaemon(replica.files, options.port, run_command(replica.files.config)) as daemon,
        ):
            session = LiveSession(replica.sink, feed, daemon, report)
            session.run(shutdown)
            session.end()
        return verdicts_of(replica.files.replica, oracle)


class LiveSession:
    """Upstream, daemon and terminal, from the first tick to the end."""

    def __init__(self, sink: Sink, feed: LiveFeed, daemon: LiveDaemon, report: LiveReport) -> None:
        self._sink = sink
        self._feed = feed
        self._daemon = daemon
        self._report = report
        self._next_line_s = 0.0

    def run(self, shutdown: Shutdown) -> None:
        """Let everything live until a shutdown is requested."""
        self._report.begun()
        while not shutdown.is_requested:
            now_s = time.monotonic()
            self._feed.tick(now_s)
            self._look(now_s)
            shutdown.wait(TICK_S)

    def end(self) -> None:
        """Stop upstream, let the replica apply everything, stop the daemon. ApplierError if one of them does not end in time."""
        self._report.stopping(self._feed.written)
        self._feed.promise()
        deadline = time.monotonic() + CATCH_UP_S
        while not self._look(time.monotonic()):
            if time.monotonic() > deadline:
                remedy = Remedy("demo.see-status-of-pause", "See `applier status`: a paused replica applies nothing")
                raise ApplierError("the replica has not caught up in time", remedy=remedy, seconds=CATCH_UP_S)
            time.sleep(TICK_S)
        self._daemon.stop()

    def _look(self, now_s: float) -> bool:
        """Look after the daemon and the replica. Return whether the replica has everything."""
        ended = self._daemon.restart_if_ended()
        if ended:
            self._report.restarted(ended)
        has_everything = self._has_everything()
        if now_s >= self._next_line_s:
            answer = self._daemon.ask()
            self._report.state(answer, self._feed.written, waits=not self._feed.backlog.takes_rows)
            # More often until it answers: one waits for the page.
            self._next_line_s = now_s + (LINE_EVERY_S if answer is not None else PAGE_EVERY_S)
        return has_everything

    def _has_everything(self) -> bool:
        """Note the checkpoint, and return whether all of upstream's commits are in it."""
        try:
            progress = self._sink.load()
        except RetryableSinkError:  # the daemon is writing; the next look will succeed
            return False
        if progress is None:
            return False
        self._feed.backlog.applied(progress.checkpoint_ts)
        return self._feed.is_in(progress.checkpoint_ts)
