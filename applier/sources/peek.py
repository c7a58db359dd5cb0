"""Reads the present records of chosen streams without applying them, stream by stream. Changes no offset and stores nothing."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId
from applier.sources.port import RangeReader, Record, Source

POLL_S: Final = 0.5
"""How long ``follow`` waits where nothing is new."""
CLOCKS_MS: Final = 600_000
"""A record is written after its commit; the clocks of TiCDC and TiDB may differ by so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeekChoice:
    """Which records to look at. None: no restriction; ``limit`` counts records of each stream.

    ``since_ms``: from about this commit time on (ms since the epoch), never later, where ``start`` is not given.
    """

    topic: str | None = None
    partition: int | None = None
    start: Offset | None = None
    since_ms: int | None = None
    limit: int | None = None


def peek(source: Source, choice: PeekChoice) -> Iterator[tuple[Stream, Record]]:
    """Yield the chosen records that are there now, by stream and offset.

    SourceError: Kafka does not answer, the topic or partition does not exist, or ``start`` is not an offset that it holds.
    """
    for range_id in present_ranges(source, choice):
        yield from read_range(source, range_id, choice.limit)


def present_ranges(source: Source, choice: PeekChoice) -> list[RangeId]:
    """Return the chosen offsets that are there now. SourceError as ``peek``."""
    extents = source.listing().extents
    streams = _chosen(extents, choice)
    starts: Mapping[Stream, Offset] = {}
    if choice.start is None and choice.since_ms is not None:
        starts = source.times.offsets_at(streams, max(0, choice.since_ms - CLOCKS_MS))
    return [_range(stream, extents[stream], starts.get(stream, choice.start)) for stream in streams]


def follow(source: Source, choice: PeekChoice, begun: Mapping[Stream, Offset]) -> Iterator[tuple[Stream, Record]]:
    """Yield the chosen records from the offsets ``begun`` on, and later ones, without an end.

    A stream that is not in ``begun`` is read from its beginning. SourceError: as ``peek``, or a topic was created again.
    """
    positions = dict(begun)
    while True:
        extents = source.listing().extents
        is_quiet = True
        for stream in _chosen(extents, choice):
            range_id = _new_range(stream, extents[stream], positions.get(stream), choice.start)
            for found in read_range(source, range_id):
                is_quiet = False
                yield found
            positions[stream] = range_id.end
        if is_quiet:
            time.sleep(POLL_S)


def _new_range(stream: Stream, extent: PartitionExtent, position: Offset | None, start: Offset | None) -> RangeId:
    # At ``start`` nothing was read yet: an offset that the partition has not reached is waited for.
    if position is not None and position != start and extent.end < position:
        remedy = Remedy("source.start-command-again", "Start the command again: the topic was created again, or its records were deleted")
        raise SourceError("the partition ends before what was read of it", remedy=remedy, kind=FailureKind.RECREATED, **stream._asdict())
    return _range(stream, extent, position)


def _chosen(streams: Collection[Stream], choice: PeekChoice) -> list[Stream]:
    chosen = sorted(s for s in streams if choice.topic in {None, s.topic} and choice.partition in {None, s.partition})
    if not chosen:
        raise SourceError(
            "the partition does not exist",
            remedy=Remedy("source.show-partitions", f"The partitions are: {', '.join(map(str, sorted(streams)))}"),
            kind=FailureKind.UNKNOWN_PARTITION,
            topic=choice.topic,
            partition=choice.partition,
        )
    return chosen


def _range(stream: Stream, extent: PartitionExtent, start: Offset | None) -> RangeId:
    """Begin at ``start``: past the end there is simply nothing yet, before the beginning something is missing."""
    if start is not None and start < extent.earliest:
        raise SourceError(
            "the records at this offset are gone",
            remedy=Remedy("source.show-partition-begin", f"The partition now begins at offset {extent.earliest}"),
            kind=FailureKind.RETENTION,
            topic=stream.topic,
            partition=stream.partition,
            offset=start,
        )
    begin = extent.earliest if start is None else start
    return RangeId(stream, begin, max(begin, extent.end))


def read_range(source: Source, range_id: RangeId, limit: int | None = None) -> Iterator[tuple[Stream, Record]]:
    """Yield the records of a range. Stop at ``limit``: offsets may have gaps, so it cannot be cut into the range."""
    left = range_id.end - range_id.start if limit is None else limit
    if left <= 0:
        return
    for _, batch in read_whole(source.reader, [range_id]):
        for record in batch[:left]:
            yield range_id.stream, record
        left -= len(batch)
        if left <= 0:
            return


def read_whole(reader: RangeReader, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record]]]:
    """Yield batches of records, each with its range. SourceError of the first range that cannot be read whole."""
    for range_id, found in reader.read(ranges):
        if isinstance(found, SourceError):
            raise found
        yield range_id, found


def single_record(reader: RangeReader, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
    """Implement ``RangeReader.records_at`` where an offset is one record."""
    # Compaction may have removed it although the range can be read: then no record has this offset.
    for _, records in read_whole(reader, [RangeId(stream, offset, Offset(offset + 1))]):
        yield from ((0, record) for record in records if record.offset == offset)
