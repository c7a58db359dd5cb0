"""Compares a range of a table, and descends to the rows that differ.

Theory. Both databases compute a checksum of the range. If they differ, the rows of the range are divided by a digest of their key, in the
same way on both sides whatever the collations are, and checksums of these parts are compared. Of parts that differ, keys and digests of
the rows are read. So at most a few thousand rows of a range that differs reach this program, and none of one that is equal. Finally
the values of the suspected rows decide, column by column: servers print some equal values differently.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from applier.model.events import TableName
from applier.model.position import MAX_TS, NO_TS, Timeline, Ts
from applier.model.segment import is_past
from applier.sinks.table_pair import TablePair
from applier.sinks.table_reader import DIGEST_BITS, NOTHING, Checksum, Key, Reader, Scope, Value
from applier.verify.difference import RangeResult, RowDifference, RowState, TableResult
from applier.verify.sides import Sides
from applier.verify.value import is_equal

LEAF_ROWS: Final = 4096
"""Number of rows that are compared one by one."""
MOST_BITS: Final = 16
"""At most 65,536 parts at once."""
LOOKED_UP: Final = 100
"""Rows whose values are read by one query: each may hold megabytes."""

T = TypeVar("T")
Row = tuple[Value, ...]


class TableComparison:
    """Compares one table. ``most``: after so many differences the descent into a range ends."""

    def __init__(self, pair: TablePair, sides: Sides, most: int) -> None:
        self._pair = pair
        self._sides = sides
        self._most = most
        self._has_lost = False
        """Whether a row that differs was not found again by its key."""

    def compare(self, scope: Scope) -> RangeResult:
        """Compare a range at one point in time."""
        with self._sides.moment() as ts:
            return self.compare_in(ts, scope)

    def compare_in(self, ts: Ts, scope: Scope) -> RangeResult:
        """Compare a range at the point in time that the caller has begun, with the sink at checkpoint ``ts``."""
        upstream, sink = (side.checksum(self._pair, scope) for side in (self._sides.upstream, self._sides.sink))
        if upstream == sink:
            return RangeResult(ts=ts, upstream=upstream, sink=sink)
        # Without a key nothing names a row: that the tables differ is all that can be said.
        suspects = self._descend(scope, upstream, sink) if self._pair.key else iter(())
        found = tuple(islice(self._confirmed(suspects), self._most + 1))
        is_cut = len(found) > self._most or not self._pair.key or self._has_lost
        return RangeResult(ts=ts, upstream=upstream, sink=sink, differences=found[: self._most], is_cut=is_cut)

    def look_up(self, keys: Collection[Key], *, keeps_rows: bool = False) -> Iterator[RowDifference]:
        """Compare the rows of some keys, at the point in time that the caller has begun."""
        for batch in _batches(keys, LOOKED_UP):
            upstream, sink = (self._by_key(side, batch) for side in (self._sides.upstream, self._sides.sink))
            for key in batch:
                self._has_lost |= key not in upstream and key not in sink
                if found := self._difference(key, upstream.get(key, []), sink.get(key, []), keeps_rows=keeps_rows):
                    yield found

    def _confirmed(self, suspects: Iterable[Key]) -> Iterator[RowDifference]:
        for batch in _batches(suspects, LOOKED_UP):
            yield from self.look_up(batch)

    def _descend(self, scope: Scope, upstream: Checksum, sink: Checksum) -> Iterator[Key]:
        """Yield the keys of rows whose digests differ."""
        rows = max(upstream.rows, sink.rows)
        bits = _bits_for(rows, scope.bits)
        if rows <= LEAF_ROWS or bits == scope.bits:
            yield from self._suspects(scope)
            return
        one, other = (side.checksums(self._pair, scope, bits) for side in (self._sides.upstream, self._sides.sink))
        sizes = {
            part: (one.get(part, NOTHING), other.get(part, NOTHING))
            for part in sorted(one.keys() | other.keys())
            if one.get(part, NOTHING) != other.get(part, NOTHING)
        }
        for group in _grouped(sizes, lambda pair: max(pair[0].rows, pair[1].rows)):
            total = [sum((sizes[part][at] for part in group), NOTHING) for at in (0, 1)]
            yield from self._descend(scope.part(bits, *group), total[0], total[1])

    def _suspects(self, scope: Scope) -> Iterator[Key]:
        one, other = (_by_first(side.digests(self._pair, scope)) for side in (self._sides.upstream, self._sides.sink))
        for key in sorted(one.keys() | other.keys()):
            if sorted(one.get(key, [])) != sorted(other.get(key, [])):
                yield key

    def _by_key(self, side: Reader, keys: Sequence[Key]) -> dict[Key, list[Row]]:
        positions, wanted = self._pair.key_positions(), set(keys)
        found: defaultdict[Key, list[Row]] = defaultdict(list)
        for row in side.rows(self._pair, keys):
            key = tuple(row[at] or b"" for at in positions)
            if key in wanted:
                found[key].append(row)
        return found

    def _difference(self, key: Key, upstream: list[Row], sink: list[Row], *, keeps_rows: bool) -> RowDifference | None:
        row = upstream[0] if upstream and keeps_rows else None
        if not upstream or not sink:
            state = RowState.MISSING if upstream else RowState.EXTRA
            return RowDifference(state=state, key=key, row=row) if upstream or sink else None
        columns = [column.name for at, column in enumerate(self._pair.columns) if not is_equal(column, upstream[0][at], sink[0][at])]
        # A sink without the unique index may hold several rows of one key.
        if not columns and len(upstream) == len(sink):
            return None
        return RowDifference(state=RowState.DIFFERENT, key=key, columns=tuple(columns), row=row)


def _bits_for(rows: int, bits: int) -> int:
    """Return how many bits of the digest divide the rows into parts of a few hundred."""
    wanted = bits + max(8, (rows * 16 // LEAF_ROWS).bit_length())
    return min(wanted, bits + MOST_BITS, DIGEST_BITS)


def _grouped(sizes: dict[int, tuple[Checksum, Checksum]], rows_of: Callable[[tuple[Checksum, Checksum]], int]) -> Iterator[list[int]]:
    """Join parts as long as their rows are few enough to be compared one by one."""
    group: list[int] = []
    rows = 0
    for part, size in sizes.items():
        if group and rows + rows_of(size) > LEAF_ROWS:
            yield group
            group, rows = [], 0
        group.append(part)
        rows += rows_of(size)
    if group:
        yield group


def _by_first(digests: Iterable[tuple[Key, str]]) -> dict[Key, list[str]]:
    found: defaultdict[Key, list[str]] = defaultdict(list)
    for key, digest in digests:
        found[key].append(digest)
    return found


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


# --- recheck ---------------------------------------------------------------------------------------------------------
# Looks again at rows that differed: where upstream cannot show its past, they may have been on their way to the sink.
#
# All of them are read at one point in time, so what still differs, with upstream's rows, belongs to one checkpoint.

POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long rows may be on their way: ``tries`` times up to ``wait_s``."""

    tries: int = 5
    wait_s: float = 10.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def look_again(sides: Sides, pairs: Mapping[TableName, TablePair], results: list[TableResult], *, keeps_rows: bool) -> Ts:
    """Replace the differences of the tables by what differs now; return the checkpoint at which they were read."""
    with sides.moment() as ts:
        for result in results:
            if result.differences:
                comparison = TableComparison(pairs[result.name], sides, len(result.differences))
                keys = [each.key for each in result.differences]
                result.differences = list(comparison.look_up(keys, keeps_rows=keeps_rows))
            elif _is_whole(pairs, result):
                again = TableComparison(pairs[result.name], sides, 0).compare_in(ts, Scope())
                result.upstream, result.sink, result.is_cut = again.upstream, again.sink, again.is_cut
    return ts


def wait_for_rows(
    sides: Sides, pairs: Mapping[TableName, TablePair], results: list[TableResult], patience: Patience, timeline: Timeline
) -> None:
    """Compare again until nothing differs, or ``tries`` times, each when the sink has passed upstream's time of the comparison before."""
    for _ in range(patience.tries):
        if not any(result.differences or _is_whole(pairs, result) for result in results):
            return
        _wait_for_checkpoint(sides, timeline.ts_at_ms(sides.upstream.clock_ms()) or MAX_TS, patience)
        look_again(sides, pairs, results, keeps_rows=False)


def _is_whole(pairs: Mapping[TableName, TablePair], result: TableResult) -> bool:
    """Return whether a table without a key differed: it can only be compared as a whole."""
    return not (result.is_equal or result.problem or pairs[result.name].key)


def _wait_for_checkpoint(sides: Sides, ts: Ts, patience: Patience) -> None:
    """Wait until the sink's checkpoint has passed ``ts``, at most ``wait_s``: upstream's clock may not be the one of the timestamps."""
    deadline_s = patience.now() + patience.wait_s
    while patience.now() < deadline_s:
        sides.sink.begin()
        try:
            checkpoint_ts = sides.sink.checkpoint_ts() or NO_TS
        finally:
            sides.sink.end()
        if is_past(ts, checkpoint_ts):
            return
        patience.sleep(POLL_S)
