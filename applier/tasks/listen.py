"""LISTEN: read offset ranges, find each event's position, pack rows into chunks by bucket. Plain functions over iterators.

What runs here runs on executors. Rows become chunks as bytes; the driver gets one small outcome per range (``range_summary``).
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, TypeAlias
from zlib import crc32

from applier.model.chunk import Chunk, PackedChunk, pack
from applier.model.errors import ApplierError, SourceError
from applier.model.events import DdlEvent, Shape
from applier.model.position import Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sources.port import Decoder, PlacedRows, RangeReader, Record
from applier.tasks.range_summary import RangeSummary, TableSummary
from applier.tasks.tolerance import STRICT, Tolerance, TolerantPlacer

CHUNK_BYTES: Final = 512 * 1024
"""Target size of a chunk: large enough that the cost per chunk vanishes, small enough that a bucket's tail is not a burden."""

GC_THRESHOLD: Final = 100_000
"""Rows that wait for their chunk are many and hold no cycles: the interpreter's default of 700 objects would walk them again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenTask:
    """One range to read. Rows below ``floor_ts`` are replays: dropped and counted. ``expected_bytes``: for dealing ranges out to tasks.

    ``watches_keys``: the report names the first update that has changed its handle key.
    """

    range: RangeId
    floor_ts: Ts
    buckets: int
    tolerance: Tolerance = STRICT
    expected_bytes: int = 0
    notes_repeats: bool = False
    """Whether tables without a key are written: see ``RangeReport.repeats``."""
    watches_keys: bool = False


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
    ddls: dict[DdlEvent, DdlEvent] = {}
    listeners = {task.range: _RangeListener(task, decoder, chunks, ddls) for task in tasks}
    failed: dict[RangeId, ApplierError] = {}
    try:
        for range_id, records in reader.read([*listeners]):
            if range_id in failed:
                continue
            if isinstance(records, SourceError):
                failed[range_id] = records
                continue
            # Chunks leave at once: the rows of a batch may be megabytes each (claim-check objects).
            for error in listeners[range_id].take(records):
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
    """The chunk of one bucket that is being filled: the columns of ``Chunk``, with origins by the numbers of ``_OpenChunks``."""

    __slots__ = ("columns", "size")

    def __init__(self) -> None:
        self.columns: tuple[list[Any], ...] = ([], [], [], [], [], [], [])
        self.size = 0

    def extend(self, columns: Iterable[Sequence[Any]]) -> None:
        """Add rows, given by the parts of all columns in order."""
        for column, part in zip(self.columns, columns, strict=True):
            column.extend(part)
        # Of images only, which come last: they are nearly all of a row's bytes.
        self.size += sum(map(len, part))


class _OpenChunks:
    """The chunks that the ranges of one call fill together, one per bucket."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._open = [_OpenChunk() for _ in range(buckets)]
        self._full: list[PackedChunk] = []
        self._origins: list[tuple[Stream, Shape]] = []
        self._numbers: dict[int, int] = {}

    def deal(self, stream: Stream, tables: Sequence[TableSummary], rows: PlacedRows) -> None:
        """Put the rows of one range into the chunks of their buckets."""
        numbers = [self._number(stream, table) for table in tables]
        origins = numbers * len(rows.key) if len(tables) == 1 else [numbers[shape] for shape in rows.shape]
        columns = (origins, *rows[2:])
        for bucket, chosen in enumerate(self._places(tables, rows)):
            if len(chosen) > 1:
                # Measured: half of what a tuple per row and their transposition cost.
                self._open[bucket].extend(map(itemgetter(*chosen), columns))
            elif chosen:
                self._open[bucket].extend([column[chosen[0]]] for column in columns)
            # At once, and not when the reader's batch ends: that may be thousands of rows further.
            if self._open[bucket].size >= CHUNK_BYTES:
                self._full += self._close(bucket)

    def _places(self, tables: Sequence[TableSummary], rows: PlacedRows) -> Sequence[Sequence[int]]:
        """Return which rows go to each bucket."""
        if self._buckets == 1:
            return [range(len(rows.key))]
        # Not hash(): Python salts it per process, and a range that another executor reads again must give the same rows in each bucket.
        if len(tables) == 1:
            seed = tables[0].seed
            buckets = [crc32(key, seed) % self._buckets for key in rows.key]
        else:
            seeds = [table.seed for table in tables]
            buckets = [crc32(key, seeds[shape]) % self._buckets for key, shape in zip(rows.key, rows.shape, strict=True)]
        places: list[list[int]] = [[] for _ in self._open]
        for place, bucket in enumerate(buckets):
            places[bucket].append(place)
        return places

    def _number(self, stream: Stream, table: TableSummary) -> int:
        """Return the number of an origin: of one range and shape."""
        number = self._numbers.get(id(table))
        if number is None:
            number = self._numbers[id(table)] = len(self._origins)
            self._origins.append((stream, table.shape))
        return number

    def full(self) -> Iterator[PackedChunk]:
        """Yield the chunks that have reached their size."""
        full, self._full = self._full, []
        yield from full

    def rest(self) -> Iterator[PackedChunk]:
        """Yield what is left."""
        yield from self.full()
        for bucket, chunk in enumerate(self._open):
            if chunk.columns[0]:
                yield from self._close(bucket)

    def _close(self, bucket: int) -> Iterator[PackedChunk]:
        """Pack the chunk of a bucket, in pieces if large rows have made it much larger than it should be, and begin another."""
        closed, self._open[bucket] = self._open[bucket], _OpenChunk()
        rows = len(closed.columns[0])
        at_once = max(1, rows // (closed.size // CHUNK_BYTES or 1))
        for first, end in pairwise(_bounds(closed.columns[3], closed.columns[4], at_once)):
            whole = at_once >= rows
            origin, *columns = closed.columns if whole else (column[first:end] for column in closed.columns)
            renumbered = {number: index for index, number in enumerate(set(origin))}
            origins = [self._origins[number] for number in renumbered]
            yield pack(bucket, Chunk(origins, list(map(renumbered.__getitem__, origin)), *columns))


def _bounds(offset: Sequence[int], index: Sequence[int], at_once: int) -> Iterator[int]:
    """Yield where a chunk is cut: never between the two rows of one event, which the planner takes for one update if their key is one."""
    rows = len(offset)
    yield 0
    end = at_once
    while end < rows:
        if (offset[end], index[end]) == (offset[end - 1], index[end - 1]):
            end += 1
            continue
        yield end
        end += at_once
    yield rows


class _RangeListener:
    """Places the events of one range, and divides its rows into buckets."""

    def __init__(self, task: ListenTask, decoder: Decoder, chunks: _OpenChunks, ddls: dict[DdlEvent, DdlEvent]) -> None:
        self._chunks = chunks
        self._stream, tolerance = task.range.stream, task.tolerance
        self._watches_keys = task.watches_keys
        self._placer = decoder.placer(self._stream) if tolerance.is_strict else TolerantPlacer(self._stream, tolerance, decoder)
        self.summary = RangeSummary(task.range, task.floor_ts, tolerance.stored, ddls, notes_repeats=task.notes_repeats)

    def take(self, records: Sequence[Record]) -> Iterator[ApplierError | None]:
        """Place the events of some records, and put the rows into the open chunks. Yield after some rows, and last what ends the range."""
        self.summary.records += len(records)
        try:
            for placed in self._placer.place_all(records):
                if isinstance(placed, PlacedRows):
                    if self._watches_keys:
                        self.summary.note_changed_key(placed)
                    rows, tables = self.summary.add_rows(placed)
                    if tables:
                        self._chunks.deal(self._stream, tables, rows)
                        yield None
                else:
                    self.summary.add_event(*placed)
        except ApplierError as error:
            yield error
