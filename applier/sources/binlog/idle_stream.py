"""A process's connections that nobody reads with: kept for some seconds, since the next range often follows where the last one ended."""

import time
from collections.abc import Hashable
from threading import Lock, Thread
from typing import Final

from applier.sources.binlog.event_stream import EventStream

IDLE_S: Final = 5.0
"""How long one is kept. A server purges no file that one of its dumps is in."""
LOOK_S: Final = 1.0


class IdleStreams:
    """Used by the threads of a process; one of its own closes what was not taken."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Hashable, tuple[EventStream, float]] = {}
        self._thread: Thread | None = None

    def take(self, key: Hashable) -> EventStream | None:
        """Return a connection, which nobody else gets; None: there is none."""
        with self._lock:
            stream, _ = self._kept.pop(key, (None, 0.0))
            return stream

    def keep(self, key: Hashable, stream: EventStream) -> None:
        """Keep a connection, instead of another one of this key."""
        with self._lock:
            former, _ = self._kept.pop(key, (None, 0.0))
            self._kept[key] = stream, time.monotonic() + IDLE_S
            if self._thread is None:
                self._thread = Thread(target=self._close_old, name="idle binlog connections", daemon=True)
                self._thread.start()
        if former is not None:
            former.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            streams = [stream for stream, _ in self._kept.values()]
            self._kept.clear()
        for stream in streams:
            stream.close()

    def _close_old(self) -> None:
        while True:
            time.sleep(LOOK_S)
            now_s = time.monotonic()
            with self._lock:
                old = [key for key, (_, until_s) in self._kept.items() if until_s <= now_s]
                streams = [self._kept.pop(key)[0] for key in old]
                is_over = not self._kept
                if is_over:
                    self._thread = None
            for stream in streams:
                stream.close()
            if is_over:
                return
