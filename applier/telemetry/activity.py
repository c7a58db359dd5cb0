"""What a run does now, as one word for people: from what its threads report, and from what blocks it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

STARTING: Final = "starting"
LISTING: Final = "listing partitions"
OPENING: Final = "opening the sink"
LOCKING: Final = "waiting for the replica lock"
LOADING: Final = "reading positions"
COPYING: Final = "copying upstream"
SPARK: Final = "starting Spark"
LISTENING: Final = "listening"
PREPARING: Final = "preparing"
WRITING: Final = "writing"
DDL: Final = "ddl"
IDLE: Final = "idle"
STREAM: Final = "waiting for a stream"
FAILING: Final = "failing"
PAUSED: Final = "paused"
STOPPED: Final = "stopped"

PHASES: Final = (
    STARTING,
    LISTING,
    OPENING,
    LOCKING,
    LOADING,
    COPYING,
    SPARK,
    LISTENING,
    PREPARING,
    WRITING,
    DDL,
    IDLE,
    STREAM,
    FAILING,
    PAUSED,
    STOPPED,
)
"""What a run may be doing. ``idle``: Kafka holds nothing new; ``waiting for a stream``: one that is silent holds back the watermark;
``failing``: something is retried until it works, or until ``run.retry_for_s`` is over."""

_READING: Final = frozenset({STARTING, LISTENING, IDLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """What keeps a run from continuing; it is shown instead of what the run tries meanwhile."""

    is_failing: bool = False
    is_paused: bool = False
    is_stalled: bool = False


class Activity:
    """The phase of a run and since when it is in it (``unix_s`` is passed in). Written by the engine's thread."""

    def __init__(self) -> None:
        self._now, self.ddl = STARTING, ""
        self.ddl_since_s: float | None = None
        self._starts_spark = self._is_over = False
        self._shown, self._since_s = STARTING, 0.0

    def enter(self, phase: str, ddl: str, unix_s: float) -> None:
        """Record what the run does from now on."""
        self.ddl_since_s = None if phase != DDL else unix_s
        self._now, self.ddl = phase, ddl

    @property
    def now(self) -> str:
        """What the engine's thread does, whatever is shown."""
        return self._now

    @contextmanager
    def starting_spark(self) -> Iterator[None]:
        """Show for the time of the block that Spark starts: another thread does that, while the run waits for what it will read."""
        self._starts_spark = True
        try:
            yield
        finally:
            self._starts_spark = False

    def end(self) -> None:
        """Show from now on that the run has ended."""
        self._is_over = True

    def shown(self, blocker: Blocker, unix_s: float) -> tuple[str, float]:
        """Return the phase to show, and since when it is shown."""
        phase = self._phase(blocker)
        if phase != self._shown or not self._since_s:
            self._shown, self._since_s = phase, unix_s
        return self._shown, self._since_s

    def _phase(self, blocker: Blocker) -> str:
        if self._is_over:
            return STOPPED
        # A DDL runs in the engine's thread, which cannot fail meanwhile: what failed before it is over or waits for it.
        if self._now == DDL:
            return DDL
        if blocker.is_failing:
            return FAILING
        if blocker.is_paused:
            return PAUSED
        if self._starts_spark and self._now in _READING:
            return SPARK
        return STREAM if blocker.is_stalled and self._now in {IDLE, LISTENING} else self._now
