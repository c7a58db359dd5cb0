"""The components of a run, and how it begins: the same for a catch-up and for a daemon. Decoders follow the configuration."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from applier.config import Config
from applier.config.section import Consistency, DeclaredDispatcher, Keyless, OnRejectedEvent
from applier.coordinator import Policy
from applier.coordinator.policy import RowPolicy
from applier.model.errors import errors_spelled_by
from applier.model.position import NO_TS, Listing, Ts
from applier.planner import QuarantinePolicy
from applier.planner.table_check import UpstreamTables
from applier.replica.context import Components, EngineSettings
from applier.replica.engine import Engine
from applier.replica.starting_ts import choose_start, refuse_future
from applier.run.pause import refuse_paused
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.factory import SourceSettings, kit_of
from applier.sources.port import Decoder, Source
from applier.spark.failure import UNANSWERED, start_failed
from applier.spark.on_demand import OnDemandRunner
from applier.spark.runner import SparkRunner
from applier.spark.session import refuse_started_speculation, start_context, submitted_master
from applier.telemetry.activity import LISTING, LOADING, LOCKING, OPENING
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import Watcher
from applier.upstream.catalogue import tables_of
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.snapshot_session import SessionZone


def decoder_for(config: Config) -> Decoder:
    """Return the decoder. ConfigError: a package is missing that reads the claim-check storage, or an option of it is wrong."""
    upstream = config.source.upstream_settings()
    lookup = None if upstream is None else TidbRowLookup(upstream)
    return kit_of(config.source_settings()).decoder(config.source.selection(), config.source.claim_check_settings(), lookup)


def tables_of_upstream(config: Config) -> UpstreamTables | None:
    """Return what answers for upstream's tables, where ``source.upstream`` names it; it asks upstream when it is first asked."""
    return tables_of(config.source.upstream_settings(), config.source.selection())


def zone_of_sessions(config: Config) -> Callable[[], str]:
    """Return what knows the time zone of upstream's sessions; it asks upstream when it is called first."""
    return SessionZone(config.source.ddl_time_zone, config.source.upstream_settings())


SETTLE_MS: Final = 600_000
"""How long after a change of the partition set a node of the producer may still send rows to the old partitions."""

WORKER_DAEMON: Final = "applier.run.worker_daemon"


def as_submitted(config: Config) -> Config:
    """Return the configuration with the master that spark-submit has chosen, if it started this process."""
    master = submitted_master()
    return config if master is None else config.submitted_to(master)


def warn_of_zone(config: Config, monitor: Monitor) -> None:
    """Warn if TIMESTAMP text of the wire is ambiguous in the source's time zone."""
    if (warning := config.source.time_zone_warning()) is not None:
        monitor.note(LogEvent.AMBIGUOUS_TIME_ZONE, **warning)


def _span(config: Config, milliseconds: int) -> int:
    """Return by how much timestamps differ in so many milliseconds; 0 where they do not hold their time."""
    return kit_of(config.source_settings()).timeline().ts_at_ms(milliseconds) or NO_TS


def engine_settings(config: Config, *, until_ts: Ts | None = None, apply_attempts: int = 8) -> EngineSettings:
    """Return what the engine needs of the configuration. ``until_ts``: where the watermark ends; ``apply_attempts``: tries of a write."""
    policy = Policy(
        required_partitions=config.source.required_partitions(),
        segment_rows=config.sink.max_transaction_rows,
        cached_bytes=config.run.memory,
        rows=RowPolicy(by_table=config.source.dispatcher is DeclaredDispatcher.TABLE, settle_span=_span(config, SETTLE_MS))
        if config.sink.consistency is Consistency.ROW
        else None,
    )
    quarantine = QuarantinePolicy(
        unreadable=config.source.on_unreadable is OnRejectedEvent.QUARANTINE,
        refused=config.sink.on_rejected_row is OnRejectedEvent.QUARANTINE,
    )
    return EngineSettings(
        policy=policy,
        buckets=config.spark.buckets,
        ddl_policy=config.ddl.policies,
        until_ts=until_ts,
        apply_attempts=apply_attempts,
        accept=config.acceptance,
        quarantined=quarantine,
        writes_keyless=config.sink.keyless is Keyless.BEST_EFFORT,
        settle_ms=SETTLE_MS,
        equal_rows=config.sink.equal_rows_rule,
        selects=not config.source.selection().is_everything,
        writers=config.writers,
    )


@contextmanager
def open_components(config: Config, settings: SourceSettings, sink_settings: SinkSettings, watcher: Watcher) -> Iterator[Components]:
    """Open source, sink and runner for one run, and close them at the end of the block. ``watcher`` is called when Spark starts."""
    kit = kit_of(settings)
    with (
        errors_spelled_by(kit.timeline()),
        kit.open(decoder_for(config), zone_of_sessions(config), tables_of_upstream(config)) as source,
        open_sink(sink_settings) as sink,
    ):
        # Spark starts with the first range: a run that waits for the replica lock, or is refused, starts no JVM.
        runner = OnDemandRunner(lambda: _start_spark(config, source, watcher))
        try:
            # An error of the run is shown and stored outside of it.
            with errors_spelled_by(source.timeline):
                yield Components(source, sink, runner)
        finally:
            runner.close()


def _start_spark(config: Config, source: Source, watcher: Watcher) -> SparkRunner:
    try:
        with watcher.starting_spark():
            context = start_context(
                f"applier {config.name}", config.spark.session_master(config.writers), config.spark.session_conf, WORKER_DAEMON
            )
            if config.sink.consistency is Consistency.ROW:
                refuse_started_speculation(context)
            return SparkRunner(context, lambda: source.reader, source.decoder)
    except UNANSWERED as error:
        raise start_failed(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """How a run begins. ``start_ts`` 0: what the replica was created with. ``may_be_paused``: it waits while the replica is paused."""

    start_ts: Ts = NO_TS
    take_over: bool = False
    accept_gap: bool = False
    may_be_paused: bool = True
    copying: Callable[[Components, Watcher], None] | None = None
    """Copies upstream before a new replica begins; None: it begins with a dump, or at a position."""


def begin(components: Components, engine: Engine, watcher: Watcher, options: StartOptions) -> Listing:
    """Own the replica and load its state from the sink; return the partitions as they were listed for that."""
    watcher.opened(components.source.timeline)
    # The source first: a misspelt topic must not leave bookkeeping tables behind.
    watcher.enter(LISTING)
    components.source.listing()
    watcher.enter(OPENING)
    components.sink.migrate()
    if not options.may_be_paused:
        refuse_paused(components.sink)
    # After the migration: the heartbeat needs its table.
    watcher.enter(LOCKING)
    components.sink.acquire(take_over=options.take_over)
    if options.copying is not None:
        options.copying(components, watcher)
    watcher.enter(LOADING)
    start = choose_start(options.start_ts, components)
    progress = components.sink.load()
    checkpoint_ts = start.start_ts if progress is None else progress.checkpoint_ts
    refuse_future(components.source.timeline, checkpoint_ts, time.time_ns() // 1_000_000)
    listing = engine.begin(start, accept_gap=options.accept_gap)
    watcher.worked(*Side)
    return listing
