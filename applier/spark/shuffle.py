"""Elements dealt to partitions: the output of a map stage, kept in the files of its shuffle and nowhere else.

The files are the cache. Nothing is persisted beside them: while chunks were kept in the heap, the collector took 8 of 53 microseconds a
row. They lie in spark.local.dir (in the page cache, as long as there is room), and are made again by lineage where an executor is lost.
A job that reads one small partition computes the map stage; every later job finds its files. Each element has a checksum of ours: Spark's
own ones are those of its compression, which an operator may turn off.

Two shuffles of equal partitioning are read together without a further one: their partitions are united in the JVM.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pyspark import RDD
from pyspark.serializers import BatchedSerializer, CPickleSerializer, pack_long
from pyspark.util import _load_from_socket

from applier.model.seal import seal, unseal
from applier.spark.failure import UNANSWERED

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
        """Run a job that computes the map stage, if need be, and return the elements of one partition."""
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
