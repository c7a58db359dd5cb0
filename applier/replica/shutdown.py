"""The wish to end, and the signals that express it.

The first SIGTERM or SIGINT asks: what runs is finished, progress is saved. A second one, or too long a wait after the first, ends the
process at once. That is safe whatever it was doing: the fence and the ledger see to it, as for any other sudden death.
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
"""A shell's exit code for a process that a signal has ended is this and the signal's number."""
ECHO_S = 0.5
"""A signal so soon after the first is the same wish: a terminal sends Ctrl-C to a wrapper and to us, and the wrapper hands it on."""


class Shutdown:
    """Whether an end is wished. Set once, by any thread; everything that pauses, pauses here, so that it ends early then."""

    def __init__(self) -> None:
        self.event = Event()
        self.cause: Exception | None = None
        """The error that the run ends with, whatever else happens at its end; None: it ends in good order."""

    @property
    def is_requested(self) -> bool:
        """Whether the program should come to an end."""
        return self.event.is_set()

    def request(self) -> None:
        """Ask for the end."""
        self.event.set()

    def end_with(self, cause: Exception) -> None:
        """Ask for the end because of an error."""
        self.cause = cause
        self.event.set()

    def pause(self, duration_s: float) -> None:
        """Wait, no longer than until the end is wished."""
        self.event.wait(duration_s)


@contextmanager
def stopped_by_signals(shutdown: Shutdown, *, timeout_s: float, end: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Let SIGTERM and SIGINT express the wish inside of the block; ``end`` the process if it lasts longer than ``timeout_s`` after one.

    For the main thread. A thread hears the signals, since the main one may be inside of a library's call for half a minute.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = {number: signal.signal(number, _caught) for number in SIGNALS}
    told_before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    listener = Thread(target=_listen, args=(heard, shutdown, timeout_s, end), name="applier-signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)
        listener.join()
        os.close(heard)


def _caught(number: int, frame: object) -> None:
    """Let the signal be written to the pipe, which needs a handler of Python's."""


def _listen(heard: int, shutdown: Shutdown, timeout_s: float, end: Callable[[int], object]) -> None:
    first = os.read(heard, 1)
    if not first:
        return
    LOGGER.info(LogEvent.SHUTDOWN_REQUESTED, extra={"signal": _name(first), "within_s": timeout_s})
    shutdown.request()
    asked_at = time.monotonic()
    while select.select([heard], [], [], max(0.0, asked_at + timeout_s - time.monotonic()))[0]:
        another = os.read(heard, 1)
        if not another:
            return
        if time.monotonic() >= asked_at + ECHO_S:
            _end(end, another, f"another signal, {_name(another)}")
            return
    _end(end, first, "run.shutdown_timeout_s has passed")


def _end(end: Callable[[int], object], number: bytes, reason: str) -> None:
    LOGGER.warning(LogEvent.SHUTDOWN_FORCED, extra={"reason": reason})
    end(KILLED_BY + number[0])


def _name(number: bytes) -> str:
    return signal.Signals(number[0]).name
