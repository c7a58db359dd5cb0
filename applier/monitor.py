"""Whom an engine tells: passes on what happens to the observer, and logs it. One per engine; catch-up and daemon share it."""

import logging
import time
from typing import Any

from applier.engine import Engine
from applier.position import Ts, physical_ms
from applier.telemetry import Observer, Snapshot

LOGGER = logging.getLogger(__name__)


class Monitor:
    """Implements ``Watcher``. ``engine`` is known once it is there; ``records_total`` where the end of the work is known."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._started = time.monotonic()
        self._logged_ts: Ts | None = None
        self.engine: Engine | None = None
        self.records_total = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._started

    def note(self, message: str, /, **facts: Any) -> None:
        """Pass on what happened, and log it."""
        LOGGER.info(message, extra=facts)
        self._observer.note(message, **facts)

    def changed(self) -> None:
        """Show the state of the engine, and log a new checkpoint."""
        if self.engine is None:
            return
        coordinator, tally, checkpoint = self.engine.coordinator, self.engine.tally, self.engine.progress.checkpoint_ts
        if checkpoint != self._logged_ts:
            self._logged_ts = checkpoint
            LOGGER.info("checkpoint", extra={"checkpoint_ts": checkpoint, "rows": tally.rows, "transactions": tally.transactions})
        self._observer.update(
            Snapshot(
                phase=tally.phase,
                records_read=tally.records,
                records_total=self.records_total,
                rows_applied=tally.rows,
                transactions=tally.transactions,
                ddls=tally.ddls,
                watermark=coordinator.watermark,
                checkpoint_ts=checkpoint,
                lag_s=max(0.0, time.time() - physical_ms(checkpoint) / 1000) if checkpoint else None,
                current_ddl=tally.current_ddl,
                holding_stream=str(coordinator.holding_stream or ""),
                elapsed_s=self.elapsed_s,
            )
        )
