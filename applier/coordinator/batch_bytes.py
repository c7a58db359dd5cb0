"""Batches: what one plan had read is cached together, and freed together.

The chunks of one listening job are one block of memory to the runner. It is freed when the last of its ranges is released, so until then
all of it counts.
"""

from collections.abc import Iterable

from applier.model.range_report import RangeId


class _Batch:
    """The ranges of one plan that are read or cached, and the bytes of those that were read."""

    __slots__ = ("bytes", "ranges")

    def __init__(self, ranges: Iterable[RangeId]) -> None:
        self.ranges = set(ranges)
        self.bytes = 0


class BatchBytes:
    """The batches that are not free. ``bytes``: what they have cached."""

    __slots__ = ("_of", "bytes")

    def __init__(self) -> None:
        self._of: dict[RangeId, _Batch] = {}
        self.bytes = 0

    def open(self, ranges: Iterable[RangeId]) -> None:
        """Add the ranges of a plan."""
        batch = _Batch(ranges)
        self._of.update(dict.fromkeys(batch.ranges, batch))

    def add(self, name: RangeId, size: int) -> None:
        """Record that a range was read."""
        self._of[name].bytes += size
        self.bytes += size

    def release(self, name: RangeId) -> None:
        """Record that a range was released, or could not be read."""
        batch = self._of.pop(name)
        batch.ranges.remove(name)
        if not batch.ranges:
            self.bytes -= batch.bytes
