"""Stores in the sink how a run has ended, over a connection of its own: the run's may be what has failed. ``applier status`` shows it."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import current_thread, main_thread
from types import FrameType
from typing import Final

from applier.model.errors import ApplierError
from applier.model.failure import FailureKind
from applier.model.position import DIGITS
from applier.replica.recovery import is_transient
from applier.replica.shutdown import KILLED_BY, Shutdown
from applier.sinks.overview import RunEnd
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.telemetry.log import spelled

TRY_AGAIN: Final = 75
"""EX_TEMPFAIL of sysexits.h: a transient error outlasted ``run.retry_for_s``."""
PATIENCE_S: Final = 3
DEFECT: Final = "unexpected error: the log has its traceback"
"""The kind of an error that refuses a command because the replica is paused: its last run's end stays."""


@contextmanager
def end_stored(command: str, settings: SinkSettings, shutdown: Shutdown | None = None) -> Iterator[None]:
    """Store how the block ends, unless another process owns the replica by then, or the sink does not answer."""
    try:
        yield
    except BaseException as error:
        store_error(command, settings, error)
        raise
    signal_name = shutdown.signal if shutdown is not None else ""
    _store(settings, RunEnd(command=command, exit_code=0, message=f"stopped by {signal_name}" if signal_name else "it has done its work"))


def store_error(command: str, settings: SinkSettings, error: BaseException) -> None:
    """Store that a run has ended with ``error``, as ``end_stored`` does."""
    if not (isinstance(error, ApplierError) and error.kind is FailureKind.PAUSED):
        _store(settings, _of(command, error))


@contextmanager
def outlasting_retries() -> Iterator[None]:
    """Let a transient failure end with exit code 75, so that a supervisor starts the run again."""
    try:
        yield
    except ApplierError as error:
        if is_transient(error):
            error.exit_code = TRY_AGAIN
        raise


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """End the block at SIGTERM as at Ctrl-C: what was opened is closed, and the end is stored."""
    # Handlers are the main thread's alone.
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, _frame: FrameType | None) -> None:
    # Once: a second one ends the process at once, as without us.
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(KILLED_BY + number)


def _of(command: str, error: BaseException) -> RunEnd:
    if isinstance(error, ApplierError):
        facts = spelled(error.facts, error.timeline or DIGITS)
        return RunEnd(
            command=command,
            exit_code=error.exit_code,
            message=error.message,
            error_class=type(error).__name__,
            facts={name: str(value) for name, value in facts.items() if value is not None and str(value)},
            remedy=str(error.remedy_with(facts)),
        )
    if isinstance(error, KeyboardInterrupt):
        return RunEnd(command=command, exit_code=KILLED_BY + signal.SIGINT, message="stopped by SIGINT before it was done")
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return RunEnd(command=command, exit_code=error.code, message="stopped by SIGTERM before it was done")
    # Messages of other libraries may hold values of rows.
    return RunEnd(command=command, exit_code=ApplierError.exit_code, message=DEFECT, error_class=type(error).__name__)


def _store(settings: SinkSettings, end: RunEnd) -> None:
    settings = replace(settings, retries=0, lock_wait_timeout_s=PATIENCE_S, silence_s=0)
    # What ended the run is reported anyway, and matters more than that it could not be stored.
    with suppress(ApplierError), open_sink(settings) as sink:
        sink.bookkeeping.store_end(end, socket.gethostname(), os.getpid())
