"""Compaction: the last version per key of a bucket's rows in a segment. Images of superseded versions are never decoded.

A key's final state is its last event by (commit_ts, delete before upsert, offset, index). Versions are plain tuples that begin with
these four, so that the order of tuples is the order of versions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import compress
from operator import itemgetter
from typing import TypeAlias

from applier.model.chunk import Chunk
from applier.model.errors import ApplierError, InvariantViolation
from applier.model.events import MARKER_IMAGE, FoldedName, Value
from applier.model.segment import SegmentWindow
from applier.planner.column_match import Origin, bytes_key_names, key_names, origins_of
from applier.planner.transactions import TransactionSet

Key: TypeAlias = bytes | tuple[Value, ...]
Version: TypeAlias = tuple[int, int, int, int, Key, bytes, int]
"""(commit_ts, kind, offset, index, key, image, number of the origin)."""

KeyReader: TypeAlias = Callable[[Version], Key]
KeyReaders: TypeAlias = Callable[[Origin], KeyReader]
"""Origin of a rekeyed table -> how to find the key of its rows. ApplierError, with the row's place, if it cannot be found."""

COMMIT_TS, OFFSET, KEY, IMAGE, ORIGIN = itemgetter(0), itemgetter(2), itemgetter(4), itemgetter(5), itemgetter(6)

OnBadKey: TypeAlias = Callable[[Origin, Version, ApplierError], None]
"""Takes a row whose key cannot be read from its image out of the plan, or raises the error."""


class Compaction:
    """The final versions of one bucket, table by table. Feed every chunk, or the window's part of it, once; then read."""

    def __init__(self, window: SegmentWindow, rekeyed: Mapping[FoldedName, KeyReaders], on_bad_key: OnBadKey) -> None:
        self._window = window
        self._on_bad_key = on_bad_key
        self._rekeyed = rekeyed
        self.origins: list[Origin] = []
        self._numbers: dict[Origin, int] = {}
        self._readers: dict[int, KeyReader] = {}
        self._floors: list[int] = []
        self._used: set[int] = set()
        self._finals: dict[FoldedName, dict[Key, Version]] = {}
        self._commits: set[int] = set()

    def feed(self, chunk: Chunk) -> None:
        """Take the rows of one chunk; those outside of the window are left out."""
        numbers = [self._number(origin) for origin in origins_of(chunk)]
        finals = {number: self._finals.setdefault(self.origins[number].folded, {}) for number in numbers}
        for version in self._selected(chunk, numbers):
            final = finals[version[6]]
            # One dictionary operation per row in the usual case, a key with one version; tuples compare in C.
            previous = final.setdefault(version[4], version)
            if previous is not version and previous < version:
                final[version[4]] = version

    def _number(self, origin: Origin) -> int:
        number = self._numbers.setdefault(origin, len(self.origins))
        if number == len(self.origins):
            table = origin.folded
            self.origins.append(origin)
            readers = self._rekeyed.get(table)
            if readers is not None:
                self._readers[number] = readers(origin)
            keyed = readers is not None or bool(origin.shape.handle_key)
            self._floors.append(self._window.floor(table, keyed=keyed))
        return number

    def _selected(self, chunk: Chunk, numbers: list[int]) -> Iterable[Version]:
        """Yield the rows of the window. A chunk that lies inside of it, as nearly all do, is not looked at row by row."""
        rows: Iterator[Version] = zip(
            chunk.commit_ts,
            chunk.kind,
            chunk.offset,
            chunk.index,
            chunk.key,
            chunk.image,
            map(numbers.__getitem__, chunk.origin),
            strict=True,
        )
        # Two passes over a column in C instead of a comparison per row: nearly all chunks lie inside of their segment.
        window = self._window
        if window.selects_all(min(chunk.commit_ts), max(chunk.commit_ts)):
            self._commits.update(chunk.commit_ts)
            self._used.update(numbers)
            return self._rekey(rows) if self._readers else rows
        floors = [self._floors[number] for number in numbers]
        inside = list(compress(rows, window.inside(chunk.commit_ts, map(floors.__getitem__, chunk.origin))))
        self._commits.update(window.own(map(COMMIT_TS, inside)))
        self._used.update(map(ORIGIN, inside))
        return self._rekey(inside) if self._readers else inside

    def _rekey(self, rows: Iterable[Version]) -> Iterator[Version]:
        for row in rows:
            reader = self._readers.get(row[6])
            if reader is None:
                yield row
            elif IMAGE(row) != MARKER_IMAGE:  # a marker has no image, so it has no key of the sink's
                try:
                    rekeyed = (*row[:4], reader(row), *row[5:])
                except ApplierError as error:
                    self._on_bad_key(self.origins[row[6]], row, error)
                else:
                    yield rekeyed

    def tables(self) -> Iterator[tuple[FoldedName, list[Version]]]:
        """Yield each table's final versions. InvariantViolation if its rows disagree on the key and were not rekeyed."""
        # The caller has rekeyed these tables; if one was missed, versions of one row are in two buckets and both would be written.
        keys: dict[FoldedName, tuple[tuple[str, ...], ...]] = {}
        for origin in (self.origins[number] for number in self._used):
            form = key_names(origin.shape), bytes_key_names(origin.shape)
            if origin.folded not in self._rekeyed and keys.setdefault(origin.folded, form) != form:
                raise InvariantViolation("rows of one table disagree on its key and were not rekeyed", table=str(origin.folded))
        for table, finals in self._finals.items():
            if finals:
                yield table, list(finals.values())

    def transactions(self) -> TransactionSet:
        """Return the distinct commit_ts in the window; those applied again are not counted again."""
        return TransactionSet.of(self._commits)
