"""LISTEN: read offset ranges, find each event's place, pack rows into chunks by bucket. Plain functions over iterators.

What runs here runs on executors. Rows become chunks as bytes; the driver gets one small outcome per range (``range_summary``).
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from zlib import crc32

from applier.model.chunk import Chunk, PackedChunk, pack
from applier.model.errors import ApplierError, SourceError
from applier.model.events import PlacedRow, Shape
from applier.model.position import Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sources.port import Decoder, RangeReader, Record
from applier.tasks.range_summary import RangeSummary, TableSummary
from applier.tasks.tolerance import STRICT, Tolerance, TolerantPlacer

CHUNK_BYTES: Final = 512 * 1024
"""Target size of a chunk: large enough that the cost per chunk vanishes, small enough that a bucket's tail is not a burden."""

GC_THRESHOLD: Final = 100_000
"""Rows that wait for their chunk are many and hold no cycles: the interpreter's default of 700 objects would walk them again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenTask:
    """One range to read. Rows below ``floor_ts`` are replays: dropped and counted. ``expected_bytes``: for dealing ranges out to tasks."""

    range: RangeId
    floor_ts: Ts
    buckets: int
    tolerance: Tolerance = STRICT
    expected_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RangeFailure:
    """A range that could not be read, with the error that says why.

    A value and not an exception: an exception loses its type on the way to the driver, and Spark would retry the task although only the
    driver may decide that.
    """

    range: RangeId
    error: ApplierError


ListenOutcome: TypeAlias = RangeReport | RangeFailure


def listen(tasks: Sequence[ListenTask], reader: RangeReader, decoder: Decoder) -> Iterator[PackedChunk | ListenOutcome]:
    """Yield the chunks of all ranges together, then one outcome per task, in order. All tasks have the same number of buckets.

    Rows of a range that fails half-way may be in chunks: they are genuine, and harmless, since the range is read again.
    """
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    chunks = _OpenChunks(max((task.buckets for task in tasks), default=0))
    listeners = {task.range: _RangeListener(task, decoder, chunks) for task in tasks}
    failed: dict[RangeId, ApplierError] = {}
    try:
        for range_id, records in reader.read([*listeners]):
            if range_id in failed:
                continue
            error = records if isinstance(records, SourceError) else listeners[range_id].take(records)
            if error is not None:
                failed[range_id] = error
            yield from chunks.full()
    except ApplierError as error:
        # It has ended the reading of all ranges, and nothing says which of them were read whole.
        failed = dict.fromkeys(listeners, error) | failed
    yield from chunks.rest()
    for range_id, listener in listeners.items():
        yield RangeFailure(range_id, failed[range_id]) if range_id in failed else listener.summary.report()


class _OpenChunk:
    """The chunk of one bucket that is being filled. A row: index of its origin, commit_ts, kind, offset, index, key, image."""

    __slots__ = ("origin_index", "origins", "rows", "size")

    def __init__(self) -> None:
        self.origins: list[tuple[Stream, Shape]] = []
        self.origin_index: dict[int, int] = {}
        self.rows: list[tuple[int, int, int, int, int, bytes, bytes]] = []
        self.size = 0


class _OpenChunks:
    """The chunks that the ranges of one call fill together, one per bucket."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.open = [_OpenChunk() for _ in range(buckets)]
        self._full: list[PackedChunk] = []

    def close(self, bucket: int) -> None:
        """Pack the chunk of a bucket, and begin another."""
        closed, self.open[bucket] = self.open[bucket], _OpenChunk()
        origin, commit_ts, kind, offset, index, key, image = map(list, zip(*closed.rows, strict=True))
        self._full.append(pack(bucket, Chunk(closed.origins, origin, commit_ts, kind, offset, index, key, image)))

    def full(self) -> Iterator[PackedChunk]:
        """Yield the chunks that have reached their size. They are cut row by row: a range that is read again is cut alike."""
        full, self._full = self._full, []
        yield from full

    def rest(self) -> Iterator[PackedChunk]:
        """Yield what is left."""
        for bucket, chunk in enumerate(self.open):
            if chunk.rows:
                self.close(bucket)
        yield from self.full()


class _RangeListener:
    """Divides the rows of one range into buckets."""

    def __init__(self, task: ListenTask, decoder: Decoder, chunks: _OpenChunks) -> None:
        self._task, self._chunks = task, chunks
        self._stream, tolerance = task.range.stream, task.tolerance
        self._placer = decoder.placer(self._stream) if tolerance.is_strict else TolerantPlacer(self._stream, tolerance, decoder)
        self.summary = RangeSummary(task.range, task.floor_ts, tolerance.stored)

    def take(self, records: Iterable[Record]) -> ApplierError | None:
        """Place the events of some records, and put the rows into the open chunks of their buckets. Return what ends the range."""
        try:
            self._take(records)
        except ApplierError as error:
            return error
        return None

    def _take(self, records: Iterable[Record]) -> None:
        # The hot path of listening: one loop over local names, one tuple per row.
        # Measured: with what is rarer in the summary's methods, 8 % less than with a method per row and a list per column.
        placer, floor, summary = self._placer, self._task.floor_ts, self.summary
        place = placer.place
        shape: Shape | None = None
        table: TableSummary | None = None
        for offset, record_key, value in records:
            placed = place(offset, record_key, value)
            summary.events += len(placed)
            for index, event in enumerate(placed) if placer.indices is None else zip(placer.indices, placed, strict=True):
                if type(event) is not PlacedRow:
                    summary.add_event(offset, index, event)
                    continue
                ts, kind, row_shape, key, image = event
                # model.segment has decided between < and <= when it gave the floor; asking it here would be a call per row.
                if ts < floor:
                    summary.drop_replay(offset, ts)
                    continue
                # Shapes are interned, so identity is enough; rows of one table come in runs, so this is rare.
                if table is None or row_shape is not shape:
                    shape, table = row_shape, summary.table(row_shape, offset, ts)
                if ts > summary.top:
                    summary.hold(offset, ts)
                summary.add_row(table, ts, len(key) + len(image))
                self._deal(table, (ts, kind, offset, index, key, image))

    def _deal(self, table: TableSummary, row: tuple[int, int, int, int, bytes, bytes]) -> None:
        """Put a row into the open chunk of its bucket."""
        # Not hash(): Python salts it per process, and a range that another executor reads again must give the same chunks.
        bucket = crc32(row[4], table.seed) % self._chunks.buckets
        chunk = self._chunks.open[bucket]
        origin = chunk.origin_index.get(id(table))
        if origin is None:
            origin = chunk.origin_index[id(table)] = len(chunk.origins)
            chunk.origins.append((self._stream, table.shape))
        chunk.rows.append((origin, *row))
        # Of images only: they are nearly all of a row's bytes, and one more sum per row would be measurable.
        chunk.size += len(row[5])
        if chunk.size >= CHUNK_BYTES:
            self._chunks.close(bucket)
