"""Listening and applying as Spark jobs. Rows never pass through the driver.

A range is one RDD of one partition: its persisted chunks are the listeners' cache, rebuilt from the source by lineage if an executor
dies. Listening and applying are called from two threads and run as two jobs at once, in pools of the fair scheduler. Reports come
back through an accumulator, so that caching a range sends no chunk anywhere.

What Spark delivers may be cut short anywhere, results on their way to the driver too: ``handover`` says how tasks find out.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from pickle import UnpicklingError
from typing import Any

from pyspark import RDD, AccumulatorParam, SparkContext, StorageLevel

from applier.model.chunk import PackedChunk
from applier.model.errors import JobAborted
from applier.model.range_report import RangeId
from applier.sinks.failpoint import reach
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Decoder, RangeReader
from applier.spark.failing_range import FailedJob, FailingRanges
from applier.spark.failure import EXECUTORS_REMEDY, UNANSWERED, job_failed, named_task, ranges_lost
from applier.spark.jvm import mute_jvm
from applier.spark.plan_broadcast import PlanGetter, plan_broadcast
from applier.spark.session import end_context
from applier.spark.worker import prepare_worker
from applier.tasks.handover import received
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure, listen
from applier.tasks.plan import ApplyPlan
from applier.tasks.prepare import Planned, render, select
from applier.tasks.write import write


class _Outcomes(AccumulatorParam[list[Any]]):
    """Collects listeners' outcomes on the driver."""

    def zero(self, value: list[Any]) -> list[Any]:
        del value
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        value1.extend(value2)
        return value1


class SparkRunner:
    """Implements ``Runner``."""

    def __init__(self, context: SparkContext, reader: RangeReader, decoder: Decoder) -> None:
        self._context = context
        self._reader, self._decoder = reader, decoder
        self._cached: dict[RangeId, RDD[Any]] = {}
        # One for all jobs: Spark never forgets an accumulator.
        self._outcomes = context.accumulator([], _Outcomes())
        self._failing = FailingRanges(self._listen)

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Run one listener per range in one job; if it fails whole, in several, so that only the range that crashes it fails."""
        return self._failing.listen(tasks)

    def _listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome] | FailedJob:
        self._outcomes.value = []
        try:
            # A property of the thread: listening and applying run in two, so that a long job of one does not starve the other.
            self._context.setLocalProperty("spark.scheduler.pool", "listen")
            for task in tasks:
                self._cached[task.range] = self._range_rdd(task)
            _materialize(self._context, [self._cached[task.range] for task in tasks])
        except Exception as error:
            if not self._has_failed(error):
                raise
            # Some of them were read and are cached. They are listened to again in a smaller job, and would be cached twice.
            self.release([task.range for task in tasks])
            return FailedJob(job_failed(error), named_task(error))
        reported: dict[RangeId, list[ListenOutcome]] = {}
        for outcome in self._outcomes.value:
            reported.setdefault(outcome.range, []).append(outcome)
        outcomes = [_one_outcome(task.range, reported.get(task.range, [])) for task in tasks]
        self.release([outcome.range for outcome in outcomes if isinstance(outcome, RangeFailure)])
        return outcomes

    def _range_rdd(self, task: ListenTask) -> RDD[Any]:
        read = self._context.parallelize([task], 1).mapPartitions(_listening(self._reader, self._decoder, self._outcomes))
        return read.persist(StorageLevel.MEMORY_AND_DISK)

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        """Select, shuffle by bucket, render in parallel, sort to the one task that writes."""
        if not self._cached.keys() >= plan.ranges.keys():
            return ranges_lost()
        try:
            return self._apply(plan)
        except Exception as error:
            if not self._has_failed(error):
                raise
            failure = job_failed(error)
            return WriteOutcome(state=WriteState.RELOAD if isinstance(failure, JobAborted) else WriteState.FAILED, error=failure)

    def _has_failed(self, error: Exception) -> bool:
        """Whether Spark has failed, and not our code. In a context that the other thread has ended, PySpark finds None and raises."""
        return isinstance(error, UNANSWERED) or self._context._jsc is None  # noqa: SLF001 - how PySpark itself marks a stopped context

    def _apply(self, plan: ApplyPlan) -> WriteOutcome:
        self._context.setLocalProperty("spark.scheduler.pool", "apply")
        cached = self._context.union([self._cached[range_id] for range_id in plan.ranges])
        decoder = self._decoder  # a local name: the tasks' code would take this runner along, which cannot be pickled
        with plan_broadcast(self._context, plan) as plan_of:
            if plan.is_small:
                # One task, no shuffle: below SMALL_SEGMENT_ROWS two shuffles cost more than parallel rendering gains.
                planned = cached.coalesce(1).mapPartitions(_select_and_render(plan_of, decoder))
            else:
                planned = (
                    cached.mapPartitions(lambda elements: select(plan_of(), elements))
                    .partitionBy(plan.reducers, _same)
                    .mapPartitionsWithIndex(lambda reducer, bucketed: render(plan_of(), reducer, bucketed, decoder))
                    .partitionBy(1, _same)
                    .mapPartitions(_received, preservesPartitioning=True)
                    .repartitionAndSortWithinPartitions(1, _same)  # in this partition: it has the partitioner already
                )
            return _only(planned.mapPartitions(_write(plan_of, self._reader)))

    def release(self, ranges: Collection[RangeId]) -> None:
        """Unpersist the ranges' RDDs."""
        for range_id in ranges:
            if (rdd := self._cached.pop(range_id, None)) is not None:
                self._unpersist(rdd)

    def _unpersist(self, rdd: RDD[Any]) -> None:
        try:
            rdd.unpersist()
        except Exception as error:  # a session that has ended has nothing cached; the next job reports that it has ended
            if not self._has_failed(error):
                raise

    def release_all(self) -> None:
        """Unpersist every range."""
        self._failing.forget()
        self.release(list(self._cached))

    def close(self) -> None:
        """Unpersist everything and stop Spark. What it logs of jobs that still run is not shown."""
        mute_jvm()
        self.release_all()
        end_context(self._context)


def _listening(reader: RangeReader, decoder: Decoder, outcomes: Any) -> Any:
    def run(tasks: Iterable[ListenTask]) -> Iterator[PackedChunk | ListenOutcome]:
        prepare_worker("listen")
        for one in tasks:
            for element in listen([one], reader, decoder):
                if not isinstance(element, PackedChunk):
                    outcomes.add([element])
                yield element

    return run


def _materialize(context: SparkContext, ranges: list[RDD[Any]]) -> None:
    """Compute and cache all partitions without sending their content anywhere: the count is the JVM's."""
    context.union(ranges)._jrdd.count()  # noqa: SLF001 - RDD.count() would pass every chunk through a Python worker once more


def _select_and_render(plan_of: PlanGetter, decoder: Decoder) -> Any:
    def run(elements: Iterable[Any]) -> Iterator[Planned]:
        plan = plan_of()
        return iter(sorted(render(plan, 0, select(plan, _received(elements)), decoder), key=_sort_key))

    return run


def _received(elements: Iterable[Any]) -> Iterator[Any]:
    """Yield the input of the task that writes. Before it asks for the first element, all of its input was computed."""
    reach("write.before_input")
    yield from received(elements)


def _write(plan_of: PlanGetter, reader: RangeReader) -> Any:
    def run(planned: Iterable[Planned]) -> list[WriteOutcome]:
        prepare_worker("write")
        return [write(plan_of(), planned, reader)]

    return run


def _only(written: RDD[WriteOutcome]) -> WriteOutcome:
    """Run the job and return its outcome. If that does not arrive whole, only the sink knows what was written."""
    try:
        outcomes = written.collect()
    except (EOFError, struct.error, UnpicklingError):
        outcomes = []
    if len(outcomes) == 1:
        return outcomes[0]
    error = JobAborted("the outcome of a write was not received", remedy=EXECUTORS_REMEDY)
    return WriteOutcome(state=WriteState.RELOAD, error=error)


def _sort_key(planned: Planned) -> int:
    return planned[0]


def _same(bucket: int) -> int:
    return bucket


def _one_outcome(range_id: RangeId, outcomes: Sequence[ListenOutcome]) -> ListenOutcome:
    """Return what the listener of a range has reported.

    There may be no report: a task that Spark repeats after its range was cached does not listen again. There may be several, of copies of
    a task: then a report counts more than a failure, since what is cached is compared with it when it is applied.
    """
    reports = [outcome for outcome in outcomes if not isinstance(outcome, RangeFailure)]
    if outcomes and all(report == reports[0] for report in reports):
        return (reports or outcomes)[0]
    error = JobAborted(
        "a range was read, but " + ("its reports differ" if reports else "its report was not received"),
        remedy=EXECUTORS_REMEDY,
        topic=range_id.stream.topic,
        partition=range_id.stream.partition,
        offset=range_id.start,
    )
    return RangeFailure(range_id, error)
