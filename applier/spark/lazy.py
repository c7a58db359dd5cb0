"""A runner that starts Spark when there is something to read: a catch-up with nothing to do ends without it."""

from collections.abc import Callable, Collection, Sequence
from threading import Lock

from applier.coordinator.messages import RangeId
from applier.errors import InvariantViolation
from applier.sinks.port import WriteOutcome
from applier.spark.apply import ApplyPlan
from applier.spark.listen import ListenOutcome, ListenTask
from applier.spark.port import Runner


class LazyRunner:
    """Implements ``Runner`` by making another one at the first range.

    That happens in the thread that listens: ``close`` waits for it, and nothing is made after it.
    """

    def __init__(self, make: Callable[[], Runner]) -> None:
        self._make = make
        self._made: Runner | None = None
        self._making = Lock()
        self._is_closed = False

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Start the runner, then listen."""
        return self._runner().listen(tasks)

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        """Apply; only ranges that were listened to can be applied, so the runner is there."""
        return self._runner().apply(plan)

    def release(self, ranges: Collection[RangeId]) -> None:
        """Release, if there is anything."""
        if self._made is not None:
            self._made.release(ranges)

    def release_all(self) -> None:
        """Release everything, if there is anything."""
        if self._made is not None:
            self._made.release_all()

    def close(self) -> None:
        """Stop the runner if it was started."""
        with self._making:
            self._is_closed = True
            if self._made is not None:
                self._made.close()

    def _runner(self) -> Runner:
        with self._making:
            if self._is_closed:
                raise InvariantViolation("a runner was used after it was closed")
            if self._made is None:
                self._made = self._make()
            return self._made
