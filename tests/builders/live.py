"""A run as others see it, for the tests of what is shown: a stream on one line, and a state with two of them."""

from applier.coordinator import StreamStatus
from applier.model.position import Offset, Stream, Ts
from applier.telemetry.live import LiveState, LiveStream

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


def live_stream(stream, ts, **changes):
    return LiveStream(**{"status": status(stream, ts), "silent_s": 0.0, "replays": 6, "fallbacks": 7} | changes)


STATE = LiveState(
    replica="orders",
    started_at_s=NOON_S - 100.0,
    seen_at_s=0.0,
    phase="applying",
    is_ready=True,
    epoch=3,
    checkpoint_ts=A,
    watermark=W,
    holding_stream=SECOND,
    streams=(live_stream(FIRST, W), live_stream(SECOND, A, silent_s=61.0)),
    rows=1000,
    retries=(("RetryableSinkError", 2), ("SourceError", 1)),
    quarantined=4,
)
