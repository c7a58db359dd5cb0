"""How many bytes the records of one stream have, as far as that can be known before they are read.

Where a source names cuts, a record stands for a byte of the source (``range_cuts``), which has more or less of them in the cache.
"""

from typing import Final

GUESS: Final = 4 << 10
"""Bytes of a record before any was read. A record is one row, or a batch of up to megabytes; the producer's default is 16 rows."""

LEAST: Final = 64
"""Bytes of a record at least: also one that leaves nothing in the cache (a resolved event) takes its time to read."""

GUESS_OF_BYTE: Final = 1.0
LEAST_OF_BYTE: Final = 0.25
"""The same of a byte of the source."""

SHRINKING: Final = 8
"""How many times smaller than the records of the last range those of the next one are taken for at most."""


class RangeSize:
    """Learns from the ranges that were read."""

    __slots__ = ("_least", "bytes_per_record")

    def __init__(self, *, counts_bytes: bool = False) -> None:
        self.bytes_per_record: float = GUESS_OF_BYTE if counts_bytes else GUESS
        self._least = LEAST_OF_BYTE if counts_bytes else LEAST

    def learn(self, records: int, size: int) -> None:
        """Record the ``size`` in bytes of a range of so many records."""
        # The last range alone, no mean: where large records begin, the next range must be small at once. Downward by steps, since ranges
        # without rows say nothing of the records to come.
        self.bytes_per_record = max(size / max(1, records), self.bytes_per_record / SHRINKING, self._least)

    def expected_bytes(self, records: int) -> int:
        """Return how many bytes so many records will probably have."""
        return int(records * self.bytes_per_record)

    def records_of(self, size: float) -> int:
        """Return how many records probably have ``size`` bytes together; at least one."""
        return max(1, int(size / self.bytes_per_record))
