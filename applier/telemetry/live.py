"""The state of a run as others see it: frozen, made in the engine's thread, read by any thread."""

from dataclasses import dataclass

from applier.coordinator import StreamStatus
from applier.model.position import NO_TS, Stream, Ts, physical_ms
from applier.telemetry.stall import Stall
from applier.telemetry.tally import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStream:
    """One stream; ``replays`` and ``fallbacks`` count since the run began, whatever was rebuilt in between."""

    status: StreamStatus
    silent_s: float
    replays: int
    fallbacks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """A run at one moment. ``seen_at_s`` is its last sign of life, by the monotonic clock."""

    replica: str
    started_at_s: float
    """Unix time."""
    seen_at_s: float
    phase: str = "starting"
    is_ready: bool = False
    """It owns the replica, and has once applied what was there when it began."""
    epoch: int | None = None
    """None until it owns the replica."""
    checkpoint_ts: Ts = NO_TS
    watermark: Ts = NO_TS
    holding_stream: Stream | None = None
    stall: Stall | None = None
    streams: tuple[LiveStream, ...] = ()
    current_ddl: str = ""
    pending_ddls: int = 0
    cached_bytes: int = 0
    records: int = 0
    events: int = 0
    rows: int = 0
    transactions: int = 0
    ddls: int = 0
    rebuilds: int = 0
    retries: tuple[tuple[str, int], ...] = ()
    """Class of the error, and how often something was tried again because of it."""
    quarantined: int | None = None
    """Events in quarantine that wait for the operator; None while that is not known."""
    durations: tuple[Histogram, ...] = ()

    def is_alive(self, now_s: float, limit_s: float) -> bool:
        """Whether there was a sign of life in the last ``limit_s``; a DDL takes as long as it takes."""
        return self.phase == "ddl" or now_s - self.seen_at_s <= limit_s


def lag_s(ts: Ts, unix_s: float) -> float | None:
    """Return the seconds between the upstream's clock at ``ts`` and ours; None where there is no timestamp."""
    return max(0.0, unix_s - physical_ms(ts) / 1000) if ts else None
