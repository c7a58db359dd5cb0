"""The pipeline on Spark: listening as one job per cycle, preparing as one job for several segments, writing as one task per segment.

Only pointers to cached data and small reports are on the driver. Three threads use it at once, in pools of the fair scheduler. Cached
rows and prepared segments are in the files of shuffles (``batch``); reports come back as the elements of a partition of their own, so
that caching a range sends no chunk anywhere, and a report has the fate of the data that it describes.

What Spark delivers may be cut short or altered anywhere, results on their way to the driver too: ``handover`` says how tasks notice
it, and ``seal`` how each element is compared with what was sent.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pickle import UnpicklingError
from typing import Any, TypeVar

from pyspark import RDD, SparkContext

from applier.model.errors import ApplierError, DamagedData, JobAborted
from applier.model.range_report import RangeId
from applier.model.seal import seal, unseal
from applier.sinks.progress import WriteOutcome
from applier.sources.port import Decoder, RangeReader
from applier.spark import job
from applier.spark.batch import Batch, Batches, Shuffle, Slices, united
from applier.spark.failing_range import FailedJob, FailingRanges
from applier.spark.failure import EXECUTORS_REMEDY, is_unanswered, job_failed, named_task, ranges_lost, segments_lost
from applier.spark.job import PlanBroadcast
from applier.spark.jvm import mute_jvm
from applier.spark.session import end_context
from applier.tasks.copy_chunk import ChunkOutcome, CopyTask, CopyWork
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.plan import REPORTS, PreparePlan, WritePlan, partition_of
from applier.tasks.port import Prepared
from applier.tasks.prepare import ANNOUNCED
from applier.tasks.write import joined, not_written

T = TypeVar("T")


class _Handle:
    """Where prepared segments are: in the last of the ``shuffles``, each of which was made from the one before it."""

    def __init__(self, plan: PlanBroadcast) -> None:
        self.plan = plan
        self.shuffles: list[Shuffle] = []

    def shuffle(self, addressed: RDD[Any], partitions: int) -> Shuffle:
        """Plan one more shuffle, which is freed with the others."""
        self.shuffles.append(Shuffle(addressed, partitions))
        return self.shuffles[-1]

    def free(self) -> None:
        """Delete everything that the segments need."""
        for shuffle in self.shuffles:
            shuffle.forget()
        self.plan.destroy()


def listening_tasks(context: SparkContext) -> int:
    """Return how many tasks a listening job may have: on a cluster it leaves a core to the writer, for whom a local Spark has slots."""
    cores = context.defaultParallelism
    return cores if (context.master or "").startswith("local[") else max(1, cores - 1)


class SparkRunner:
    """Implements ``Runner``. ``reader_of``: gives the source's reader as it is now; asked for each job."""

    def __init__(self, context: SparkContext, reader_of: Callable[[], RangeReader], decoder: Decoder) -> None:
        self._context = context
        self._reader_of, self._decoder = reader_of, decoder
        self._batches, self._slices = Batches(), Slices()
        self._prepared: set[_Handle] = set()
        self._failing = FailingRanges(self._listen, listening_tasks(context))

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        """Read all ranges in one job; if it fails whole, in several, so that only the range that crashes its listener fails."""
        return self._failing.listen(tasks)

    def _listen(self, groups: Sequence[Sequence[ListenTask]]) -> Sequence[ListenOutcome] | FailedJob:
        tasks = [task for group in groups for task in group]
        shuffle: Shuffle | None = None
        try:
            self._enter_pool("listen")
            # One element per partition. Otherwise a job could be cut where no task of ours sees it.
            dealt = self._context.parallelize(map(seal, groups), len(groups)).mapPartitions(job.listening(self._reader_of(), self._decoder))
            shuffle = Shuffle(dealt, partition_of(tasks[0].buckets))
            reported = _whole(partial(shuffle.read, REPORTS))
        except Exception as error:
            if shuffle is not None:
                shuffle.forget()  # some tasks of a failed job have written their part
            if not self._has_failed(error):
                raise
            return FailedJob(job_failed(error), named_task(error))
        found = {outcome.range: outcome for outcomes in reported for outcome in outcomes}
        outcomes = [found.get(task.range) or _unreported(task.range) for task in tasks]
        self._batches.add(shuffle, [outcome for outcome in outcomes if not isinstance(outcome, RangeFailure)])
        return outcomes

    def prepare(self, plan: PreparePlan) -> Prepared | ApplierError:
        """Render several segments, one task per bucket; their statements stay in the files of a shuffle by segment."""
        with self._batches.reading(plan.ranges) as batches:
            return ranges_lost() if batches is None else self._prepare(plan, [batch.shuffle for batch in batches])

    def _prepare(self, plan: PreparePlan, batches: Sequence[Shuffle]) -> Prepared | ApplierError:
        handle: _Handle | None = None
        try:
            self._enter_pool("prepare")
            handle = _Handle(PlanBroadcast(self._context, plan))
            shuffle = handle.shuffle(self._rendered(plan, handle, batches), plan.parts + 1)
            announced = _whole(partial(shuffle.read, ANNOUNCED))
        except Exception as error:
            if handle is not None:
                handle.free()
            if not self._has_failed(error):
                raise
            return job_failed(error)
        self._prepared.add(handle)
        parts = job.by_part(announced, plan)
        if parts is None:
            self.drop(Prepared((), handle))
            return JobAborted("the announcements of prepared segments were not received whole", remedy=EXECUTORS_REMEDY)
        return Prepared(parts, handle)

    def _rendered(self, plan: PreparePlan, handle: _Handle, batches: Sequence[Shuffle]) -> RDD[Any]:
        elements, plan_of = united(batches), handle.plan.getter
        if not plan.is_rerouted:
            return elements.mapPartitionsWithIndex(job.rendering(plan_of, self._decoder))
        routed = handle.shuffle(elements.mapPartitionsWithIndex(job.routing(plan_of)), plan.reducers)
        return routed.elements().mapPartitionsWithIndex(job.rendering_routed(plan_of, self._decoder))

    def write(self, prepared: Prepared, segment: int, plan: WritePlan) -> WriteOutcome:
        """Write one prepared segment by one task that reads its partition."""
        announced = prepared.parts[segment]
        if announced.error is not None:
            return not_written(announced.error)
        # Spark would recompute the deleted files, from ranges that may have been read again since, and nothing would delete them.
        if prepared.handle not in self._prepared:
            return not_written(segments_lost())
        shuffle, writing = prepared.handle.shuffles[-1], job.writing(plan, announced, self._reader_of())
        return self._written(lambda: self._context.runJob(shuffle.elements(), writing, [segment + 1]))

    def apply(self, plan: PreparePlan, write_plan: WritePlan) -> WriteOutcome:
        """Apply a small segment by one task, or one that it can read divided from others; prepare and write a larger one."""
        if plan.is_small:
            return self._apply_small(plan, write_plan)
        if plan.is_small_slice:
            with self._batches.reading(plan.ranges) as batches:
                if batches is not None and self._slices.of(batches, plan) is not None:
                    return self._apply_from(batches, plan, write_plan)
        prepared = self.prepare(plan)
        if isinstance(prepared, ApplierError):
            return not_written(prepared)
        try:
            return self.write(prepared, 0, write_plan)
        finally:
            self.drop(prepared)

    def write_rows(self, prepared: Prepared, parts: Sequence[int], plan: WritePlan) -> WriteOutcome:
        """Write parts of prepared rows by as many tasks."""
        if prepared.handle not in self._prepared:  # as for ``write``
            return not_written(segments_lost())
        elements = prepared.handle.shuffles[-1].elements().mapPartitionsWithIndex(job.writing_rows(plan, prepared.parts))
        return self._written(lambda: self._context.runJob(elements, list, [number + 1 for number in parts]), len(parts))

    def _apply_small(self, plan: PreparePlan, write_plan: WritePlan) -> WriteOutcome:
        with self._batches.reading(plan.ranges) as batches:
            return not_written(ranges_lost()) if batches is None else self._apply_from(batches, plan, write_plan)

    def _apply_from(self, batches: Sequence[Batch], plan: PreparePlan, write_plan: WritePlan) -> WriteOutcome:
        def run() -> list[bytes]:
            broadcast = PlanBroadcast(self._context, plan)
            try:
                applying = job.applying(broadcast.getter, write_plan, self._reader_of(), self._decoder)
                elements, partition = self._one_partition(batches, plan)
                return self._context.runJob(elements, applying, [partition])
            finally:
                broadcast.destroy()

        return self._written(run)

    def _one_partition(self, batches: Sequence[Batch], plan: PreparePlan) -> tuple[RDD[Any], int]:
        """Return elements, and the number of the partition that has all rows of a small segment."""
        slices = self._slices.of(batches, plan)
        if slices is None:
            return united([batch.shuffle for batch in batches]).coalesce(1), 0
        shuffles, number = slices
        return united(shuffles), number

    def _written(self, run: Callable[[], list[bytes]], tasks: int = 1) -> WriteOutcome:
        """Run a writing job and return its outcome. If that does not arrive whole, only the sink knows what was written."""
        try:
            self._enter_pool("write")
            outcomes = _whole(lambda: job.outcomes_of(run()))
        except Exception as error:
            if not self._has_failed(error):
                raise
            return not_written(job_failed(error))
        if len(outcomes) == tasks:
            return joined(outcomes) if tasks > 1 else outcomes[0]
        return not_written(JobAborted("the outcome of a write was not received", remedy=EXECUTORS_REMEDY))

    def copy(self, work: CopyWork, groups: Sequence[Sequence[CopyTask]]) -> Sequence[ChunkOutcome] | ApplierError:
        """Copy chunks of upstream, one task per group. A chunk whose outcome is not received may be in the sink."""

        def run() -> list[ChunkOutcome]:
            dealt = self._context.parallelize(map(seal, groups), len(groups)).mapPartitions(job.copying(work))
            return [unseal(outcome) for outcome in dealt.collect()]

        try:
            self._enter_pool("write")
            return _whole(run)
        except Exception as error:
            if not self._has_failed(error):
                raise
            return job_failed(error)

    def _enter_pool(self, name: str) -> None:
        # A property of the thread: the lanes run in three, so that a long job of one does not starve the others.
        self._context.setLocalProperty("spark.scheduler.pool", name)

    def _has_failed(self, error: Exception) -> bool:
        """Whether Spark has failed, and not our code. In a context that the other thread has ended, PySpark finds None and raises."""
        return is_unanswered(error) or self._context._jsc is None  # noqa: SLF001 - how PySpark itself marks a stopped context

    def drop(self, prepared: Prepared) -> None:
        """Delete the files of prepared segments."""
        self._drop(prepared.handle)

    def _drop(self, handle: _Handle) -> None:
        if handle in self._prepared:
            self._prepared.discard(handle)
            handle.free()

    def release(self, ranges: Collection[RangeId]) -> None:
        """Remove the ranges; the files of a batch are deleted with its last one."""
        self._batches.release(ranges)

    def release_all(self) -> None:
        """Remove every range, and everything prepared."""
        self._failing.forget()
        for handle in list(self._prepared):
            self._drop(handle)
        self._batches.release_all()

    def close(self) -> None:
        """Stop Spark, and delete what it keeps. What it logs of jobs that still run is not shown."""
        mute_jvm()
        self.release_all()
        end_context(self._context)


def _whole(read: Callable[[], list[T]]) -> list[T]:
    """Return what a job delivers to the driver; nothing if it is incomplete, or if a byte of it has changed."""
    try:
        return read()
    except (EOFError, struct.error, UnpicklingError, DamagedData):
        return []


def _unreported(range_id: RangeId) -> RangeFailure:
    error = JobAborted(
        "a range was read, but its report was not received",
        remedy=EXECUTORS_REMEDY,
        topic=range_id.stream.topic,
        partition=range_id.stream.partition,
        offset=range_id.start,
    )
    return RangeFailure(range_id, error)
