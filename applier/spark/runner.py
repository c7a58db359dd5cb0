"""Listening and applying as Spark jobs. Rows never pass through the driver.

A range is one RDD of one partition: its persisted chunks are the listeners' cache, rebuilt from Kafka by lineage if an executor
dies. Listening and applying are called from two threads and run as two jobs at once, in pools of the fair scheduler. Reports come
back through an accumulator, so that caching a range sends no chunk anywhere.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import RDD, AccumulatorParam, SparkContext, StorageLevel

from applier.chunk import PackedChunk
from applier.coordinator.messages import RangeId
from applier.errors import ApplierError, JobLost, SparkEnded
from applier.kafka.port import RangeReader
from applier.sinks.port import WriteOutcome, WriteState
from applier.spark.apply import ApplyPlan, Planned, render, select, write
from applier.spark.gateway import hush_jvm
from applier.spark.listen import ListenOutcome, ListenTask, RangeFailure, listen
from applier.spark.loss import UNANSWERED, end_context, ranges_lost
from applier.spark.worker import prepare_worker

SMALL_SEGMENT_ROWS = 5_000
"""Below it, one task does everything: two shuffles cost more than the parallelism gives."""

STOPPED: Final = ("stopped SparkContext", "SparkContext was shut down")
ENDED_REMEDY: Final = "See the lines above and the system's log (out of memory? spark.driver.memory under [spark.conf]), and start again"


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

    def __init__(self, context: SparkContext, reader: RangeReader) -> None:
        self._context = context
        self._reader = reader
        self._cached: dict[RangeId, RDD[Any]] = {}
        # One for all jobs: Spark never forgets an accumulator.
        self._outcomes = context.accumulator([], _Outcomes())

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Run one listener per range in one job."""
        if not tasks:
            return []
        self._outcomes.value = []
        try:
            self._context.setLocalProperty("spark.scheduler.pool", "listen")
            for task in tasks:
                self._cached[task.range] = _range_rdd(self._context, task, self._reader, self._outcomes)
            _materialize(self._context, [self._cached[task.range] for task in tasks])
        except Exception as error:
            if not self._has_failed(error):
                raise
            self.release([task.range for task in tasks])
            return [RangeFailure(task.range, _job_failed(error)) for task in tasks]
        # Not every range need have reported: a task that Spark repeats after its range was cached does not listen again.
        found = {outcome.range: outcome for outcome in self._outcomes.value}
        reported = [found.get(task.range) or RangeFailure(task.range, _not_reported()) for task in tasks]
        self.release([outcome.range for outcome in reported if isinstance(outcome, RangeFailure)])
        return reported

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        """Select, shuffle by bucket, render in parallel, sort to the one task that writes."""
        if not self._cached.keys() >= plan.ranges.keys():
            return ranges_lost()
        try:
            return self._apply(plan)
        except Exception as error:
            if not self._has_failed(error):
                raise
            failure = _job_failed(error)
            return WriteOutcome(state=WriteState.REBUILD if isinstance(failure, JobLost) else WriteState.FAILED, error=failure)

    def _has_failed(self, error: Exception) -> bool:
        """Tell whether Spark is to blame: once the other thread has cleared a lost context away, Spark's own code finds None in it."""
        return isinstance(error, UNANSWERED) or self._context._jsc is None  # noqa: SLF001 - Spark has no other word for a stopped context

    def _apply(self, plan: ApplyPlan) -> WriteOutcome:
        self._context.setLocalProperty("spark.scheduler.pool", "apply")
        cached = self._context.union([self._cached[range_id] for range_id in plan.ranges])
        if plan.rows <= SMALL_SEGMENT_ROWS:
            planned = cached.coalesce(1).mapPartitions(_select_and_render(plan))
        else:
            planned = (
                cached.mapPartitions(lambda elements: select(plan, elements))
                .partitionBy(plan.buckets * plan.parts, _same)
                .mapPartitions(lambda bucketed: render(plan, bucketed))
                .repartitionAndSortWithinPartitions(1)
            )
        outcome: WriteOutcome = planned.mapPartitions(_write(plan, self._reader)).collect()[0]
        return outcome

    def release(self, ranges: Collection[RangeId]) -> None:
        """Unpersist the ranges' RDDs."""
        for range_id in ranges:
            rdd = self._cached.pop(range_id, None)
            if rdd is not None:
                try:
                    rdd.unpersist()
                except Exception as error:  # where Spark has ended nothing is cached, and the error that tells of it comes from a job
                    if not self._has_failed(error):
                        raise

    def release_all(self) -> None:
        """Unpersist every range."""
        self.release(list(self._cached))

    def close(self) -> None:
        """Unpersist everything and stop Spark, whose last words about jobs that still run are nobody's business."""
        hush_jvm()
        self.release_all()
        end_context(self._context)


def _range_rdd(context: SparkContext, task: ListenTask, reader: RangeReader, outcomes: Any) -> RDD[Any]:
    def run(tasks: Iterable[ListenTask]) -> Iterator[PackedChunk | ListenOutcome]:
        prepare_worker("listen")
        for one in tasks:
            for element in listen(one, reader):
                if not isinstance(element, PackedChunk):
                    outcomes.add([element])
                yield element

    return context.parallelize([task], 1).mapPartitions(run).persist(StorageLevel.MEMORY_AND_DISK)


def _materialize(context: SparkContext, ranges: list[RDD[Any]]) -> None:
    """Compute and cache all partitions without sending their content anywhere: the count is the JVM's."""
    context.union(ranges)._jrdd.count()  # noqa: SLF001 - RDD.count() would pass every chunk through a Python worker once more


def _select_and_render(plan: ApplyPlan) -> Any:
    def run(elements: Iterable[Any]) -> Iterator[Planned]:
        return iter(sorted(render(plan, select(plan, elements)), key=_sort_key))

    return run


def _write(plan: ApplyPlan, reader: RangeReader) -> Any:
    def run(planned: Iterable[Planned]) -> list[WriteOutcome]:
        prepare_worker("write")
        return [write(plan, planned, reader)]

    return run


def _sort_key(planned: Planned) -> int:
    return planned[0]


def _same(bucket: int) -> int:
    return bucket


def _job_failed(error: Exception) -> ApplierError:
    text = str(getattr(error, "java_exception", error))
    if not isinstance(error, Py4JError) or isinstance(error, Py4JNetworkError) or any(words in text for words in STOPPED):
        return SparkEnded("spark has ended while the applier works", remedy=ENDED_REMEDY, cause=_cause(text))
    return JobLost("spark gave a job up", remedy="See the logs of the executors", cause=_cause(text))


def start_failed(error: Py4JError | OSError) -> SparkEnded:
    """Return our error for a context that does not come up."""
    remedy = "Check spark.master, and whether the cluster runs and has resources to give"
    return SparkEnded("spark does not start", remedy=remedy, cause=_cause(str(getattr(error, "java_exception", error))))


def _cause(text: str) -> str:
    """Return what Spark says in its first line and, where a Python task raised, the last line of the traceback: what was raised."""
    told = (line.strip() for line in text.partition("\n\tat ")[0].splitlines())
    lines = [line for line in told if line and not line.startswith("SQLSTATE")]
    first, last = (lines[0][:500], lines[-1][:500]) if lines else ("", "")
    return first if first == last else f"{first} … {last}"


def _not_reported() -> ApplierError:
    return JobLost("a range was read, but its report did not arrive", remedy="See the logs of the driver and of the executors")
