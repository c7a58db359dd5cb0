"""``run``: follows the topics until it is asked to stop. It cycles while there is something to do, and waits where there is nothing.

Errors that pass by themselves are tried again for ``retry_for_s``, then they stop it as any other would, with the state intact. At the
start everything is opened anew for each attempt; later the run keeps what it owns and begins anew from what the sink says.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from applier.config import Config
from applier.model.errors import ApplierError
from applier.model.position import Ts
from applier.replica.context import Components, EngineSettings
from applier.replica.engine import Engine
from applier.replica.owner_watch import OwnerWatch
from applier.replica.recovery import is_transient
from applier.replica.shutdown import Shutdown
from applier.run.assembly import as_submitted, begin, engine_settings, open_components, warn_of_zone
from applier.run.retry import retrying
from applier.status.http_endpoint import HttpEndpoint
from applier.telemetry import Observer, retries_noted
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor, MonitorSettings
from applier.telemetry.watchdog import Watchdog

IDLE_S = 0.05
"""Between two looks at the ends of the topics while nothing arrives: a small part of the latency, and a fraction of a percent of a core."""

PACE_S = 0.15
"""Between the beginnings of two cycles, unless something is due: one that finds three records costs as much as one that finds a hundred."""

SAVE_INTERVAL_S = 5.0
"""How often positions are saved that grew without a window, and shown to lag tools."""

SINK_RETRIES = 2
"""Inside of the sink: the daemon's own retries are longer, and can be interrupted."""

KAFKA_PATIENCE_S = 10.0
"""How long one question to Kafka may take: it cannot be interrupted, and is put again. A part of the time for an end in good order."""

APPLY_ATTEMPTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the configuration and the command line say about a run."""

    start_ts: Ts
    retry_for_s: float
    take_over: bool = False


def follow(config: Config, *, take_over: bool, observer: Observer, shutdown: Shutdown) -> None:
    """Follow the topics until ``stop`` is wished; raise an ApplierError that says why it ends otherwise."""
    config = as_submitted(config)
    options = RunOptions(start_ts=Ts(config.source.start_ts), retry_for_s=config.run.retry_for_s, take_over=take_over)
    kafka = replace(config.kafka_settings(), unreachable_after_s=KAFKA_PATIENCE_S)
    settings = engine_settings(config, apply_attempts=APPLY_ATTEMPTS)
    monitor = Monitor(observer, MonitorSettings(replica=config.name, stall_after_s=config.source.stall_after_s))
    with retries_noted(monitor), quiet_if_stopped(shutdown, monitor), ExitStack() as stack:
        endpoint = stack.enter_context(HttpEndpoint(config.http, monitor))
        stack.callback(monitor.finish)
        stack.enter_context(Watchdog(monitor))
        endpoint.open()
        warn_of_zone(config, monitor)
        for attempt in retrying(shutdown, options.retry_for_s, monitor):
            with attempt, ExitStack() as trial:
                components = trial.enter_context(open_components(config, kafka, config.sink_settings(retries=SINK_RETRIES)))
                daemon = Daemon(components, settings, monitor, shutdown)
                trial.callback(daemon.close)
                daemon.begin(options)
                stack.push(trial.pop_all())
        daemon.follow(options.retry_for_s, meanwhile=endpoint.keep_open)


@contextmanager
def quiet_if_stopped(shutdown: Shutdown, monitor: Monitor) -> Iterator[None]:
    """Let an error pass that would have been tried again, had the end not been wished: nothing is lost, and the next start goes on."""
    try:
        yield
    except ApplierError as error:
        if not (shutdown.is_requested and is_transient(error)):
            raise
        monitor.note(LogEvent.RETRY_ABANDONED, reason=error.message)


@contextmanager
def _ending_with_its_cause(shutdown: Shutdown, monitor: Monitor) -> Iterator[None]:
    """Raise the error that the end was wished for, also in the place of what that end has broken."""
    try:
        yield
    except ApplierError as error:
        monitor.unready()
        if shutdown.cause is not None:
            raise shutdown.cause from error
        raise
    if shutdown.cause is not None:
        raise shutdown.cause


class Daemon:
    """One run over given components."""

    def __init__(self, components: Components, settings: EngineSettings, monitor: Monitor, shutdown: Shutdown) -> None:
        self._components, self._monitor, self._shutdown = components, monitor, shutdown
        self._engine = Engine(components, settings, monitor, shutdown)
        self._saved_at = time.monotonic()
        self._watch = OwnerWatch(components.sink, self._end)

    def begin(self, options: RunOptions) -> None:
        """Own the replica and take it up."""
        self._watch.start()
        begin(self._components, self._engine, start_ts=options.start_ts, take_over=options.take_over)

    def follow(self, retry_for_s: float, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Cycle until the end is wished, then save the progress. ``meanwhile`` is called again and again."""
        with _ending_with_its_cause(self._shutdown, self._monitor):
            while not self._shutdown.is_requested:
                meanwhile()
                for attempt in retrying(self._shutdown, retry_for_s, self._monitor):
                    with attempt:
                        self._go_on()
        self._save()
        self._monitor.note(LogEvent.SHUTDOWN_COMPLETE, checkpoint_ts=self._engine.progress.checkpoint_ts)

    def close(self) -> None:
        """Let go of what runs beside."""
        self._watch.stop()
        self._engine.close()

    def _end(self, error: Exception) -> None:
        """End at once, in whatever the main thread waits: another run owns the replica, or the heartbeat cannot go on."""
        self._monitor.unready()
        self._shutdown.end_with(error)

    def _go_on(self) -> None:
        """Cycle once, and on while it is not shown that a failure has passed: until the replica moves on, or there is nothing to do.

        Less shows nothing of a segment that cannot be written: every attempt at it begins anew, reads, and saves positions that grew.
        """
        while not self._shutdown.is_requested:
            began = time.monotonic()
            is_busy = self._engine.cycle()
            if time.monotonic() - self._saved_at >= SAVE_INTERVAL_S:
                self._save()
            if not is_busy:
                self._shutdown.pause(IDLE_S)
                return
            if not self._engine.coordinator.is_step_due:
                self._shutdown.pause(max(0.0, began + PACE_S - time.monotonic()))
            if not self._engine.recovery.is_in_doubt:
                return

    def _save(self) -> None:
        self._engine.save_progress()
        self._components.source.show_offsets({stream: position.next_offset for stream, position in self._engine.progress.positions.items()})
        self._monitor.quarantined(self._components.sink.quarantine.count())
        self._saved_at = time.monotonic()
