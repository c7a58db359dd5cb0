"""Up to which commit_ts rows of tables without a key may have come again in another partition, because partitions were added.

What a producer sends again goes to other partitions then, and some of it may lie behind a promise there, where nobody reads it. So the
order of a partition proves nothing about equal rows (``planner.keyless``) that were sent before the change. They were committed before the
new partition got its first record; a producer with several nodes takes note of new partitions node by node, which takes some time more.
A new partition without a record may be in use too, since others get their rows first.

The next run must know of the change too. So a new partition gets no stored position before the checkpoint has passed these rows: until
then, each run finds it new, and reads it from its first record on. Partitions that were there at the first start, or with the first one of
their topic, count as old.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from applier.coordinator.partition_check import has_held_records, is_required
from applier.model.listing import Listing, PartitionExtent
from applier.model.position import NO_TS, Stream, Ts
from applier.model.segment import is_beyond
from applier.model.topic_name import PartitionLimits
from applier.sources.port import Source

ALL_TS: Final = Ts(2**63 - 1)
RequiredPartitions: TypeAlias = Mapping[str, int] | PartitionLimits | None
T = TypeVar("T")


class PartitionGrowth:
    """Which partitions are new. Not thread-safe."""

    __slots__ = ("_known", "_partitions", "_settle_ms", "_source", "_topics", "_until")

    def __init__(self, source: Source, settle_ms: int, partitions: RequiredPartitions = None) -> None:
        """``settle_ms``: how long after its first record a node of the producer may not know of a partition.

        ``partitions``: as ``Policy.required_partitions``.
        """
        self._source, self._settle_ms, self._partitions = source, settle_ms, partitions
        self.begin(())

    def begin(self, stored: Iterable[Stream]) -> None:
        """Begin with the streams that have a stored position; none: at the first start of a replica."""
        self._known = set(stored)
        self._topics = {stream.topic for stream in self._known}
        self._until: dict[Stream, Ts] = {}

    def listed(self, listing: Listing, checkpoint_ts: Ts) -> Ts:
        """Record the partitions. Return up to where the order of rows proves nothing. SourceError."""
        found = [stream for stream in listing.extents.keys() - self._known if is_required(stream, self._partitions)]
        if not found:
            return NO_TS
        for stream in found:
            if stream.topic in self._topics:
                self._look(stream, listing.extents[stream], checkpoint_ts)
            else:
                self._known.add(stream)
        self._topics |= {stream.topic for stream in found}
        return max(self._until.values(), default=NO_TS)

    def _look(self, stream: Stream, extent: PartitionExtent, checkpoint_ts: Ts) -> None:
        if (until_ts := self._until.get(stream, ALL_TS)) == ALL_TS:
            time_ms = self._source.record_time_ms(stream, extent.earliest) if has_held_records(extent) else None
            until_ts = ALL_TS if time_ms is None else self._source.ts_at_time(time_ms + self._settle_ms)
        self._until[stream] = until_ts
        if is_beyond(checkpoint_ts, until_ts):
            self._known.add(stream)
            del self._until[stream]

    def without_new(self, of_stream: Mapping[Stream, T]) -> Mapping[Stream, T]:
        """Return what is given by stream without the new ones."""
        if not self._until:
            return of_stream
        return {stream: value for stream, value in of_stream.items() if stream not in self._until}
