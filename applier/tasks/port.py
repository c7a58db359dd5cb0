"""The port of a runner: what the engine asks of Spark (or, in tests, of the process itself)."""

from collections.abc import Collection, Sequence
from typing import Protocol

from applier.model.range_report import RangeId
from applier.sinks.write_outcome import WriteOutcome
from applier.tasks.listen import ListenOutcome, ListenTask
from applier.tasks.plan import ApplyPlan


class Runner(Protocol):
    """Listens and applies; keeps the cached ranges. Reports and outcomes are values; rows never pass through it."""

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Read the ranges, cache their chunks; one outcome per task. A failed range leaves nothing in the cache."""
        ...

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        """Write one segment from the cached ranges that the plan names."""
        ...

    def release(self, ranges: Collection[RangeId]) -> None:
        """Free cached ranges; unknown ones are ignored."""
        ...

    def release_all(self) -> None:
        """Free every cached range."""
        ...

    def close(self) -> None:
        """Free everything and stop."""
        ...
