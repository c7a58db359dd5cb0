"""Time slices: the rows of a chunk divided at the timestamps of DDLs, so that who needs those between two DDLs reads nothing else."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from applier.model.chunk import PackedChunk, pack, unpack
from applier.model.position import Ts
from applier.model.segment import slices_of
from applier.planner.division import packable


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
