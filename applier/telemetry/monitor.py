"""Watches one run: hears what the engine notes, looks at what it counts, and tells displays, the log, and whoever asks.

It is called in the engine's thread. What other threads may read is ``live``: a frozen value that is replaced, never changed.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from applier.coordinator import Coordinator, StreamStatus
from applier.model.position import NO_TS, Stream, Ts
from applier.sinks.progress import Progress
from applier.telemetry.live import LiveState, LiveStream, lag_s
from applier.telemetry.log import LOGGER_NAME, extra_of
from applier.telemetry.log_event import LogEvent
from applier.telemetry.ready import ReadyRule
from applier.telemetry.snapshot import Observer, Snapshot
from applier.telemetry.stall import Stall, StallRule
from applier.telemetry.tally import Tally

LOGGER = logging.getLogger(LOGGER_NAME)

LOOK_S: Final = 0.5
"""Streams are looked at so often at most: a look costs tens of microseconds for each of them, and cycles are short."""
LOOK_SHARE: Final = 0.02
"""With thousands of streams looks become rarer, so that they take no greater share of the time."""

CHECKPOINT_LOG_S: Final = 10.0
"""A window closes every second or so for months: a line at most so often tells as much."""


class Watched(Protocol):
    """What is looked at: the engine. ``coordinator`` and ``progress`` are there once it has begun."""

    tally: Tally
    coordinator: Coordinator
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """``replica``: its name. ``stall_after_s``: seconds after which a silent stream that holds the watermark is named."""

    replica: str = "replica"
    stall_after_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Clock:
    """``now_s`` never steps back; ``unix_s`` is the time of day."""

    now_s: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time


class Monitor:
    """Implements ``Watcher``. Give it its ``engine`` before anything happens."""

    def __init__(self, observer: Observer, settings: MonitorSettings | None = None, clock: Clock | None = None) -> None:
        self._observer, self._clock = observer, clock or Clock()
        settings = settings or MonitorSettings()
        self.engine: Watched | None = None
        """What is looked at."""
        self._stall_rule, self._ready_rule = StallRule(settings.stall_after_s), ReadyRule()
        self._climbed = _Climbed()
        self._retries: Counter[str] = Counter()
        self._began_s = self._clock.now_s()
        self._look_at_s = self._began_s
        self._logged_at_s: float | None = None
        self._logged_ts: Ts | None = None
        self.records_total = 0
        """Records between the replica's position at the start and the ends that were known then; 0: not known."""
        self._has_failed = False
        self.live = LiveState(replica=settings.replica, started_at_s=self._clock.unix_s(), seen_at_s=self._began_s)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self._clock.now_s() - self._began_s

    # --- what the engine tells -------------------------------------------------------------------------------------

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Log what happened and pass it on."""
        if event is LogEvent.RETRY:
            self._retries[str(facts.get("error"))] += 1
            self.live = replace(self.live, phase="waiting", retries=tuple(sorted(self._retries.items())))
        self.live = replace(self.live, seen_at_s=self._clock.now_s())
        self._tell(event, facts)

    def changed(self) -> None:
        """Look at the engine: log a new checkpoint, show the state, and now and then look at every stream."""
        now_s = self._clock.now_s()
        if self.engine is not None:
            tally = self.engine.tally
            self.live = replace(self.live, seen_at_s=now_s, phase=tally.phase, current_ddl=tally.current_ddl)
        engine = self._begun()
        if engine is None:
            return
        self._log_checkpoint(engine, at_least_s=CHECKPOINT_LOG_S)
        self._observer.update(self._snapshot(engine))
        if now_s >= self._look_at_s:
            self._look(engine, now_s)
            looked_s = self._clock.now_s() - now_s
            self._look_at_s = now_s + max(LOOK_S, looked_s / LOOK_SHARE)

    def quarantined(self, events: int) -> None:
        """Hear how many events wait in quarantine."""
        self.live = replace(self.live, quarantined=events)

    # --- what other threads ask and tell ---------------------------------------------------------------------------

    def unready(self) -> None:
        """Hear that the run has failed, or does not own its replica any more: from now on it is not ready."""
        self._has_failed = True

    def shown(self) -> LiveState:
        """Return the state for whoever asks over HTTP."""
        live = self.live
        return replace(live, is_ready=False) if self._has_failed else live

    # --- what a vigil asks, in its own thread ----------------------------------------------------------------------

    def silent_s(self) -> float:
        """Return how many seconds ago the last sign of life was."""
        return self._clock.now_s() - self.live.seen_at_s

    def tell_silence(self, silent_s: float) -> None:
        """Say that the run has given no sign of life for so long, and what it was about to do."""
        live = self.live
        facts: dict[str, Any] = {"phase": live.phase, "silent_s": round(silent_s, 1)}
        if live.current_ddl:
            facts["ddl"] = live.current_ddl
        self._tell(LogEvent.NO_PROGRESS, facts)

    # ---------------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """The run ends: log the checkpoint that it leaves."""
        engine = self._begun()
        if engine is not None:
            self._log_checkpoint(engine, at_least_s=0.0)
        self.live = replace(self.live, phase="done", is_ready=False)

    def _begun(self) -> Watched | None:
        """The engine, once there is something to see."""
        return self.engine if hasattr(self.engine, "coordinator") else None

    # --- what is made of it ----------------------------------------------------------------------------------------

    def _tell(self, event: LogEvent, facts: dict[str, Any]) -> None:
        LOGGER.log(event.level, event, extra=extra_of(facts))
        self._observer.note(event, **facts)

    def _log_checkpoint(self, engine: Watched, *, at_least_s: float) -> None:
        checkpoint_ts, now_s = engine.progress.checkpoint_ts, self._clock.now_s()
        is_due = self._logged_at_s is None or now_s - self._logged_at_s >= at_least_s
        if checkpoint_ts in {NO_TS, self._logged_ts} or not is_due:
            return
        self._logged_ts, self._logged_at_s = checkpoint_ts, now_s
        lag = lag_s(checkpoint_ts, self._clock.unix_s())
        facts = {
            "checkpoint_ts": checkpoint_ts,
            "rows": engine.tally.rows,
            "transactions": engine.tally.transactions,
            "lag_s": None if lag is None else round(lag, 3),
        }
        LOGGER.log(LogEvent.CHECKPOINT_ADVANCED.level, LogEvent.CHECKPOINT_ADVANCED, extra=facts)

    def _snapshot(self, engine: Watched) -> Snapshot:
        coordinator, tally = engine.coordinator, engine.tally
        checkpoint_ts = engine.progress.checkpoint_ts
        return Snapshot(
            phase=tally.phase,
            records_read=tally.records,
            # What is written meanwhile is read too, and nothing is read that is not there.
            records_total=max(self.records_total, tally.records) if self.records_total else 0,
            rows_applied=tally.rows,
            transactions=tally.transactions,
            ddls=tally.ddls,
            watermark=coordinator.watermark,
            checkpoint_ts=checkpoint_ts,
            lag_s=lag_s(checkpoint_ts, self._clock.unix_s()),
            current_ddl=tally.current_ddl,
            holding_stream=str(coordinator.holding_stream or ""),
            elapsed_s=self.elapsed_s,
        )

    def _look(self, engine: Watched, now_s: float) -> None:
        coordinator, tally = engine.coordinator, engine.tally
        streams, holding = coordinator.streams, coordinator.holding_stream
        checkpoint_ts = engine.progress.checkpoint_ts
        stall = self._stall_rule.observe(streams, holding, now_s)
        self._tell_stall(stall)
        self.live = replace(
            self.live,
            is_ready=self._ready_rule.observe(streams, checkpoint_ts),
            epoch=engine.progress.fence.epoch,
            checkpoint_ts=checkpoint_ts,
            watermark=coordinator.watermark,
            holding_stream=holding,
            stall=stall,
            streams=tuple(self._live_stream(status) for status in streams),
            pending_ddls=len(coordinator.pending_ddls),
            cached_bytes=coordinator.cached_bytes,
            records=tally.records,
            events=tally.events,
            rows=tally.rows,
            transactions=tally.transactions,
            ddls=tally.ddls,
            rebuilds=tally.rebuilds,
            durations=tally.durations.histograms(),
        )

    def _live_stream(self, status: StreamStatus) -> LiveStream:
        replays, fallbacks = self._climbed.add(status.stream, (status.replays, status.fallbacks))
        return LiveStream(status=status, silent_s=self._stall_rule.silent_s(status.stream), replays=replays, fallbacks=fallbacks)

    def _tell_stall(self, stall: Stall | None) -> None:
        before = self.live.stall
        if stall is not None and before is not None and stall.stream == before.stream:
            return
        if before is not None:
            self._tell(LogEvent.WATERMARK_RESUMED, {"stream": str(before.stream)})
        if stall is not None:
            facts = {"stream": str(stall.stream), "resolved_ts": stall.resolved_ts, "silent_s": round(stall.silent_s, 1)}
            self._tell(LogEvent.WATERMARK_STALLED, facts)


class _Climbed:
    """Sums counts that begin at 0 again when the coordinator is rebuilt."""

    def __init__(self) -> None:
        self._last: dict[Stream, tuple[int, ...]] = {}
        self._total: dict[Stream, tuple[int, ...]] = {}

    def add(self, stream: Stream, counts: Iterable[int]) -> tuple[int, ...]:
        """Take the counts of a stream as they are now; return them summed over all rebuilds."""
        now = tuple(counts)
        last = self._last.get(stream, (0,) * len(now))
        total = self._total.get(stream, (0,) * len(now))
        self._last[stream] = now
        self._total[stream] = tuple(t + (n - b if n >= b else n) for t, n, b in zip(total, now, last, strict=True))
        return self._total[stream]
