"""``catchup``: cycles until every stream has reached the end that it had at the start (or ``until_ts``), then stops."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from applier.config import Config
from applier.coordinator.messages import Listing
from applier.engine import Engine, EngineSettings
from applier.errors import ConfigError, SourceError
from applier.kafka.client import KafkaSource
from applier.kafka.port import Source
from applier.position import NO_TS, Offset, Stream, Ts, physical_ms
from applier.sinks.factory import open_sink
from applier.sinks.port import Sink
from applier.spark.lazy import LazyRunner
from applier.spark.port import Runner
from applier.spark.runner import SparkRunner
from applier.spark.session import start_context, submitted_master
from applier.telemetry import Observer, Snapshot, retries_noted

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchupOptions:
    """What the command line says beside the configuration. ``start_ts`` of None: the configuration's."""

    start_ts: Ts | None = None
    until_ts: Ts | None = None
    take_over: bool = False
    accept_gap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchupResult:
    """What a catch-up did. ``pending_ddls`` are DDLs at the checkpoint that wait for a later resolved event."""

    checkpoint_ts: Ts
    rows: int
    transactions: int
    ddls: int
    seconds: float
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending_ddls: list[str] = field(default_factory=list)
    holding_stream: str = ""


def catch_up(config: Config, options: CatchupOptions, observer: Observer) -> CatchupResult:
    """Bring the replica to the last common resolved ts of its topics; raise an ApplierError that says why not."""
    if (master := submitted_master()) is not None:
        config = config.submitted_to(master)
    with KafkaSource(config.kafka_settings()) as source, open_sink(config.sink_settings()) as sink:
        runner = LazyRunner(
            lambda: SparkRunner(start_context(f"applier {config.name}", config.spark.master, config.spark.conf), source.reader)
        )
        try:
            return Catchup(config.engine_settings(until_ts=options.until_ts), source, sink, runner, observer).run(
                start_ts=options.start_ts if options.start_ts is not None else Ts(config.source.start_ts),
                options=options,
            )
        finally:
            runner.close()


class Catchup:
    """One catch-up over given parts."""

    def __init__(self, settings: EngineSettings, source: Source, sink: Sink, runner: Runner, observer: Observer) -> None:
        self._source, self._sink, self._observer = source, sink, observer
        self._engine = Engine(source, sink, runner, settings, self)
        self._started = time.monotonic()
        self._ends: Mapping[Stream, Offset] = {}
        self._backlog = 0
        self._logged_ts: Ts | None = None

    def run(self, *, start_ts: Ts, options: CatchupOptions) -> CatchupResult:
        """Own the replica, cycle until it is caught up, and say what was done."""
        try:
            with retries_noted(self):
                return self._run(start_ts, options)
        finally:
            self._engine.close()

    def _run(self, start_ts: Ts, options: CatchupOptions) -> CatchupResult:
        listing = self._source.listing()
        self._ends = {stream: extent.end for stream, extent in listing.extents.items()}
        self._sink.migrate()
        self._sink.acquire(take_over=options.take_over)
        self._check_start(start_ts)
        engine = self._engine
        engine.begin(listing, start_ts=start_ts, accept_gap=options.accept_gap)
        self._backlog = sum(status.end_offset - status.read_offset for status in engine.coordinator.streams)
        while not engine.coordinator.is_caught_up(self._ends):
            engine.cycle()
        self._check_moved(listing)
        engine.save_progress()
        return self._result()

    def _check_start(self, start_ts: Ts) -> None:
        progress = self._sink.load()
        if progress is not None and start_ts not in {NO_TS, progress.start_ts}:
            raise ConfigError(
                "the replica began at another start_ts",
                remedy="Leave start_ts as it was, or give the new replica another name",
                configured=start_ts,
                recorded=progress.start_ts,
            )

    def _check_moved(self, listing: Listing) -> None:
        """Refuse to call a replica caught up that has never seen a window: an empty topic, or one without resolved events."""
        engine = self._engine
        if engine.progress.checkpoint_ts > engine.progress.start_ts:
            return
        topics = sorted({stream.topic for stream in listing.extents})
        if not any(extent.end for extent in listing.extents.values()):
            remedy = "Check that the changefeed runs and writes to this topic"
            raise SourceError(
                "the topic is empty: nothing was ever written to it", remedy=remedy, kind="empty_topic", topic=",".join(topics)
            )
        holding = engine.coordinator.holding_stream
        raise SourceError(
            "a stream holds records but no resolved event after the start: no window can be closed",
            remedy="Check that the changefeed runs; if it writes to fewer partitions than the topic has, set source.partitions",
            kind="no_resolved_event",
            stream=holding,
            checkpoint_ts=engine.progress.checkpoint_ts,
        )

    def _result(self) -> CatchupResult:
        engine, coordinator = self._engine, self._engine.coordinator
        positions = engine.progress.positions
        return CatchupResult(
            checkpoint_ts=engine.progress.checkpoint_ts,
            rows=engine.tally.rows,
            transactions=engine.tally.transactions,
            ddls=engine.tally.ddls,
            seconds=round(time.monotonic() - self._started, 3),
            streams={
                str(stream): {
                    "next_offset": positions[stream].next_offset if stream in positions else 0,
                    "end_offset": end,
                    "resolved_ts": coordinator.resolved_ts(stream),
                }
                for stream, end in sorted(self._ends.items())
            },
            pending_ddls=[ddl.query for ddl in coordinator.pending_ddls],
            holding_stream=str(coordinator.holding_stream or ""),
        )

    def note(self, message: str, /, **facts: Any) -> None:
        """Pass on what the engine notes, and log it."""
        LOGGER.info(message, extra=facts)
        self._observer.note(message, **facts)

    def changed(self) -> None:
        """Show the state of the engine, and log a new checkpoint."""
        engine = self._engine
        coordinator, tally = engine.coordinator, engine.tally
        checkpoint = engine.progress.checkpoint_ts
        if checkpoint != self._logged_ts:
            self._logged_ts = checkpoint
            LOGGER.info("checkpoint", extra={"checkpoint_ts": checkpoint, "rows": tally.rows, "transactions": tally.transactions})
        self._observer.update(
            Snapshot(
                phase=tally.phase,
                records_read=tally.records,
                records_total=self._backlog,
                rows_applied=tally.rows,
                transactions=tally.transactions,
                ddls=tally.ddls,
                watermark=coordinator.watermark,
                checkpoint_ts=checkpoint,
                lag_s=max(0.0, time.time() - physical_ms(checkpoint) / 1000) if checkpoint else None,
                current_ddl=tally.current_ddl,
                holding_stream=str(coordinator.holding_stream or ""),
                elapsed_s=time.monotonic() - self._started,
            )
        )
