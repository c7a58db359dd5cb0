"""Where rows of tables without a key begin to repeat, by the reports of all ranges since the last reload (``planner.keyless``)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from applier.coordinator.streams import has_held_records, is_required
from applier.model.position import NO_TS, Listing, PartitionExtent, Stream, Ts
from applier.model.range_report import RangeReport, RepeatPoint
from applier.model.segment import is_applied, is_behind_promise, is_beyond
from applier.model.topic_name import PartitionLimits
from applier.planner.keyless import Repeats
from applier.sources.port import Source

KEPT_POINTS: Final = 16
"""Points of a stream, or twice those that were left before, from which on those that concern applied rows only are looked for, to be
forgotten. Few: there may be ten thousand streams, and each segment asks for the points of all of them."""


class RepeatLog:
    """The points of all streams. Not thread-safe."""

    def __init__(self) -> None:
        """Begin without points."""
        self._points: defaultdict[Stream, list[RepeatPoint]] = defaultdict(list)
        self._left: dict[Stream, int] = {}
        self.unordered_ts = NO_TS
        """``PartitionGrowth.listed``, of the last list of partitions."""

    def add(self, report: RangeReport, checkpoint_ts: Ts) -> None:
        """Add a range."""
        points = self._points[report.range.stream]
        points += report.repeats
        if len(points) > max(KEPT_POINTS, 2 * self._left.get(report.range.stream, 0)):
            points[:] = _open_points(points, checkpoint_ts)
            self._left[report.range.stream] = len(points)

    def since(self, checkpoint_ts: Ts) -> Repeats:
        """Return the points that concern rows above a checkpoint, in the order of their offsets."""
        points = {
            stream: tuple(open_points) for stream, points in self._points.items() if (open_points := _open_points(points, checkpoint_ts))
        }
        return Repeats(points, self.unordered_ts)

    def clear(self) -> None:
        """Forget all of them: everything is read again."""
        self._points.clear()
        self._left.clear()
        self.unordered_ts = NO_TS


def _open_points(points: list[RepeatPoint], checkpoint_ts: Ts) -> list[RepeatPoint]:
    """Return the points that concern rows above a checkpoint, and the last one, by which the next one is judged."""
    found: list[RepeatPoint] = []
    last = Ts(0)
    for point in sorted(points, key=lambda point: point[:3]):
        # A range knows only its own promises: whether its first one steps back shows here.
        steps_back = point.ts != NO_TS and is_behind_promise(point.ts, last)
        found.append(point._replace(is_return=True) if steps_back else point)
        last = point.ts or last
    return [point for point in found[:-1] if point.is_return or not is_applied(point.ts, checkpoint_ts)] + found[-1:]


# --- partition growth ------------------------------------------------------------------------------------------------
# Up to which commit_ts rows of tables without a key may have come again in another partition, because partitions were added.
#
# What a producer sends again goes to other partitions then, and some of it may lie behind a promise there, where nobody reads it. So the
# order of a partition proves nothing about equal rows (``planner.keyless``) that were sent before the change. They were committed before
# the new partition got its first record; a producer with several nodes takes note of new partitions node by node, which takes some time
# more. A new partition without a record may be in use too, since others get their rows first.
#
# The next run must know of the change too. So a new partition gets no stored position before the checkpoint has passed these rows: until
# then, each run finds it new, and reads it from its first record on. Partitions that were there at the first start, or with the first one
# of their topic, count as old.

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
