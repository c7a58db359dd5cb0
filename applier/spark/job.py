"""What Spark's jobs run on executors: the plain functions of ``tasks``, over the partitions of a job. And what their results mean."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

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
from applier.tasks.write import apply_small, write
from applier.tasks.write_rows import apply_small_rows, write_part


def listening(reader: RangeReader, decoder: Decoder) -> Callable[[Iterable[Sequence[ListenTask]]], Iterator[Dealt]]:
    """Return the task of a listening job."""

    def run(groups: Iterable[Sequence[ListenTask]]) -> Iterator[Dealt]:
        prepare_worker("listen")
        for tasks in groups:
            yield from deal(tasks, reader, decoder)

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


def writing(plan: WritePlan, segment: PreparedSegment, reader: RangeReader) -> Callable[[Iterable[Any]], list[WriteOutcome]]:
    """Return the task that writes one prepared segment."""

    def run(elements: Iterable[Any]) -> list[WriteOutcome]:
        prepare_worker("write")
        # For tests: before the task asks for its first element, its input is in the files of a shuffle only.
        reach("write.before_input")
        return [write(plan, segment, elements, reader)]

    return run


def applying(
    plan_of: PlanGetter, write_plan: WritePlan, reader: RangeReader, decoder: Decoder
) -> Callable[[Iterable[Any]], list[WriteOutcome]]:
    """Return the task that does everything for a small segment."""

    def run(elements: Iterable[Any]) -> list[WriteOutcome]:
        prepare_worker("write")
        chunks = (element for element in elements if type(element) is not tuple)  # without the reports to the driver
        return [apply_small(plan_of(), write_plan, chunks, reader, decoder)]

    return run


def writing_rows(plan: WritePlan, parts: Sequence[PreparedSegment]) -> Callable[[int, Iterable[Any]], Iterator[WriteOutcome]]:
    """Return the task that writes one part of some rows; partition 0 is the driver's."""

    def run(partition: int, elements: Iterable[Any]) -> Iterator[WriteOutcome]:
        prepare_worker("write")
        return iter([write_part(plan, parts[partition - 1], elements)])

    return run


def applying_rows(plan_of: PlanGetter, write_plan: WritePlan, decoder: Decoder) -> Callable[[Iterable[Any]], list[WriteOutcome]]:
    """Return the task that does everything for few rows."""

    def run(elements: Iterable[Any]) -> list[WriteOutcome]:
        prepare_worker("write")
        chunks = (element for element in elements if type(element) is not tuple)  # without the reports to the driver
        return [apply_small_rows(plan_of(), write_plan, chunks, decoder)]

    return run


def by_segment(announced: Iterable[Rendered], plan: PreparePlan) -> tuple[PreparedSegment, ...] | None:
    """Sort what reducers announce; None unless each of them has announced each segment exactly once."""
    parts: list[list[Rendered]] = [[] for _ in range(plan.parts)]
    for rendered in announced:
        parts[rendered.segment].append(rendered)
    whole = list(range(plan.reducers))
    if any(sorted(part.reducer for part in segment) != whole for segment in parts):
        return None
    return tuple(PreparedSegment(tuple(segment)) for segment in parts)
