"""Reads the present records of chosen streams without applying them, stream by stream. Changes no offset and stores nothing."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from applier.model.errors import SourceError
from applier.model.listing import PartitionExtent
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.port import Record, Source
from applier.sources.whole_range import read_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class PeekChoice:
    """Which records to look at. None: no restriction; ``limit`` counts records of each stream."""

    topic: str | None = None
    partition: int | None = None
    start: Offset | None = None
    limit: int | None = None


def peek(source: Source, choice: PeekChoice) -> Iterator[tuple[Stream, Record]]:
    """Yield the chosen records that are there now, by stream and offset.

    SourceError: Kafka does not answer, the topic or partition does not exist, or ``start`` is not an offset that it holds.
    """
    extents = source.listing().extents
    for stream in _chosen(extents, choice):
        yield from _records(source, _range(stream, extents[stream], choice.start), choice.limit)


def _chosen(streams: Collection[Stream], choice: PeekChoice) -> list[Stream]:
    chosen = sorted(s for s in streams if choice.topic in {None, s.topic} and choice.partition in {None, s.partition})
    if not chosen:
        raise SourceError(
            "the partition does not exist",
            remedy=f"The partitions are: {', '.join(map(str, sorted(streams)))}",
            kind="unknown_partition",
            topic=choice.topic,
            partition=choice.partition,
        )
    return chosen


def _range(stream: Stream, extent: PartitionExtent, start: Offset | None) -> RangeId:
    """Begin at ``start``: past the end there is simply nothing yet, before the beginning something is missing."""
    if start is not None and start < extent.earliest:
        raise SourceError(
            "the records at this offset are gone",
            remedy=f"The partition now begins at offset {extent.earliest}",
            kind="retention",
            topic=stream.topic,
            partition=stream.partition,
            offset=start,
        )
    begin = extent.earliest if start is None else start
    return RangeId(stream, begin, max(begin, extent.end))


def _records(source: Source, range_id: RangeId, limit: int | None) -> Iterator[tuple[Stream, Record]]:
    """Stop at ``limit``: offsets may have gaps, so it cannot be cut into the range."""
    left = range_id.end - range_id.start if limit is None else limit
    if left <= 0:
        return
    for _, batch in read_whole(source.reader, [range_id]):
        for record in batch[:left]:
            yield range_id.stream, record
        left -= len(batch)
        if left <= 0:
            return
