"""Data between tasks arrives whole or not at all: every stream of elements ends with a marker that counts what came before it.

The end of an input proves nothing. When the JVM fails while it feeds a Python worker (a missing shuffle block, a lost executor, a
corrupt file), it closes the socket, and PySpark's serializers treat that as the end of the data. An incomplete frame is dropped
with all of its elements. Before the markers existed, 39,914 and 9,960 of 60,000 rows were committed, and the repeated task found the
segment applied already.

A listening task sends each bucket, as its last element, what it has sent there, and what each of its ranges holds (``RangesEnd``):
a preparing task must get every range of the plan exactly once, with the content that was reported to the coordinator. A task that divides a
batch by time ends each slice in the same way. A task that changes the buckets of rows ends with ``RoutedEnd``. A preparing task ends each
segment with ``Rendered``, which goes to the writer and to the driver: the writer does not COMMIT before it has got exactly what all of them
announce. Markers count in sums, so that the order in which Spark delivers blocks does not matter.

Counts do not check content: a runner seals each element (``model/seal``), so that a changed byte is found where the element is read.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pickle import UnpicklingError
from typing import Any, Final, NamedTuple, TypeVar

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError, IncompleteInput, JobAborted, RangeChanged, Remedy
from applier.model.range_report import RangeId, RangeReport
from applier.tasks.listen import RangeFailure

T = TypeVar("T")

REMEDY = Remedy(
    "tasks.see-executor-logs",
    "The segment is applied again. If this repeats, see the logs of the executors: a lost executor, a full or failing disk",
)

_CHANGED: Final = Remedy(
    "tasks.look-for-changed-records",
    "The range is read again. If this repeats, something changes the records of the topic, or the binlog, while the applier reads them",
)


class RangeContent(NamedTuple):
    """What a cached range must hold: recomputing it from Kafka must give the same again."""

    rows: int
    bytes: int
    checksum: int
    """See ``RangeReport.checksum``."""

    @classmethod
    def of(cls, report: RangeReport) -> "RangeContent":
        """Make it from the report."""
        return cls(report.rows, report.bytes, report.checksum)


class Failure(NamedTuple):
    """Why a task could not do its work."""

    error: ApplierError


class RangesEnd(NamedTuple):
    """The last element that a listening task sends to one bucket: its ranges, the failed ones, what the bucket was sent.

    Or the last one that a dividing task sends to one slice: all ranges of its batch once for each bucket, and what the slice was
    sent.
    """

    contents: tuple[tuple[RangeId, RangeContent], ...]
    failures: tuple[RangeFailure, ...]
    chunks: int
    bytes: int


class RoutedEnd(NamedTuple):
    """The last element that a routing task sends to one reducer. ``bucket``: whose rows it has routed."""

    bucket: int
    chunks: int
    bytes: int


def received(elements: Iterable[T]) -> Iterator[T]:
    """Yield what has arrived. An input that is cut within a frame ends like one that is cut between two: without its marker."""
    try:
        yield from elements
    except (EOFError, struct.error, UnpicklingError):
        return


@dataclass(slots=True)
class Sent:
    """Counts the chunks that one task sends to each destination."""

    chunks: Counter[int] = field(default_factory=Counter)
    size: Counter[int] = field(default_factory=Counter)

    def count(self, destination: int, data: bytes) -> None:
        """Count one chunk."""
        self.chunks[destination] += 1
        self.size[destination] += len(data)


def chunks_of_ranges(
    elements: Iterable[PackedChunk | RangesEnd | Failure], expected: Mapping[RangeId, RangeContent], buckets: int
) -> Iterator[PackedChunk]:
    """Yield the chunks of ``buckets`` buckets; raise at their end unless each expected range is there whole.

    IncompleteInput: something did not arrive. RangeChanged: a range was read again and has other content than at first. JobAborted: the
    second reading has failed. The chunks hold rows of other ranges too: the batch of a range is read whole. A range whose first reading
    has failed is in a later batch. What the first one has left in its own are the same rows, and a row may come twice. The error of a task
    that could not divide a batch is raised.
    """
    found: Counter[RangeId] = Counter()
    failed: dict[RangeId, RangeFailure] = {}
    chunks = size = announced = announced_size = 0
    for element in received(elements):
        if isinstance(element, PackedChunk):
            chunks, size = chunks + 1, size + len(element.data)
            yield element
        elif isinstance(element, Failure):
            raise element.error
        else:
            announced, announced_size = announced + element.chunks, announced_size + element.bytes
            failed |= {failure.range: failure for failure in element.failures}
            for range_id, content in element.contents:
                if range_id in expected:
                    _check_content(range_id, content, expected[range_id])
                    found[range_id] += 1
    if lost := [range_id for range_id in failed if range_id in expected and not found[range_id]]:
        raise _failed_again(failed[min(lost)])
    # Exactly once, and not at least once: a block that Spark delivers twice would apply nothing wrong (rows are idempotent), but it shows
    # that what else was delivered cannot be trusted either.
    wrong = [range_id for range_id in expected if found[range_id] != buckets]
    if wrong or (announced, announced_size) != (chunks, size):
        raise _incomplete("preparing", _facts_of_ranges(wrong), chunks=chunks, announced=announced)


def _check_content(range_id: RangeId, found: RangeContent, expected: RangeContent) -> None:
    # The cached copy may differ from the reported one: an executor was lost, and Spark read the range again. Only the same
    # content may be applied, since the coordinator has planned with the first report.
    if found != expected:
        raise RangeChanged(
            "a range has other content than when it was first read",
            remedy=_CHANGED,
            **_facts_of(range_id),
            expected=expected,
            found=found,
        )


def _failed_again(failure: RangeFailure) -> JobAborted:
    """Return the error of a range that was read, and whose second reading has failed: an executor was lost in between.

    It does not mean that the range is bad: it is read again from the stored progress.
    """
    return JobAborted(
        "the cache holds a failed read of a range",
        remedy=Remedy("tasks.read-range-again", "The range is read again"),
        **_facts_of(failure.range),
        cause=failure.error.message,
    )


def _facts_of(range_id: RangeId) -> dict[str, Any]:
    return {"topic": range_id.stream.topic, "partition": range_id.stream.partition, "offset": range_id.start}


def _facts_of_ranges(wrong: list[RangeId]) -> dict[str, Any]:
    """Name the first range that has not ended as often as it should."""
    return {**_facts_of(wrong[0]), "end": wrong[0].end, "ranges": len(wrong)} if wrong else {}


def routed_chunks(elements: Iterable[bytes | RoutedEnd | Failure], buckets: int) -> Iterator[bytes]:
    """Yield the chunks that one reducer was sent; raise at their end unless the routing task of each bucket has ended exactly once.

    The error of a routing task that failed is raised.
    """
    ended: Counter[int] = Counter()
    chunks = size = announced = announced_size = 0
    for element in received(elements):
        if isinstance(element, Failure):
            raise element.error
        if isinstance(element, RoutedEnd):
            ended[element.bucket] += 1
            announced, announced_size = announced + element.chunks, announced_size + element.bytes
        else:
            chunks, size = chunks + 1, size + len(element)
            yield element
    if ended != Counter(range(buckets)) or (announced, announced_size) != (chunks, size):
        raise _incomplete("preparing", {"buckets": len(ended), "of": buckets}, chunks=chunks, announced=announced)


def incomplete_segment(**counts: Any) -> IncompleteInput:
    """Return the error of a segment whose writer did not get what was announced."""
    return _incomplete("writing", {}, **counts)


def _incomplete(task: str, facts: dict[str, Any], **counts: Any) -> IncompleteInput:
    return IncompleteInput("the input of a Spark task is incomplete", remedy=REMEDY, task=task, **facts, **counts)
