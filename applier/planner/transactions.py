"""Counting upstream transactions over buckets: one transaction has rows in many of them."""

from array import array
from collections.abc import Iterable
from typing import NamedTuple


class TransactionSet(NamedTuple):
    """The distinct commit_ts of one bucket's rows in a segment, as packed unsigned 64-bit integers."""

    data: bytes

    @classmethod
    def of(cls, commit_ts: Iterable[int]) -> "TransactionSet":
        """Pack distinct timestamps."""
        # Packed: the driver holds the sets of all buckets of a segment, at eight bytes a transaction.
        return cls(array("Q", sorted(commit_ts)).tobytes())


def count_transactions(sets: Iterable[TransactionSet]) -> int:
    """Return how many distinct transactions the buckets of one segment hold together."""
    distinct: set[int] = set()
    for one in sets:
        distinct.update(array("Q", one.data))
    return len(distinct)
