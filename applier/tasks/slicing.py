"""SLICE: cached rows divided at the next DDLs, each slice in a partition of its own. Plain functions over iterators.

A segment between two DDLs may be a few rows of a batch of many megabytes. Read for each of a hundred such segments, the batch would pass
through one task a hundred times. So it is read once and divided. Rows stay as they came: what they become is decided at their segment's
turn, by the catalogue behind the DDL before it. A slice ends as its batch does, with what each range holds: whoever reads it makes sure of
the same as of the batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError
from applier.model.position import Ts
from applier.planner import sliced
from applier.tasks.handover import Failure, RangesEnd, Sent, chunks_of_ranges

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
