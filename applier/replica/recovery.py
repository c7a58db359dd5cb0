"""What a run does after a failure: whether it trusts what it holds, how often it may begin again, and how long it waits before.

Decides and counts; the engine reloads. The count starts again when the checkpoint moves or a DDL is done: anything less (saved positions,
a read range) is repeated by every attempt at a segment that cannot be written, and proves nothing.
"""

import random
from typing import Any, Final

from applier.model.errors import ApplierError, JobAborted, RetryableSinkError, SinkFull, SourceError, SparkSessionLost, UnknownOutcome

MAX_REBUILDS: Final = 20
"""Unknown outcomes in a row after which a catch-up stops, and a daemon counts the time: something breaks every write."""

MAX_WAIT_S: Final = 10.0
REMEDY: Final = "See the logs of the database and of Spark's executors"


PASSING: Final = frozenset({"unreachable", "listener_died"})
"""Kinds of a SourceError that may pass: a broker comes back, and memory that was short is freed."""


class Recovery:
    """The failures of one run since the replica moved last."""

    def __init__(self, max_rebuilds: int = MAX_REBUILDS) -> None:
        self._max_rebuilds = max_rebuilds
        self.rebuilds = 0
        self.failure: Exception | None = None
        """Why state must be reloaded from the sink before the next step; None: what the run holds is right."""
        self.is_in_doubt = False
        """Whether something has failed that only shows to work again when the replica moves: a step, or a job with what it cached."""

    def doubt(self, cause: Exception) -> None:
        """Reload before the next step, and stay in doubt until the replica moves."""
        self.failure, self.is_in_doubt = cause, True

    def moved(self) -> None:
        """The checkpoint has moved, or a DDL is done."""
        self.rebuilds, self.is_in_doubt = 0, False

    def reloaded(self) -> None:
        """What the run holds comes from the sink again."""
        self.failure = None

    def next_wait_s(self, cause: Exception) -> float:
        """Count one more rebuild and return the seconds to wait before it, with jitter. JobAborted or UnknownOutcome if too many."""
        self.doubt(cause)
        self.rebuilds += 1
        if self.rebuilds > self._max_rebuilds:
            kind = JobAborted if isinstance(cause, JobAborted) else UnknownOutcome
            message = "spark jobs or writes keep ending without a known outcome"
            raise kind(message, remedy=getattr(cause, "remedy", "") or REMEDY, cause=cause) from cause
        if self.rebuilds == 1:
            return 0.0
        return random.uniform(0, min(0.1 * 2**self.rebuilds, MAX_WAIT_S))  # noqa: S311 - jitter


def is_transient(error: BaseException) -> bool:
    """Tell whether an error may pass by itself."""
    if isinstance(error, SourceError):
        return error.facts.get("kind") in PASSING
    return isinstance(error, RetryableSinkError | SinkFull | UnknownOutcome | JobAborted | SparkSessionLost)


def urgency(error: ApplierError) -> int:
    """Order errors: what will not pass by itself, then those after which nothing is cached any more, then those of single ranges."""
    if not is_transient(error):
        return 0
    return 1 if isinstance(error, SparkSessionLost) else 2 if isinstance(error, JobAborted) else 3


def reason(cause: Exception) -> dict[str, Any]:
    """Return the facts that say why state is reloaded; the messages of other libraries may hold values of rows."""
    if not isinstance(cause, ApplierError):
        return {"reason": type(cause).__name__}
    return {"reason": cause.message} | ({"cause": cause.facts["cause"]} if "cause" in cause.facts else {})
