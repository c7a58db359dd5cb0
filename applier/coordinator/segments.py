"""Segments: the parts of a closed window between two DDL barriers, cut so that a transaction of the sink stays of bounded size."""

from applier.coordinator.cache import Cache
from applier.coordinator.checkpoint_group import CheckpointGroup
from applier.coordinator.step import ApplySegment
from applier.coordinator.streams import Streams
from applier.model.position import Ts


class Segments:
    """Makes segments out of what is cached."""

    __slots__ = ("_cache", "_most_rows", "_streams", "group")

    def __init__(self, cache: Cache, streams: Streams, group: CheckpointGroup, most_rows: int) -> None:
        self._cache, self._streams, self.group, self._most_rows = cache, streams, group, most_rows

    def has_latecomer(self, checkpoint_ts: Ts) -> bool:
        """Whether the group at the checkpoint must be applied again."""
        return self.group.has_latecomer(self._cache, checkpoint_ts)

    def has_rows(self, after_ts: Ts, upto_ts: Ts) -> bool:
        """Whether any cached row may lie between two timestamps."""
        return bool(self._cache.select(after_ts, upto_ts, None).ranges)

    def make(self, after_ts: Ts, upto_ts: Ts, *, again: bool) -> ApplySegment:
        """Make the segment that begins at ``after_ts``: up to ``upto_ts``, or less if it would have too many rows."""
        settled = self.group.settled_tables if again else None
        upto_ts = self._cache.cut(after_ts, upto_ts, self._most_rows)
        # ``settled`` None leaves the rows at A out: they are in the sink already.
        ranges, tables, rows = self._cache.select(after_ts, upto_ts, settled)
        return ApplySegment(
            after_ts=after_ts,
            upto_ts=upto_ts,
            again=again,
            settled_tables=settled or frozenset(),
            ranges=ranges,
            tables=tables,
            positions=self._streams.positions(upto_ts),
            rows=rows,
        )
