"""Listening and applying as Spark jobs. Rows never pass through the driver.

A range is one RDD of one partition: its persisted chunks are the listeners' cache, rebuilt from Kafka by lineage if an executor
dies. Listening and applying are called from two threads and run as two jobs at once, in pools of the fair scheduler. Reports come
back through an accumulator, so that caching a range sends no chunk anywhere.

What Spark delivers may be cut short anywhere, results on their way to the driver too: ``handover`` says how tasks find out.
"""

import re
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from pickle import UnpicklingError
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import RDD, AccumulatorParam, SparkContext, StorageLevel

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, JobAborted, SparkSessionLost
from applier.model.range_report import RangeId
from applier.sinks.failpoint import reach
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Decoder, RangeReader
from applier.spark.carried import CarriedPlan, carried
from applier.spark.culprit import CulpritSearch, JobFailed
from applier.spark.gateway import hush_jvm
from applier.spark.loss import UNANSWERED, end_context, ranges_lost
from applier.spark.worker import prepare_worker
from applier.tasks.handover import received
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure, listen
from applier.tasks.plan import ApplyPlan
from applier.tasks.prepare import Planned, render, select
from applier.tasks.write import write

STOPPED: Final = ("stopped SparkContext", "SparkContext was shut down")
NAMED_TASK: Final = re.compile(r"Task (\d+) in stage \S+ failed \d+ times")
NO_ROOM: Final = ("No space left on device", "Disk quota exceeded")
ROOM_REMEDY: Final = "Free space in spark.local.dir on each machine, or name a directory with more room there under [spark.conf]"
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

    def __init__(self, context: SparkContext, reader: RangeReader, decoder: Decoder) -> None:
        self._context = context
        self._reader, self._decoder = reader, decoder
        self._cached: dict[RangeId, RDD[Any]] = {}
        # One for all jobs: Spark never forgets an accumulator.
        self._outcomes = context.accumulator([], _Outcomes())
        self._search = CulpritSearch(self._listen)

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Run one listener per range in one job; where it fails whole, in several, so that the range that made it fail does so alone."""
        return self._search.listen(tasks)

    def _listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome] | JobFailed:
        self._outcomes.value = []
        try:
            self._context.setLocalProperty("spark.scheduler.pool", "listen")
            for task in tasks:
                self._cached[task.range] = self._range_rdd(task)
            _materialize(self._context, [self._cached[task.range] for task in tasks])
        except Exception as error:
            if not self._has_failed(error):
                raise
            self.release([task.range for task in tasks])
            return JobFailed(_job_failed(error), _named_task(error))
        heard: dict[RangeId, list[ListenOutcome]] = {}
        for outcome in self._outcomes.value:
            heard.setdefault(outcome.range, []).append(outcome)
        reported = [_one_outcome(task.range, heard.get(task.range, [])) for task in tasks]
        self.release([outcome.range for outcome in reported if isinstance(outcome, RangeFailure)])
        return reported

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
            failure = _job_failed(error)
            return WriteOutcome(state=WriteState.REBUILD if isinstance(failure, JobAborted) else WriteState.FAILED, error=failure)

    def _has_failed(self, error: Exception) -> bool:
        """Tell whether Spark is to blame: once the other thread has cleared a lost context away, Spark's own code finds None in it."""
        return isinstance(error, UNANSWERED) or self._context._jsc is None  # noqa: SLF001 - Spark has no other word for a stopped context

    def _apply(self, plan: ApplyPlan) -> WriteOutcome:
        self._context.setLocalProperty("spark.scheduler.pool", "apply")
        cached = self._context.union([self._cached[range_id] for range_id in plan.ranges])
        decoder = self._decoder  # the tasks' code must not take this runner along
        with carried(self._context, plan) as plan_of:
            if plan.is_small:
                planned = cached.coalesce(1).mapPartitions(_select_and_render(plan_of, decoder))
            else:
                planned = (
                    cached.mapPartitions(lambda elements: select(plan_of(), elements))
                    .partitionBy(plan.reducers, _same)
                    .mapPartitionsWithIndex(lambda reducer, bucketed: render(plan_of(), reducer, bucketed, decoder))
                    .partitionBy(1, _same)
                    .mapPartitions(_fed, preservesPartitioning=True)
                    .repartitionAndSortWithinPartitions(1, _same)  # in this partition: it has the partitioner already
                )
            return _only(planned.mapPartitions(_write(plan_of, self._reader)))

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
        self._search.forget()
        self.release(list(self._cached))

    def close(self) -> None:
        """Unpersist everything and stop Spark, whose last words about jobs that still run are nobody's business."""
        hush_jvm()
        self.release_all()
        end_context(self._context)


def _listening(reader: RangeReader, decoder: Decoder, outcomes: Any) -> Any:
    def run(tasks: Iterable[ListenTask]) -> Iterator[PackedChunk | ListenOutcome]:
        prepare_worker("listen")
        for one in tasks:
            for element in listen(one, reader, decoder):
                if not isinstance(element, PackedChunk):
                    outcomes.add([element])
                yield element

    return run


def _materialize(context: SparkContext, ranges: list[RDD[Any]]) -> None:
    """Compute and cache all partitions without sending their content anywhere: the count is the JVM's."""
    context.union(ranges)._jrdd.count()  # noqa: SLF001 - RDD.count() would pass every chunk through a Python worker once more


def _select_and_render(plan_of: CarriedPlan, decoder: Decoder) -> Any:
    def run(elements: Iterable[Any]) -> Iterator[Planned]:
        plan = plan_of()
        return iter(sorted(render(plan, 0, select(plan, _fed(elements)), decoder), key=_sort_key))

    return run


def _fed(elements: Iterable[Any]) -> Iterator[Any]:
    """Yield what the task that writes is fed with. Before it asks for the first element, everything that it needs was made."""
    reach("write.before_input")
    yield from received(elements)


def _write(plan_of: CarriedPlan, reader: RangeReader) -> Any:
    def run(planned: Iterable[Planned]) -> list[WriteOutcome]:
        prepare_worker("write")
        return [write(plan_of(), planned, reader)]

    return run


def _only(written: RDD[WriteOutcome]) -> WriteOutcome:
    """Run the job and return its outcome. Where that does not arrive whole, the sink must be asked what was written."""
    try:
        outcomes = written.collect()
    except (EOFError, struct.error, UnpicklingError):
        outcomes = []
    if len(outcomes) == 1:
        return outcomes[0]
    error = JobAborted("the outcome of a write did not arrive", remedy="See the logs of the driver and of the executors")
    return WriteOutcome(state=WriteState.REBUILD, error=error)


def _sort_key(planned: Planned) -> int:
    return planned[0]


def _same(bucket: int) -> int:
    return bucket


def _job_failed(error: Exception) -> ApplierError:
    text = str(getattr(error, "java_exception", error))
    if not isinstance(error, Py4JError) or isinstance(error, Py4JNetworkError) or any(words in text for words in STOPPED):
        return SparkSessionLost("spark has ended while the applier works", remedy=ENDED_REMEDY, cause=_cause(text))
    if any(words in text for words in NO_ROOM):
        return JobAborted("spark has no room left on its disk", remedy=ROOM_REMEDY, cause=_cause(text))
    return JobAborted("spark gave a job up", remedy="See the logs of the executors", cause=_cause(text))


def start_failed(error: Py4JError | OSError) -> SparkSessionLost:
    """Return our error for a context that does not come up."""
    remedy = "Check spark.master, and whether the cluster runs and has resources to give"
    return SparkSessionLost("spark does not start", remedy=remedy, cause=_cause(str(getattr(error, "java_exception", error))))


def _cause(text: str) -> str:
    """Return what Spark says in its first line and, where a Python task raised, the last line of the traceback: what was raised."""
    told = (line.strip() for line in text.partition("\n\tat ")[0].splitlines())
    lines = [line for line in told if line and not line.startswith("SQLSTATE")]
    first, last = (lines[0][:500], lines[-1][:500]) if lines else ("", "")
    return first if first == last else f"{first} … {last}"


def _named_task(error: Exception) -> int | None:
    """Return the number of the task for which Spark gave a job up, if it names one: the number of its range among those of the job."""
    named = NAMED_TASK.search(str(getattr(error, "java_exception", error)))
    return int(named[1]) if named else None


def _one_outcome(range_id: RangeId, outcomes: Sequence[ListenOutcome]) -> ListenOutcome:
    """Return what the listener of a range has reported.

    It need not have reported: a task that Spark repeats after its range was cached does not listen again. Or several copies of a task
    have: then a report counts more than a failure, since what is cached is compared with it when it is applied.
    """
    reports = [outcome for outcome in outcomes if not isinstance(outcome, RangeFailure)]
    if outcomes and all(report == reports[0] for report in reports):
        return (reports or outcomes)[0]
    error = JobAborted(
        "a range was read, but " + ("its reports contradict one another" if reports else "its report did not arrive"),
        remedy="See the logs of the driver and of the executors",
        topic=range_id.stream.topic,
        partition=range_id.stream.partition,
        offset=range_id.start,
    )
    return RangeFailure(range_id, error)
