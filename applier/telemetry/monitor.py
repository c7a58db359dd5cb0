"""Makes the state of one run from what the engine reports and counts, and passes events to the log and to the display.

The engine's thread calls it. Other threads read ``state()``: a frozen value that is replaced and never changed.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

from applier.model.position import NO_TS, Ts
from applier.telemetry.log import LOGGER_NAME, extra_of
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Observer, Watched
from applier.telemetry.run_state import RunState
from applier.telemetry.stall import Stall
from applier.telemetry.streams import StreamCollector
from applier.telemetry.tally import Tally

LOGGER = logging.getLogger(LOGGER_NAME)

CHECKPOINT_LOG_S: Final = 10.0
"""The least time between two lines about the checkpoint: a window closes every second or so, for months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """``replica``: its name. ``stall_after_s``: seconds after which a silent stream that holds back the watermark is named."""

    replica: str = "replica"
    stall_after_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Clock:
    """``now_s`` never steps back; ``unix_s`` is the time of day."""

    now_s: Callable[[], float] = time.monotonic
    unix_s: Callable[[], float] = time.time


class Monitor:
    """Implements ``Watcher``."""

    def __init__(self, observer: Observer, settings: MonitorSettings | None = None, clock: Clock | None = None) -> None:
        self._observer, self._clock = observer, clock or Clock()
        settings = settings or MonitorSettings()
        self.tally = Tally()
        self._replica: Watched | None = None
        self._collector = StreamCollector(settings.stall_after_s)
        self._retries: Counter[str] = Counter()
        self._checkpoint_log = _CheckpointLog()
        now_s = self._clock.now_s()
        self._activity = ("starting", "")
        self._held_since_s = math.inf
        self._has_failed = False
        self._updating = Lock()
        self._state = RunState(replica=settings.replica, started_at_s=self._clock.unix_s(), began_s=now_s, progress_s=now_s)

    # --- what the engine reports -------------------------------------------------------------------------------------

    def watch(self, replica: Watched) -> None:
        """Look at ``replica`` from now on."""
        self._replica = replica

    def enter(self, phase: str) -> None:
        """Show that the run is in ``phase`` from now on."""
        self._enter(phase, "")

    @contextmanager
    def during(self, phase: str, ddl: str = "") -> Iterator[None]:
        """Show ``phase`` for the time of the block, and what was before it afterwards."""
        before, _ = self._activity
        self._enter(phase, ddl)
        try:
            yield
        finally:
            self._enter(before, "")

    def _enter(self, phase: str, ddl: str) -> None:
        self._activity = (phase, ddl)
        self.changed()

    def held_since(self, since_s: float) -> None:
        """Take since when a segment is being applied."""
        self._held_since_s = since_s

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Log what happened and pass it on."""
        if event is LogEvent.RETRY:
            self._retries[str(facts.get("error"))] += 1
            self._update(phase="waiting", retries=tuple(sorted(self._retries.items())))  # until the next step
        self._update(progress_s=self._clock.now_s())
        self._pass_on(event, facts)

    def changed(self) -> None:
        """Make a new state and show it: of the streams now and then, of everything else always."""
        now_s, replica, (phase, ddl) = self._clock.now_s(), self._replica, self._activity
        if replica is None:
            # Nothing is shown before the replica is owned: another run may own it, and its display would be contradicted.
            self._update(progress_s=self._progress_s(now_s), phase=phase, current_ddl=ddl)
            return
        if self._collector.is_due(now_s):
            self._look(replica, now_s)
        counts, total = self.tally.counts, self._state.records_total
        # One update for all: a state costs some 15 µs, and this is called several times in a cycle.
        self._update(
            progress_s=self._progress_s(now_s),
            phase=phase,
            current_ddl=ddl,
            is_ready=self._collector.is_ready,
            epoch=replica.progress.fence.epoch,
            checkpoint_ts=replica.progress.checkpoint_ts,
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
        """Take how many records there are between the replica's position at the start and the ends that were known then."""
        self._update(records_total=records)

    def quarantined(self, events: int) -> None:
        """Take how many events wait in quarantine."""
        self._update(quarantined=events)

    def finish(self) -> None:
        """Note that the run ends: log the checkpoint that it leaves."""
        if self._replica is not None:
            self._update(checkpoint_ts=self._replica.progress.checkpoint_ts, counts=self.tally.counts)
            self._log_checkpoint(at_least_s=0.0)
        self._update(phase="done", is_ready=False)

    def _update(self, **changes: Any) -> None:
        """Replace the state. Under a lock: retries are noted from the thread that listens, too, and ``unready`` from the owner watch."""
        with self._updating:
            # In here: what the engine found before `unready` would otherwise be stored after it, and stay for as long as a DDL lasts.
            if self._has_failed:
                changes["is_ready"] = False
            self._state = replace(self._state, **changes)

    # --- what other threads read and report --------------------------------------------------------------------------

    def state(self) -> RunState:
        """Return the state as it is now."""
        return self._state

    def unready(self) -> None:
        """Note that the run has failed, or has lost its replica: from now on it is not ready."""
        self._has_failed = True
        self._update(is_ready=False)

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

    def _pass_on(self, event: LogEvent, facts: dict[str, Any]) -> None:
        LOGGER.log(event.level, event, extra=extra_of(facts))
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
        LOGGER.log(LogEvent.CHECKPOINT_ADVANCED.level, LogEvent.CHECKPOINT_ADVANCED, extra=facts)

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


class _CheckpointLog:
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
