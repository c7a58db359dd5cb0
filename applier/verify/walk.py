"""Cuts a table into ranges of keys, each of about the same number of rows, with queries that read keys only."""

from collections.abc import Iterator

from applier.verify.moment import Sides
from applier.verify.scope import Key, Scope
from applier.verify.table_pair import TablePair


def ranges(pair: TablePair, sides: Sides, rows: int) -> Iterator[Scope]:
    """Yield ranges that together hold every row of each side exactly once; one for everything if no order is the same on both."""
    low: Key | None = None
    passed: Key | None = None
    while pair.ranged:
        passed = _next_bound(pair, sides, passed, rows)
        if passed is None:
            break
        # A bound that the sink orders before the last one is no bound: its row would lie in two ranges, or in none.
        if low is not None and pair.must_check_order and not _is_above(pair, sides, passed, low):
            continue
        yield Scope(low, passed)
        low = passed
    yield Scope(low, None)


def _next_bound(pair: TablePair, sides: Sides, low: Key | None, rows: int) -> Key | None:
    try:
        sides.upstream.begin()
        return sides.upstream.bound(pair, low, rows)
    finally:
        sides.upstream.end()


def _is_above(pair: TablePair, sides: Sides, key: Key, low: Key) -> bool:
    try:
        return sides.sink.is_above(pair, key, low)
    finally:
        sides.sink.end()
