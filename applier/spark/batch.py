"""The batches of cached ranges: what one listening job has read is one shuffle, and is deleted when none of its ranges is needed."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from applier.model.position import Ts
from applier.model.range_report import RangeId, RangeReport
from applier.spark import job
from applier.spark.shuffle import Shuffle


class Batch:
    """What one listening job has read, and the same divided by time once a segment has asked for it. Both are deleted together."""

    def __init__(self, shuffle: Shuffle, reports: Sequence[RangeReport]) -> None:
        self.shuffle = shuffle
        self.ranges = len(reports)
        self.bytes = sum(report.bytes for report in reports)
        self.max_ts = max((report.max_ts for report in reports), default=Ts(0))
        self._bounds: tuple[Ts, ...] = ()
        self._divided: Shuffle | None = None

    def is_divided_at(self, bounds: tuple[Ts, ...]) -> bool:
        """Whether its slices end at these bounds."""
        return self._divided is not None and self._bounds == bounds

    def divided_at(self, bounds: tuple[Ts, ...]) -> Shuffle:
        """Return its slices, each in the partition of its number. Its first reader has them made. Others that it has are deleted."""
        if self._divided is None or self._bounds != bounds:
            self._forget_slices()
            # By one task: to start the Python workers of several costs more than they save.
            elements = self.shuffle.elements().coalesce(1)
            self._divided = Shuffle(elements.mapPartitions(job.dividing(bounds)), len(bounds))
            self._bounds = bounds
        return self._divided

    def forget(self) -> None:
        """Delete the files."""
        self._forget_slices()
        self.shuffle.forget()

    def _forget_slices(self) -> None:
        divided, self._divided = self._divided, None
        if divided is not None:
            divided.forget()


class Batches:
    """Which batch holds which range. Thread-safe."""

    def __init__(self) -> None:
        self._batch_of: dict[RangeId, Batch] = {}
        self._left: dict[Batch, set[RangeId]] = {}
        self._readers: Counter[Batch] = Counter()
        self._changing = Lock()

    def __contains__(self, range_id: RangeId) -> bool:
        """Whether a range is cached."""
        return range_id in self._batch_of

    def add(self, shuffle: Shuffle, reports: Sequence[RangeReport]) -> None:
        """Add what a job has read. A range that was cached before is now in this batch."""
        ranges, batch = [report.range for report in reports], Batch(shuffle, reports)
        self.release(ranges)
        if not ranges:
            batch.forget()
            return
        with self._changing:
            self._left[batch] = set(ranges)
            self._batch_of.update(dict.fromkeys(ranges, batch))

    @contextmanager
    def reading(self, ranges: Iterable[RangeId]) -> Iterator[list[Batch] | None]:
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
                unneeded = [batch for batch in found or () if batch not in self._readers and batch not in self._left]
            for batch in unneeded:
                batch.forget()

    def _holding(self, ranges: Iterable[RangeId]) -> list[Batch] | None:
        try:
            found = {self._batch_of[range_id] for range_id in ranges}
        except KeyError:
            return None
        return [batch for batch in self._left if batch in found]

    def release(self, ranges: Collection[RangeId]) -> None:
        """Forget ranges, and delete the batches that hold nothing else; unknown ranges are ignored."""
        unneeded: list[Batch] = []
        with self._changing:
            for range_id in ranges:
                batch = self._batch_of.pop(range_id, None)
                if batch is None:
                    continue
                left = self._left[batch]
                left.discard(range_id)
                if not left:
                    del self._left[batch]
                    if batch not in self._readers:
                        unneeded.append(batch)
        for batch in unneeded:
            batch.forget()

    def release_all(self) -> None:
        """Forget and delete everything."""
        self.release(list(self._batch_of))
