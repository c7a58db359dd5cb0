"""A shutdown request, and the signals that make one.

The first SIGTERM or SIGINT requests a shutdown: the running step ends, progress is saved. A second one, or ``timeout_s`` after the first,
ends the process at once. That is safe at any point in time: the fencing token and the ledger protect the sink as after any other sudden
death.
"""

import logging
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from applier.telemetry.log import LOGGER_NAME
from applier.telemetry.log_event import LogEvent

LOGGER: Final = logging.getLogger(LOGGER_NAME)
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
KILLED_BY: Final = 128
"""A shell's exit code for a process that a signal has ended is this plus the signal's number."""
ECHO_S = 0.5
"""A second signal within this time is the same request: a terminal sends Ctrl-C to a wrapper and to us, and the wrapper forwards it."""


class Shutdown:
    """Whether a shutdown was requested. Set once, by any thread. A run waits only in ``wait``, so a request ends each wait early."""

    def __init__(self) -> None:
        self.event = Event()
        self.signal = ""
        """The name of the signal that requested it."""
        self.error: Exception | None = None
        """The error that the run ends with, whatever else fails while it ends; None: an orderly shutdown."""

    @property
    def is_requested(self) -> bool:
        """Whether the run should end."""
        return self.event.is_set()

    def request(self) -> None:
        """Request an orderly shutdown."""
        self.event.set()

    def abort(self, error: Exception) -> None:
        """Request a shutdown that ends with ``error``."""
        self.error = error
        self.event.set()

    def wait(self, duration_s: float) -> None:
        """Wait for ``duration_s``, or until a shutdown is requested."""
        self.event.wait(duration_s)


@contextmanager
def shutdown_on_signals(shutdown: Shutdown, *, timeout_s: float, end: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Make SIGTERM and SIGINT request a shutdown inside of the block; ``end`` the process ``timeout_s`` after the first.

    For the main thread.
    """
    # The signals are read by a thread, from a pipe: Python runs handlers in the main thread only, which may be inside of a library's call
    # for half a minute.
    reading, writing = os.pipe()
    # set_wakeup_fd refuses a blocking descriptor: a full pipe would block the interpreter inside of a signal.
    os.set_blocking(writing, False)
    handlers_before = {number: signal.signal(number, _caught) for number in SIGNALS}
    pipe_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    listener = Thread(target=_listen, args=(reading, shutdown, timeout_s, end), name="applier-signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(pipe_before)
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
        os.close(writing)
        listener.join()
        os.close(reading)


def _caught(number: int, frame: object) -> None:
    """Do nothing: Python writes a signal to the pipe only if it has a handler of Python's."""


def _listen(reading: int, shutdown: Shutdown, timeout_s: float, end: Callable[[int], object]) -> None:
    first = os.read(reading, 1)
    if not first:
        return
    LOGGER.info(LogEvent.SHUTDOWN_REQUESTED, extra={"signal": _name(first), "within_s": timeout_s})
    shutdown.signal = _name(first)
    shutdown.request()
    requested_at = time.monotonic()
    while select.select([reading], [], [], max(0.0, requested_at + timeout_s - time.monotonic()))[0]:
        another = os.read(reading, 1)
        if not another:
            return
        # A later signal comes from a person who does not want to wait.
        if time.monotonic() >= requested_at + ECHO_S:
            _end(end, another, f"another signal, {_name(another)}")
            return
    _end(end, first, "run.shutdown_timeout_s has passed")


def _end(end: Callable[[int], object], number: bytes, reason: str) -> None:
    LOGGER.warning(LogEvent.SHUTDOWN_FORCED, extra={"reason": reason})
    end(KILLED_BY + number[0])


def _name(number: bytes) -> str:
    return signal.Signals(number[0]).name
