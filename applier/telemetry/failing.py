"""A failure as an operator counts it: from the first attempt that fails to the first proof that what failed works again.

A write is retried inside of the sink, its segment by the engine, the cycle by the daemon. That is one failure, with one count and one
deadline, and a line in the log at growing intervals. Pure: time is passed in.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

SHOWN_AFTER_S: Final = 1.0
"""A retry inside of an attempt is shown when the failure lasts longer: a deadlock is over after milliseconds."""

FIRST_LINE_S: Final = 1.0
LONGEST_LINE_S: Final = 60.0
"""The time between two lines in the log: it doubles from the first of these to the last."""


class Side(StrEnum):
    """Where something fails, and so what proves that it works again."""

    SOURCE = "source"
    """Kafka: proved by a listing of the partitions."""
    SPARK = "spark"
    """A Spark that has ended: proved by a job."""
    REST = "rest"
    """The sink, or a job: proved by a checkpoint that moves, a DDL that is done, or by a sink that answers while nothing waits for it."""

    @classmethod
    def of(cls, error_class: str) -> "Side":
        """Return the side on which an error of this class happens."""
        return {"SourceError": cls.SOURCE, "SparkSessionLost": cls.SPARK}.get(error_class, cls.REST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Why a run fails. All times are Unix times; ``gives_up_at_s`` is None if a number of attempts ends it."""

    since_s: float
    error: str
    """One sentence."""
    error_class: str
    attempt: int
    next_attempt_at_s: float | None = None
    """When something is tried again, also a part of the attempt; None: at once."""
    gives_up_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """One attempt that has failed. ``is_inner``: a retry inside of a larger attempt, which is counted itself."""

    error: str
    error_class: str
    side: Side = Side.REST
    is_inner: bool = False
    wait_s: float = 0.0
    """How long until the next attempt."""
    gives_up_in_s: float | None = None
    """How long after its beginning a failure ends the run; None: its attempts are counted elsewhere."""


class FailureLog:
    """The present failure. Not thread-safe."""

    def __init__(self) -> None:
        self._failing: Failing | None = None
        self._sides = set[Side]()
        self._is_shown = False
        self._line_at_s = self._line_after_s = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether anything has failed that was not seen to work again."""
        return self._failing is not None

    @property
    def failing(self) -> Failing | None:
        """The failure, however short it is."""
        return self._failing

    @property
    def shown(self) -> Failing | None:
        """The failure, if it lasts long enough to be shown."""
        return self._failing if self._is_shown else None

    def failed(self, attempt: Failed, unix_s: float) -> bool:
        """Count an attempt; return whether a line in the log is due."""
        before = self._failing
        if before is None:
            self._line_at_s, self._line_after_s = unix_s, FIRST_LINE_S
        self._sides.add(attempt.side)
        since_s = unix_s if before is None else before.since_s
        self._failing = Failing(
            since_s=since_s,
            error=attempt.error,
            error_class=attempt.error_class,
            attempt=max(1, (before.attempt if before else 0) + (not attempt.is_inner)),
            next_attempt_at_s=unix_s + attempt.wait_s if attempt.wait_s else None,
            gives_up_at_s=None if attempt.gives_up_in_s is None else since_s + attempt.gives_up_in_s,
        )
        self._is_shown |= not attempt.is_inner or unix_s - since_s >= SHOWN_AFTER_S
        if not self._is_shown or unix_s < self._line_at_s:
            return False
        self._line_at_s = unix_s + self._line_after_s
        self._line_after_s = min(2 * self._line_after_s, LONGEST_LINE_S)
        return True

    def worked(self, sides: frozenset[Side], unix_s: float) -> float | None:
        """Mark these sides healthy; return how long a failure lasted that was shown and is over now."""
        self._sides -= sides
        return None if self._sides else self.forget(unix_s)

    def forget(self, unix_s: float) -> float | None:
        """Clear the failure; return how long it lasted, if it was shown."""
        shown, self._failing, self._is_shown = self.shown, None, False
        self._sides.clear()
        return None if shown is None else unix_s - shown.since_s


def sentence(facts: dict[str, Any]) -> str:
    """Write the facts of a retry as one sentence: what failed, and in whose words."""
    reason, cause = str(facts.get("reason") or facts.get("error", "")), facts.get("cause")
    return f"{reason}: {cause}" if cause else reason
