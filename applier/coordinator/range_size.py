"""How many records of one stream make a range: as many as have a bounded number of bytes together, however large its records are."""

from typing import Final

RANGE_BYTES: Final = 32 << 20
"""Bytes of cached chunks: large enough that a job's fixed cost vanishes, small enough that a few per stream fit into memory."""

FIRST_RECORDS: Final = 5_000
"""For the first range of a stream: a record may be a few bytes, or a batch of megabytes."""

GROWTH: Final = 8
"""How many times as long as the last range the next one may be: its records may be larger than those that were read."""

MOST_RECORDS: Final = 1_000_000
"""At most so many records, however small they are."""


class RangeSize:
    """Learns from the ranges that were read."""

    __slots__ = ("_bytes_per_record", "records")

    def __init__(self) -> None:
        self.records = FIRST_RECORDS
        self._bytes_per_record = 0.0

    def learn(self, records: int, size: int) -> None:
        """Take in that a range of so many records had ``size`` bytes."""
        # The last range alone, no mean: where large records begin, the next range must be small at once.
        self._bytes_per_record = size / records
        # Bounded, since ranges without rows say nothing of the records to come: on a feed of resolved events alone they grew for ever.
        most = min(self.records * GROWTH, MOST_RECORDS)
        self.records = max(1, min(most, int(RANGE_BYTES / self._bytes_per_record))) if size else most

    def expected_bytes(self, records: int) -> int:
        """Return how many bytes a range of so many records will probably have."""
        return int(records * self._bytes_per_record)
