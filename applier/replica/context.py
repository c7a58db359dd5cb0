"""What every piece of the engine works with: fixed when the run is assembled."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from applier.coordinator import Policy
from applier.model.position import Ts
from applier.planner import STOP, QuarantinePolicy
from applier.planner.keyless import EqualRowsRule
from applier.planner.table_check import Acceptance
from applier.replica.shutdown import Shutdown
from applier.sinks.port import Sink
from applier.sources.port import Source
from applier.tasks.plan import SLICED_SEGMENT_ROWS, SMALL_SEGMENT_ROWS
from applier.tasks.port import Runner
from applier.telemetry.observer import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How the engine runs. ``ddl_policy``: DDL type name -> apply, skip or stop; types not named are applied."""

    policy: Policy
    buckets: int
    ddl_policy: Mapping[str, str] = field(default_factory=dict)
    quarantined: QuarantinePolicy = STOP
    """What is quarantined instead of stopping the run."""
    writes_keyless: bool = False
    """Whether tables without a key are written (``sink.keyless``), as far as their rows can be told apart."""
    settle_ms: int = 0
    """How long after a change of the number of partitions a node of the producer may still send such rows as before it."""
    equal_rows: EqualRowsRule = field(default_factory=EqualRowsRule)
    """What happens to equal rows of such tables that may be one row, which was sent again (``sink.equal_rows``)."""
    accept: Acceptance = field(default_factory=Acceptance)
    """Differences between the sink's tables and upstream's that the operator accepts."""
    apply_attempts: int = 8
    idle_s: float = 0.2
    """Between two looks at what the topics hold, while there is nothing to read and another lane works."""
    pace_s: float = 0.0
    """Between the starts of two listening jobs, unless there is a backlog: a job with three records costs as much as one with a hundred."""
    ahead_rows: int = SMALL_SEGMENT_ROWS + 1
    """So many closed rows are prepared before it is their turn; fewer could still grow until then, and one task does everything."""
    sliced_rows: int = SLICED_SEGMENT_ROWS + 1
    """The same before a DDL that another one follows: one task reads the slice of fewer rows."""
    until_ts: Ts | None = None
    until_time_ms: int | None = None
    """When the last transaction was written that is applied; the source says which one that is."""
    selects: bool = False
    """Whether a filter or routes are configured: then the sink stores where each table of upstream is."""
    writers: int = 1
    """How many tasks write rows ahead of W at once (``consistency = "row"``)."""


@dataclass(frozen=True, slots=True)
class Components:
    """The ports of one run, opened by ``run.assembly``."""

    source: Source
    sink: Sink
    runner: Runner


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run: its ports, its settings, its monitor, and its shutdown request."""

    components: Components
    settings: EngineSettings
    watcher: Watcher
    shutdown: Shutdown
