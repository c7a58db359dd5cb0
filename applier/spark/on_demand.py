"""A runner that starts Spark when the first range is read: a catch-up with nothing to do ends without Spark, some seconds earlier.

Where the Spark session was lost, it starts another when a range is read again. What the lost session had cached is gone; the outcome says
so, and the engine reloads its state from the checkpoint.
"""

import time
from collections.abc import Callable, Collection, Sequence
from threading import Lock

from applier.model.errors import ApplierError, InvariantViolation, SparkSessionLost
from applier.model.range_report import RangeId
from applier.sinks.progress import WriteOutcome
from applier.spark.failure import RestartLimit, ranges_lost
from applier.tasks.copy_chunk import ChunkOutcome, CopyTask, CopyWork
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.port import Prepared, Runner
from applier.tasks.write import not_written


class OnDemandRunner:
    """Implements ``Runner`` by starting another one at the first range.

    ``close`` waits for a start that is under way, and nothing is started after it.
    """

    def __init__(self, start: Callable[[], Runner], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._start, self._clock = start, clock
        self._started: Runner | None = None
        self._starting = Lock()
        self._is_closed = False
        self._restarts = RestartLimit()

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Start the runner if necessary, then listen. SparkRestartedTooOften instead of one start more than the limit."""
        # In the thread that listens: in the main thread PySpark installs its own handler for Ctrl-C (core/context.py), and the applier's
        # shutdown would not see the signal.
        runner = self._runner()
        outcomes = runner.listen(tasks)
        if any(isinstance(outcome, RangeFailure) and isinstance(outcome.error, SparkSessionLost) for outcome in outcomes):
            self._drop(runner)
        return outcomes

    def copy(self, work: CopyWork, groups: Sequence[Sequence[CopyTask]]) -> Sequence[ChunkOutcome] | ApplierError:
        """Start the runner if need be, then copy chunks; not in the main thread, as for ``listen``."""
        runner = self._runner()
        outcomes = runner.copy(work, groups)
        if isinstance(outcomes, SparkSessionLost):
            self._drop(runner)
        return outcomes

    def prepare(self, plan: PreparePlan) -> Prepared | ApplierError:
        """Prepare; only ranges that were listened to can be prepared, so without a runner they are lost."""
        runner = self._open()
        if runner is None:
            return ranges_lost()
        prepared = runner.prepare(plan)
        if isinstance(prepared, SparkSessionLost):
            self._drop(runner)
        return prepared

    def write(self, prepared: Prepared, segment: int, plan: WritePlan) -> WriteOutcome:
        """Write; what was prepared is lost with the runner that has prepared it."""
        return self._outcome(lambda runner: runner.write(prepared, segment, plan))

    def apply(self, plan: PreparePlan, write_plan: WritePlan) -> WriteOutcome:
        """Apply; without a runner the ranges are lost."""
        return self._outcome(lambda runner: runner.apply(plan, write_plan))

    def _outcome(self, work: Callable[[Runner], WriteOutcome]) -> WriteOutcome:
        runner = self._open()
        if runner is None:
            return not_written(ranges_lost())
        outcome = work(runner)
        if isinstance(outcome.error, SparkSessionLost):
            self._drop(runner)
        return outcome

    def _open(self) -> Runner | None:
        """Return the runner if there is one; InvariantViolation after ``close``."""
        with self._starting:
            self._check_open()
            return self._started

    def write_rows(self, prepared: Prepared, parts: Sequence[int], plan: WritePlan) -> WriteOutcome:
        """Write rows ahead of W."""
        return self._outcome(lambda runner: runner.write_rows(prepared, parts, plan))

    def drop(self, prepared: Prepared) -> None:
        """Drop, if there is anything."""
        if (runner := self._present()) is not None:
            runner.drop(prepared)

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
        with self._starting:
            self._is_closed = True
            if self._started is not None:
                self._started.close()

    def _present(self) -> Runner | None:
        """Return the runner if there is one. It may be lost or closed right after; what is released then is released already."""
        with self._starting:
            return self._started

    def _runner(self) -> Runner:
        with self._starting:
            self._check_open()
            if self._started is None:
                self._restarts.check(self._clock())
                self._started = self._start()
            return self._started

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvariantViolation("a runner was used after it was closed")

    def _drop(self, runner: Runner) -> None:
        """Close a runner whose session was lost. Both threads may notice it, so it may be replaced already."""
        with self._starting:
            if self._started is runner and not self._is_closed:
                self._started = None
                self._restarts.add(self._clock())
                runner.close()
