"""What Spark's jobs run on executors: the plain functions of ``tasks``, over the partitions of a job. And what their results mean.

What goes with a task's code and what it returns is sealed here, on both sides; what lies in files is by ``shuffle`` and ``PlanBroadcast``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from applier.model.position import Ts
from applier.model.seal import seal, unseal
from applier.sinks.failpoint import reach
from applier.sinks.write_outcome import WriteOutcome
from applier.sources.port import Decoder, RangeReader
from applier.spark.plan_broadcast import PlanGetter
from applier.spark.worker import prepare_worker
from applier.tasks.deal import REPORTS, Dealt, deal
from applier.tasks.handover import routed_chunks
from applier.tasks.listen import ListenTask
from applier.tasks.plan import PreparePlan, WritePlan
from applier.tasks.prepare import Planned, Routed, render, reroute, selected_chunks
from applier.tasks.prepared import PreparedSegment, Rendered
from applier.tasks.slicing import Sliced, divide
from applier.tasks.write import apply_small, write
from applier.tasks.write_rows import apply_small_rows, write_part


def listening(reader: RangeReader, decoder: Decoder) -> Callable[[Iterable[bytes]], Iterator[Dealt]]:
    """Return the task of a listening job. Its elements: the sealed ranges of each task."""
    sealed = seal((reader, decoder))

    def run(groups: Iterable[bytes]) -> Iterator[Dealt]:
        prepare_worker("listen")
        for group in groups:
            tasks: Sequence[ListenTask] = unseal(group)
            yield from deal(tasks, *unseal(sealed))

    return run


def rendering(plan_of: PlanGetter, decoder: Decoder) -> Callable[[int, Iterable[Any]], Iterator[Planned]]:
    """Return the task that prepares one bucket."""

    def run(partition: int, elements: Iterable[Any]) -> Iterator[Planned]:
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


def rendering_routed(plan_of: PlanGetter, decoder: Decoder) -> Callable[[int, Iterable[Any]], Iterator[Planned]]:
    """Return the task that prepares what was routed to one reducer."""

    def run(reducer: int, elements: Iterable[Any]) -> Iterator[Planned]:
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


def writing(plan: WritePlan, segment: PreparedSegment, reader: RangeReader) -> Callable[[Iterable[Any]], list[bytes]]:
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
    """Return the task that does everything for a small segment."""
    sealed = seal((write_plan, reader, decoder))

    def run(elements: Iterable[Any]) -> list[bytes]:
        prepare_worker("write")
        chunks = (element for element in elements if type(element) is not tuple)  # without the reports to the driver
        there, records, reading = unseal(sealed)
        return [seal(apply_small(plan_of(), there, chunks, records, reading))]

    return run


def writing_rows(plan: WritePlan, parts: Sequence[PreparedSegment]) -> Callable[[int, Iterable[Any]], Iterator[bytes]]:
    """Return the task that writes one part of some rows; partition 0 is the driver's."""
    sealed = seal((plan, parts))

    def run(partition: int, elements: Iterable[Any]) -> Iterator[bytes]:
        prepare_worker("write")
        there, announced = unseal(sealed)
        return iter([seal(write_part(there, announced[partition - 1], elements))])

    return run


def applying_rows(plan_of: PlanGetter, write_plan: WritePlan, decoder: Decoder) -> Callable[[Iterable[Any]], list[bytes]]:
    """Return the task that does everything for few rows."""
    sealed = seal((write_plan, decoder))

    def run(elements: Iterable[Any]) -> list[bytes]:
        prepare_worker("write")
        chunks = (element for element in elements if type(element) is not tuple)  # without the reports to the driver
        there, reading = unseal(sealed)
        return [seal(apply_small_rows(plan_of(), there, chunks, reading))]

    return run


def outcomes_of(sealed: Iterable[bytes]) -> list[WriteOutcome]:
    """Return what writing tasks have returned; DamagedData."""
    return [unseal(outcome) for outcome in sealed]


def by_segment(announced: Iterable[Rendered], plan: PreparePlan) -> tuple[PreparedSegment, ...] | None:
    """Sort what reducers announce; None unless each of them has announced each segment exactly once."""
    parts: list[list[Rendered]] = [[] for _ in range(plan.parts)]
    for rendered in announced:
        parts[rendered.segment].append(rendered)
    whole = list(range(plan.reducers))
    if any(sorted(part.reducer for part in segment) != whole for segment in parts):
        return None
    return tuple(PreparedSegment(tuple(segment)) for segment in parts)
