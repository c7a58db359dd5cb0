"""A run as others see it, for the tests of what is shown: a stream on one line, and a state with two of them."""

from dataclasses import replace

from applier.coordinator import StreamStatus
from applier.model.position import Offset, Stream, Ts
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.run_state import Counts, RunState, StreamsView, StreamView

NOON_S = 1_700_000_000
A, W = Ts(NOON_S * 1000 << 18), Ts((NOON_S * 1000 + 1_500) << 18 | 7)
FIRST, SECOND = Stream("feed", 0), Stream("feed", 1)


def status(stream, ts, *, read=10, end=10):
    return StreamStatus(
        stream=stream,
        resolved_ts=Ts(ts),
        next_offset=Offset(0),
        read_offset=Offset(read),
        end_offset=Offset(end),
        cached_ranges=0,
        cached_bytes=0,
        replays=0,
        fallbacks=0,
    )


def with_streams(**changes):
    """``STATE`` with these changes to what it shows of its streams."""
    return replace(STATE, streams=replace(STATE.streams, **changes))


def stream_view(stream, ts, **changes):
    return StreamView(**{"status": status(stream, ts), "silent_s": 0.0, "replays": 6, "fallbacks": 7} | changes)


STATE = RunState(
    timeline=TSO_TIMELINE,
    replica="orders",
    started_at_s=NOON_S - 100.0,
    phase="writing",
    is_ready=True,
    epoch=3,
    checkpoint_ts=A,
    watermark=W,
    streams=StreamsView(holding=SECOND, each=(stream_view(FIRST, W), stream_view(SECOND, A, silent_s=61.0))),
    counts=Counts(rows=1000),
    retries=(("RetryableSinkError", 2), ("SourceError", 1)),
    quarantined=4,
)
