"""Makes the state of one run from what the engine reports and counts, and passes events to the log and to the display.

The engine's thread calls it. Other threads read ``state()``: a frozen value that is replaced and never changed. ``CheckpointLog`` decides
which checkpoints get a line in the log; time is passed in.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

from applier.coordinator import Coordinator, StreamStatus
from applier.model.position import NO_TS, Offset, Stream, Timeline, Ts, is_ahead
from applier.model.segment import has_reached
from applier.telemetry.activity import Activity, Blocker
from applier.telemetry.failing import Failed, FailureLog, Side, sentence
from applier.telemetry.log import LOGGER_NAME, extra_of, utc_text
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Observer, Watched
from applier.telemetry.run_state import Histogram, Paused, RunState, Stall, StallRule, StreamsView, StreamView
from applier.telemetry.tally import Tally

# --- streams ---------------------------------------------------------------------------------------------------------
# Collects what a run shows of its streams: their status, how long they are silent, the stall, whether the run has caught up once.
#
# A run is ready once everything that the topics held at its start is applied.


class ReadyRule:
    """Watches a run until it has caught up once. Afterwards it stays ready: its lag shows the distance."""

    def __init__(self) -> None:
        self._ends: Mapping[Stream, Offset] | None = None
        self._goal: Ts | None = None
        self._is_ready = False

    def observe(self, streams: Sequence[StreamStatus], checkpoint_ts: Ts) -> bool:
        """Check the streams; return whether the run has caught up with the ends that the first check showed."""
        # Fixed at the first look: a feed that always grows would never count as ready.
        if self._ends is None:
            self._ends = {status.stream: status.end_offset for status in streams}
        if self._goal is None and all(status.read_offset >= self._ends.get(status.stream, status.read_offset) for status in streams):
            self._goal = min((status.resolved_ts for status in streams), default=checkpoint_ts)
        self._is_ready = self._is_ready or (self._goal is not None and has_reached(checkpoint_ts, self._goal))
        return self._is_ready


LOOK_S: Final = 0.5
"""The least time between two looks: a look costs tens of microseconds per stream, and cycles are short."""
LOOK_SHARE: Final = 0.02
"""The share of the time that looks may take. At 10,000 streams a look took 0.3 s, so twice a second would be most of a core."""


class StreamCollector:
    """Looks at the streams of one run, now and then. ``stall_after_s``: see ``StallRule``."""

    def __init__(self, stall_after_s: float) -> None:
        self._stall_rule, self._ready_rule = StallRule(stall_after_s), ReadyRule()
        self._totals = _RunningTotals()
        self.is_ready = False
        """Whether the run has caught up once."""
        self._next_s: float | None = None

    def is_due(self, now_s: float) -> bool:
        """Return whether the next look is due."""
        return self._next_s is None or now_s >= self._next_s

    def looked(self, began_s: float, ended_s: float) -> None:
        """Plan the next look: the longer one lasts, the later comes the next."""
        self._next_s = began_s + max(LOOK_S, (ended_s - began_s) / LOOK_SHARE)

    def collect(self, coordinator: Coordinator, checkpoint_ts: Ts, durations: tuple[Histogram, ...], now_s: float) -> StreamsView:
        """Look at every stream. ``now_s`` is of any clock that does not step back."""
        streams, holding = coordinator.streams, coordinator.holding_stream
        stall = self._stall_rule.observe(streams, holding, now_s)
        self.is_ready = self._ready_rule.observe(streams, checkpoint_ts)
        return StreamsView(
            each=tuple(self._view(status) for status in streams),
            # A binlog alone holds nothing back: what is read of it is promised.
            holding=None if all(status.is_promised_by_reading for status in streams) else holding,
            stall=stall,
            pending_ddls=len(coordinator.pending_ddls),
            cached_bytes=coordinator.cached_bytes,
            durations=durations,
        )

    def _view(self, status: StreamStatus) -> StreamView:
        replays, fallbacks, missing = self._totals.add(status.stream, (status.replays, status.fallbacks, status.missing))
        silent_s = self._stall_rule.silent_s(status.stream)
        return StreamView(status=status, silent_s=silent_s, replays=replays, fallbacks=fallbacks, missing=missing)


class _RunningTotals:
    """Sums counts that start at 0 again when state is reloaded: Prometheus' counters must not step back."""

    def __init__(self) -> None:
        self._last: dict[Stream, tuple[int, ...]] = {}
        self._total: dict[Stream, tuple[int, ...]] = {}

    def add(self, stream: Stream, counts: Iterable[int]) -> tuple[int, ...]:
        """Take the counts of a stream as they are now; return them summed over all reloads."""
        now = tuple(counts)
        last = self._last.get(stream, (0,) * len(now))
        total = self._total.get(stream, (0,) * len(now))
        self._last[stream] = now
        # A count below the last one means a new coordinator: its count is added, not its difference.
        self._total[stream] = tuple(t + (n - b if n >= b else n) for t, n, b in zip(total, now, last, strict=True))
        return self._total[stream]


# --- monitor ---------------------------------------------------------------------------------------------------------


class CheckpointLog:
    """Which checkpoints get a line: the newest, each once."""

    def __init__(self) -> None:
        self._ts: Ts | None = None
        self._at_s: float | None = None

    def is_due(self, checkpoint_ts: Ts, now_s: float, *, at_least_s: float) -> bool:
        """Return whether a line about ``checkpoint_ts`` is due: the last one is ``at_least_s`` old, and about another."""
        is_old = self._at_s is None or now_s - self._at_s >= at_least_s
        if checkpoint_ts in {NO_TS, self._ts} or not is_old:
            return False
        self._ts, self._at_s = checkpoint_ts, now_s
        return True


LOGGER = logging.getLogger(LOGGER_NAME)

CHECKPOINT_LOG_S: Final = 10.0
"""The least time between two lines about the checkpoint: a window closes every second or so, for months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """``replica``: its name. ``stall_after_s``: seconds after which a silent stream that holds back the watermark is named.

    ``retry_for_s``: how long the run retries what fails; None: a number of times.
    """

    replica: str = "replica"
    stall_after_s: float = 60.0
    retry_for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """``now_s`` never steps back; ``unix_s`` is the time of day."""

    now_s: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time


class Monitor:
    """Implements ``Watcher``."""

    def __init__(self, observer: Observer, settings: MonitorSettings | None = None, clock: Clock | None = None) -> None:
        self._observer, self._clock = observer, clock or Clock()
        self._settings = settings = settings or MonitorSettings()
        self.tally = Tally()
        self._replica: Watched | None = None
        self._collector = StreamCollector(settings.stall_after_s)
        self._retries: Counter[str] = Counter()
        self._checkpoint_log = CheckpointLog()
        now_s = self._clock.now_s()
        self._activity, self._failures = Activity(), FailureLog()
        self._held_since_s = math.inf
        self._has_failed = False
        self._updating = Lock()
        self._state = RunState(replica=settings.replica, started_at_s=self._clock.unix_s(), began_s=now_s, progress_s=now_s)

    # --- what the engine reports -------------------------------------------------------------------------------------

    def opened(self, timeline: Timeline) -> None:
        """Show timestamps as the source means them."""
        self._update(timeline=timeline)
        self._observer.update(self._state)

    def watch(self, replica: Watched) -> None:
        """Look at ``replica`` from now on."""
        self._replica = replica

    def enter(self, phase: str) -> None:
        """Show that the run is in ``phase`` from now on."""
        self._enter(phase, "")

    @contextmanager
    def during(self, phase: str, ddl: str = "") -> Iterator[None]:
        """Show ``phase`` for the time of the block, and what was before it afterwards."""
        before = self._activity.now
        self._enter(phase, ddl)
        try:
            yield
        finally:
            self._enter(before, "")

    @contextmanager
    def starting_spark(self) -> Iterator[None]:
        """Show for the time of the block that Spark starts. Any thread may call it."""
        with self._activity.starting_spark():
            self._update()
            self._observer.update(self._state)
            yield
        self._update()

    def _enter(self, phase: str, ddl: str) -> None:
        self._activity.enter(phase, ddl, self._clock.unix_s())
        self.changed()

    def held_since(self, since_s: float) -> None:
        """Record since when a segment is being applied."""
        self._held_since_s = since_s

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Log what happened and pass it on."""
        is_logged = event is not LogEvent.RETRY or self._count_failure(facts)
        self._update(progress_s=self._clock.now_s())
        self._pass_on(event, facts, is_logged=is_logged)
        # A run that waits makes no step, after which it would be shown.
        if event is LogEvent.RETRY:
            self._observer.update(self._state)

    def worked(self, *sides: Side) -> None:
        """Mark these sides healthy: what failed there is over."""
        # Looked at without the lock: the engine calls this for every segment and every listing.
        if not self._failures.is_failing:
            return
        with self._updating:
            lasted_s = self._failures.worked(frozenset(sides), self._clock.unix_s())
        self._update()
        if lasted_s is not None:
            self._pass_on(LogEvent.RECOVERED, {"after_s": round(lasted_s, 1)})

    def pause(self, said_by: str, since_s: float) -> None:
        """Show that the run is paused; called again while it is. What failed before is neither failing nor recovered: it is not tried."""
        if self._state.paused is not None:
            # The sink was asked whether it still is.
            self.worked(*Side)
        with self._updating:
            self._failures.forget(self._clock.unix_s())
        self._update(paused=Paused(since_s=since_s, said_by=said_by))

    def resume(self) -> None:
        """Show that the run is no longer paused."""
        self._update(paused=None)

    def _count_failure(self, facts: dict[str, Any]) -> bool:
        """Count a failure, and add what is known of it to its facts; return whether it is logged."""
        settings, unix_s = self._settings, self._clock.unix_s()
        failed = Failed(
            error=sentence(facts),
            error_class=str(facts.get("error")),
            side=Side.of(str(facts.get("error"))),
            # Where a number of attempts counts and not a time, each of them is one that a person would count.
            is_inner=bool(facts.pop("is_inner", False)) and settings.retry_for_s is not None,
            # Of one of several nested waits: the log counts attempts as a person does, and would name another one.
            wait_s=float(facts.pop("wait_s", 0.0)),
            gives_up_in_s=settings.retry_for_s,
        )
        with self._updating:
            self._retries[failed.error_class] += 1
            is_due = self._failures.failed(failed, unix_s)
            failing = self._failures.failing
        self._update(retries=tuple(sorted(self._retries.items())))
        if failing is not None:
            facts |= {"attempt": failing.attempt, "failing_for_s": round(unix_s - failing.since_s, 1)}
            if failing.gives_up_at_s is not None:
                facts["gives_up_at"] = utc_text(datetime.fromtimestamp(failing.gives_up_at_s, UTC))
        return is_due

    def changed(self) -> None:
        """Make a new state and show it: of the streams now and then, of everything else always."""
        now_s, replica = self._clock.now_s(), self._replica
        if replica is None:
            self._update(progress_s=self._progress_s(now_s))
            self._observer.update(self._state)
            return
        if self._collector.is_due(now_s):
            self._look(replica, now_s)
        counts, total, checkpoint_ts = self.tally.counts, self._state.records_total, replica.progress.checkpoint_ts
        # One update for all: a state costs some 15 µs, and this is called several times in a cycle.
        self._update(
            progress_s=self._progress_s(now_s),
            # A checkpoint in the future drops rows: whoever sends queries here would see old ones.
            is_ready=self._collector.is_ready and not is_ahead(checkpoint_ts, self._state.timeline, int(self._clock.unix_s() * 1000)),
            epoch=replica.progress.fence.epoch,
            checkpoint_ts=checkpoint_ts,
            source_state=replica.progress.source_state,
            watermark=replica.coordinator.watermark,
            counts=counts,
            # What is written meanwhile is read too, and nothing is read that is not there.
            records_total=max(total, counts.records) if total else 0,
        )
        self._log_checkpoint(at_least_s=CHECKPOINT_LOG_S)
        self._observer.update(self._state)

    def _progress_s(self, now_s: float) -> float:
        return max(self._state.progress_s, min(now_s, self._held_since_s))

    def expect(self, records: int) -> None:
        """Record the number of records between the replica's position at the start and the ends that were known then."""
        self._update(records_total=records)

    def quarantined(self, events: int) -> None:
        """Record how many events wait in quarantine."""
        self._update(quarantined=events)

    def finish(self) -> None:
        """Note that the run ends: log the checkpoint that it leaves. May be repeated."""
        if self._replica is not None:
            self._update(checkpoint_ts=self._replica.progress.checkpoint_ts, counts=self.tally.counts)
            self._log_checkpoint(at_least_s=0.0)
        self._activity.end()
        self._update(is_ready=False)

    def _update(self, **changes: Any) -> None:
        """Replace the state. Under a lock: retries are noted from the thread that listens, too, and ``unready`` from the owner watch."""
        with self._updating:
            # In here: what the engine found before `unready` would otherwise be stored after it, and stay for as long as a DDL lasts.
            failing, activity, unix_s = self._failures.shown, self._activity, self._clock.unix_s()
            if self._has_failed or failing is not None:
                changes["is_ready"] = False
            paused, streams = changes.get("paused", self._state.paused), changes.get("streams", self._state.streams)
            blocker = Blocker(is_failing=failing is not None, is_paused=paused is not None, is_stalled=streams.stall is not None)
            phase, since_s = activity.shown(blocker, unix_s)
            self._state = replace(
                self._state,
                phase=phase,
                phase_since_s=since_s,
                current_ddl=activity.ddl,
                ddl_since_s=activity.ddl_since_s,
                failing=failing,
                **changes,
            )

    # --- what other threads read and report --------------------------------------------------------------------------

    def state(self) -> RunState:
        """Return the state as it is now."""
        return self._state

    def unready(self, *, is_fenced: bool = False) -> None:
        """Note that the run has failed, or has lost its replica (``is_fenced``): from now on it is not ready."""
        self._has_failed = True
        self._update(is_fenced=is_fenced or self._state.is_fenced)

    def without_progress_s(self) -> float:
        """Return how many seconds ago the run has made its last step."""
        return self._clock.now_s() - self._state.progress_s

    def report_no_progress(self, silent_s: float) -> None:
        """Log that the run has made no step for ``silent_s``, and what it was about to do."""
        state = self._state
        facts: dict[str, Any] = {"phase": state.phase, "silent_s": round(silent_s, 1)}
        # The statement names the table that another session may have locked.
        if state.current_ddl:
            facts["ddl"] = state.current_ddl
        self._pass_on(LogEvent.NO_PROGRESS, facts)

    # ---------------------------------------------------------------------------------------------------------------

    def _pass_on(self, event: LogEvent, facts: dict[str, Any], *, is_logged: bool = True) -> None:
        if is_logged:
            LOGGER.log(event.level, event, extra=extra_of(facts, self._state.timeline))
        self._observer.note(event, **facts)

    def _log_checkpoint(self, *, at_least_s: float) -> None:
        state, now_s = self._state, self._clock.now_s()
        if not self._checkpoint_log.is_due(state.checkpoint_ts, now_s, at_least_s=at_least_s):
            return
        lag = state.lag_s(self._clock.unix_s())
        facts = {
            "checkpoint_ts": state.checkpoint_ts,
            "rows": state.counts.rows,
            "transactions": state.counts.transactions,
            "lag_s": None if lag is None else round(lag, 3),
        }
        # Not for the display, which shows the checkpoint anyway.
        LOGGER.log(LogEvent.CHECKPOINT_ADVANCED.level, LogEvent.CHECKPOINT_ADVANCED, extra=extra_of(facts, state.timeline))

    def _look(self, replica: Watched, now_s: float) -> None:
        streams = self._collector.collect(replica.coordinator, replica.progress.checkpoint_ts, self.tally.durations.histograms(), now_s)
        self._note_stall(self._state.streams.stall, streams.stall)
        self._update(streams=streams)
        self._collector.looked(now_s, self._clock.now_s())

    def _note_stall(self, before: Stall | None, stall: Stall | None) -> None:
        # A stall is logged once. One that moves to another stream is over for the first.
        if stall is not None and before is not None and stall.stream == before.stream:
            return
        if before is not None:
            self._pass_on(LogEvent.WATERMARK_RESUMED, {"stream": str(before.stream)})
        if stall is not None:
            facts = {"stream": str(stall.stream), "resolved_ts": stall.resolved_ts, "silent_s": round(stall.silent_s, 1)}
            self._pass_on(LogEvent.WATERMARK_STALLED, facts)
