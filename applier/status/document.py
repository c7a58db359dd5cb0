"""The state of a run as one JSON object: what ``/status`` answers, and what ``applier status`` adds to the sink's view."""

import os
from typing import Any

from applier import __version__
from applier.model.position import NO_TS, Ts, moment_of
from applier.telemetry.live import LiveState, LiveStream, lag_s


def status_of(state: LiveState, *, unix_s: float, is_alive: bool) -> dict[str, Any]:
    """Return the object. Timestamps are exact TSOs, each with its time; offsets are those of the next record."""
    return {
        "replica": state.replica,
        "version": __version__,
        "process": os.getpid(),
        "epoch": state.epoch,
        "phase": state.phase,
        "is_alive": is_alive,
        "is_ready": state.is_ready,
        "uptime_s": round(unix_s - state.started_at_s, 1),
        "checkpoint_ts": state.checkpoint_ts,
        "checkpoint_time": time_of(state.checkpoint_ts),
        "watermark": state.watermark,
        "watermark_time": time_of(state.watermark),
        "lag_s": rounded(lag_s(state.checkpoint_ts, unix_s)),
        "holding_stream": None if state.holding_stream is None else str(state.holding_stream),
        "stall": _stall(state),
        "current_ddl": state.current_ddl or None,
        "pending_ddls": state.pending_ddls,
        "quarantined": state.quarantined,
        "cached_bytes": state.cached_bytes,
        "records": state.records,
        "events": state.events,
        "rows": state.rows,
        "transactions": state.transactions,
        "ddls": state.ddls,
        "rebuilds": state.rebuilds,
        "retries": dict(state.retries),
        "streams": {str(stream.status.stream): _stream(stream, unix_s) for stream in state.streams},
    }


def time_of(ts: Ts) -> str | None:
    """Return the upstream's clock at a TSO as ISO 8601; None where there is no timestamp."""
    return None if ts == NO_TS else moment_of(ts).isoformat(timespec="milliseconds")


def rounded(seconds: float | None) -> float | None:
    """Round to milliseconds, which is what a TSO knows."""
    return None if seconds is None else round(seconds, 3)


def _stall(state: LiveState) -> dict[str, Any] | None:
    if state.stall is None:
        return None
    return {"stream": str(state.stall.stream), "resolved_ts": state.stall.resolved_ts, "silent_s": rounded(state.stall.silent_s)}


def _stream(stream: LiveStream, unix_s: float) -> dict[str, Any]:
    status = stream.status
    return {
        "next_offset": status.next_offset,
        "read_offset": status.read_offset,
        "end_offset": status.end_offset,
        "resolved_ts": status.resolved_ts,
        "resolved_time": time_of(status.resolved_ts),
        "lag_s": rounded(lag_s(status.resolved_ts, unix_s)),
        "silent_s": rounded(stream.silent_s),
        "cached_bytes": status.cached_bytes,
        "cached_ranges": status.cached_ranges,
        "replays": stream.replays,
        "fallbacks": stream.fallbacks,
    }
