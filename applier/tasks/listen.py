"""LISTEN: read one offset range, find each event's place, pack rows into chunks by bucket. Plain functions over iterators.

What runs here runs on executors. Rows become chunks as bytes; the driver gets the ``RangeReport`` only (``range_summary``).
"""

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias
from zlib import crc32

from applier.model.chunk import Chunk, PackedChunk, pack
from applier.model.errors import ApplierError
from applier.model.events import PlacedRow, Shape
from applier.model.position import Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sources.port import Decoder, RangeReader, Record
from applier.sources.whole_range import read_whole
from applier.tasks.range_summary import RangeSummary
from applier.tasks.tolerance import STRICT, Tolerance, TolerantPlacer

CHUNK_BYTES: Final = 512 * 1024
"""Target size of a chunk: large enough that the cost per chunk vanishes, small enough that a bucket's tail is not a burden."""

GC_THRESHOLD: Final = 100_000
"""Rows that wait for their chunk are many and hold no cycles: the interpreter's default of 700 objects would walk them again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenTask:
    """One range to read. Rows below ``floor_ts`` are replays: dropped and counted."""

    range: RangeId
    floor_ts: Ts
    buckets: int
    tolerance: Tolerance = STRICT


@dataclass(frozen=True, slots=True)
class RangeFailure:
    """A range that could not be read, with the error that says why.

    A value and not an exception: an exception loses its type on the way to the driver, and Spark would retry the task although only the
    driver may decide that.
    """

    range: RangeId
    error: ApplierError


ListenOutcome: TypeAlias = RangeReport | RangeFailure


def listen(task: ListenTask, reader: RangeReader, decoder: Decoder) -> Iterator[PackedChunk | ListenOutcome]:
    """Yield the chunks of a range, then, as the last element, what was read."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    listener = _Listener(task, decoder)
    try:
        for _, records in read_whole(reader, [task.range]):
            listener.take(records)
            yield from listener.full_chunks()
        yield from listener.all_chunks()
    except ApplierError as error:
        # Chunks may have been yielded already. The runner releases the whole range: half of one is never applied.
        yield RangeFailure(task.range, error)
        return
    yield listener.summary.report()


class _OpenChunk:
    """The chunk of one bucket that is being filled. A row: index of its shape, commit_ts, kind, offset, index, key, image."""

    __slots__ = ("rows", "shape_index", "shapes", "size")

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self.shape_index: dict[int, int] = {}
        self.rows: list[tuple[int, int, int, int, int, bytes, bytes]] = []
        self.size = 0


class _Listener:
    """Divides the rows of one range into buckets."""

    def __init__(self, task: ListenTask, decoder: Decoder) -> None:
        self._task = task
        stream, tolerance = task.range.stream, task.tolerance
        self._placer = decoder.placer(stream) if tolerance.is_strict else TolerantPlacer(stream, tolerance, decoder)
        self._open = [_OpenChunk() for _ in range(task.buckets)]
        self._full: list[PackedChunk] = []
        self.summary = RangeSummary(task.range, task.floor_ts, tolerance.stored)

    def take(self, records: Iterable[Record]) -> None:
        """Place the events of some records, and put the rows into the open chunks of their buckets."""
        # The hot path of listening: one loop over local names, one tuple per row. What a report needs beyond that is summed up per chunk.
        # Measured: with what is rarer in the summary's methods, 8 % less than with a method per row and a list per column.
        placer, open_chunks, buckets, floor, summary = self._placer, self._open, self._task.buckets, self._task.floor_ts, self.summary
        place = placer.place
        shape: Shape | None = None
        seed = 0
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
                if row_shape is not shape:
                    shape, seed = row_shape, summary.table(row_shape, offset, ts).seed
                if ts > summary.top:
                    summary.hold(offset, ts)
                # Not hash(): Python salts it per process, and a range that another executor reads again must give the same chunks.
                bucket = crc32(key, seed) % buckets
                chunk = open_chunks[bucket]
                at = chunk.shape_index.get(id(shape))
                if at is None:
                    at = chunk.shape_index[id(shape)] = len(chunk.shapes)
                    chunk.shapes.append(row_shape)
                chunk.rows.append((at, ts, kind, offset, index, key, image))
                # Of images only: they are nearly all of a row's bytes, and one more sum per row would be measurable.
                chunk.size += len(image)
                if chunk.size >= CHUNK_BYTES:
                    self._full.append(self._pack(bucket, chunk))

    def full_chunks(self) -> Iterator[PackedChunk]:
        """Yield the chunks that have reached their size. They are cut row by row: a range that is read again is cut alike."""
        full, self._full = self._full, []
        yield from full

    def all_chunks(self) -> Iterator[PackedChunk]:
        """Yield what is left."""
        for bucket, chunk in enumerate(self._open):
            if chunk.rows:
                yield self._pack(bucket, chunk)

    def _pack(self, bucket: int, full: _OpenChunk) -> PackedChunk:
        self._open[bucket] = _OpenChunk()
        shape, commit_ts, kind, offset, index, key, image = map(list, zip(*full.rows, strict=True))
        packed = pack(bucket, Chunk(self._task.range.stream, full.shapes, shape, commit_ts, kind, offset, index, key, image))
        self.summary.add_chunk(full.shapes, shape, commit_ts, len(packed.data))
        return packed
