"""The batches of cached ranges: what one listening job has read is one shuffle, and is deleted when none of its ranges is needed."""

from collections.abc import Collection, Iterable

from applier.model.range_report import RangeId
from applier.spark.shuffle import Shuffle


class Batches:
    """Which batch holds which range. Used by two threads: each method changes the state in one step of the interpreter, or per range."""

    def __init__(self) -> None:
        self._batch_of: dict[RangeId, Shuffle] = {}
        self._left: dict[Shuffle, set[RangeId]] = {}

    def __contains__(self, range_id: RangeId) -> bool:
        """Whether a range is cached."""
        return range_id in self._batch_of

    def add(self, shuffle: Shuffle, ranges: Collection[RangeId]) -> None:
        """Take in what a job has read. A range that was cached before is now in this batch."""
        self.release(ranges)
        if not ranges:
            shuffle.forget()
            return
        self._left[shuffle] = set(ranges)
        self._batch_of.update(dict.fromkeys(ranges, shuffle))

    def holding(self, ranges: Iterable[RangeId]) -> list[Shuffle] | None:
        """Return the batches of these ranges in the order in which they were read; None if one is not cached."""
        try:
            found = {self._batch_of[range_id] for range_id in ranges}
        except KeyError:
            return None
        return [shuffle for shuffle in list(self._left) if shuffle in found]

    def release(self, ranges: Collection[RangeId]) -> None:
        """Forget ranges, and delete the batches that hold nothing else; unknown ranges are ignored."""
        for range_id in ranges:
            shuffle = self._batch_of.pop(range_id, None)
            if shuffle is None:
                continue
            left = self._left[shuffle]
            left.discard(range_id)
            if not left:
                del self._left[shuffle]
                shuffle.forget()

    def release_all(self) -> None:
        """Forget and delete everything."""
        self.release(list(self._batch_of))
