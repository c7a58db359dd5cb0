"""The port of a runner: what the engine asks of Spark (or, in tests, of the process itself)."""

from collections.abc import Collection, Sequence
from typing import Protocol

from applier.model.range_report import RangeId
from applier.sinks.write_outcome import WriteOutcome
from applier.tasks.listen import ListenOutcome, ListenTask
from applier.tasks.plan import ApplyPlan


class Runner(Protocol):
    """Listens and applies; keeps the cached ranges. Reports and outcomes are values; rows never pass through it.

    Two threads call it: one listens, one does everything else. An outcome never says more than was done: what is not certain comes as a
    failure, and the engine then reloads its state from the checkpoint.
    """

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Read the ranges and cache their chunks; return one outcome per task, in order. Called once per cycle.

        A range that cannot be read fails alone, with the source's own error, and leaves nothing in the cache. A range that is listened to
        again takes the place of what was cached of it.
        """
        ...

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        """Write one segment from the cached ranges that the plan names, in one transaction. The ranges stay cached.

        COMMITTED: all rows of the plan's window are durable. RELOAD: nothing is known to be durable, and the cached ranges are of no use
        (one is missing, or differs from its report); the caller releases everything. Otherwise the writer's outcome, with its error.
        """
        ...

    def release(self, ranges: Collection[RangeId]) -> None:
        """Free cached ranges; unknown ones are ignored."""
        ...

    def release_all(self) -> None:
        """Free every cached range."""
        ...

    def close(self) -> None:
        """Free everything and stop. Called once, also while a listening runs in the other thread."""
        ...
