"""Watches, from its own thread, whether this run still owns its replica: the main thread may be waiting for Kafka or for a job."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Protocol

LOOK_S: Final = 0.2
"""Between two looks at the heartbeat's result. A look is a read of a field: it asks no server."""


class Owned(Protocol):
    """A sink with a heartbeat."""

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why this run must stop; None: it owns the replica."""
        ...


class OwnerWatch:
    """Calls ``on_lost`` once, in its own thread, when the heartbeat of ``sink`` shows that this run must stop."""

    def __init__(self, sink: Owned, on_lost: Callable[[Exception], None]) -> None:
        self._sink, self._on_lost = sink, on_lost
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="applier-owner-watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._is_over.set()
        # A thread that was never started cannot be joined.
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(LOOK_S):
            error = self._sink.heartbeat_error
            if error is not None:
                self._on_lost(error)
                return
