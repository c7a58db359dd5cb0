"""What a run does after a failure: which error counts, whether state must be reloaded, how often and after which wait.

Decides and counts; ``StateLoader`` reloads. An outcome that is unknown means: raise the epoch, so that a write still in flight can never
arrive later, and read everything from the sink again (DESIGN.md 8).
"""

import random
from collections.abc import Callable, Collection
from threading import Event, Thread
from typing import Any, Final, Protocol

from applier.model.errors import (
    NO_REMEDY,
    ApplierError,
    Fenced,
    JobAborted,
    Remedy,
    RetryableSinkError,
    SinkFull,
    SourceError,
    SparkSessionLost,
    UnknownOutcome,
)
from applier.model.failure import FailureKind
from applier.sinks.progress import Fence, Progress, ProgressCommit, WriteOutcome, WriteState

LOOK_S: Final = 0.2
"""Between two looks at the heartbeat's result. A look is a read of a field: it asks no server."""


class Owned(Protocol):
    """A sink with a heartbeat."""

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why this run must stop; None: it owns the replica."""
        ...


class OwnerWatch:
    """Calls ``on_lost`` once, in its own thread, when the heartbeat of ``sink`` shows that this run must stop."""

    def __init__(self, sink: Owned, on_lost: Callable[[Exception], None]) -> None:
        self._sink, self._on_lost = sink, on_lost
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="applier-owner-watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._is_over.set()
        # A thread that was never started cannot be joined.
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(LOOK_S):
            error = self._sink.heartbeat_error
            if error is not None:
                self._on_lost(error)
                return


MAX_RELOADS: Final = 20
"""Unknown outcomes in a row after which a catch-up stops, and a daemon counts the time: something breaks every write."""

MAX_WAIT_S: Final = 5.0
REMEDY: Final = Remedy("replica.see-database-and-executor-logs", "See the logs of the database and of Spark's executors")


class Recovery:
    """The failures of one run since the replica moved last."""

    def __init__(self, max_reloads: int = MAX_RELOADS) -> None:
        self._max_reloads = max_reloads
        self.reloads = 0
        self.cause: Exception | None = None
        """Why state must be reloaded before the next step; None: what the run holds is right."""
        self.is_failing = False
        """Whether something has failed that only works again for sure when the replica moves: a step, or a job with what it cached."""
        self.cannot_read = False
        """Whether Kafka has failed since the partitions were last listed."""

    def reload_for(self, cause: Exception) -> None:
        """Have state reloaded before the next step."""
        self.cause = cause

    def mark_failing(self, cause: Exception) -> None:
        """Have state reloaded before the next step; count as failing until the replica moves."""
        self.cause, self.is_failing = cause, True

    def moved(self) -> None:
        """Start to count again: the checkpoint has moved, or a DDL is done."""
        # Anything less (saved positions, a read range) proves nothing: every attempt at a segment that cannot be written repeats it.
        self.reloads, self.is_failing = 0, False

    def reloaded(self) -> None:
        """Trust what the run holds: it comes from the sink again."""
        self.cause = None

    def next_wait_s(self, cause: Exception) -> float:
        """Count a reload and return the seconds to wait before it, with jitter. JobAborted or UnknownOutcome if it is one too many."""
        self.mark_failing(cause)
        self.reloads += 1
        if self.reloads > self._max_reloads:
            kind = JobAborted if isinstance(cause, JobAborted) else UnknownOutcome
            message = "Spark jobs or writes ended too often with an unknown outcome"
            raise kind(message, remedy=(cause.remedy if isinstance(cause, ApplierError) else NO_REMEDY) or REMEDY, cause=cause) from cause
        # The first comes at once: most unknown outcomes come from one lost connection, and every second of waiting is lag.
        if self.reloads == 1:
            return 0.0
        return random.uniform(0, min(0.1 * 2**self.reloads, MAX_WAIT_S))  # noqa: S311 - jitter

    def after_preparing(self, error: ApplierError) -> ApplierError:
        """Return an error after which state is reloaded at once: what is cached is of no use. Raise a lost session."""
        self.mark_failing(error)
        if isinstance(error, SparkSessionLost):
            raise error
        return error

    def after_listening(self, error: ApplierError) -> ApplierError:
        """Return an error after which state is reloaded at once: a lost job, another server; raise anything else."""
        if must_resume(error):
            return error
        if isinstance(error, SparkSessionLost):
            self.reload_for(error)  # what was cached is lost with it
        self.cannot_read |= isinstance(error, SourceError)
        raise error

    def listed(self) -> None:
        """Record that Kafka has named the partitions and their ends: the brokers answer."""
        self.cannot_read = False


def unknown_write(outcome: WriteOutcome, fence: Fence) -> Exception | None:
    """Return why state must be reloaded after a write; None if it is committed. Fenced if another run owns the replica."""
    # Not retried, and not restarted by the units that we ship: two supervised daemons would fence each other without end.
    if outcome.state is WriteState.FENCED:
        raise Fenced("another run has taken over the replica", epoch=fence.epoch)
    if outcome.state is WriteState.RELOAD:
        return outcome.error or UnknownOutcome("fencing token mismatch")
    return None


def checkpoint_mismatch(progress: Progress, commit: ProgressCommit) -> Exception | None:
    """Return why state must be reloaded if the sink, read back, is not where ``commit`` has moved it."""
    if progress.checkpoint_ts == commit.checkpoint_ts:
        return None
    return UnknownOutcome("the sink's checkpoint differs from the one that was committed")


def is_transient(error: BaseException) -> bool:
    """Return whether an error may be transient."""
    # By kind, not by class: a password that Kafka refuses is a SourceError as well, and would be refused each time.
    if isinstance(error, SourceError):
        return isinstance(error.kind, FailureKind) and error.kind.is_transient
    return isinstance(error, RetryableSinkError | SinkFull | UnknownOutcome | JobAborted | SparkSessionLost)


def must_resume(error: ApplierError) -> bool:
    """Return whether a run continues after an error once it has begun again at the sink's checkpoint."""
    return isinstance(error, JobAborted) or (isinstance(error.kind, FailureKind) and error.kind.must_resume)


def ends_listening(error: ApplierError, *, is_merge: bool) -> bool:
    """Return whether the failure of one range matters."""
    # A merge only saves memory. If its records have expired meanwhile, the small ranges that are cached already stay as they are.
    return is_transient(error) or not is_merge


def may_be_recreated(error: ApplierError) -> bool:
    """Return whether a recreated topic may be the reason: its end is below the stored offsets, which looks like retention."""
    return error.kind is FailureKind.RETENTION


def most_urgent(errors: Collection[ApplierError]) -> ApplierError:
    """Choose the error that decides: one that is not transient, else one that costs the whole cache, else any."""
    return min(errors, key=_rank)


def _rank(error: ApplierError) -> int:
    # A lost session costs every cached range, a lost job the ranges of one cycle, another error its own range only.
    if not is_transient(error):
        return 0
    return 1 if isinstance(error, SparkSessionLost) else 2 if isinstance(error, JobAborted) else 3


def reason(cause: Exception) -> dict[str, Any]:
    """Return the facts that say why state is reloaded; the messages of other libraries may hold values of rows."""
    # str(cause) of a driver may quote a statement with its values.
    if not isinstance(cause, ApplierError):
        return {"reason": type(cause).__name__}
    return {"reason": cause.message} | ({"cause": cause.facts["cause"]} if "cause" in cause.facts else {})
