"""A runner that starts Spark when there is something to read: a catch-up with nothing to do ends without it.

Where Spark itself was lost it starts another when there is something to read again. What was cached is lost with it: the error says so,
and whoever hears it begins anew from what the sink says.
"""

import time
from collections.abc import Callable, Collection, Sequence
from threading import Lock

from applier.model.errors import InvariantViolation, SparkSessionLost
from applier.model.range_report import RangeId
from applier.sinks.write_outcome import WriteOutcome
from applier.spark.loss import Losses, ranges_lost
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.plan import ApplyPlan
from applier.tasks.port import Runner


class LazyRunner:
    """Implements ``Runner`` by making another one at the first range.

    That happens in the thread that listens, since a context that is made in the main thread takes Ctrl-C for itself. ``close`` waits for
    it, and nothing is made after it.
    """

    def __init__(self, make: Callable[[], Runner], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._make, self._clock = make, clock
        self._made: Runner | None = None
        self._making = Lock()
        self._is_closed = False
        self._losses = Losses()

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Start the runner if need be, then listen."""
        runner = self._runner()
        outcomes = runner.listen(tasks)
        if any(isinstance(outcome, RangeFailure) and isinstance(outcome.error, SparkSessionLost) for outcome in outcomes):
            self._lose(runner)
        return outcomes

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        """Apply; only ranges that were listened to can be applied, so without a runner they are lost."""
        with self._making:
            self._check_open()
            runner = self._made
        if runner is None:
            return ranges_lost()
        outcome = runner.apply(plan)
        if isinstance(outcome.error, SparkSessionLost):
            self._lose(runner)
        return outcome

    def release(self, ranges: Collection[RangeId]) -> None:
        """Release, if there is anything."""
        if (runner := self._present()) is not None:
            runner.release(ranges)

    def release_all(self) -> None:
        """Release everything, if there is anything."""
        if (runner := self._present()) is not None:
            runner.release_all()

    def close(self) -> None:
        """Stop the runner if it was started."""
        with self._making:
            self._is_closed = True
            if self._made is not None:
                self._made.close()

    def _present(self) -> Runner | None:
        """Return the runner if there is one. It may be lost or closed right after; what is released then is released already."""
        with self._making:
            return self._made

    def _runner(self) -> Runner:
        with self._making:
            self._check_open()
            if self._made is None:
                self._losses.check(self._clock())
                self._made = self._make()
            return self._made

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvariantViolation("a runner was used after it was closed")

    def _lose(self, runner: Runner) -> None:
        """Clear away a runner that was lost. Both threads may notice it."""
        with self._making:
            if self._made is runner and not self._is_closed:
                self._made = None
                self._losses.add(self._clock())
                runner.close()
