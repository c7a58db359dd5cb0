"""The metrics: every name with its meaning, and its samples for a state of the run.

They are made at each scrape, from the frozen state: a cycle costs nothing, and a stream that is gone leaves no label.
Prometheus' numbers are floats: timestamps are seconds of the upstream's clock here; exact ones are in the JSON status.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from applier import __version__
from applier.model.position import Stream, Timeline, Ts
from applier.telemetry.activity import PHASES
from applier.telemetry.run_state import RunState, StreamView, lag_s
from applier.telemetry.tally import ACTIVITIES, BOUNDS_S

Sample = tuple[Sequence[str], float]
Stated = Callable[[RunState, float], Iterator[Sample]]

STREAM: Final = ("topic", "partition")


class Described(NamedTuple):
    """A metric: its name (a counter's without ``_total``), its meaning, its labels. ``samples``: (label values, value) for a state."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Stated


def _one(value: Callable[[RunState, float], float | None]) -> Stated:
    def samples(state: RunState, unix_s: float) -> Iterator[Sample]:
        found = value(state, unix_s)
        if found is not None:
            yield (), float(found)

    return samples


class _Clocks(NamedTuple):
    """Our time, and what the upstream's timestamps mean."""

    unix_s: float
    timeline: Timeline


def _each(value: Callable[[StreamView, _Clocks], float | None]) -> Stated:
    def samples(state: RunState, unix_s: float) -> Iterator[Sample]:
        clocks = _Clocks(unix_s, state.timeline)
        for stream in state.streams.each:
            found = value(stream, clocks)
            if found is not None:
                yield _labels(stream.status.stream), float(found)

    return samples


def _phases(state: RunState, _unix_s: float) -> Iterator[Sample]:
    return (((phase,), float(state.phase == phase)) for phase in PHASES)


def _holding(state: RunState, _unix_s: float) -> Iterator[Sample]:
    return iter([] if state.streams.holding is None else [(_labels(state.streams.holding), 1.0)])


def _stalled(state: RunState, _unix_s: float) -> Iterator[Sample]:
    stall = state.streams.stall
    return iter([] if stall is None else [(_labels(stall.stream), stall.silent_s)])


def _labels(stream: Stream) -> tuple[str, str]:
    return stream.topic, str(stream.partition)


def _seconds(ts: Ts, timeline: Timeline) -> float | None:
    time_ms = timeline.time_ms(ts) if ts else None
    return None if time_ms is None else time_ms / 1000


def _log_place(state: RunState) -> tuple[float | None, float | None]:
    """Return file number and position of the checkpoint in a binlog."""
    name, colon, position = state.timeline.text(state.checkpoint_ts).rpartition(":")
    if not colon or not state.checkpoint_ts:
        return None, None
    return float(name.rpartition(".")[2]), float(position)


GAUGES: Final = (
    Described(
        "applier_info",
        "always 1; the labels are the replica's name and the version of applier",
        ("replica", "version"),
        lambda state, _: iter([((state.replica, __version__), 1.0)]),
    ),
    Described("applier_phase", "1 for the phase that the run is in, 0 for the others", ("phase",), _phases),
    Described(
        "applier_ready",
        "1 once the run owns the replica and has applied everything that the topics held at its start; "
        "0 while it is failing, or while its checkpoint is in the future",
        (),
        _one(lambda state, _: state.is_ready),
    ),
    Described("applier_failing", "1 while something fails and is retried", (), _one(lambda state, _: state.failing is not None)),
    Described(
        "applier_paused",
        "1 while the replica is paused: the run reads nothing",
        (),
        _one(lambda state, _: state.paused is not None),
    ),
    Described("applier_fenced", "1 when the run has lost its replica; it ends within seconds", (), _one(lambda state, _: state.is_fenced)),
    Described("applier_start_time_seconds", "start of the run, as Unix time", (), _one(lambda state, _: state.started_at_s)),
    Described(
        "applier_checkpoint_timestamp_seconds",
        "checkpoint_ts as Unix time: every upstream transaction up to it is durable in the sink",
        (),
        _one(lambda state, _: _seconds(state.checkpoint_ts, state.timeline)),
    ),
    Described(
        "applier_checkpoint_log_file",
        "number of the binlog file of the checkpoint; only where a binlog is followed",
        (),
        _one(lambda state, _: _log_place(state)[0]),
    ),
    Described(
        "applier_checkpoint_log_position",
        "position of the checkpoint in that file, in bytes",
        (),
        _one(lambda state, _: _log_place(state)[1]),
    ),
    Described(
        "applier_watermark_timestamp_seconds",
        "the watermark as Unix time: the smallest resolved_ts of all required streams",
        (),
        _one(lambda state, _: _seconds(state.watermark, state.timeline)),
    ),
    Described(
        "applier_lag_seconds",
        "age of the replica: seconds from checkpoint_ts, by the upstream's clock, to now",
        (),
        _one(lambda state, unix_s: state.lag_s(unix_s)),
    ),
    Described("applier_cached_bytes", "bytes of cached chunks, of all streams", (), _one(lambda state, _: state.streams.cached_bytes)),
    Described(
        "applier_pending_ddls", "DDLs that were read and wait for the watermark", (), _one(lambda state, _: state.streams.pending_ddls)
    ),
    Described("applier_quarantined", "events in quarantine that wait for the operator", (), _one(lambda state, _: state.quarantined)),
    Described(
        "applier_watermark_held", "1 for the stream that holds back the watermark: the one with the smallest resolved_ts", STREAM, _holding
    ),
    Described(
        "applier_stalled_seconds",
        "seconds without a resolved event on the stream that holds back the watermark; absent below source.stall_after_s",
        STREAM,
        _stalled,
    ),
    Described(
        "applier_stream_resolved_timestamp_seconds",
        "resolved_ts of the stream as Unix time",
        STREAM,
        _each(lambda stream, clocks: _seconds(stream.status.resolved_ts, clocks.timeline)),
    ),
    Described(
        "applier_stream_lag_seconds",
        "seconds from the stream's resolved_ts, by the upstream's clock, to now",
        STREAM,
        _each(lambda stream, clocks: lag_s(stream.status.resolved_ts, *clocks)),
    ),
    Described(
        "applier_stream_next_offset",
        "offset from which a restart reads the stream",
        STREAM,
        _each(lambda stream, _: stream.status.next_offset),
    ),
    Described("applier_stream_read_offset", "next offset to read", STREAM, _each(lambda stream, _: stream.status.read_offset)),
    Described(
        "applier_stream_end_offset", "end offset of the stream when last listed", STREAM, _each(lambda stream, _: stream.status.end_offset)
    ),
    Described(
        "applier_stream_cached_bytes", "bytes of the stream's cached chunks", STREAM, _each(lambda stream, _: stream.status.cached_bytes)
    ),
    Described("applier_stream_cached_ranges", "cached ranges of the stream", STREAM, _each(lambda stream, _: stream.status.cached_ranges)),
    Described(
        "applier_stream_silent_seconds",
        "seconds in which the stream was read to its end and its resolved_ts did not advance",
        STREAM,
        _each(lambda stream, _: stream.silent_s),
    ),
)

COUNTERS: Final = (
    Described("applier_records", "records read; each offset counts once", (), _one(lambda state, _: state.counts.records)),
    Described("applier_events", "events read", (), _one(lambda state, _: state.counts.events)),
    Described("applier_rows", "rows written or deleted, after compaction", (), _one(lambda state, _: state.counts.rows)),
    Described("applier_transactions", "upstream transactions applied", (), _one(lambda state, _: state.counts.transactions)),
    Described(
        "applier_deletes_without_row",
        "rows that upstream has deleted since the start of this run and the sink did not have, although upstream had them when the segment "
        "began",
        (),
        _one(lambda state, _: state.counts.absent_rows),
    ),
    Described("applier_ddls", "DDLs applied", (), _one(lambda state, _: state.counts.ddls)),
    Described(
        "applier_ddls_skipped",
        "DDLs that were not run: [ddl], applier skip, or a table that is not selected",
        (),
        _one(lambda state, _: state.counts.skipped_ddls),
    ),
    Described(
        "applier_statements_skipped",
        "statements of a binlog that change no table of the replica, by kind",
        ("kind",),
        lambda state, _: (((kind,), float(count)) for kind, count in state.counts.skipped_statements),
    ),
    Described(
        "applier_early_columns",
        "columns that rows carried before the DDL that adds them, and whose early values were dropped",
        (),
        _one(lambda state, _: state.counts.early_columns),
    ),
    Described("applier_rebuilds", "reloads of the state from the checkpoint", (), _one(lambda state, _: state.counts.rebuilds)),
    Described(
        "applier_retries",
        "retries, by the class of the error",
        ("error",),
        lambda state, _: (((error,), float(count)) for error, count in state.retries),
    ),
    Described(
        "applier_stream_replays",
        "rows below checkpoint_ts that were read again and dropped",
        STREAM,
        _each(lambda stream, _: stream.replays),
    ),
    Described(
        "applier_stream_fallbacks",
        "ranges with an event below a resolved_ts that the stream had shown before",
        STREAM,
        _each(lambda stream, _: stream.fallbacks),
    ),
    Described(
        "applier_stream_offsets_without_record",
        "offsets that were read and held no record: records that compaction has deleted, or transactions' markers and aborted records, "
        "which Kafka's client does not tell apart",
        STREAM,
        _each(lambda stream, _: stream.missing),
    ),
)

DURATION: Final = "applier_duration_seconds"
DURATION_MEANING: Final = (
    f"duration of each phase: {', '.join(ACTIVITIES)}; listen, prepare and apply overlap, "
    "and a cycle counts only if there was something to do"
)
DURATION_LABELS: Final = ("phase",)


class StateCollector(Collector):
    """Makes the metrics of the state that ``state`` returns; called in the threads of the HTTP server."""

    def __init__(self, state: Callable[[], RunState], unix_s: Callable[[], float] = time.time) -> None:
        self._state, self._unix_s = state, unix_s

    def collect(self) -> Iterator[Metric]:
        """Yield every metric with its samples."""
        # Not the library's Gauge objects: they keep the labels of streams that are gone, and cost time in every cycle.
        state, unix_s = self._state(), self._unix_s()
        for kind, described in ((GaugeMetricFamily, GAUGES), (CounterMetricFamily, COUNTERS)):
            for metric in described:
                family = kind(metric.name, metric.meaning, labels=metric.labels)
                for labels, value in metric.samples(state, unix_s):
                    family.add_metric(labels, value)
                yield family
        yield _durations(state)


def _durations(state: RunState) -> Metric:
    family = HistogramMetricFamily(DURATION, DURATION_MEANING, labels=DURATION_LABELS)
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    for histogram in state.streams.durations:
        family.add_metric([histogram.activity], list(zip(bounds, histogram.counts, strict=True)), histogram.sum_s)
    return family


def registry_of(state: Callable[[], RunState]) -> CollectorRegistry:
    """Return a separate registry with the metrics of the run and of its process."""
    # Not the global registry: two runs in one process (the tests) would refuse each other's names.
    registry = CollectorRegistry()
    registry.register(StateCollector(state))
    ProcessCollector(registry=registry)
    return registry
