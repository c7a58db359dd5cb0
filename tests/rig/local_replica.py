"""A replica in this process: the real engine, coordinator, planner and sink, over a producer's log in memory, without Spark and Kafka."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from applier.coordinator import Policy
from applier.coordinator.policy import RowPolicy
from applier.model.position import NO_TS, Ts
from applier.planner import QuarantinePolicy
from applier.planner.keyless import EqualRows, EqualRowsRule
from applier.planner.table_check import Acceptance, DifferenceKind, TableLister
from applier.replica.context import Components, EngineSettings
from applier.replica.shutdown import Shutdown
from applier.run.catchup import Catchup, CatchupOptions, CatchupResult
from applier.run.daemon import Daemon, RunOptions
from applier.selection import EVERYTHING
from applier.sinks.ledger_entry import DdlState
from applier.sinks.loaded_dump import DECLARED, LoadedDump
from applier.sinks.port import Sink
from applier.sinks.quarantine import SkipRule
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.kit import told_by
from applier.sources.binlog.source import BinlogSource
from applier.sources.binlog.timeline import read_state
from applier.sources.port import Source
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.monitor import Monitor, MonitorSettings
from applier.telemetry.observer import Observer, SilentObserver
from tests.rig.local_runner import LocalRunner

SMALL = Policy(segment_rows=40, range_records=37, plan_bytes=100_000, merge_ranges=8)
"""Limits so small that every history is read in many ranges and written in many segments."""


@dataclass
class Replica:
    """One replica at ``url``; each ``catch_up`` is a new run of the program, with a new sink and nothing in memory."""

    url: str
    source: Source
    policy: Policy = SMALL
    name: str = "replica"
    wrap: Callable[[Sink], Sink] = field(default=lambda sink: sink)
    ddl_policy: dict[str, str] = field(default_factory=dict)
    observer: Observer = field(default_factory=SilentObserver)
    monitored: MonitorSettings = field(default_factory=MonitorSettings)
    quarantines: frozenset[str] = frozenset()
    """What is quarantined: any of "unreadable" and "rejected"."""
    monitor: Monitor | None = None
    """That of the daemon that has begun last."""
    accept: dict[str, tuple[DifferenceKind, ...]] = field(default_factory=dict)
    """``[sink.accept]``: differences from upstream's tables that do not stop the replica."""
    new_collations: bool = True
    collations: tuple[tuple[str, str], ...] = ()
    """``[ddl.collations]``."""
    background: bool = False
    """``[ddl] background``."""
    writes_keyless: bool = False
    equal_rows: EqualRows = EqualRows.STOP
    equal_rows_of: dict[str, EqualRows] = field(default_factory=dict)
    lister: TableLister | None = None
    """What lists upstream's tables, where the source does not."""
    rows: RowPolicy | None = None
    """``consistency = "row"``."""
    new_runner: type[LocalRunner] = LocalRunner
    ahead_rows: int = 30
    """So that the larger windows of a history are prepared ahead, and the others are not."""
    sliced_rows: int = 50

    def settings(self, *, until_ts: int | None = None) -> EngineSettings:
        return EngineSettings(
            policy=replace(self.policy, rows=self.rows),
            writers=3,
            buckets=3,
            ahead_rows=self.ahead_rows,
            sliced_rows=self.sliced_rows,
            until_ts=None if until_ts is None else Ts(until_ts),
            ddl_policy=self.ddl_policy,
            quarantined=QuarantinePolicy(unreadable="unreadable" in self.quarantines, refused="rejected" in self.quarantines),
            accept=Acceptance(self.accept, self.new_collations, self.collations),
            writes_keyless=self.writes_keyless,
            equal_rows=EqualRowsRule(self.equal_rows, tuple(self.equal_rows_of.items())),
            selects=not getattr(self.source, "selection", EVERYTHING).is_everything,
        )

    def sink_settings(self) -> SinkSettings:
        return SinkSettings(
            url=self.url,
            name=self.name,
            lock_timeout_s=0.2,
            lease_s=2.0,
            collations=self.collations,
            background=self.background,
            checks_rows=not isinstance(self.source, BinlogSource),
        )

    def catch_up(self, *, start_ts: int = NO_TS, until_ts: int | None = None, until_time_ms: int | None = None, **options) -> CatchupResult:
        settings = replace(self.settings(until_ts=until_ts), until_time_ms=until_time_ms)
        with open_sink(self.sink_settings()) as sink:
            self.runner = runner = self.new_runner(lambda: self.source.reader, self.source.decoder)
            declare_loaded(sink, self.source, start_ts)
            catchup = Catchup(Components(self.source, self.wrap(sink), runner, self.lister), settings, Monitor(self.observer))
            result = catchup.run(start_ts=Ts(start_ts), options=CatchupOptions(**options))
            self.left_cached = runner.cached_ranges
            return result

    def follow(self, shutdown: Shutdown, *, retry_for_s: float = 60.0) -> None:
        """Run as a daemon until a shutdown is requested; the source decides when."""
        with open_sink(self.sink_settings()) as sink:
            self.runner = self.new_runner(lambda: self.source.reader, self.source.decoder)
            declare_loaded(sink, self.source)
            components = Components(self.source, self.wrap(sink), self.runner, self.lister)
            self.monitor = Monitor(self.observer, self.monitored)
            daemon = Daemon(components, self.settings(), self.monitor, shutdown)
            try:
                daemon.begin(RunOptions(start_ts=NO_TS, retry_for_s=retry_for_s))
                daemon.follow(retry_for_s)
            finally:
                daemon.close()

    def ledger(self):
        with open_sink(SinkSettings(url=self.url, name=self.name)) as sink:
            return sink.bookkeeping.ledger()

    def stored_positions(self):
        with open_sink(SinkSettings(url=self.url, name=self.name)) as sink:
            return sink.load().positions

    def quarantine(self):
        """The entries of the quarantine, by place."""
        with open_sink(SinkSettings(url=self.url, name=self.name)) as sink:
            return {str(entry.event.position): entry for entry in sink.bookkeeping.quarantine.entries()}

    def kept(self, entry):
        with open_sink(SinkSettings(url=self.url, name=self.name)) as sink:
            return sink.bookkeeping.quarantine.record(entry.event.position)

    def skip(self, rule: SkipRule) -> None:
        with open_sink(SinkSettings(url=self.url, name=self.name)) as sink:
            sink.migrate()
            sink.bookkeeping.quarantine.add_skip_rule(rule)

    def done_ddls(self):
        return sorted((entry.ddl.commit_ts, entry.ddl.query) for entry in self.ledger() if entry.state is DdlState.DONE)


def declare_loaded(sink: Sink, source: Source, start_ts: int = NO_TS) -> None:
    """Record for a new replica that the sink equals upstream at its start position, as `applier load --declared` does."""
    if not start_ts and source.timeline is TSO_TIMELINE:
        return
    sink.migrate()
    if sink.load() is None and sink.bookkeeping.loaded_dump.read() is None:
        point = None if source.position is None else source.position.start_point()
        begins = Ts(start_ts) if point is None else point.start_ts
        told = "" if point is None else told_by("", read_state(point.state))
        sink.bookkeeping.loaded_dump.declare(LoadedDump(start_ts=begins, directory=told, loader=DECLARED, loaded_by="tests"))


STRICT = {"shop.orders": (DifferenceKind.TRIGGER,)}
"""``accept`` of a replica whose table refuses rows by a trigger."""


def sqlite_replica(directory: Path, source: Source, **more) -> Replica:
    """Make a replica in a new SQLite file."""
    return Replica(f"sqlite:///{directory}/replica.db", source, **more)
