"""How a plan reaches its tasks: with their code if it is small, else as one broadcast that ends with the plan's use.

PySpark makes its own broadcast of any code above 1 MiB, one per stage, and nobody ever deletes its file (1,000 tables of 20 columns
are that much). One that is ours is fetched once per executor, unpickled once per Python worker, and destroyed after its use.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

from pyspark import SparkContext

from applier.model.seal import seal, unseal
from applier.spark.failure import UNANSWERED
from applier.tasks.plan import PreparePlan

INLINE_BYTES: Final = 256 * 1024
"""Well below PySpark's own threshold. A broadcast costs some milliseconds, which a live feed's small segments need not pay."""

PlanGetter: TypeAlias = Callable[[], PreparePlan]
"""Gives the plan where a task runs; crosses to executors."""


class PlanBroadcast:
    """A plan as tasks get it. ``getter`` goes with their code."""

    def __init__(self, context: SparkContext, plan: PreparePlan) -> None:
        data = seal(plan)
        self._broadcast: Any = None
        self.getter: PlanGetter
        if len(data) <= INLINE_BYTES:
            self.getter = lambda: unseal(data)
            return
        broadcast = self._broadcast = context.broadcast(_Sealed(data))
        self.getter = lambda: broadcast.value

    def destroy(self) -> None:
        """Free the plan: no task needs it any more."""
        # destroy, not unpersist: unpersist keeps the driver's file for a later use, and there is none. A Spark that has ended has
        # deleted its directories itself.
        if self._broadcast is not None:
            with suppress(*UNANSWERED):
                self._broadcast.destroy()


class _Sealed:
    """A sealed plan, which is the plan itself once it is unpickled: PySpark keeps that for all tasks of a Python worker."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return unseal, (self._data,)
