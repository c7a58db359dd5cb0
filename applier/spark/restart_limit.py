"""How often Spark may be lost before the applier stops instead of starting it again."""

from collections import deque
from typing import Final

from applier.model.errors import SparkRestartedTooOften

MAX_LOSSES: Final = 5
PERIOD_S: Final = 600.0
"""More losses than that in this time have a cause that a restart does not remove (most often: too little memory)."""


class RestartLimit:
    """Remembers when Spark was lost."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=MAX_LOSSES + 1)

    def add(self, now: float) -> None:
        """Note a loss at ``now`` (seconds of a monotonic clock)."""
        self._at.append(now)

    def check(self, now: float) -> None:
        """Raise SparkRestartedTooOften if Spark was lost too often in the last PERIOD_S."""
        recent = [at for at in self._at if now - at < PERIOD_S]
        if len(recent) > MAX_LOSSES:
            raise SparkRestartedTooOften(
                "Spark restarted too often",
                remedy="See the output above and the system log. If Java ran out of memory, raise spark.driver.memory under [spark.conf]",
                losses=len(recent),
                within_s=round(now - recent[0]),
            )
