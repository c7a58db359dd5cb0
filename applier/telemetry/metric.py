"""The metrics: every name with its meaning, and what a state of the run gives for it.

They are made when somebody asks, from the frozen state: a cycle costs nothing, and a stream that is gone leaves no label behind.
Prometheus' numbers are floats: timestamps are seconds of the upstream's clock here; exact TSOs are in the JSON status.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from applier import __version__
from applier.model.position import Stream, Ts, physical_ms
from applier.telemetry.live import LiveState, LiveStream, lag_s
from applier.telemetry.tally import ACTIVITIES, BOUNDS_S, PHASES

Sample = tuple[Sequence[str], float]
Stated = Callable[[LiveState, float], Iterator[Sample]]

STREAM: Final = ("topic", "partition")


class Described(NamedTuple):
    """A metric: its name (a counter's without ``_total``), its meaning, its labels. ``samples``: (label values, value) for a state."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Stated


def _one(value: Callable[[LiveState, float], float | None]) -> Stated:
    def samples(state: LiveState, unix_s: float) -> Iterator[Sample]:
        found = value(state, unix_s)
        if found is not None:
            yield (), float(found)

    return samples


def _each(value: Callable[[LiveStream, float], float | None]) -> Stated:
    def samples(state: LiveState, unix_s: float) -> Iterator[Sample]:
        for stream in state.streams:
            found = value(stream, unix_s)
            if found is not None:
                yield _labels(stream.status.stream), float(found)

    return samples


def _phases(state: LiveState, _unix_s: float) -> Iterator[Sample]:
    return (((phase,), float(state.phase == phase)) for phase in PHASES)


def _holding(state: LiveState, _unix_s: float) -> Iterator[Sample]:
    return iter([] if state.holding_stream is None else [(_labels(state.holding_stream), 1.0)])


def _stalled(state: LiveState, _unix_s: float) -> Iterator[Sample]:
    return iter([] if state.stall is None else [(_labels(state.stall.stream), state.stall.silent_s)])


def _labels(stream: Stream) -> tuple[str, str]:
    return stream.topic, str(stream.partition)


def _seconds(ts: Ts) -> float | None:
    return physical_ms(ts) / 1000 if ts else None


GAUGES: Final = (
    Described(
        "applier_info",
        "1; the replica's name and the program's version",
        ("replica", "version"),
        lambda state, _: iter([((state.replica, __version__), 1.0)]),
    ),
    Described("applier_phase", "1 for what the run is doing now, 0 for the other phases", ("phase",), _phases),
    Described(
        "applier_ready",
        "1 if the run owns the replica and has once applied everything that was there when it began",
        (),
        _one(lambda state, _: state.is_ready),
    ),
    Described("applier_start_time_seconds", "when the run began (Unix time)", (), _one(lambda state, _: state.started_at_s)),
    Described(
        "applier_checkpoint_timestamp_seconds",
        "checkpoint_ts as Unix time: everything that was committed upstream up to then is durable in the sink",
        (),
        _one(lambda state, _: _seconds(state.checkpoint_ts)),
    ),
    Described(
        "applier_watermark_timestamp_seconds",
        "the watermark as Unix time: the least resolved_ts of all required streams",
        (),
        _one(lambda state, _: _seconds(state.watermark)),
    ),
    Described(
        "applier_lag_seconds",
        "seconds from the upstream's clock at checkpoint_ts to now: how old the replica is",
        (),
        _one(lambda state, unix_s: lag_s(state.checkpoint_ts, unix_s)),
    ),
    Described("applier_cached_bytes", "bytes of cached chunks, of all streams", (), _one(lambda state, _: state.cached_bytes)),
    Described("applier_pending_ddls", "DDLs that were read and wait for the watermark", (), _one(lambda state, _: state.pending_ddls)),
    Described("applier_quarantined", "events in quarantine that wait for the operator", (), _one(lambda state, _: state.quarantined)),
    Described("applier_watermark_held", "1 for the stream that holds the watermark", STREAM, _holding),
    Described(
        "applier_stalled_seconds",
        "for how long the stream that holds the watermark has shown no resolved event; only while that is longer than stall_after_s",
        STREAM,
        _stalled,
    ),
    Described(
        "applier_stream_resolved_timestamp_seconds",
        "resolved_ts of the stream as Unix time",
        STREAM,
        _each(lambda stream, _: _seconds(stream.status.resolved_ts)),
    ),
    Described(
        "applier_stream_lag_seconds",
        "seconds from the upstream's clock at the stream's resolved_ts to now",
        STREAM,
        _each(lambda stream, unix_s: lag_s(stream.status.resolved_ts, unix_s)),
    ),
    Described(
        "applier_stream_next_offset",
        "the offset from which a restart would read the stream",
        STREAM,
        _each(lambda stream, _: stream.status.next_offset),
    ),
    Described("applier_stream_read_offset", "the next offset to be read", STREAM, _each(lambda stream, _: stream.status.read_offset)),
    Described("applier_stream_end_offset", "the stream's end, as listed last", STREAM, _each(lambda stream, _: stream.status.end_offset)),
    Described(
        "applier_stream_cached_bytes", "bytes of the stream's cached chunks", STREAM, _each(lambda stream, _: stream.status.cached_bytes)
    ),
    Described("applier_stream_cached_ranges", "cached ranges of the stream", STREAM, _each(lambda stream, _: stream.status.cached_ranges)),
    Described(
        "applier_stream_silent_seconds",
        "for how long the stream has been read to its end and has promised nothing new",
        STREAM,
        _each(lambda stream, _: stream.silent_s),
    ),
)

COUNTERS: Final = (
    Described("applier_records", "records read, by offsets", (), _one(lambda state, _: state.records)),
    Described("applier_events", "events read", (), _one(lambda state, _: state.events)),
    Described("applier_rows", "rows written or deleted, after compaction", (), _one(lambda state, _: state.rows)),
    Described("applier_transactions", "upstream transactions applied", (), _one(lambda state, _: state.transactions)),
    Described("applier_ddls", "DDLs done or skipped", (), _one(lambda state, _: state.ddls)),
    Described("applier_rebuilds", "how often the state was rebuilt from the sink", (), _one(lambda state, _: state.rebuilds)),
    Described(
        "applier_retries",
        "how often something was tried again, by the class of the error",
        ("error",),
        lambda state, _: (((error,), float(count)) for error, count in state.retries),
    ),
    Described(
        "applier_stream_replays",
        "rows below checkpoint_ts that came again and were dropped",
        STREAM,
        _each(lambda stream, _: stream.replays),
    ),
    Described(
        "applier_stream_fallbacks",
        "ranges in which the stream stepped behind something that it had promised",
        STREAM,
        _each(lambda stream, _: stream.fallbacks),
    ),
)

DURATION: Final = "applier_duration_seconds"
DURATION_MEANING: Final = f"how long a phase took: {', '.join(ACTIVITIES)} (a cycle counts if it read or did something)"
DURATION_LABELS: Final = ("phase",)


class StateCollector(Collector):
    """Makes the metrics of the state that ``live`` returns; called in the threads of whoever asks."""

    def __init__(self, live: Callable[[], LiveState], unix_s: Callable[[], float] = time.time) -> None:
        self._live, self._unix_s = live, unix_s

    def collect(self) -> Iterator[Metric]:
        """Yield every metric with its samples."""
        state, unix_s = self._live(), self._unix_s()
        for kind, described in ((GaugeMetricFamily, GAUGES), (CounterMetricFamily, COUNTERS)):
            for metric in described:
                family = kind(metric.name, metric.meaning, labels=metric.labels)
                for labels, value in metric.samples(state, unix_s):
                    family.add_metric(labels, value)
                yield family
        yield _durations(state)


def _durations(state: LiveState) -> Metric:
    family = HistogramMetricFamily(DURATION, DURATION_MEANING, labels=DURATION_LABELS)
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    for histogram in state.durations:
        family.add_metric([histogram.activity], list(zip(bounds, histogram.counts, strict=True)), histogram.sum_s)
    return family


def registry_of(live: Callable[[], LiveState]) -> CollectorRegistry:
    """Return a registry of its own with the run's metrics and those of its process."""
    registry = CollectorRegistry()
    registry.register(StateCollector(live))
    ProcessCollector(registry=registry)
    return registry
