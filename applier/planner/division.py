"""Parts of a chunk: the rows of one segment's window, of one reducer, or of one table."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from applier.model.chunk import Chunk, PackedChunk, pack, unpack
from applier.model.position import Ts
from applier.model.segment import SegmentWindow, slices_of, windows_of


def selected(chunk: Chunk, rows: Sequence[int]) -> Chunk:
    """Return a chunk of some rows. It names all origins of the whole one."""
    return _each_column(chunk, lambda column: list(map(column.__getitem__, rows)))


def _each_column(chunk: Chunk, part: Callable[[list[Any]], list[Any]]) -> Chunk:
    return Chunk(
        chunk.origins,
        part(chunk.origin),
        part(chunk.commit_ts),
        part(chunk.kind),
        part(chunk.offset),
        part(chunk.index),
        part(chunk.key),
        part(chunk.image),
    )


def packable(chunk: Chunk, rows: Sequence[int]) -> Chunk:
    """Return a chunk of some rows that names only the origins of these."""
    used = sorted({chunk.origin[row] for row in rows})
    renumbered: Mapping[int, int] = {origin: number for number, origin in enumerate(used)}
    part = selected(chunk, rows)
    origins = [chunk.origins[origin] for origin in used]
    return replace(part, origins=origins, origin=[renumbered[origin] for origin in part.origin])


def divided(chunk: Chunk, numbers: Iterable[int], parts: int) -> Iterator[tuple[int, Chunk]]:
    """Yield the rows of each part that has some, with its number; ``numbers``: the part of each row."""
    rows: list[list[int]] = [[] for _ in range(parts)]
    for row, number in enumerate(numbers):
        rows[number].append(row)
    # One pass per column, and then slices: parts may be many and small (a thousand tables).
    ordered = selected(chunk, list(chain.from_iterable(rows)))
    end = 0
    for number, part in enumerate(rows):
        start, end = end, end + len(part)
        if part:
            yield number, _each_column(ordered, itemgetter(slice(start, end)))


def by_window(chunk: Chunk, windows: Sequence[SegmentWindow]) -> Iterator[tuple[int, Chunk]]:
    """Yield the part of the chunk that each of some contiguous windows may hold, with the window's number.

    Rows beyond the last window are left out. The first part may still hold rows before the first window.
    """
    # Nearly all chunks lie inside of one window: then no row is looked at.
    least, greatest = windows_of(windows, (min(chunk.commit_ts), max(chunk.commit_ts)))
    is_in_one = least == greatest
    parts = [(least, chunk)] if is_in_one else divided(chunk, windows_of(windows, chunk.commit_ts), len(windows) + 1)
    return ((number, part) for number, part in parts if number < len(windows))


# --- time slices -----------------------------------------------------------------------------------------------------


def sliced(packed: PackedChunk, bounds: Sequence[Ts]) -> Iterator[tuple[int, PackedChunk]]:
    """Yield the part of a chunk in each slice that has rows of it, with the slice's number. Rows outside of all slices are left out."""
    least, greatest = slices_of(bounds, (packed.min_ts, packed.max_ts))
    if least == greatest:
        if 0 < least < len(bounds):
            yield least, packed
        return
    chunk = unpack(packed.data)
    rows: dict[int, list[int]] = defaultdict(list)
    for row, number in enumerate(slices_of(bounds, chunk.commit_ts)):
        rows[number].append(row)
    for number, some in rows.items():
        if 0 < number < len(bounds):
            yield number, pack(packed.bucket, packable(chunk, some))
