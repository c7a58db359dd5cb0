"""How a segment's plan reaches its tasks: with their code if it is small, else as one broadcast that ends with the segment.

PySpark makes its own broadcast of any code above 1 MiB, one per stage, and nobody ever deletes its file (1,000 tables of 20 columns
are that much). One that is ours is fetched once per executor, unpickled once per Python worker, and destroyed when its job has ended.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

from pyspark import SparkContext

from applier.spark.failure import UNANSWERED
from applier.tasks.plan import ApplyPlan

INLINE_BYTES: Final = 256 * 1024
"""Well below PySpark's own threshold. A broadcast costs some milliseconds, which a live feed's small segments need not pay."""

PlanGetter: TypeAlias = Callable[[], ApplyPlan]
"""Gives the plan where a task runs; crosses to executors."""


@contextmanager
def plan_broadcast(context: SparkContext, plan: ApplyPlan) -> Iterator[PlanGetter]:
    """Yield what the code of the tasks takes along in place of the plan, for the jobs of the block."""
    data = pickle.dumps(plan, pickle.HIGHEST_PROTOCOL)
    if len(data) <= INLINE_BYTES:
        yield lambda: pickle.loads(data)  # noqa: S301 - our own bytes
        return
    broadcast = context.broadcast(plan)
    try:
        yield lambda: broadcast.value
    finally:
        # destroy, not unpersist: unpersist keeps the driver's file for a later use, and there is none. A Spark that has ended has
        # deleted its directories itself.
        with suppress(*UNANSWERED):
            broadcast.destroy()
