"""Data between tasks arrives whole or not at all: every stream of elements ends with a marker that counts what came before it.

The end of an input proves nothing. When the JVM fails while it feeds a Python worker (a missing shuffle block, a lost executor, a
corrupt file), it closes the socket, and PySpark's serializers take that for the end of the data. A frame that breaks off is dropped
with all of its elements. Before the markers existed, 39,914 and 9,960 of 60,000 rows were committed, and the repeated task found the
segment applied already.

Listeners end a range with its ``RangeReport``. A select task sends each reducer, as its last element, what it has sent it, and of which
ranges (``DistributionEnd``): a reducer must get every range of the plan exactly once. A reducer ends with what it has rendered
(``Rendered``): the writer must get the marker of every reducer exactly once. Markers count in sums and hold numbers, not addresses, so
that neither the order in which Spark delivers blocks nor the number of ranges that one task reads matters.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pickle import UnpicklingError
from typing import NamedTuple, TypeVar

from applier.model.errors import ApplierError, IncompleteInput
from applier.model.range_report import RangeId, RangeReport
from applier.planner.statement import Statement

T = TypeVar("T")

REMEDY = "The segment is applied again. If this repeats, see the logs of the executors: a lost executor, a full or failing disk"


class RangeContent(NamedTuple):
    """What a cached range must hold: recomputing it from Kafka must give the same again."""

    rows: int
    bytes: int

    @classmethod
    def of(cls, report: RangeReport) -> "RangeContent":
        """Take it from the report."""
        return cls(report.rows, report.bytes)


class Failure(NamedTuple):
    """Why a task could not do its work."""

    error: ApplierError


class DistributionEnd(NamedTuple):
    """The last element that a select task sends to one reducer. ``ranges``: numbers, in the plan, of those that it has read whole."""

    ranges: tuple[int, ...]
    chunks: int
    bytes: int


class Rendered(NamedTuple):
    """The last element that a reducer sends to the writer."""

    reducer: int
    statements: int
    rows: int
    others: int
    """Sets of transactions and rejected events."""


def received(elements: Iterable[T]) -> Iterator[T]:
    """Yield what has arrived. An input that is cut within a frame ends like one that is cut between two: without its marker."""
    try:
        yield from elements
    except (EOFError, struct.error, UnpicklingError):
        return


@dataclass(slots=True)
class Distribution:
    """Counts what one select task sends to each of its reducers."""

    reducers: int
    _chunks: Counter[int] = field(default_factory=Counter)
    _bytes: Counter[int] = field(default_factory=Counter)

    def send(self, bucket: int, data: bytes) -> tuple[int, bytes]:
        """Address a chunk to the reducer of its bucket."""
        reducer = bucket % self.reducers
        self._chunks[reducer] += 1
        self._bytes[reducer] += len(data)
        return reducer, data

    def fail(self, error: ApplierError) -> Iterator[tuple[int, Failure]]:
        """Send the error to every reducer: otherwise some would only report that something is missing."""
        for reducer in range(self.reducers):
            yield reducer, Failure(error)

    def end(self, ranges: Sequence[int]) -> Iterator[tuple[int, DistributionEnd]]:
        """Mark the end of what each reducer gets, also of nothing."""
        for reducer in range(self.reducers):
            yield reducer, DistributionEnd(tuple(ranges), self._chunks[reducer], self._bytes[reducer])


def whole_bucket(elements: Iterable[tuple[int, bytes | DistributionEnd | Failure]], ranges: Sequence[RangeId]) -> list[bytes]:
    """Return all chunks that one reducer was sent. IncompleteInput unless they are as many as announced, with every range announced once.

    The error of a select task that failed is raised.
    """
    chunks: list[bytes] = []
    ended: Counter[int] = Counter()
    announced = size = 0
    for _, element in received(elements):
        if isinstance(element, Failure):
            raise element.error
        if isinstance(element, DistributionEnd):
            ended.update(element.ranges)
            announced, size = announced + element.chunks, size + element.bytes
        else:
            chunks.append(element)
    # Exactly once, and not at least once: a block that Spark delivers twice would apply nothing wrong (rows are idempotent), but it shows
    # that what else was delivered cannot be trusted either.
    wrong = [range_id for number, range_id in enumerate(ranges) if ended[number] != 1]
    if wrong or (announced, size) != (len(chunks), sum(map(len, chunks))):
        raise _cut("rendering", _places(wrong), chunks=len(chunks), announced=announced)
    return chunks


def _places(wrong: Sequence[RangeId]) -> dict[str, object]:
    """Name the first range that has not ended exactly once."""
    if not wrong:
        return {}
    stream, start, end = wrong[0]
    return {"topic": stream.topic, "partition": stream.partition, "offset": start, "end": end, "ranges": len(wrong)}


@dataclass(slots=True)
class Arrival:
    """Compares what reaches the writer with what the reducers have announced.

    Markers sort in front of the statements, and a reducer sends its marker last. So if all markers are there, every reducer has sent all
    that it had, and the first statement may run (``check_markers``). What the writer's own sort has spilled to disk comes back while
    statements already run: it is counted as it passes, and compared before COMMIT (``counted``). To hold all texts in memory only to
    count them earlier would make no difference: the transaction is rolled back.
    """

    reducers: int
    _markers: list[Rendered] = field(default_factory=list)
    _others: int = 0

    def mark(self, marker: Rendered) -> None:
        """Take the marker of a reducer."""
        self._markers.append(marker)

    def other(self) -> None:
        """Count an element that is no statement."""
        self._others += 1

    def check_markers(self) -> None:
        """Raise IncompleteInput unless every reducer has ended once, with all that goes in front of the statements."""
        ended = sorted(marker.reducer for marker in self._markers)
        announced = sum(marker.others for marker in self._markers)
        if ended != list(range(self.reducers)) or announced != self._others:
            raise _cut("writing", {"reducers": len(ended), "of": self.reducers}, found=self._others, announced=announced)

    def counted(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        """Yield the statements; raise IncompleteInput at their end unless they and their rows are as many as announced."""
        found = rows = 0
        for statement in statements:
            found += 1
            rows += statement.rows
            yield statement
        announced = sum(marker.statements for marker in self._markers), sum(marker.rows for marker in self._markers)
        if (found, rows) != announced:
            raise _cut("writing", {}, statements=found, rows=rows, announced_statements=announced[0], announced_rows=announced[1])


def _cut(task: str, place: dict[str, object], **counts: int) -> IncompleteInput:
    return IncompleteInput("the input of a Spark task is incomplete", remedy=REMEDY, task=task, **place, **counts)
