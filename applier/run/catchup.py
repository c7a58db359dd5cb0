"""``catchup``: cycles until every stream has reached the end that it had at the start (or ``until_ts``), then stops."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from applier.config import Config
from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, Stream, Timeline, Ts
from applier.model.segment import has_moved
from applier.replica.context import Components, EngineSettings
from applier.replica.engine import Engine
from applier.replica.shutdown import Shutdown
from applier.run.assembly import StartOptions, as_submitted, begin, engine_settings, open_components, warn_of_zone
from applier.run.copy import AS_CONFIGURED, Copying, CopyOptions, copying_for
from applier.run.ending import end_stored, ending_on_sigterm
from applier.telemetry.failing import Side
from applier.telemetry.monitor import Monitor, MonitorSettings
from applier.telemetry.observer import Observer
from applier.telemetry.retries import retries_noted


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchupOptions:
    """The options of the command line. ``start_ts`` of None: the configuration's."""

    start_ts: Ts | None = None
    until_ts: Ts | None = None
    until_time_ms: int | None = None
    take_over: bool = False
    accept_gap: bool = False
    copy: CopyOptions = AS_CONFIGURED


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchupResult:
    """What a catch-up did. ``pending_ddls`` are DDLs at the checkpoint that wait for a later resolved event."""

    checkpoint_ts: Ts
    timeline: Timeline
    """What its timestamps mean."""
    rows: int
    transactions: int
    ddls: int
    seconds: float
    skipped_ddls: int = 0
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending_ddls: list[str] = field(default_factory=list)
    holding_stream: str = ""
    quarantined: int = 0
    """Events in quarantine that wait for the operator, earlier runs included."""


def catch_up(config: Config, options: CatchupOptions, observer: Observer) -> CatchupResult:
    """Bring the replica to the last common resolved ts of its topics, or to the limit. ApplierError if that fails."""
    config = as_submitted(config)
    # Before anything is opened: the warning is about the configuration alone.
    monitor = Monitor(observer, MonitorSettings(replica=config.name))
    warn_of_zone(config, monitor)
    sink = config.sink_settings()
    copying = copying_for(config, options.copy, Shutdown())
    with (
        end_stored("catchup", sink),
        ending_on_sigterm(),
        open_components(config, config.source_settings(), sink, monitor) as components,
    ):
        settings = replace(engine_settings(config, until_ts=options.until_ts), until_time_ms=options.until_time_ms)
        return Catchup(components, settings, monitor, copying).run(
            start_ts=options.start_ts if options.start_ts is not None else Ts(config.source.start_ts),
            options=options,
        )


class Catchup:
    """One catch-up over given components."""

    def __init__(self, components: Components, settings: EngineSettings, monitor: Monitor, copying: Copying | None = None) -> None:
        self._components, self._copying = components, copying
        self._monitor, self._began_s = monitor, time.monotonic()
        self._engine = Engine(components, settings, self._monitor, Shutdown())
        self._ends: Mapping[Stream, Offset] = {}

    def run(self, *, start_ts: Ts, options: CatchupOptions) -> CatchupResult:
        """Own the replica, cycle until it is caught up, and return what was done."""
        try:
            with retries_noted(self._monitor):
                return self._run(start_ts, options)
        finally:
            self._monitor.finish()
            self._engine.close()

    def _run(self, start_ts: Ts, options: CatchupOptions) -> CatchupResult:
        engine = self._engine
        start = StartOptions(
            start_ts=start_ts, take_over=options.take_over, accept_gap=options.accept_gap, may_be_paused=False, copying=self._copying
        )
        listing = begin(self._components, engine, self._monitor, start)
        # The ends of now: a feed that grows faster than it is read must not keep a catch-up from ending.
        self._ends = {stream: extent.end for stream, extent in listing.extents.items()}
        self._monitor.expect(sum(status.unread for status in engine.coordinator.streams))
        while not engine.coordinator.is_caught_up(self._ends):
            engine.cycle()
        # Exit code 0 must mean that the replica has caught up: scripts rely on it.
        self._check_moved(listing)
        engine.save_progress(is_last=True)
        self._monitor.worked(*Side)
        self._components.sink.finish_ddls()
        engine.check_tables()
        return self._result()

    def _check_moved(self, listing: Listing) -> None:
        """Refuse a catch-up that could not apply anything: an empty topic, or one without resolved events."""
        engine = self._engine
        if has_moved(engine.progress.checkpoint_ts, engine.progress.start_ts):
            return
        # A position in a log is its own timestamp: where nothing has been written since the start, there is nothing to apply.
        if all(extent.cuts is not None for extent in listing.extents.values()):
            return
        topics = sorted({stream.topic for stream in listing.extents})
        if not any(extent.end for extent in listing.extents.values()):
            remedy = Remedy("run.check-changefeed-writes-topic", "Check that the changefeed runs and writes to this topic")
            raise SourceError("the topic is empty", remedy=remedy, kind=FailureKind.EMPTY_TOPIC, topic=",".join(topics))
        holding = engine.coordinator.holding_stream
        raise SourceError(
            "the watermark cannot advance: a stream has records but no resolved event after the start",
            remedy=Remedy(
                "run.check-changefeed-writes-resolved",
                "Check that the changefeed runs: it writes resolved events to each partition that it uses, about one a second",
            ),
            kind=FailureKind.NO_RESOLVED_EVENT,
            stream=holding,
            checkpoint_ts=engine.progress.checkpoint_ts,
        )

    def _result(self) -> CatchupResult:
        engine, coordinator = self._engine, self._engine.coordinator
        positions, counts = engine.progress.positions, self._monitor.tally.counts
        missing = {status.stream: status.missing for status in coordinator.streams}
        return CatchupResult(
            checkpoint_ts=engine.progress.checkpoint_ts,
            timeline=self._components.source.timeline,
            rows=counts.rows,
            transactions=counts.transactions,
            ddls=counts.ddls,
            skipped_ddls=counts.skipped_ddls,
            seconds=round(time.monotonic() - self._began_s, 3),
            streams={
                str(stream): {
                    "next_offset": positions[stream].next_offset if stream in positions else 0,
                    "end_offset": end,
                    "offsets_without_record": missing.get(stream, 0),
                    "resolved_ts": coordinator.resolved_ts(stream),
                }
                for stream, end in sorted(self._ends.items())
            },
            pending_ddls=[ddl.query for ddl in coordinator.pending_ddls],
            holding_stream=str(coordinator.holding_stream or ""),
            quarantined=self._components.sink.bookkeeping.quarantine.count(),
        )
