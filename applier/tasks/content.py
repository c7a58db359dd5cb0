"""The checksum of a range's content: equal for every reading of the same records, however they are divided into batches and chunks.

A range that is read again for the cache must hold what its report says. Rows and bytes may be equal where a value differs.
"""

from array import array
from collections.abc import Iterable, Sequence
from zlib import crc32

from applier.model.position import Ts
from applier.model.range_report import DdlArrival
from applier.sources.port import PlacedRows


class RangeChecksum:
    """Checksums of one range, each over one column of all its rows: so it does not matter which rows come together."""

    __slots__ = ("_commit_ts", "_images", "_index", "_keys", "_kinds", "_offsets")

    def __init__(self) -> None:
        self._keys = self._images = self._commit_ts = self._offsets = self._index = self._kinds = 0

    def add(self, rows: PlacedRows) -> None:
        """Add some rows. The hot path: a call per column and batch. Measured: 0.2 µs a row of 310 bytes, of 8."""
        self._keys = crc32(b"".join(rows.key), self._keys)
        self._images = crc32(b"".join(rows.image), self._images)
        self._commit_ts = _of_numbers(rows.commit_ts, self._commit_ts)
        self._offsets = _of_numbers(rows.offset, self._offsets)
        self._index = _of_numbers(rows.index, self._index)
        self._kinds = crc32(bytes(rows.kind), self._kinds)

    def of(self, resolved_ts: int, ddls: Iterable[DdlArrival], tables: Iterable[tuple[str, str, int, Ts, Ts]]) -> int:
        """Return the checksum of the rows and of the rest of the range. ``tables``: name, rows and first and last commit_ts of each."""
        rows = (self._keys, self._images, self._commit_ts, self._offsets, self._index, self._kinds)
        statements = [(ddl.offset, ddl.index, ddl.ddl.commit_ts, ddl.ddl.query) for ddl in ddls]
        return crc32(repr((rows, resolved_ts, statements, sorted(tables))).encode("utf-8", "surrogatepass"))


def _of_numbers(numbers: Sequence[int], before: int) -> int:
    # A column of small numbers may be bytes, which array would take for numbers of eight bytes each.
    return crc32(array("Q", list(numbers) if isinstance(numbers, bytes) else numbers), before)
