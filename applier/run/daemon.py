"""``run``: follows the topics until a shutdown is requested. It cycles while there is something to do, and waits while there is nothing.

Transient errors are retried for ``retry_for_s``, with a jittered exponential back-off; then they end the run as any other error does, with
the state intact. Every other error stops it at once: it would happen again, or an operator must decide. At the start each attempt opens
everything again; later the run keeps what it owns and reloads its state from the checkpoint.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event, stop_any, stop_when_event_set, wait_exponential_jitter
from tenacity.stop import stop_base

from applier.config import Config
from applier.model.errors import ApplierError, Fenced, SourceError
from applier.model.position import Ts
from applier.replica.context import Components, EngineSettings
from applier.replica.engine import Engine
from applier.replica.recovery import OwnerWatch, is_transient
from applier.replica.shutdown import Shutdown
from applier.run.assembly import StartOptions, as_submitted, begin, engine_settings, open_components, warn_of_zone
from applier.run.copy import AS_CONFIGURED, Copying, copying_for
from applier.run.ending import end_stored, outlasting_retries
from applier.run.pause import PauseGate
from applier.status.http_endpoint import HttpEndpoint
from applier.status.replica_access import SinkAccess
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor, MonitorSettings
from applier.telemetry.observer import Observer
from applier.telemetry.retries import Notes, failure_facts, retries_noted
from applier.telemetry.watchdog import Watchdog

FIRST_WAIT_S: Final = 0.25
JITTER_S: Final = 0.25
LONGEST_WAIT_S: Final = 5.0
"""A server that answers again is used after this time at the latest."""


def retrying(shutdown: Shutdown, retry_for_s: float, notes: Notes) -> Retrying:
    """Return attempts: they end with the first success, after ``retry_for_s`` of failures, and when a shutdown is requested.

    The last error is raised as it is. Each retry is noted; the monitor counts it together with retries inside of an attempt (of a single
    write, say).
    """
    failing = _FailingFor(retry_for_s)

    def note(state: RetryCallState) -> None:
        notes.note(LogEvent.RETRY, **_facts(state))

    return Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_any(failing, stop_when_event_set(shutdown.event)),
        wait=_until_the_end(failing),
        # A plain sleep would delay a shutdown by up to the longest wait.
        sleep=sleep_using_event(shutdown.event),
        before_sleep=note,
        reraise=True,
    )


class _FailingFor(stop_base):
    """Stop after attempts have failed for so long. The first attempt's own time does not count: it may have worked for hours."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: float | None = None

    def __call__(self, retry_state: RetryCallState) -> bool:
        return self.left_s(retry_state) <= 0

    def left_s(self, retry_state: RetryCallState) -> float:
        """Return the seconds until the attempts end."""
        # The monotonic time of the attempt's end: tenacity sets it before it asks how long to wait, and whether to stop.
        now = retry_state.outcome_timestamp or 0.0
        if self._since is None:
            self._since = now
        return self._since + self._limit_s - now


def _until_the_end(failing: _FailingFor) -> Callable[[RetryCallState], float]:
    """Return the waits between attempts. The last one ends at the deadline, which the log and ``/status`` name."""
    growing = wait_exponential_jitter(multiplier=FIRST_WAIT_S, jitter=JITTER_S, max=LONGEST_WAIT_S)
    return lambda state: max(0.0, min(growing(state), failing.left_s(state)))


def _facts(state: RetryCallState) -> dict[str, Any]:
    error = state.outcome.exception() if state.outcome is not None else None
    facts = {**failure_facts(error), "attempt": state.attempt_number, "wait_s": round(state.upcoming_sleep, 2)}
    if isinstance(error, SourceError) and "cause" in error.facts:
        facts["cause"] = error.facts["cause"]  # messages of Kafka's client hold no values
    return facts


IDLE_S = 0.05
"""Between two looks at the end offsets while nothing arrives: a small part of the latency, and a fraction of a percent of a core."""

PACE_S = 0.15
"""Between the starts of two listening jobs: one with three records costs as much as one with a hundred."""

SAVE_INTERVAL_S = 5.0
"""How often positions are saved that grew without a window, and shown to lag tools."""

SINK_RETRIES = 2
"""Inside of the sink: few, since the daemon's own retries last longer and a shutdown interrupts them."""

KAFKA_PATIENCE_S = 10.0
"""How long one request to Kafka may take: a shutdown cannot interrupt it. It is retried anyway."""

APPLY_ATTEMPTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the configuration and the command line say about a run."""

    start_ts: Ts
    retry_for_s: float
    take_over: bool = False
    copying: Copying | None = None


def follow(config: Config, *, take_over: bool, observer: Observer, shutdown: Shutdown) -> None:
    """Follow the source until ``shutdown`` is requested; raise an ApplierError if something else ends the run."""
    config = as_submitted(config)
    options = RunOptions(
        start_ts=Ts(config.source.start_ts),
        retry_for_s=config.run.retry_for_s,
        take_over=take_over,
        copying=copying_for(config, AS_CONFIGURED, shutdown),
    )
    source = replace(config.source_settings(), unreachable_after_s=KAFKA_PATIENCE_S)
    settings = replace(engine_settings(config, apply_attempts=APPLY_ATTEMPTS), pace_s=PACE_S, idle_s=IDLE_S)
    monitor = Monitor(
        observer, MonitorSettings(replica=config.name, stall_after_s=config.source.stall_after_s, retry_for_s=config.run.retry_for_s)
    )
    with (
        end_stored("run", config.sink_settings(), shutdown),
        retries_noted(monitor),
        ExitStack() as stack,
    ):
        endpoint = stack.enter_context(
            HttpEndpoint(config.http, monitor, SinkAccess(config.sink_settings(), lambda: monitor.state().timeline))
        )
        # Inside of the endpoint, which says how the run ends, to pages that are open.
        stack.enter_context(_as_it_ends(shutdown, monitor))
        stack.callback(monitor.finish)
        # From here on: opening may hang too (a database that accepts connections and does not answer).
        stack.enter_context(Watchdog(monitor))
        # Before the replica is owned: a supervisor asks /healthz while the run waits for the replica lock.
        endpoint.open()
        warn_of_zone(config, monitor)
        for attempt in retrying(shutdown, options.retry_for_s, monitor):
            with attempt, ExitStack() as trial:
                components = trial.enter_context(open_components(config, source, config.sink_settings(retries=SINK_RETRIES), monitor))
                daemon = Daemon(components, settings, monitor, shutdown)
                trial.callback(daemon.close)
                daemon.begin(options)
                # A failed attempt closes what it has opened; the first that owns the replica stays open until the end.
                stack.push(trial.pop_all())
        stack.push(endpoint.report_end)
        with _as_it_ends(shutdown, monitor):
            daemon.follow(options.retry_for_s, meanwhile=endpoint.keep_open)


@contextmanager
def _as_it_ends(shutdown: Shutdown, monitor: Monitor) -> Iterator[None]:
    """Give an error of the block the exit code of the run; none if it is ignored at a shutdown."""
    with outlasting_retries(), ignoring_retries_at_shutdown(shutdown, monitor):
        yield


@contextmanager
def ignoring_retries_at_shutdown(shutdown: Shutdown, monitor: Monitor) -> Iterator[None]:
    """Ignore an error that would be retried if no shutdown were requested: nothing is lost, and the next start continues."""
    try:
        yield
    except ApplierError as error:
        if not (shutdown.is_requested and is_transient(error)):
            raise
        monitor.note(LogEvent.RETRY_ABANDONED, reason=error.message)


@contextmanager
def _raising_lost_owner(shutdown: Shutdown, monitor: Monitor) -> Iterator[None]:
    """Log a lost ownership, and raise its error, also instead of errors that it has caused."""
    try:
        yield
    except ApplierError as error:
        monitor.unready(is_fenced=isinstance(error, Fenced))
        # A lost replica lock breaks connections, so any error may come first; the reason is the lost lock.
        lost = shutdown.error or (error if isinstance(error, Fenced) else None)
        if lost is not None:
            monitor.note(LogEvent.OWNER_LOST, **failure_facts(lost))
        if lost is None or lost is error:
            raise
        raise lost from error
    if shutdown.error is not None:
        monitor.note(LogEvent.OWNER_LOST, **failure_facts(shutdown.error))
        raise shutdown.error


class Daemon:
    """One run over given components."""

    def __init__(self, components: Components, settings: EngineSettings, monitor: Monitor, shutdown: Shutdown) -> None:
        self._components, self._monitor, self._shutdown = components, monitor, shutdown
        self._engine = Engine(components, settings, monitor, shutdown)
        self._saved_at = time.monotonic()
        self._watch = OwnerWatch(components.sink, self._abort)
        self._pause = PauseGate(components.sink, self._engine, monitor, shutdown)

    def begin(self, options: RunOptions) -> None:
        """Own the replica and load its state."""
        self._watch.start()
        start = StartOptions(start_ts=options.start_ts, take_over=options.take_over, copying=options.copying)
        begin(self._components, self._engine, self._monitor, start)

    def follow(self, retry_for_s: float, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Cycle until a shutdown is requested, then save the progress. ``meanwhile`` is called before each cycle."""
        with _raising_lost_owner(self._shutdown, self._monitor):
            while not self._shutdown.is_requested:
                meanwhile()
                for attempt in retrying(self._shutdown, retry_for_s, self._monitor):
                    with attempt:
                        self._cycle()
        # Outside of the block: a run that is aborted must not write.
        self._save(is_last=True)
        # Before the line about the end, which is the last of a run.
        self._monitor.finish()
        self._monitor.note(LogEvent.SHUTDOWN_COMPLETE, checkpoint_ts=self._engine.progress.checkpoint_ts)

    def close(self) -> None:
        """Stop the threads."""
        self._watch.stop()
        self._engine.close()

    def _abort(self, error: Exception) -> None:
        """End the run at once, whatever the main thread waits for: another run owns the replica, or the heartbeat has failed."""
        # Before the shutdown, which may take seconds: a supervisor must not send readers to a run that has lost its replica.
        self._monitor.unready(is_fenced=isinstance(error, Fenced))
        self._shutdown.abort(error)

    def _cycle(self) -> None:
        """Cycle once; after a failure, cycle until the replica moves, Kafka answers, or there is nothing to do."""
        # Only then may the time of the retries start again. Every attempt at a segment that cannot be written reloads, reads, and saves
        # positions that grew: a successful cycle alone proves nothing. Nor does one that does nothing before the next reading is due.
        while not self._shutdown.is_requested and not self._pause.wait_if_paused():
            self._engine.cycle()
            if time.monotonic() - self._saved_at >= SAVE_INTERVAL_S:
                self._save()
            recovery = self._engine.recovery
            if self._engine.is_idle or not (recovery.is_failing or recovery.cannot_read):
                return

    def _save(self, *, is_last: bool = False) -> None:
        self._engine.save_progress(is_last=is_last)
        # As information only (DESIGN.md 4): a start reads the sink's positions, never the consumer group's.
        if (topics := self._components.source.topics) is not None:
            topics.show_offsets({stream: position.next_offset for stream, position in self._engine.progress.positions.items()})
        self._monitor.quarantined(self._components.sink.bookkeeping.quarantine.count())
        # The sink has answered, if only this question. Looked at here, because an idle run asks it nothing else.
        if self._engine.is_idle:
            self._monitor.worked(*Side)
        elif self._engine.waits_for_nothing:
            self._monitor.worked(Side.REST)
        self._saved_at = time.monotonic()
