"""LISTEN, for a runner: what a listening task reads, addressed to the buckets; its outcomes, addressed to the driver.

The address is the number of a partition: ``REPORTS`` for the driver, bucket number b at b + 1.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.range_report import RangeReport
from applier.sources.port import Decoder, RangeReader
from applier.tasks.handover import RangeContent, RangesEnd, Sent
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure, listen

REPORTS: Final = 0

Dealt: TypeAlias = tuple[int, PackedChunk | RangesEnd | tuple[ListenOutcome, ...]]


def partition_of(bucket: int) -> int:
    """Return the partition of a bucket."""
    return bucket + 1


def deal(tasks: Sequence[ListenTask], reader: RangeReader, decoder: Decoder) -> Iterator[Dealt]:
    """Read the ranges of one listening task; yield its chunks, the end of each bucket and, last, all outcomes as one element."""
    outcomes: list[ListenOutcome] = []
    sent = Sent()
    for element in listen(tasks, reader, decoder):
        if isinstance(element, PackedChunk):
            sent.count(element.bucket, element.data)
            yield partition_of(element.bucket), element
        else:
            outcomes.append(element)
    contents = tuple((outcome.range, RangeContent.of(outcome)) for outcome in outcomes if isinstance(outcome, RangeReport))
    failures = tuple(outcome for outcome in outcomes if isinstance(outcome, RangeFailure))
    for bucket in range(tasks[0].buckets):
        yield partition_of(bucket), RangesEnd(contents, failures, sent.chunks[bucket], sent.size[bucket])
    yield REPORTS, tuple(outcomes)
