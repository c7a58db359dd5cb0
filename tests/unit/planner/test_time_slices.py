"""A chunk divided at the timestamps of DDLs: each row is in the slice of its commit_ts, as it came."""

from collections.abc import Iterator

import pytest

from applier.model.chunk import Chunk, PackedChunk, pack, unpack
from applier.model.position import Ts
from applier.planner import sliced
from tests.builders.planning import chunk, put, shape

BOUNDS = (Ts(10), Ts(20), Ts(30), Ts(40))
OTHER = shape(("id", 3, 11), table="other")


def rows_of(part: Chunk) -> Iterator[tuple[object, ...]]:
    columns = (part.commit_ts, part.kind, part.offset, part.index, part.key, part.image)
    origins = [part.origins[origin] for origin in part.origin]
    return zip(origins, *columns, strict=True)


def by_slice(packed: PackedChunk) -> dict[int, PackedChunk]:
    found = list(sliced(packed, BOUNDS))
    assert len({number for number, _ in found}) == len(found), "one part in each slice"
    return dict(found)


def test_each_row_is_in_the_slice_of_its_commit_ts_and_a_row_at_a_bound_in_the_slice_that_ends_there() -> None:
    whole = chunk(*(put(ts, ts, "a", offset=ts, index=ts % 3) for ts in (40, 11, 10, 9, 21, 20, 30, 41, 12)))
    found = by_slice(pack(5, whole))
    assert {number: unpack(part.data).commit_ts for number, part in found.items()} == {1: [11, 20, 12], 2: [21, 30], 3: [40]}
    inside = {row for row in rows_of(whole) if row[1] not in (9, 10, 41)}
    assert {row for part in found.values() for row in rows_of(unpack(part.data))} == inside


def test_a_part_says_of_itself_what_a_segment_selects_it_by_and_names_its_own_origins_only() -> None:
    whole = pack(5, chunk(put(11, 1, "a"), put(15, 2, "a"), put(25, 3, shape=OTHER)))
    for part in by_slice(whole).values():
        rows = unpack(part.data)
        assert (part.bucket, part.min_ts, part.max_ts, part.rows) == (5, min(rows.commit_ts), max(rows.commit_ts), len(rows.commit_ts))
        assert len(rows.origins) == 1


@pytest.mark.parametrize(("least", "greatest", "number"), [(11, 20, 1), (31, 40, 3)])
def test_a_chunk_that_lies_in_one_slice_is_not_unpacked(least: int, greatest: int, number: int) -> None:
    whole = PackedChunk(1, least, greatest, 2, b"whatever it is")
    assert list(sliced(whole, BOUNDS)) == [(number, whole)]


@pytest.mark.parametrize(("least", "greatest"), [(1, 10), (41, 90)])
def test_a_chunk_outside_of_all_slices_is_left_out(least: int, greatest: int) -> None:
    assert list(sliced(PackedChunk(1, least, greatest, 2, b"whatever it is"), BOUNDS)) == []
