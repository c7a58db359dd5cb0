"""The state of a run at one moment: made in one place (``Monitor``), frozen, read by any thread.

The display, the log, the metrics, ``/status`` and the watchdog read this one value. Whatever they show in common comes from one field.
"""

from dataclasses import dataclass
from typing import NamedTuple

from applier.coordinator import StreamStatus
from applier.model.position import NO_TS, Stream, Ts
from applier.model.timeline import DIGITS, Timeline, is_ahead
from applier.telemetry.activity import STARTING
from applier.telemetry.failing import Failing
from applier.telemetry.stall import Stall


class Histogram(NamedTuple):
    """How often an activity took how long: ``counts`` are cumulative, one per bound of ``BOUNDS_S`` and one for everything."""

    activity: str
    counts: tuple[int, ...]
    sum_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a run has done so far. ``records`` counts each offset once, however often it is read again."""

    records: int = 0
    events: int = 0
    rows: int = 0
    transactions: int = 0
    ddls: int = 0
    skipped_ddls: int = 0
    """DDLs that were not run: `[ddl]`, `applier skip`, or a table that is not selected."""
    rebuilds: int = 0
    """How often the state was reloaded from the checkpoint."""
    absent_rows: int = 0
    """Rows that upstream has deleted, and that the sink did not have."""
    early_columns: int = 0
    """Columns that rows carried before the DDLs that add them."""
    skipped_statements: tuple[tuple[str, int], ...] = ()
    """By kind: what a binlog holds that changes no table of the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """One stream. ``replays``, ``fallbacks`` and ``missing`` count since the run began, across reloads."""

    status: StreamStatus
    silent_s: float
    replays: int
    fallbacks: int
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsView:
    """What costs time per stream to collect, so it is collected now and then (``LOOK_S``)."""

    each: tuple[StreamView, ...] = ()
    holding: Stream | None = None
    """The stream that holds back the watermark."""
    stall: Stall | None = None
    pending_ddls: int = 0
    cached_bytes: int = 0
    durations: tuple[Histogram, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """An operator has paused the replica: the run keeps it, and reads nothing. ``since_s``: Unix time."""

    since_s: float
    said_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run at one moment."""

    replica: str = "replica"
    started_at_s: float = 0.0
    """Unix time."""
    began_s: float = 0.0
    """When the run began, by the monotonic clock."""
    progress_s: float = 0.0
    """When the run has made its last step, by the monotonic clock."""
    phase: str = STARTING
    """One of ``PHASES``."""
    phase_since_s: float = 0.0
    """Since when the phase is the same; Unix time."""
    current_ddl: str = ""
    """Text of the DDL that runs now."""
    ddl_since_s: float | None = None
    """Since when a DDL runs, or one of an earlier run is settled; Unix time."""
    failing: Failing | None = None
    paused: Paused | None = None
    is_fenced: bool = False
    """The run has lost its replica."""
    is_ready: bool = False
    """The run owns the replica, has once applied what was there when it began, and is not failing."""
    epoch: int | None = None
    """None until the run owns the replica."""
    checkpoint_ts: Ts = NO_TS
    watermark: Ts = NO_TS
    timeline: Timeline = DIGITS
    """What these timestamps mean."""
    source_state: str | None = None
    """What the source has said of the checkpoint (``Source.state_at``)."""
    counts: Counts = Counts()
    records_total: int = 0
    """Records up to the end offsets that were known at the start; 0 while that is not known."""
    streams: StreamsView = StreamsView()
    retries: tuple[tuple[str, int], ...] = ()
    """Class of the error, and how often something was retried because of it."""
    quarantined: int | None = None
    """Events in quarantine that wait for the operator; None while that is not known."""

    @property
    def elapsed_s(self) -> float:
        """Seconds from the beginning of the run to its last step."""
        return self.progress_s - self.began_s

    def lag_s(self, unix_s: float) -> float | None:
        """Return how old the replica is; None before the first checkpoint."""
        return lag_s(self.checkpoint_ts, unix_s, self.timeline)

    def is_alive(self, now_s: float, limit_s: float) -> bool:
        """Return whether the run has made progress in the last ``limit_s``. A DDL takes as long as it takes: hours for a large table."""
        return self.ddl_since_s is not None or now_s - self.progress_s <= limit_s


def lag_s(ts: Ts, unix_s: float, timeline: Timeline) -> float | None:
    """Return the seconds between the upstream's clock at ``ts`` and ours; None where there is no timestamp, or its time is not known.

    Clocks differ, so a little below 0 is 0. A TSO that is later than that is an error, and its lag negative.
    """
    time_ms = timeline.time_ms(ts) if ts else None
    if time_ms is None:
        return None
    age_s = unix_s - time_ms / 1000
    return age_s if is_ahead(ts, timeline, int(unix_s * 1000)) else max(0.0, age_s)
