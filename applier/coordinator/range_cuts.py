"""Where the ranges of one stream may end, and how much lies between two offsets.

In Kafka a range may end anywhere, and an offset counts a record. A source whose offsets count nothing names cuts with the bytes between
them: then a range ends at a cut, and one of these bytes counts as a record does elsewhere.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from applier.model.listing import PartitionExtent
from applier.model.position import Offset

_OFFSET: Final = itemgetter(0)


class RangeCuts:
    """What the latest listing says of one stream. Its cuts may reach less far than what was planned before."""

    __slots__ = ("_extent",)

    def __init__(self, extent: PartitionExtent) -> None:
        self._extent = extent

    def grow(self, extent: PartitionExtent) -> None:
        """Record a later listing."""
        self._extent = extent

    @property
    def are_given(self) -> bool:
        """Whether the source names them."""
        return self._extent.cuts is not None

    def has_more(self, after: Offset) -> bool:
        """Whether a range can begin at ``after``."""
        cuts = self._extent.cuts
        return self._extent.end > after if cuts is None else bool(cuts) and cuts[-1].offset > after

    def left(self, after: Offset) -> int:
        """Return how many records lie between ``after`` and the last place where a range can end."""
        cuts = self._extent.cuts
        if cuts is None:
            return self._extent.end - after
        return sum(cut.size for cut in cuts[self._next(after) :])

    def _next(self, after: Offset) -> int:
        return bisect_right(self._extent.cuts or (), after, key=_OFFSET)

    def ends(self, after: Offset, records: int, most: int) -> Iterator[tuple[Offset, int]]:
        """Yield where the next ranges end, and how many records each has: about ``records`` together, each up to ``most``, all about equal.

        At least one, if there is one. Between two cuts there may be more than ``most``.
        """
        records = min(records, self.left(after))
        pieces = -(-records // most)
        if self._extent.cuts is not None:
            yield from self._ends_at_cuts(self._next(after), records, max(1, pieces))
            return
        at = after
        for piece in range(pieces, 0, -1):
            size = -(-records // piece)
            at = Offset(at + size)
            records -= size
            yield at, size

    def _ends_at_cuts(self, at: int, records: int, pieces: int) -> Iterator[tuple[Offset, int]]:
        cuts = self._extent.cuts or ()
        for piece in range(pieces, 0, -1):
            wanted, size, begin = records // piece, 0, at
            # Where nothing lies before a cut, what lies behind it belongs to another log: no range may hold both.
            while at < len(cuts) and (at == begin or (cuts[at - 1].size and 0 < cuts[at].size <= wanted - size)):
                size += cuts[at].size
                at += 1
            if at == begin:
                return
            yield cuts[at - 1].offset, size
            records -= size
            if records <= 0:
                return
