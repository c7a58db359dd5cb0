"""LISTEN, for a runner: what a listening task reads, addressed to the buckets; its outcomes, addressed to the driver.

The address is the number of a partition: ``REPORTS`` for the driver, bucket number b at b + 1.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError
from applier.model.position import Ts
from applier.model.range_report import RangeReport
from applier.planner import sliced
from applier.sources.port import Decoder, RangeReader
from applier.tasks.handover import Failure, RangeContent, RangesEnd, Sent, chunks_of_ranges
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


# --- slicing ---------------------------------------------------------------------------------------------------------
# SLICE: cached rows divided at the next DDLs, each slice in a partition of its own. Plain functions over iterators.
#
# A segment between two DDLs may be a few rows of a batch of many megabytes. Read for each of a hundred such segments, the batch would pass
# through one task a hundred times. So it is read once and divided. Rows stay as they came: what they become is decided at their segment's
# turn, by the catalogue behind the DDL before it. A slice ends as its batch does, with what each range holds: whoever reads it makes sure
# of the same as of the batch.

Sliced: TypeAlias = tuple[int, PackedChunk | RangesEnd | Failure]


def divide(bounds: Sequence[Ts], elements: Iterable[PackedChunk | RangesEnd]) -> Iterator[Sliced]:
    """Yield (slice, element) of a batch, or of some of its buckets: slice number n has their rows above bound n - 1 and up to bound n."""
    sent = Sent()
    ends: list[RangesEnd] = []
    numbers = range(1, len(bounds))
    try:
        for packed in chunks_of_ranges(_noted(elements, ends), {}, 1):
            for number, part in sliced(packed, bounds):
                sent.count(number, part.data)
                yield number, part
    except ApplierError as error:
        # To every slice: otherwise some would only report that something is missing.
        for number in numbers:
            yield number, Failure(error)
        return
    contents = tuple(content for end in ends for content in end.contents)
    failures = tuple(failure for end in ends for failure in end.failures)
    for number in numbers:
        yield number, RangesEnd(contents, failures, sent.chunks[number], sent.size[number])


def _noted(elements: Iterable[PackedChunk | RangesEnd], ends: list[RangesEnd]) -> Iterator[PackedChunk | RangesEnd]:
    for element in elements:
        if isinstance(element, RangesEnd):
            ends.append(element)
        yield element
