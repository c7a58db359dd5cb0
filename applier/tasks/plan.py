"""What tasks need in addition to the cached ranges: how segments are prepared and written, and where the output of a listening task goes.

All of it crosses to executors with the tasks. A destination is the number of a partition: ``REPORTS`` for the driver, bucket b at b + 1.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from applier.model.chunk import PackedChunk
from applier.model.errors import ApplierError
from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import SegmentWindow
from applier.planner import STOP, QuarantinePolicy, sliced
from applier.planner.keyless import ALL_REAL, EqualRowsRule, Repeats
from applier.planner.port import Dialect, TableDescription
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, ProgressCommit
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


SMALL_SEGMENT_ROWS: Final = 5_000
SMALL_SEGMENT_BYTES: Final = 16 << 20
"""Up to so many rows, one task does everything: a shuffle costs more than the parallelism gives."""
SLICED_SEGMENT_ROWS: Final = 25_000
"""The same between two DDLs, of rows that are divided at them (``deal``): to prepare them, all tasks would read everything that is
cached, and no segment after the DDL can be prepared with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePlan:
    """Segments that are prepared together. ``windows`` follow one another; only the first may be applied ``again``.

    ``ranges`` are the cached ranges that may hold their rows, with what they must contain.
    """

    windows: tuple[SegmentWindow, ...]
    ranges: Mapping[RangeId, RangeContent]
    tables: Mapping[FoldedName, TableDescription]
    rekeyed: Mapping[FoldedName, tuple[str, ...]]
    ordered: frozenset[FoldedName] = frozenset()
    """The tables that are written in the order of their rows (``PlanTarget.ordered``)."""
    rows: int
    """Rows of all segments at most, before compaction: the measure of how much parallelism pays."""
    size: int = 0
    """Bytes of these rows in the cache, by the mean of their ranges."""
    buckets: int
    bucket_splits: int = 1
    """How many reducers share a bucket, so that one task can hold its rows in memory. All versions of a row meet in one of them."""
    dialect: Dialect
    policy: QuarantinePolicy = STOP
    repeats: Repeats | None = None
    """What is known of repeated rows, if tables without a key are written (``PlanTarget.repeats``)."""
    equal_rows: EqualRowsRule = ALL_REAL
    bulk: bool = False
    """Whether tables may be loaded in bulk, where the dialect can."""
    later: tuple[Ts, ...] = ()
    """Where segments after the first one will end, by the known DDLs. A batch with rows of many is divided once (``deal``)."""
    writers: int = 0
    """Rows ahead of W: how many tasks write them at once. 0: each window is one segment, in one transaction."""

    @property
    def is_small(self) -> bool:
        """Whether one task does everything."""
        return self.rows <= SMALL_SEGMENT_ROWS and self.size <= SMALL_SEGMENT_BYTES

    @property
    def is_small_slice(self) -> bool:
        """Whether one task does everything if it need not read more than these rows."""
        return len(self.windows) == 1 and self.rows <= SLICED_SEGMENT_ROWS and self.size <= SMALL_SEGMENT_BYTES

    @property
    def is_rerouted(self) -> bool:
        """Whether rows must change their bucket first: the listeners have dealt them by their handle keys, into ``buckets``."""
        return bool(self.rekeyed or self.ordered) or self.bucket_splits > 1

    @property
    def reducers(self) -> int:
        """How many tasks prepare: one per bucket, or per split of one."""
        return self.buckets * self.bucket_splits

    @property
    def parts(self) -> int:
        """Into how many parts the statements are divided: segments, or what each writer deletes, and then what each writes."""
        return 2 * self.writers or len(self.windows)

    @property
    def span(self) -> SegmentWindow:
        """All windows as one: what a chunk is selected by."""
        if len(self.windows) == 1:
            return self.windows[0]
        first, last = self.windows[0], self.windows[-1]
        return SegmentWindow(after_ts=first.after_ts, upto_ts=last.upto_ts, again=first.again, settled_tables=first.settled_tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """How one prepared segment is written. ``takes_refused``: whether rows that the database refuses are quarantined."""

    writer: Writer
    fence: Fence
    commit: ProgressCommit
    takes_refused: bool = False
