"""The cached ranges, by the listeners' reports. The rows are on the executors; nothing here is per row. What lies where: ``sweep``."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile

from applier.coordinator.sweep import BEFORE_ALL, RangeIndex, Sweep
from applier.model.position import Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.segment import is_beyond, is_spent

# --- batch bytes -----------------------------------------------------------------------------------------------------
# Batches: what one plan had read is cached together, and freed together.
#
# The chunks of one listening job are one block of memory to the runner. It is freed when the last of its ranges is released, so until then
# all of it counts.


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


# --- closed bytes ----------------------------------------------------------------------------------------------------


class ClosedBytes:
    """``beyond``: bytes of the ranges that may hold rows above W; ``closed``: of those that hold none."""

    __slots__ = ("_closed_ts", "_ends", "_ranges", "beyond", "closed")

    def __init__(self, ranges: Mapping[RangeId, tuple[int, RangeReport]], ends: RangeIndex) -> None:
        self._ranges, self._ends, self._closed_ts = ranges, ends, BEFORE_ALL
        self.beyond = self.closed = 0

    def add(self, report: RangeReport) -> None:
        """Count a range."""
        self._count(report, report.bytes)

    def drop(self, report: RangeReport) -> None:
        """Count a range no more."""
        self._count(report, -report.bytes)

    def _count(self, report: RangeReport, size: int) -> None:
        if is_beyond(report.max_ts, self._closed_ts):
            self.beyond += size
        else:
            self.closed += size

    def close(self, watermark: Ts) -> None:
        """Record W. Where it steps back for a new partition, what was closed still counts as closed."""
        size = sum(self._ranges[end.name][1].bytes for end in self._ends.between(self._closed_ts, watermark))
        self.beyond, self.closed = self.beyond - size, self.closed + size
        self._closed_ts = max(self._closed_ts, watermark)


# --- cache -----------------------------------------------------------------------------------------------------------


class Cache:
    """All ranges that listeners hold, numbered in the order of their reports."""

    __slots__ = (
        "_batches",
        "_empty",
        "_ends",
        "_names",
        "_number",
        "_pinned",
        "_ranges",
        "_starts",
        "ahead",
        "at_checkpoint",
        "bytes_of",
        "closed",
        "rows",
    )

    def __init__(self) -> None:
        self._number = 0
        self._ranges: dict[RangeId, tuple[int, RangeReport]] = {}
        # Released with the next step: no segment needs them, but the runner keeps every range until it is released.
        self._empty: dict[RangeId, None] = {}
        self._names: dict[Stream, set[RangeId]] = {}
        # By their first and by their last commit_ts.
        self._starts, self._ends = RangeIndex(), RangeIndex()
        self.at_checkpoint, self.ahead = Sweep(self._ranges, self._starts), Sweep(self._ranges, self._starts)
        self._pinned: Counter[RangeId] = Counter()
        self._batches = BatchBytes()
        self.bytes_of: Counter[Stream] = Counter()
        self.closed = ClosedBytes(self._ranges, self._ends)
        self.rows = 0
        """Rows of all ranges."""

    @property
    def number(self) -> int:
        """The number of the latest report; 0 before the first."""
        return self._number

    @property
    def bytes(self) -> int:
        """Size of everything that is cached, with what cannot be freed yet."""
        return self._batches.bytes

    def open_batch(self, ranges: Iterable[RangeId]) -> None:
        """Record which ranges are read, cached and freed together."""
        self._batches.open(ranges)

    def give_up(self, name: RangeId) -> None:
        """Record that a range could not be read."""
        self._batches.release(name)

    def ranges_of(self, stream: Stream) -> int:
        """How many ranges with rows a stream has."""
        return len(self._names.get(stream, ()))

    def add(self, report: RangeReport) -> None:
        """Take a range in. A range without rows can be released at once."""
        self._number += 1
        self._batches.add(report.range, report.bytes)
        if not report.rows:
            self._empty[report.range] = None
            return
        self._keep(self._number, report)

    def _keep(self, number: int, report: RangeReport) -> None:
        self._ranges[report.range] = (number, report)
        for sweep in (self.at_checkpoint, self.ahead):
            sweep.add(number, report)
        self._starts.add(report.min_ts, number, report.range)
        self._ends.add(report.max_ts, number, report.range)
        self._names.setdefault(report.range.stream, set()).add(report.range)
        self.bytes_of[report.range.stream] += report.bytes
        self.rows += report.rows
        self.closed.add(report)

    def _drop(self, name: RangeId) -> bool:
        """Drop a range, if it is there."""
        if name not in self._ranges:
            return False
        number, report = self._ranges.pop(name)
        self._starts.remove(report.min_ts, number, name)
        self._ends.remove(report.max_ts, number, name)
        self.bytes_of[name.stream] -= report.bytes
        self.rows -= report.rows
        self.closed.drop(report)
        self._names[name.stream].remove(name)
        for sweep in (self.at_checkpoint, self.ahead):
            sweep.drop(name)
        return True

    def report_of(self, name: RangeId) -> RangeReport:
        """Return the report of a range with rows."""
        return self._ranges[name][1]

    def let_go(self, names: Iterable[RangeId]) -> None:
        """Unpin ranges that no segment needs, whatever the checkpoint is: the next step releases them."""
        for name in names:
            if name not in self._pinned and self._drop(name):
                self._empty[name] = None

    def names_of(self, stream: Stream) -> list[RangeId]:
        """Name the ranges with rows of a stream, in offset order."""
        return sorted(self._names.get(stream, ()))

    def read_rows(self, names: Iterable[RangeId]) -> int:
        """How many rows were read in those ranges that are still here, replays included."""
        reports = (self._ranges[name][1] for name in names if name in self._ranges)
        return sum(report.rows + report.replays for report in reports)

    def refuse(self, merged: RangeReport) -> None:
        """Record a merged range that does not replace its pieces: it can be released at once."""
        self._batches.add(merged.range, merged.bytes)
        self._empty[merged.range] = None

    def replace(self, pieces: tuple[RangeId, ...], merged: RangeReport) -> None:
        """Replace the pieces by a merged range, and let them be released. If all were released already, so can the merged range be."""
        # The merged range takes the greatest number of its pieces: a latecomer in one of them stays one.
        numbers = [self._ranges[piece][0] for piece in pieces if piece in self._ranges]
        for piece in pieces:
            if self._drop(piece):
                self._empty[piece] = None
        if numbers and merged.rows:
            self._batches.add(merged.range, merged.bytes)
            self._keep(max(numbers), merged)
        else:
            self.refuse(merged)

    def pin(self, names: Iterable[RangeId]) -> None:
        """Pin ranges that a segment uses, until it is applied."""
        self._pinned.update(names)

    def unpin(self, names: Iterable[RangeId]) -> None:
        """Take back one ``pin``."""
        for name in names:
            self._pinned[name] -= 1
            if not self._pinned[name]:
                del self._pinned[name]

    def is_pinned(self, names: Iterable[RangeId]) -> bool:
        """Whether a segment that was cut names any of these ranges."""
        return any(name in self._pinned for name in names)

    def spent(self, checkpoint_ts: Ts) -> tuple[RangeId, ...]:
        """Name the ranges that can be released: their rows are below the checkpoint, or they have none."""
        return (*self._empty, *(end.name for end in takewhile(lambda end: is_spent(end.ts, checkpoint_ts), self._ends)))

    def is_leaving(self, name: RangeId) -> bool:
        """Whether a range will be released with the next step: its name cannot stand for another reading before."""
        return name in self._empty

    def remove(self, ranges: tuple[RangeId, ...]) -> None:
        """Forget ranges that were released."""
        for name in ranges:
            self._empty.pop(name, None)
            self._drop(name)
            self._batches.release(name)
