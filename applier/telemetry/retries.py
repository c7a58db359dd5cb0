"""The port for log events, and retries as log events: stamina's own hooks would log the arguments, which may hold values of rows.

It does not depend on a run, so that a command can log without importing one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from stamina.instrumentation import RetryDetails, get_on_retry_hooks, set_on_retry_hooks

from applier.model.errors import ApplierError
from applier.telemetry.log_event import LogEvent


class Notes(Protocol):
    """Takes events for the log. Called from the engine's thread: must be quick and must not raise."""

    def note(self, event: LogEvent, /, **facts: Any) -> None:
        """Receive an event that must not be missed."""
        ...


LOGGER = logging.getLogger("applier")


def log_retries() -> None:
    """Log each failure after which something is retried, instead of the library's own hooks."""
    set_on_retry_hooks([_log_retry])


@contextmanager
def retries_noted(notes: Notes) -> Iterator[None]:
    """Note each failure after which something is retried, instead of what ``log_retries`` has set."""

    def note(details: RetryDetails) -> None:
        notes.note(LogEvent.RETRY, **_retry_facts(details))

    # Hooks are global to the process: restored, so that what comes after the run logs as before.
    before = get_on_retry_hooks()
    set_on_retry_hooks([note])
    try:
        yield
    finally:
        set_on_retry_hooks(before)


def _log_retry(details: RetryDetails) -> None:
    facts = _retry_facts(details)
    del facts["is_inner"]
    LOGGER.warning(LogEvent.RETRY, extra=facts)


def failure_facts(error: BaseException | None) -> dict[str, Any]:
    """Name a failure by its class and our own message; messages of other libraries, and arguments, may hold values of rows."""
    facts: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, ApplierError):
        facts |= {"code": error.facts["code"]} if "code" in error.facts else {}
        facts["reason"] = error.message
    return facts


def _retry_facts(details: RetryDetails) -> dict[str, Any]:
    return {**failure_facts(details.caused_by), "attempt": details.retry_num, "wait_s": round(details.wait_for, 2), "is_inner": True}
