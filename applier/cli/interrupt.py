"""Ctrl-C while the program is still being imported, which takes the first second of a command. May import the standard library only."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from typing import Final, NoReturn

INTERRUPTED: Final = 130  # as shells report SIGINT: 128 + 2
STOPPING: Final = b"\rstopping: what was applied stays. Ctrl-C again ends it at once\n"
BEFORE_WORK: Final = b"interrupted: the command had not begun, so nothing has changed\n"


def end_on_interrupt() -> None:
    """End the process at once on Ctrl-C, with a sentence: an import that is interrupted leaves nothing to close."""
    # Not where the caller ignores SIGINT: a job in the background of a shell's script.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def let_interrupts_raise() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again: a command begins, which may have something to close."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def interrupts_announced() -> Iterator[None]:
    """Say a sentence as soon as Ctrl-C arrives: to close what is open may take seconds, while Spark starts for instance."""
    before = signal.getsignal(signal.SIGINT)
    # Not where the caller ignores SIGINT; and only the main thread may set a handler.
    if before is not signal.default_int_handler or current_thread() is not main_thread():
        yield
        return

    def announce(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGINT, before)
        # Without a lock of the streams: the main thread may hold it.
        os.write(2, STOPPING)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, announce)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_as(code: int) -> None:
    """From now on, end the process at once on Ctrl-C, with the exit code of the command that has ended."""

    def end(_number: int, _frame: object) -> None:
        # Without a lock of the streams: the main thread may hold it.
        os._exit(code)

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # Not where the caller ignores SIGINT.
    if signal.getsignal(signal.SIGINT) in {signal.default_int_handler, _end}:
        signal.signal(signal.SIGINT, end)


def _end(_number: int, _frame: object) -> None:
    os.write(2, BEFORE_WORK)
    # Without the interpreter's end: a library that is half imported may fail in it, with a traceback.
    os._exit(INTERRUPTED)
