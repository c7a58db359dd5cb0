"""The loss of Spark itself: a context that has stopped, or a JVM that has died. What is left is cleared away, so that another can start."""

import warnings
from collections import deque
from contextlib import suppress
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

from applier.model.errors import JobAborted, SparkRestartedTooOften
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.spark.gateway import drop_dead_jvm

MAX_LOSSES: Final = 5
PERIOD_S: Final = 600.0
"""More losses than that in this time are no accident."""

UNANSWERED: Final = (Py4JError, OSError)
"""How a JVM fails to do what it is told; one that has died refuses the connection, which py4j passes on as it is."""


class Losses:
    """Remembers when Spark was lost."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=MAX_LOSSES + 1)

    def add(self, now: float) -> None:
        """Note a loss at ``now`` (seconds of a monotonic clock)."""
        self._at.append(now)

    def check(self, now: float) -> None:
        """Raise SparkRestartedTooOften if Spark was lost too often lately."""
        lately = [at for at in self._at if now - at < PERIOD_S]
        if len(lately) > MAX_LOSSES:
            raise SparkRestartedTooOften(
                "spark ends again and again",
                remedy="See the lines above and the system's log (out of memory? spark.driver.memory under [spark.conf])",
                losses=len(lately),
                within_s=round(now - lately[0]),
            )


def ranges_lost() -> WriteOutcome:
    """Return what becomes of a segment whose ranges were cached by a Spark that is gone."""
    error = JobAborted("ranges that were cached are gone with the spark that had them", remedy="See the lines above")
    return WriteOutcome(state=WriteState.REBUILD, error=error)


def end_context(context: SparkContext) -> None:
    """Stop a context whatever its state. If its JVM has died, the next context starts another."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Spark's own word for a JVM that does not answer
        with suppress(*UNANSWERED):
            context.stop()
        context.stop()  # the rest of it, where the JVM's death has interrupted the first call
    drop_dead_jvm()
