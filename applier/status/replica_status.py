"""The status of a replica: built from the sink's overview, Kafka's end offsets and what the running daemon answers.

Values only, and pure. ``query`` collects them; ``cli/status.py`` shows them. ``Health`` says in one word and one number whether it is well.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from applier.coordinator.streams import is_required
from applier.model.position import DIGITS, NO_TS, Offset, Stream, StreamPosition, Timeline, Ts, holds_time, moment_of
from applier.model.topic_name import PartitionLimits
from applier.sinks.copy_state import CopyState
from applier.sinks.overview import Overview, OwnerState, StoredEnd
from applier.sources.kit import LogStatus, SourceAnswer
from applier.status.run_document import rounded
from applier.telemetry.run_state import lag_s as age_of
from applier.telemetry.wording import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSummary:
    """One stream. ``next_offset`` is None before it was read, ``end_offset`` while Kafka does not answer."""

    stream: Stream
    next_offset: Offset | None
    end_offset: Offset | None
    resolved_ts: Ts
    lag_s: float | None
    holds_watermark: bool
    applied_ts: Ts = NO_TS
    """Up to where its rows are in the sink ahead of the checkpoint (``consistency = "row"``); 0: in whole transactions only."""
    counts_records: bool = True
    """Whether an offset counts a record; a binlog's are positions."""

    @property
    def behind(self) -> int | None:
        """Records that a restart would read; None: not known."""
        if self.end_offset is None or not self.counts_records:
            return None
        return max(0, self.end_offset - (self.next_offset or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """One replica. ``live`` is the answer of the daemon's ``/status``; ``source_problem``: why the ends are unknown, or ""."""

    replica: str
    sink: str
    overview: Overview
    source_problem: str = ""
    sink_problem: str = ""
    """Why only the run's answer is known, or ""."""
    asked_at_s: float = 0.0
    """Unix time."""
    live: Mapping[str, Any] | None = None
    streams: tuple[StreamSummary, ...] = ()
    lag_s: float | None = None
    watermark: Ts = field(default=NO_TS)
    timeline: Timeline = DIGITS
    log: LogStatus | None = None
    """The position of a replica of a binlog; None: its source is Kafka, or it has no position yet."""

    @property
    def has_topics(self) -> bool:
        """Whether the source is Kafka: its streams are shown one by one, and a binlog is one position."""
        return holds_time(self.timeline)

    @property
    def holding_stream(self) -> Stream | None:
        """The stream that holds back the watermark: others have a greater resolved_ts. None: all have the same."""
        return next((each.stream for each in self.streams if each.holds_watermark), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the query has collected. The source's listing is None if it does not answer, for the reason in ``source_problem``."""

    overview: Overview
    source: SourceAnswer
    source_problem: str
    live: Mapping[str, Any] | None


def build_status(
    replica: str, sink: str, found: Findings, unix_s: float, partitions: Mapping[str, int] | PartitionLimits | None
) -> ReplicaStatus:
    """Build the status of what was found. ``partitions``: how many of each topic are required, as for a run (None: all)."""
    # Partitions that source.partitions excludes do not count, as for a run: an abandoned one would hold back the watermark permanently.
    stored = found.overview.progress.positions if found.overview.progress else {}
    positions = {stream: position for stream, position in stored.items() if is_required(stream, partitions)}
    watermark = min((position.resolved_ts for position in positions.values()), default=NO_TS)
    holding = _holding(positions, watermark)
    listing, timeline = found.source.listing, found.source.timeline
    ends = {stream: extent.end for stream, extent in listing.extents.items()} if listing else {}
    streams = sorted({*positions, *(stream for stream, end in ends.items() if end and is_required(stream, partitions))})
    return ReplicaStatus(
        replica=replica,
        sink=sink,
        asked_at_s=unix_s,
        overview=found.overview,
        source_problem=found.source_problem,
        live=found.live,
        watermark=watermark,
        lag_s=age_of(found.overview.progress.checkpoint_ts, unix_s, timeline) if found.overview.progress else None,
        streams=_counting(
            timeline,
            (
                _stream(
                    stream,
                    positions.get(stream),
                    ends.get(stream),
                    partial(age_of, unix_s=unix_s, timeline=timeline),
                    holds=stream == holding,
                )
                for stream in streams
            ),
        ),
        timeline=timeline,
        log=found.source.log,
    )


def _counting(timeline: Timeline, streams: Iterable[StreamSummary]) -> tuple[StreamSummary, ...]:
    """Return the streams, which know whether their offsets count records: only offsets of topics do, whose timestamps hold their time."""
    counts = holds_time(timeline)
    return tuple(each if counts else replace(each, counts_records=False) for each in streams)


def status_of_run(replica: str, sink: str, live: Mapping[str, Any], problem: str, unix_s: float, timeline: Timeline) -> ReplicaStatus:
    """Build the status of what the run alone answers, because the sink does not: ``problem``."""
    holding = live.get("holding_stream")
    return ReplicaStatus(
        replica=replica,
        sink=sink,
        asked_at_s=unix_s,
        overview=Overview(progress=None, updated_at=None, owner=None, undecided=(), quarantined=live.get("quarantined") or 0),
        sink_problem=problem,
        live=live,
        watermark=Ts(live.get("watermark") or NO_TS),
        lag_s=live.get("lag_s"),
        streams=_counting(timeline, (_answered(name, stream, holds=name == holding) for name, stream in live.get("streams", {}).items())),
        timeline=timeline,
    )


def _answered(name: str, stream: Mapping[str, Any], *, holds: bool) -> StreamSummary:
    topic, _, partition = name.rpartition("/")
    return StreamSummary(
        stream=Stream(topic, int(partition)),
        next_offset=Offset(stream["next_offset"]),
        end_offset=Offset(stream["end_offset"]),
        resolved_ts=Ts(stream["resolved_ts"]),
        lag_s=stream["lag_s"],
        holds_watermark=holds,
        applied_ts=Ts(stream.get("applied_ts") or NO_TS),
    )


def _holding(positions: Mapping[Stream, StreamPosition], watermark: Ts) -> Stream | None:
    # A stream holds back the watermark only if another is ahead of it.
    if all(position.resolved_ts == watermark for position in positions.values()):
        return None
    return min(stream for stream, position in positions.items() if position.resolved_ts == watermark)


def _stream(
    stream: Stream, position: StreamPosition | None, end: Offset | None, age: Callable[[Ts], float | None], *, holds: bool
) -> StreamSummary:
    resolved_ts = NO_TS if position is None else position.resolved_ts
    return StreamSummary(
        stream=stream,
        next_offset=None if position is None else position.next_offset,
        end_offset=end,
        resolved_ts=resolved_ts,
        lag_s=age(resolved_ts),
        holds_watermark=holds,
        applied_ts=NO_TS if position is None else position.applied_ts,
    )


def as_object(status: ReplicaStatus) -> dict[str, Any]:
    """Return the status as a JSON object. Timestamps are exact TSOs, each with its time."""
    overview, progress = status.overview, status.overview.progress
    checkpoint_ts = progress.checkpoint_ts if progress else Ts((status.live or {}).get("checkpoint_ts") or NO_TS)
    return {
        "replica": status.replica,
        "sink": status.sink,
        "has_begun": bool(checkpoint_ts or progress is not None),
        "checkpoint_ts": checkpoint_ts,
        "checkpoint_time": _time_of(checkpoint_ts, status.timeline),
        "lag_s": rounded(status.lag_s),
        "start_ts": progress.start_ts if progress else NO_TS,
        "initial_state": _initial_state(overview),
        "consistent": overview.is_consistent,
        "copy": _copy(overview, status.timeline),
        "epoch": progress.fence.epoch if progress else None,
        "updated_at": overview.updated_at.isoformat(timespec="milliseconds") if overview.updated_at else None,
        "watermark": status.watermark,
        "watermark_time": _time_of(status.watermark, status.timeline),
        "holding_stream": str(status.holding_stream) if status.holding_stream else None,
        "owner": _owner(overview),
        "streams": {str(each.stream): _stream_object(each, status.timeline) for each in status.streams},
        "log": None if status.log is None else asdict(status.log),
        "undecided_ddls": [
            {
                "ts": entry.ddl.commit_ts,
                "schema": entry.ddl.schema,
                "table": entry.ddl.table,
                "query": entry.ddl.query,
                "began_at": entry.began_at.isoformat(timespec="milliseconds"),
                "error": entry.error,
            }
            for entry in overview.undecided
        ],
        "quarantined": overview.quarantined,
        "last_end": _end(overview.last_end),
        "paused_since": overview.pause.said_at.isoformat(timespec="milliseconds") if overview.pause else None,
        "paused_by": overview.pause.said_by if overview.pause else None,
        "source_problem": status.source_problem or None,
        "sink_problem": status.sink_problem or None,
        "daemon": status.live,
    }


def _owner(overview: Overview) -> dict[str, Any] | None:
    view = overview.owner
    if view is None:
        return None
    return {
        "state": str(view.state),
        "host": view.owner.host,
        "process": view.owner.process,
        "epoch": view.owner.epoch,
        "since": view.owner.started_at.isoformat(timespec="seconds"),
        "silent_s": round(view.silent_s, 1),
    }


def _initial_state(overview: Overview) -> dict[str, Any] | None:
    dump = overview.loaded
    if dump is None:
        return None
    return {
        "kind": str(dump.kind),
        "start_ts": dump.start_ts,
        "source": dump.directory,
        "recorded_by": dump.loaded_by,
        "recorded_at": dump.ended_at.isoformat(timespec="seconds") if dump.ended_at else None,
    }


def _copy(overview: Overview, timeline: Timeline) -> dict[str, Any] | None:
    view = overview.copy
    if view is None:
        return None
    row = view.row
    return {
        "state": copy_state(overview),
        "from": timeline.text(row.start_ts),
        "upto": timeline.text(row.upto_ts) if row.state is CopyState.READ else None,
        "tables": view.tables,
        "tables_done": view.tables_done,
        "rows": view.rows,
        "rows_planned": view.rows_planned,
        "bytes": view.size_bytes,
        "left_out": dict(row.left_out),
        "began_at": row.began_at.isoformat(timespec="milliseconds"),
    }


def copy_state(overview: Overview) -> str:
    """Return the state of the copy as people see it: after all rows are read, the changes of meanwhile are replayed."""
    view = overview.copy
    if view is None:
        return ""
    if view.row.state is not CopyState.READ:
        return str(view.row.state)
    return "consistent" if overview.is_consistent else "replaying"


def _end(stored: StoredEnd | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    end = stored.end
    return {
        "command": end.command,
        "exit_code": end.exit_code,
        "error_class": end.error_class or None,
        "message": end.message,
        "facts": dict(end.facts),
        "remedy": end.remedy or None,
        "ended_at": stored.ended_at.isoformat(timespec="milliseconds"),
    }


def _time_of(ts: Ts, timeline: Timeline) -> str | None:
    time_ms = timeline.time_ms(ts) if ts else None
    return None if time_ms is None else moment_of(time_ms).isoformat(timespec="milliseconds")


def _stream_object(each: StreamSummary, timeline: Timeline) -> dict[str, Any]:
    return {
        "next_offset": each.next_offset,
        "end_offset": each.end_offset,
        "behind": each.behind,
        "resolved_ts": each.resolved_ts,
        "resolved_time": _time_of(each.resolved_ts, timeline),
        "lag_s": rounded(each.lag_s),
        "holds_watermark": each.holds_watermark,
        "applied_ts": each.applied_ts,
        "applied_time": _time_of(each.applied_ts, timeline),
    }


class Health(IntEnum):
    """How a replica is. The number is the exit code of ``applier status``."""

    HEALTHY = 0
    LAGGING = 1
    STOPPED = 2
    HINDERED = 3
    """It runs, and a problem that may need an operator keeps it from making progress."""


class Verdict(NamedTuple):
    """How a replica is, and why."""

    health: Health
    reason: str


def verdict_of(status: ReplicaStatus, max_lag_s: float | None = None) -> Verdict:
    """Judge a replica; ``max_lag_s``: the greatest lag that counts as well (None: any)."""
    live, owner = status.live, status.overview.owner
    if live is None and (owner is None or owner.state is OwnerState.DEAD):
        return Verdict(Health.STOPPED, "stopped: no run owns the replica" if owner is None else "stopped: the run that owns it has died")
    if owner is not None and owner.state is OwnerState.FROZEN:
        return Verdict(Health.HINDERED, "frozen: the run that owns it has shown no heartbeat for longer than its lease")
    if (hindrance := _hindrance(status)) is not None:
        return Verdict(Health.HINDERED, hindrance)
    if max_lag_s is not None and (status.lag_s is None or status.lag_s > max_lag_s):
        lag = "unknown" if status.lag_s is None else duration(status.lag_s)
        return Verdict(Health.LAGGING, f"lagging: its lag is {lag}, and --max-lag {duration(max_lag_s)}")
    return Verdict(Health.HEALTHY, "healthy")


def _hindrance(status: ReplicaStatus) -> str | None:
    live = status.live or {}
    stall = live.get("stall") or {}
    found = {
        "wrong: the checkpoint is in the future, so rows are dropped as applied already": status.lag_s is not None and status.lag_s < 0,
        "fenced: the run that answers has lost the replica": live.get("is_fenced"),
        "failing: something fails and is retried": live.get("failing_since"),
        "paused: nothing is applied until it is resumed": status.overview.pause or live.get("paused_since"),
        "hanging: the run that answers makes no progress": live.get("is_alive") is False,
        f"stalled: {stall.get('stream')} shows no resolved event": stall,
        "waiting: a DDL has failed, and its outcome must be decided": any(entry.error for entry in status.overview.undecided),
    }
    return next((reason for reason, is_so in found.items() if is_so), None)
