"""What a daemon retries, and for how long: transient errors, with a jittered exponential back-off.

Every other error stops it at once: it would happen again, or an operator must decide.
"""

from collections.abc import Callable
from typing import Any, Final

from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event, stop_any, stop_when_event_set, wait_exponential_jitter
from tenacity.stop import stop_base

from applier.model.errors import SourceError
from applier.replica.recovery import is_transient
from applier.replica.shutdown import Shutdown
from applier.telemetry.log_event import LogEvent
from applier.telemetry.notes import Notes
from applier.telemetry.retries import failure_facts

FIRST_WAIT_S: Final = 0.25
JITTER_S: Final = 0.25
LONGEST_WAIT_S: Final = 5.0
"""What is back is used again after this time at the latest."""


def retrying(shutdown: Shutdown, retry_for_s: float, notes: Notes) -> Retrying:
    """Return attempts: they end with the first success, after ``retry_for_s`` of failures, and when a shutdown is requested.

    The last error is raised as it is. Each retry is noted; the monitor counts it together with retries inside of an attempt (of a single
    write, say).
    """
    failing = _FailingFor(retry_for_s)

    def note(state: RetryCallState) -> None:
        notes.note(LogEvent.RETRY, **_facts(state))

    return Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_any(failing, stop_when_event_set(shutdown.event)),
        wait=_until_the_end(failing),
        # A plain sleep would delay a shutdown by up to the longest wait.
        sleep=sleep_using_event(shutdown.event),
        before_sleep=note,
        reraise=True,
    )


class _FailingFor(stop_base):
    """Stop after attempts have failed for so long. The first attempt's own time does not count: it may have worked for hours."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: float | None = None

    def __call__(self, retry_state: RetryCallState) -> bool:
        return self.left_s(retry_state) <= 0

    def left_s(self, retry_state: RetryCallState) -> float:
        """Return the seconds until the attempts end."""
        # The monotonic time of the attempt's end: tenacity sets it before it asks how long to wait, and whether to stop.
        now = retry_state.outcome_timestamp or 0.0
        if self._since is None:
            self._since = now
        return self._since + self._limit_s - now


def _until_the_end(failing: _FailingFor) -> Callable[[RetryCallState], float]:
    """Return the waits between attempts. The last one ends at the deadline, which the log and ``/status`` name."""
    growing = wait_exponential_jitter(multiplier=FIRST_WAIT_S, jitter=JITTER_S, max=LONGEST_WAIT_S)
    return lambda state: max(0.0, min(growing(state), failing.left_s(state)))


def _facts(state: RetryCallState) -> dict[str, Any]:
    error = state.outcome.exception() if state.outcome is not None else None
    facts = {**failure_facts(error), "attempt": state.attempt_number, "wait_s": round(state.upcoming_sleep, 2)}
    if isinstance(error, SourceError) and "cause" in error.facts:
        facts["cause"] = error.facts["cause"]  # messages of Kafka's client hold no values
    return facts
