"""The state of a run at one point in time: made by ``Monitor`` alone, frozen, read by any thread.

The display, the log, the metrics, ``/status`` and the watchdog read this one value. Whatever they show in common comes from one field.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from applier.coordinator import StreamStatus
from applier.model.position import DIGITS, NO_TS, Offset, Stream, Timeline, Ts, is_ahead
from applier.model.segment import has_advanced
from applier.telemetry.activity import STARTING
from applier.telemetry.failing import Failing

# --- stall -----------------------------------------------------------------------------------------------------------
# Which stream holds back the watermark although it is read, and for how long (DESIGN.md 10). Pure: time is passed in as ``now_s``.
#
# A stream is silent while it is read to its end, again and again, without a new resolved event. Time in which it was not read does not
# count: that of a backlog, of a stream that must wait for another one, of a long DDL. Nothing is missing in a binlog that was read to its
# end: an upstream without writes is no stall.


MAX_ROUND_S: Final = 5.0
"""The longest time between two reads to the end that counts as silence: in a longer one the stream was not read."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream that holds back the watermark and has been silent for too long."""

    stream: Stream
    resolved_ts: Ts
    silent_s: float


@dataclass(slots=True)
class _Silence:
    resolved_ts: Ts
    goal: Offset
    """The end offset when the stream was last read to its end: once it is read, another round has passed without a resolved event."""
    round_s: float = 0.0
    silent_s: float = 0.0


class StallRule:
    """Watches the resolved_ts of all streams. ``stall_after_s``: seconds of silence that are too long."""

    def __init__(self, stall_after_s: float) -> None:
        self._stall_after_s = stall_after_s
        self._silences: dict[Stream, _Silence] = {}
        self._looked_at_s: float | None = None

    def observe(self, streams: Iterable[StreamStatus], holding: Stream | None, now_s: float) -> Stall | None:
        """Look at the streams; return the stall if the one that holds back the watermark has been silent for too long.

        ``now_s`` is of any clock that does not step back.
        """
        passed_s = 0.0 if self._looked_at_s is None else now_s - self._looked_at_s
        self._looked_at_s = now_s
        self._silences = {status.stream: self._look(status, passed_s) for status in streams}
        silence = None if holding is None else self._silences.get(holding)
        if holding is None or silence is None or silence.silent_s < self._stall_after_s:
            return None
        return Stall(holding, silence.resolved_ts, silence.silent_s)

    def silent_s(self, stream: Stream) -> float:
        """Return for how long a stream has been silent."""
        silence = self._silences.get(stream)
        return 0.0 if silence is None else silence.silent_s

    def _look(self, status: StreamStatus, passed_s: float) -> _Silence:
        silence = self._silences.get(status.stream)
        # A smaller resolved_ts is no progress: after a reload the same ones are read once more.
        if silence is None or status.is_promised_by_reading or has_advanced(status.resolved_ts, silence.resolved_ts):
            return _Silence(status.resolved_ts, status.end_offset)
        # Time counts only when a round is complete: a stream whose records no one reads is waiting, not silent.
        silence.round_s += passed_s
        if status.read_offset >= silence.goal:
            silence.silent_s += min(silence.round_s, MAX_ROUND_S)
            silence.round_s, silence.goal = 0.0, status.end_offset
        return silence


# --- run state -------------------------------------------------------------------------------------------------------


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
    """A run at one point in time."""

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
        """Return whether the run has made progress in the last ``limit_s``. A DDL counts as progress: it may take hours."""
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
