"""Ranges of numbered rows of one table, made where they are read: a listener's input without a broker, for tests and measurements."""

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.sources.port import Record
from applier.tasks.listen import ListenTask
from applier.tasks.tolerance import STRICT, Tolerance

BATCH = 1000
FIRST_TS = 10


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """A reader: partition p holds the rows p * ``rows`` … of ``width`` bytes, each of a commit_ts of its own.

    ``log``: where each read of a range is noted; ``deadly``: the partition whose reading kills the process; ``expired``: the one whose
    records are gone; ``rubbish``: the one whose first record is no event; ``silent``: while this file exists, the source does not answer;
    ``unknown_column``: the number of the row in each partition from which on rows have a column that the sink does not have.
    """

    rows: int
    width: int = 10
    log: Path | None = None
    deadly: int | None = None
    expired: int | None = None
    rubbish: int | None = None
    silent: Path | None = None
    unknown_column: int | None = None

    def read(self, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record] | SourceError]]:
        for range_id in ranges:
            try:
                yield from ((range_id, records) for records in self._batches(range_id))
            except SourceError as error:
                yield range_id, error

    def _batches(self, range_id: RangeId) -> Iterator[list[Record]]:
        partition = range_id.stream.partition
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"{partition}\n")
        if self.silent is not None and self.silent.exists():
            raise SourceError(
                "Kafka does not answer", kind=FailureKind.UNREACHABLE, topic="feed", partition=partition, offset=range_id.start
            )
        if partition == self.expired:
            raise SourceError("the records are gone", kind=FailureKind.RETENTION, topic="feed", partition=partition, offset=range_id.start)
        for first in range(range_id.start, range_id.end, BATCH):
            yield [self._record(partition, number) for number in range(first, min(first + BATCH, range_id.end))]
        if partition == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def tasks(self, partitions: int, buckets: int, tolerance: Tolerance = STRICT) -> list[ListenTask]:
        """Return one task per partition, for all of its rows."""
        ranges = [RangeId(Stream("feed", partition), Offset(0), Offset(self.rows)) for partition in range(partitions)]
        return [ListenTask(range=range_id, floor_ts=Ts(1), buckets=buckets, tolerance=tolerance) for range_id in ranges]

    def _record(self, partition: int, number: int) -> Record:
        if partition == self.rubbish and number == 0:
            return Record(Offset(0), b"rubbish", b"rubbish")
        key = b'{"ts":%d,"scm":"shop","tbl":"orders","t":1}' % (FIRST_TS + number)
        # Digits that neither repeat nor follow one another: what Spark compresses keeps its size.
        text = (b"%d" % (7 ** (number % 97 + 500) * (partition * self.rows + number + 1)))[: self.width]
        name = b"name" if self.unknown_column is None or number < self.unknown_column else b"new"
        value = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":%d},"%s":{"t":15,"f":64,"v":"%s"}}}' % (
            partition * self.rows + number, name, text
        )  # fmt: skip
        return Record(Offset(number), _framed(key), _framed(value, count=False))


def _framed(data: bytes, *, count: bool = True) -> bytes:
    return ((1).to_bytes(8, "big") if count else b"") + len(data).to_bytes(8, "big") + data
