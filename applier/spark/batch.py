"""The batches of cached ranges: what one listening job has read is one shuffle, and is deleted when none of its ranges is needed."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final

from pyspark import RDD
from pyspark.serializers import BatchedSerializer, CPickleSerializer, pack_long
from pyspark.util import _load_from_socket

from applier.model.position import Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.seal import seal, unseal
from applier.model.segment import slice_holding, slices_of
from applier.spark import job
from applier.spark.failure import UNANSWERED
from applier.tasks.plan import PreparePlan

# --- shuffle ---------------------------------------------------------------------------------------------------------
# Elements dealt to partitions: the output of a map stage, kept in the files of its shuffle and nowhere else.
#
# The files are the cache. Nothing is persisted beside them: while chunks were kept in the heap, the collector took 8 of 53 microseconds a
# row. They lie in spark.local.dir (in the page cache, as long as there is room), and are rebuilt by lineage where an executor is lost.
# A job that reads one small partition computes the map stage; every later job finds its files. Each element has a checksum of ours: Spark's
# own ones are of its compression, which an operator may turn off.
#
# Two shuffles of equal partitioning are read together without a further one: their partitions are united in the JVM.

ONE_PARTITIONING: Final = 1
"""Identifies the partition function: partitioners of equal size and number are equal to Spark, and their shuffles can be united."""


class SealedSerializer(CPickleSerializer):
    """Pickles with a checksum. DamagedData where one is read that was changed."""

    def dumps(self, obj: Any) -> bytes:
        """Return an object as bytes."""
        return seal(obj)

    def loads(self, obj: bytes, encoding: str = "bytes") -> Any:  # noqa: ARG002 - of the class
        """Return the object of these bytes."""
        return unseal(obj)


SERIALIZER: Final = BatchedSerializer(SealedSerializer())  # type: ignore[no-untyped-call]


class Shuffle:
    """Elements by the partition that they were addressed to."""

    def __init__(self, addressed: RDD[tuple[int, Any]], partitions: int) -> None:
        """Plan the shuffle of (partition, element) pairs; it is computed by the first job that reads it."""
        context = addressed.context
        jvm: Any = context._jvm  # noqa: SLF001 - RDD.partitionBy does the same, and hides the partitioner that uniting needs
        framed = addressed.mapPartitions(_framed, preservesPartitioning=True)
        framed._bypass_serializer = True  # type: ignore[attr-defined]  # noqa: SLF001 - the pairs are framed already
        pairs = jvm.PairwiseRDD(framed._jrdd.rdd()).asJavaPairRDD()  # noqa: SLF001 - as above
        self.context = context
        self.pairs = pairs.partitionBy(jvm.PythonPartitioner(partitions, ONE_PARTITIONING))
        self.partitions = partitions
        self._id = self.pairs.rdd().dependencies().head().shuffleId()

    def elements(self) -> RDD[Any]:
        """Return the elements, each partition with what was addressed to it."""
        return united([self])

    def read(self, partition: int) -> list[Any]:
        """Run a job that computes the map stage, if necessary, and return the elements of one partition."""
        elements: Any = self.elements()
        # Not RDD.collect or SparkContext.runJob, which would send the elements through a Python worker.
        jvm: Any = self.context._jvm  # noqa: SLF001 - as above
        socket = jvm.PythonRDD.runJob(self.context._jsc.sc(), elements._jrdd, [partition])  # noqa: SLF001 - as above
        with _load_from_socket(socket, elements._jrdd_deserializer) as stream:  # noqa: SLF001 - as above
            return list(stream)

    def forget(self) -> None:
        """Delete the files. Spark's own cleaner does it too, but only once the JVM has collected its old generation."""
        # A session that has ended has deleted its directories.
        with suppress(*UNANSWERED, AttributeError):
            self.context._jsc.sc().cleaner().get().doCleanupShuffle(self._id, False)  # noqa: SLF001


def united(shuffles: Sequence[Shuffle]) -> RDD[Any]:
    """Return the elements of shuffles of equal partitioning, partition by partition."""
    context: Any = shuffles[0].context
    pairs = shuffles[0].pairs
    if len(shuffles) > 1:
        gateway: Any = context._gateway  # noqa: SLF001 - SparkContext.union does the same, for RDDs that have lost their partitioner
        array = gateway.new_array(gateway.jvm.org.apache.spark.api.java.JavaPairRDD, len(shuffles))
        for index, shuffle in enumerate(shuffles):
            array[index] = shuffle.pairs
        pairs = context._jsc.union(array)  # noqa: SLF001
    return RDD(context._jvm.PythonRDD.valueOfPair(pairs), context, SERIALIZER)  # noqa: SLF001


def _framed(addressed: Iterable[tuple[int, Any]]) -> Iterator[bytes]:
    """Yield address and element in turns, as PairwiseRDD reads them."""
    for partition, element in addressed:
        yield pack_long(partition)  # type: ignore[no-untyped-call]
        yield seal([element])


# --- batch -----------------------------------------------------------------------------------------------------------


class Batch:
    """What one listening job has read, and the same divided by time once a segment has asked for it. Both are deleted together."""

    def __init__(self, shuffle: Shuffle, reports: Sequence[RangeReport]) -> None:
        self.shuffle = shuffle
        self.ranges = len(reports)
        self.bytes = sum(report.bytes for report in reports)
        self.max_ts = max((report.max_ts for report in reports), default=Ts(0))
        self._bounds: tuple[Ts, ...] = ()
        self._divided: Shuffle | None = None

    def is_divided_at(self, bounds: tuple[Ts, ...]) -> bool:
        """Whether its slices end at these bounds."""
        return self._divided is not None and self._bounds == bounds

    def divided_at(self, bounds: tuple[Ts, ...]) -> Shuffle:
        """Return its slices, each in the partition of its number. Its first reader creates them. Its earlier slices are deleted."""
        if self._divided is None or self._bounds != bounds:
            self._forget_slices()
            # By one task: to start the Python workers of several costs more than they save.
            elements = self.shuffle.elements().coalesce(1)
            self._divided = Shuffle(elements.mapPartitions(job.dividing(bounds)), len(bounds))
            self._bounds = bounds
        return self._divided

    def forget(self) -> None:
        """Delete the files."""
        self._forget_slices()
        self.shuffle.forget()

    def _forget_slices(self) -> None:
        divided, self._divided = self._divided, None
        if divided is not None:
            divided.forget()


class Batches:
    """Which batch holds which range. Thread-safe."""

    def __init__(self) -> None:
        self._batch_of: dict[RangeId, Batch] = {}
        self._left: dict[Batch, set[RangeId]] = {}
        self._readers: Counter[Batch] = Counter()
        self._changing = Lock()

    def __contains__(self, range_id: RangeId) -> bool:
        """Whether a range is cached."""
        return range_id in self._batch_of

    def add(self, shuffle: Shuffle, reports: Sequence[RangeReport]) -> None:
        """Add what a job has read. A range that was cached before is now in this batch."""
        ranges, batch = [report.range for report in reports], Batch(shuffle, reports)
        self.release(ranges)
        if not ranges:
            batch.forget()
            return
        with self._changing:
            self._left[batch] = set(ranges)
            self._batch_of.update(dict.fromkeys(ranges, batch))

    @contextmanager
    def reading(self, ranges: Iterable[RangeId]) -> Iterator[list[Batch] | None]:
        """Return the batches of these ranges in the order in which they were read; None if one is not cached.

        None of them is deleted before the block ends: a job that is preparing segments may need ranges that are released meanwhile, since
        the first of the segments was applied in another way. Spark would end its context over files that are gone.
        """
        with self._changing:
            found = self._holding(ranges)
            self._readers.update(found or ())
        try:
            yield found
        finally:
            with self._changing:
                self._readers -= Counter(found or ())
                unneeded = [batch for batch in found or () if batch not in self._readers and batch not in self._left]
            for batch in unneeded:
                batch.forget()

    def _holding(self, ranges: Iterable[RangeId]) -> list[Batch] | None:
        try:
            found = {self._batch_of[range_id] for range_id in ranges}
        except KeyError:
            return None
        return [batch for batch in self._left if batch in found]

    def release(self, ranges: Collection[RangeId]) -> None:
        """Remove ranges, and delete the batches that hold no others; unknown ranges are ignored."""
        unneeded: list[Batch] = []
        with self._changing:
            for range_id in ranges:
                batch = self._batch_of.pop(range_id, None)
                if batch is None:
                    continue
                left = self._left[batch]
                left.discard(range_id)
                if not left:
                    del self._left[batch]
                    if batch not in self._readers:
                        unneeded.append(batch)
        for batch in unneeded:
            batch.forget()

    def release_all(self) -> None:
        """Remove and delete everything."""
        self.release(list(self._batch_of))


# --- slices ----------------------------------------------------------------------------------------------------------


COST_OF_A_BYTE: Final = 2
"""To divide a batch costs at most what reading it so many times does: with 48 MB of rows, it has paid at the fourth segment."""
COST_OF_A_JOB: Final = 48 << 20
"""What one task reads in the time of a further job, at most."""
COST_OF_AN_END: Final = 400
"""The same for each range in the end of each slice of each bucket."""


class Slices:
    """The slices that segments read instead of whole batches. ``_bounds``: where all batches are divided at present."""

    def __init__(self) -> None:
        self._bounds: tuple[Ts, ...] = ()

    def of(self, batches: Sequence[Batch], plan: PreparePlan) -> tuple[list[Shuffle], int] | None:
        """Return where the rows of a small segment are, divided from others, and in which partition; None: it must read the batches."""
        window, bounds = plan.windows[0], self._bounds
        number = slice_holding(bounds, window)
        if number is None:
            bounds = (window.after_ts, window.upto_ts, *plan.later)
            number = slice_holding(bounds, window)
        if number is None or plan.writers or not _is_worth_it(batches, bounds, number, plan.buckets):
            return None
        self._bounds = bounds
        return [batch.divided_at(bounds) for batch in batches], number


def _is_worth_it(batches: Sequence[Batch], bounds: tuple[Ts, ...], number: int, buckets: int) -> bool:
    """Whether reading batches whole, now and for the slices after ``number`` that they reach into, costs more than dividing them."""
    undivided = [batch for batch in batches if not batch.is_divided_at(bounds)]
    if not undivided:
        return True
    last = len(bounds) - 1
    reached = [min(slice_of_max, last) - number for slice_of_max in slices_of(bounds, [batch.max_ts for batch in undivided])]
    saved = sum(batch.bytes for batch in batches) + sum(batch.bytes * more for batch, more in zip(undivided, reached, strict=True))
    ends = sum(batch.ranges for batch in undivided) * buckets * last
    return saved > COST_OF_A_BYTE * sum(batch.bytes for batch in undivided) + COST_OF_A_JOB + COST_OF_AN_END * ends
