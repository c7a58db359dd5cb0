"""What Spark's jobs run on executors: the plain functions of ``tasks``, over the partitions of a job. And what their results mean.

What goes with a task's code and what it returns is sealed here, on both sides; ``batch`` and ``PlanBroadcast`` do so for files.
"""

import gc
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyspark import SparkContext

from applier.model.position import Ts
from applier.model.seal import seal, unseal
from applier.sinks.failpoint import reach
from applier.sinks.progress import WriteOutcome
from applier.sources.port import Decoder, RangeReader
from applier.spark.failure import UNANSWERED
from applier.tasks.copy_chunk import CopyTask, CopyWork, copy_chunks
from applier.tasks.handover import routed_chunks
from applier.tasks.listen import ListenTask
from applier.tasks.plan import REPORTS, Dealt, PreparePlan, Sliced, WritePlan, deal, divide
from applier.tasks.prepare import NumberedElement, PreparedPart, Rendered, Routed, render, reroute, selected_chunks
from applier.tasks.write import apply_small, write, write_part

# --- plan broadcast --------------------------------------------------------------------------------------------------
# How a plan reaches its tasks: with their code if it is small, else as one broadcast that ends with the plan's use.
#
# PySpark makes its own broadcast of any code above 1 MiB, one per stage, and no one ever deletes its file (1,000 tables of 20 columns
# are that much). One that is ours is fetched once per executor, unpickled once per Python worker, and destroyed after its use.

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


# --- worker ----------------------------------------------------------------------------------------------------------
# What a Python worker of Spark does at the beginning of a task: it shows the kind of task, and is prepared once for each kind.
#
# Temporary files of tasks lie where Spark's own do, whoever makes them: the system's directory may be small, or memory.

NAME: Final = Path("/proc/self/comm")
"""The name of this process in top and ps. Linux only, 15 characters."""

LOCAL_DIRECTORIES: Final = "SPARK_LOCAL_DIRS"
"""Where an executor may write (``spark.local.dir``, or what the cluster says instead), as Spark tells its workers."""

_prepared: Final[set[str]] = set()


def prepare_worker(kind: str) -> None:
    """Name the process after the kind of task, and freeze what its modules have created, so that the garbage collector skips it."""
    # Workers are reused for tasks of all kinds: the name tells an operator, and `make bench`, what one uses its CPU for. Some 20 µs.
    with suppress(OSError):
        NAME.write_text(f"applier {kind}", encoding="ascii")
    if LOCAL_DIRECTORIES in os.environ:
        directories = os.environ[LOCAL_DIRECTORIES].split(",")
        # By process, so that the workers of an executor share several disks.
        tempfile.tempdir = directories[os.getpid() % len(directories)]
    # PySpark's worker calls gc.collect() after each task. Measured: without the freeze, that took three quarters of a small task's CPU.
    if kind not in _prepared:
        _prepared.add(kind)
        gc.collect()
        gc.freeze()


# --- job -------------------------------------------------------------------------------------------------------------


def listening(reader: RangeReader, decoder: Decoder) -> Callable[[Iterable[bytes]], Iterator[Dealt]]:
    """Return the task of a listening job. Its elements: the sealed ranges of each task."""
    sealed = seal((reader, decoder))

    def run(groups: Iterable[bytes]) -> Iterator[Dealt]:
        prepare_worker("listen")
        for group in groups:
            tasks: Sequence[ListenTask] = unseal(group)
            yield from deal(tasks, *unseal(sealed))

    return run


def rendering(plan_of: PlanGetter, decoder: Decoder) -> Callable[[int, Iterable[Any]], Iterator[NumberedElement]]:
    """Return the task that prepares one bucket."""

    def run(partition: int, elements: Iterable[Any]) -> Iterator[NumberedElement]:
        prepare_worker("prepare")
        if partition == REPORTS:
            return _nothing_of(elements)
        plan = plan_of()
        return render(plan, partition - 1, selected_chunks(plan, elements, 1), decoder)

    return run


def _nothing_of(elements: Iterable[Any]) -> Iterator[Any]:
    """Read the reports, which are for the driver, and yield nothing. Spark ends a worker that has not read its input to the end."""
    for _ in elements:
        pass
    return iter(())


def routing(plan_of: PlanGetter) -> Callable[[int, Iterable[Any]], Iterator[Routed]]:
    """Return the task that moves rows of one bucket to others."""

    def run(partition: int, elements: Iterable[Any]) -> Iterator[Routed]:
        prepare_worker("prepare")
        return _nothing_of(elements) if partition == REPORTS else reroute(plan_of(), partition - 1, elements)

    return run


def rendering_routed(plan_of: PlanGetter, decoder: Decoder) -> Callable[[int, Iterable[Any]], Iterator[NumberedElement]]:
    """Return the task that prepares what was routed to one reducer."""

    def run(reducer: int, elements: Iterable[Any]) -> Iterator[NumberedElement]:
        prepare_worker("prepare")
        plan = plan_of()
        return render(plan, reducer, routed_chunks(elements, plan.buckets), decoder)

    return run


def dividing(bounds: Sequence[Ts]) -> Callable[[Iterable[Any]], Iterator[Sliced]]:
    """Return the task that divides the rows of a batch by time."""
    sealed = seal(tuple(bounds))

    def run(elements: Iterable[Any]) -> Iterator[Sliced]:
        prepare_worker("prepare")
        return divide(unseal(sealed), (element for element in elements if type(element) is not tuple))

    return run


def writing(plan: WritePlan, segment: PreparedPart, reader: RangeReader) -> Callable[[Iterable[Any]], list[bytes]]:
    """Return the task that writes one prepared segment."""
    sealed = seal((plan, segment, reader))

    def run(elements: Iterable[Any]) -> list[bytes]:
        prepare_worker("write")
        # For tests: before the task asks for its first element, its input is in the files of a shuffle only.
        reach("write.before_input")
        there, announced, records = unseal(sealed)
        return [seal(write(there, announced, elements, records))]

    return run


def applying(plan_of: PlanGetter, write_plan: WritePlan, reader: RangeReader, decoder: Decoder) -> Callable[[Iterable[Any]], list[bytes]]:
    """Return the task that does everything for a small segment, or for few rows ahead of W."""
    sealed = seal((write_plan, reader, decoder))

    def run(elements: Iterable[Any]) -> list[bytes]:
        prepare_worker("write")
        chunks = (element for element in elements if type(element) is not tuple)  # without the reports to the driver
        there, records, reading = unseal(sealed)
        return [seal(apply_small(plan_of(), there, chunks, records, reading))]

    return run


def writing_rows(plan: WritePlan, parts: Sequence[PreparedPart]) -> Callable[[int, Iterable[Any]], Iterator[bytes]]:
    """Return the task that writes one part of some rows; partition 0 is the driver's."""
    sealed = seal((plan, parts))

    def run(partition: int, elements: Iterable[Any]) -> Iterator[bytes]:
        prepare_worker("write")
        there, announced = unseal(sealed)
        return iter([seal(write_part(there, announced[partition - 1], elements))])

    return run


def copying(work: CopyWork) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
    """Return the task that copies chunks of upstream. Its elements: the sealed chunks of each task."""
    sealed = seal(work)

    def run(groups: Iterable[bytes]) -> Iterator[bytes]:
        prepare_worker("copy")
        for group in groups:
            tasks: Sequence[CopyTask] = unseal(group)
            yield from (seal(outcome) for outcome in copy_chunks(unseal(sealed), tasks))

    return run


def outcomes_of(sealed: Iterable[bytes]) -> list[WriteOutcome]:
    """Return what writing tasks have returned; DamagedData."""
    return [unseal(outcome) for outcome in sealed]


def by_part(announced: Iterable[Rendered], plan: PreparePlan) -> tuple[PreparedPart, ...] | None:
    """Sort what reducers announce; None unless each of them has announced each part exactly once."""
    parts: list[list[Rendered]] = [[] for _ in range(plan.parts)]
    for one in announced:
        parts[one.part].append(one)
    whole = list(range(plan.reducers))
    if any(sorted(one.reducer for one in part) != whole for part in parts):
        return None
    return tuple(PreparedPart(tuple(part)) for part in parts)
