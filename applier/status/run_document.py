"""The state of a run as one JSON object: what ``/status`` answers, and what ``applier status`` adds to the sink's view."""

import os
from datetime import UTC, datetime
from typing import Any

from applier import __version__
from applier.model.position import Offset, Timeline, Ts, iso_at
from applier.sources.factory import executed_set
from applier.telemetry.run_state import RunState, Stall, StreamView, lag_s


def run_document(state: RunState, *, unix_s: float, is_alive: bool) -> dict[str, Any]:
    """Return the object. Timestamps are exact, each with its time; an offset names the next record."""
    # TSOs are integers of 59 bits and more: JavaScript and jq round them above 2**53, so each has its time beside it.
    streams, counts, timeline = state.streams, state.counts, state.timeline
    return {
        "replica": state.replica,
        "version": __version__,
        "process": os.getpid(),
        "epoch": state.epoch,
        "phase": state.phase,
        "phase_since": iso_of(state.phase_since_s),
        "is_alive": is_alive,
        "is_ready": state.is_ready,
        "uptime_s": round(unix_s - state.started_at_s, 1),
        "checkpoint_ts": state.checkpoint_ts,
        "checkpoint_time": iso_at(state.checkpoint_ts, timeline),
        "checkpoint": timeline.text(state.checkpoint_ts),
        "gtid_set": executed_set(state.source_state),
        "watermark": state.watermark,
        "watermark_time": iso_at(state.watermark, timeline),
        "lag_s": rounded(state.lag_s(unix_s)),
        "holding_stream": None if streams.holding is None else str(streams.holding),
        "stall": _stall(streams.stall),
        "current_ddl": state.current_ddl or None,
        "ddl_since": iso_of(state.ddl_since_s),
        **_failing(state),
        "paused_since": None if state.paused is None else iso_of(state.paused.since_s),
        "paused_by": None if state.paused is None else state.paused.said_by,
        "is_fenced": state.is_fenced,
        "pending_ddls": streams.pending_ddls,
        "quarantined": state.quarantined,
        "cached_bytes": streams.cached_bytes,
        "records": counts.records,
        "events": counts.events,
        "rows": counts.rows,
        "transactions": counts.transactions,
        "deletes_without_row": counts.absent_rows,
        "skipped_statements": dict(counts.skipped_statements),
        "ddls": counts.ddls,
        "skipped_ddls": counts.skipped_ddls,
        "rebuilds": counts.rebuilds,
        "retries": dict(state.retries),
        "streams": {str(stream.status.stream): _stream(stream, unix_s, timeline) for stream in streams.each},
    }


def _failing(state: RunState) -> dict[str, Any]:
    failing = state.failing
    if failing is None:
        return dict.fromkeys(("failing_since", "error", "error_class", "attempt", "next_attempt_at", "gives_up_at"))
    return {
        "failing_since": iso_of(failing.since_s),
        "error": failing.error,
        "error_class": failing.error_class,
        "attempt": failing.attempt,
        "next_attempt_at": iso_of(failing.next_attempt_at_s),
        "gives_up_at": iso_of(failing.gives_up_at_s),
    }


def iso_of(unix_s: float | None) -> str | None:
    """Return a Unix time as ISO 8601, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds") if unix_s else None


def rounded(seconds: float | None) -> float | None:
    """Round to milliseconds, the precision of a timestamp."""
    return None if seconds is None else round(seconds, 3)


def _stall(stall: Stall | None) -> dict[str, Any] | None:
    if stall is None:
        return None
    return {"stream": str(stall.stream), "resolved_ts": stall.resolved_ts, "silent_s": rounded(stall.silent_s)}


def _position(offset: Offset, timeline: Timeline) -> str | None:
    """Return an offset as a position in a binlog; None: it is a number of Kafka."""
    text = timeline.text(Ts(offset))
    return None if text == str(offset) else text


def _stream(stream: StreamView, unix_s: float, timeline: Timeline) -> dict[str, Any]:
    status = stream.status
    return {
        "next_offset": status.next_offset,
        "read_offset": status.read_offset,
        "end_offset": status.end_offset,
        "position": _position(status.next_offset, timeline),
        "end_position": _position(status.end_offset, timeline),
        "resolved_ts": status.resolved_ts,
        "resolved_time": iso_at(status.resolved_ts, timeline),
        "lag_s": rounded(lag_s(status.resolved_ts, unix_s, timeline)),
        "applied_ts": status.applied_ts,
        "applied_time": iso_at(status.applied_ts, timeline),
        "silent_s": rounded(stream.silent_s),
        "cached_bytes": status.cached_bytes,
        "cached_ranges": status.cached_ranges,
        "replays": stream.replays,
        "fallbacks": stream.fallbacks,
        "offsets_without_record": stream.missing,
    }
