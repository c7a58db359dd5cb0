"""The final rows of one table in one segment, as columns: what waits in memory until it is rendered.

A row costs its key, its image, 29 bytes of numbers and one entry of a dictionary: no object of its own. What is superseded is dropped
while chunks are fed: one key that is updated 100,000 times takes the memory of some thousand rows.
"""

from array import array
from collections.abc import Sequence
from itertools import compress
from operator import is_not
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from applier.model.chunk import Chunk
from applier.model.events import Value
from applier.model.segment import supersede
from applier.planner.column_match import Origin

T = TypeVar("T")

Key: TypeAlias = bytes | tuple[Value, ...]

SUPERSEDED_ROWS: Final = 1_000
"""Superseded rows that a table may hold, or as many as it has final ones: then they are dropped."""


class RowPlace(NamedTuple):
    """One row as errors name it. ``event``: its index in the record."""

    origin: Origin
    commit_ts: int
    offset: int
    event: int
    key: Key

    @property
    def facts(self) -> dict[str, Any]:
        """Its table and place."""
        return self.origin.facts(self.commit_ts, self.offset)


class FinalRows:
    """The latest version of each key of one table. Feed parts of chunks, ``finish``, then read the columns: they run in parallel."""

    __slots__ = ("_keeps_order", "_numbers", "_repeated", "commit_ts", "image", "index", "keys", "kind", "offset", "origin")

    def __init__(self, *, keeps_order: bool = False) -> None:
        """Begin without rows. ``keeps_order``: as in ``RowDecoder``."""
        self._keeps_order = keeps_order
        self._numbers: dict[Key, int] = {}
        self._repeated: set[Key] = set()
        self.keys: list[Key] = []
        self.commit_ts: array[int] = array("Q")
        self.kind: array[int] = array("B")
        self.offset: array[int] = array("q")
        self.index: array[int] = array("q")
        self.origin: array[int] = array("i")
        self.image: list[bytes] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def feed(self, rows: Chunk, keys: Sequence[Key], origin: "array[int]") -> None:
        """Take rows of the table. ``keys`` stand for ``rows.key``; ``origin``: numbers that replace ``rows.origin``."""
        numbers = list(range(len(self.image), len(self.image) + len(keys)))
        self.commit_ts.fromlist(rows.commit_ts)
        self.kind.fromlist(rows.kind)
        self.offset.fromlist(rows.offset)
        self.index.fromlist(rows.index)
        self.origin += origin
        self.image += rows.image
        # One dictionary operation per row, in C. A key that is new takes its row's number; for any other its earlier row comes back.
        found = list(map(self._numbers.setdefault, keys, numbers))
        if found == numbers:
            return
        is_repeated = list(map(is_not, found, numbers))
        self._repeated.update(compress(keys, is_repeated))
        repeated = compress(zip(keys, numbers, strict=True), is_repeated)
        supersede(self._numbers, repeated, self._versions())
        if len(self.image) - len(self._numbers) > max(SUPERSEDED_ROWS, len(self._numbers)):
            self._drop_superseded()

    def _versions(self) -> "tuple[array[int], array[int], array[int], array[int]]":
        """Return the columns that order the versions of a key, the first one first."""
        # Of an update that comes as a delete and an upsert both have one place: the delete is first in either order.
        if self._keeps_order:
            return self.commit_ts, self.offset, self.index, self.kind
        return self.commit_ts, self.kind, self.offset, self.index

    def _drop_superseded(self) -> None:
        kept = list(self._numbers.values())
        self._numbers = dict(zip(self._numbers, range(len(kept)), strict=True))
        for name in ("commit_ts", "kind", "offset", "index", "origin"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, list(map(column.__getitem__, kept))))
        self.image = list(map(self.image.__getitem__, kept))

    def finish(self) -> None:
        """Keep the final rows alone, in the order in which their keys came first."""
        if len(self.image) > len(self._numbers):
            self._drop_superseded()
        self.keys = list(self._numbers)

    def count_only(self, rows: Sequence[int]) -> int:
        """Count those of some rows, once finished, that are the only version of their key."""
        if not self._repeated:
            return len(rows)
        return sum(self.keys[row] not in self._repeated for row in rows)

    def row_of(self, key: Key) -> int | None:
        """Return the row of a key, once finished."""
        return self._numbers.get(key)

    def version(self, row: int) -> tuple[int, int, int, int]:
        """Return what orders the versions of a key."""
        first, second, third, last = self._versions()
        return first[row], second[row], third[row], last[row]

    def forget(self, rows: Sequence[int]) -> None:
        """Free the images of rows that are rendered."""
        for row in rows:
            self.image[row] = b""

    def place(self, row: int, origins: Sequence[Origin]) -> RowPlace:
        """Name one row for an error."""
        return RowPlace(origins[self.origin[row]], self.commit_ts[row], self.offset[row], self.index[row], self.keys[row])

    def first(self, rows: Sequence[int]) -> int:
        """Return the earliest of some rows."""
        return min(rows, key=self.commit_ts.__getitem__)


def picked(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """Return the entries of some rows."""
    # Usually all rows of a table are written alike, and a part of them is one slice.
    if isinstance(rows, range):
        return column[rows.start : rows.stop]
    return list(map(column.__getitem__, rows))
