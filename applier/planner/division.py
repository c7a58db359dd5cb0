"""Parts of a chunk: the rows of one segment's window, of one reducer, or of one table."""

from collections.abc import Iterator, Mapping, Sequence

from applier.model.chunk import Chunk
from applier.model.segment import SegmentWindow, windows_of


def chosen_rows(chunk: Chunk, chosen: Sequence[int]) -> Chunk:
    """Return a chunk of the chosen rows, with only the origins that they use."""
    # Only those with rows: the planner would compare the keys of the others with those of this table.
    used = sorted({chunk.origin[row] for row in chosen})
    renumbered: Mapping[int, int] = {origin: number for number, origin in enumerate(used)}
    return Chunk(
        origins=[chunk.origins[origin] for origin in used],
        origin=[renumbered[chunk.origin[row]] for row in chosen],
        commit_ts=[chunk.commit_ts[row] for row in chosen],
        kind=[chunk.kind[row] for row in chosen],
        offset=[chunk.offset[row] for row in chosen],
        index=[chunk.index[row] for row in chosen],
        key=[chunk.key[row] for row in chosen],
        image=[chunk.image[row] for row in chosen],
    )


def by_window(chunk: Chunk, windows: Sequence[SegmentWindow]) -> Iterator[tuple[int, Chunk]]:
    """Yield the part of the chunk that each of some contiguous windows may hold, with the window's number.

    Rows beyond the last window are left out. The first part may still hold rows before the first window.
    """
    # Nearly all chunks lie inside of one window: then no row is looked at.
    least, greatest = windows_of(windows, (min(chunk.commit_ts), max(chunk.commit_ts)))
    if least == greatest:
        if least < len(windows):
            yield least, chunk
        return
    rows: dict[int, list[int]] = {}
    for row, number in enumerate(windows_of(windows, chunk.commit_ts)):
        rows.setdefault(number, []).append(row)
    for number in sorted(rows.keys() - {len(windows)}):
        yield number, chosen_rows(chunk, rows[number])
