"""The port of a runner: what the engine asks of Spark (or, in tests, of the process itself)."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from applier.model.errors import ApplierError
from applier.model.range_report import RangeId
from applier.sinks.progress import WriteOutcome
from applier.tasks.copy_chunk import ChunkOutcome, CopyTask, CopyWork
from applier.tasks.listen import ListenOutcome, ListenTask
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.prepare import PreparedPart


class Prepared(NamedTuple):
    """Parts that are prepared and can be written one by one. ``handle`` is the runner's own."""

    parts: tuple[PreparedPart, ...]
    handle: Any


class Runner(Protocol):
    """Listens, prepares and writes; keeps the cached ranges. Reports and outcomes are values; rows never pass through it.

    Three threads call it: one listens, one prepares, one writes and does everything else. An outcome never says more than was done: what is
    not certain comes as a failure, and the engine then reloads its state from the checkpoint.
    """

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Read the ranges and cache their chunks; return one outcome per task, in order. Called once per cycle.

        A range that cannot be read fails alone, with the source's own error. A range that is listened to again replaces what was cached
        of it.
        """
        ...

    def copy(self, work: CopyWork, groups: Sequence[Sequence[CopyTask]]) -> Sequence[ChunkOutcome] | ApplierError:
        """Copy chunks of upstream, before the replica begins: one task per group, each with a session of its own.

        A chunk without an outcome was not reached, or may be in the sink: it is given out again, and the writer finds out. JobAborted,
        SparkSessionLost: the same for all of them.
        """
        ...

    def prepare(self, plan: PreparePlan) -> Prepared | ApplierError:
        """Render the statements of segments from the cached ranges that the plan names, and keep them. The ranges stay cached.

        A segment that cannot be rendered has its error (``PreparedPart.error``). JobAborted, RangeChanged: the cache cannot be used (a
        range is missing, or differs from its report); the caller releases everything. SparkSessionLost: the session is lost too.
        """
        ...

    def write(self, prepared: Prepared, segment: int, plan: WritePlan) -> WriteOutcome:
        """Write one prepared segment in one transaction. It stays prepared: a write that was rolled back may be repeated.

        COMMITTED: all rows of the segment are durable. RELOAD: nothing is known to be durable, and what is cached is of no use; the
        caller releases everything. Otherwise the writer's outcome, with its error.
        """
        ...

    def apply(self, plan: PreparePlan, write_plan: WritePlan) -> WriteOutcome:
        """Prepare and write the one segment of ``plan``, or few rows ahead of W, in one transaction; same outcomes as ``write``."""
        ...

    def write_rows(self, prepared: Prepared, parts: Sequence[int], plan: WritePlan) -> WriteOutcome:
        """Write parts of prepared rows, each by a task of its own and in transactions of its own.

        COMMITTED: all are durable; the progress is where it was. RELOAD: as for ``write``. Otherwise some may be durable.
        """
        ...

    def drop(self, prepared: Prepared) -> None:
        """Free prepared segments."""
        ...

    def release(self, ranges: Collection[RangeId]) -> None:
        """Free cached ranges; unknown ones are ignored."""
        ...

    def release_all(self) -> None:
        """Free every cached range and every prepared segment."""
        ...

    def close(self) -> None:
        """Free everything and stop. Called once, also while a listening runs in the other thread."""
        ...
