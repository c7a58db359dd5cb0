"""The batches of cached ranges: what one listening job has read is one shuffle, and is deleted when none of its ranges is needed."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from applier.model.range_report import RangeId
from applier.spark.shuffle import Shuffle


class Batches:
    """Which batch holds which range. Thread-safe."""

    def __init__(self) -> None:
        self._batch_of: dict[RangeId, Shuffle] = {}
        self._left: dict[Shuffle, set[RangeId]] = {}
        self._readers: Counter[Shuffle] = Counter()
        self._changing = Lock()

    def __contains__(self, range_id: RangeId) -> bool:
        """Whether a range is cached."""
        return range_id in self._batch_of

    def add(self, shuffle: Shuffle, ranges: Collection[RangeId]) -> None:
        """Take in what a job has read. A range that was cached before is now in this batch."""
        self.release(ranges)
        if not ranges:
            shuffle.forget()
            return
        with self._changing:
            self._left[shuffle] = set(ranges)
            self._batch_of.update(dict.fromkeys(ranges, shuffle))

    @contextmanager
    def reading(self, ranges: Iterable[RangeId]) -> Iterator[list[Shuffle] | None]:
        """Give the batches of these ranges in the order in which they were read; None if one is not cached.

        None of them is deleted before the block ends: a job that is preparing segments may need ranges that are released meanwhile, since
        the first of the segments was applied in another way. Spark would end its context over files that are gone.
        """
        with self._changing:
            found = self._holding(ranges)
            self._readers.update(found or ())
        try:
            yield found
        finally:
            with self._changing:
                self._readers -= Counter(found or ())
                unneeded = [shuffle for shuffle in found or () if shuffle not in self._readers and shuffle not in self._left]
            for shuffle in unneeded:
                shuffle.forget()

    def _holding(self, ranges: Iterable[RangeId]) -> list[Shuffle] | None:
        try:
            found = {self._batch_of[range_id] for range_id in ranges}
        except KeyError:
            return None
        return [shuffle for shuffle in self._left if shuffle in found]

    def release(self, ranges: Collection[RangeId]) -> None:
        """Forget ranges, and delete the batches that hold nothing else; unknown ranges are ignored."""
        unneeded: list[Shuffle] = []
        with self._changing:
            for range_id in ranges:
                shuffle = self._batch_of.pop(range_id, None)
                if shuffle is None:
                    continue
                left = self._left[shuffle]
                left.discard(range_id)
                if not left:
                    del self._left[shuffle]
                    if shuffle not in self._readers:
                        unneeded.append(shuffle)
        for shuffle in unneeded:
            shuffle.forget()

    def release_all(self) -> None:
        """Forget and delete everything."""
        self.release(list(self._batch_of))
