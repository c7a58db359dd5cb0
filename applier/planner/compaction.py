"""Compaction: the last version per key of a bucket's rows in a segment. Images of superseded versions are never decoded.

A key's final state is its last event by (commit_ts, delete before upsert, offset, index), or by (commit_ts, offset, index) where the
source keeps the order of a transaction: ``final_rows``.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

from applier.model.chunk import Chunk
from applier.model.errors import ApplierError, InvariantViolation
from applier.model.events import MARKER_IMAGE, FoldedName
from applier.model.segment import SegmentWindow
from applier.planner.column_match import Origin, bytes_key_names, is_partial, key_names, origins_of
from applier.planner.division import divided, selected
from applier.planner.final_rows import FinalRows, Key, RowPosition
from applier.planner.keyless import KeylessRows
from applier.planner.ordered_rows import ColumnSet, OrderedRows, PartialRows, RowsOfTable
from applier.planner.port import TableDescription

# --- transactions ----------------------------------------------------------------------------------------------------


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


# --- compaction ------------------------------------------------------------------------------------------------------


KeyReader: TypeAlias = Callable[[RowPosition, bytes], Key]
"""A row and its image -> its key. ApplierError, with the row's position, if it cannot be found."""
KeyReaders: TypeAlias = Callable[[Origin], KeyReader]
"""Origin of a rekeyed table -> how to find the key of its rows."""

OnBadKey: TypeAlias = Callable[[RowPosition, ApplierError], None]
"""Removes a row whose key cannot be read from its image from the plan, or raises the error."""


class RowOrder(NamedTuple):
    """``keeps_order``: as in ``RowDecoder``. ``tables``: all of their rows are kept, because they are written in order."""

    keeps_order: bool = False
    tables: frozenset[FoldedName] = frozenset()


class Compaction:
    """The final rows of one bucket in one segment, table by table. Feed every chunk, or the window's part of it, once; then read."""

    def __init__(
        self,
        window: SegmentWindow,
        rekeyed: Mapping[FoldedName, KeyReaders],
        on_bad_key: OnBadKey,
        described: Mapping[FoldedName, TableDescription],
        order: RowOrder | None = None,
    ) -> None:
        """``described``: the sink's tables. Rows whose images lack columns of theirs are partial (``PartialRows``)."""
        self._keeps_order, ordered = order or RowOrder()
        self._ordered = {table: OrderedRows() for table in ordered}
        self._window, self._described = window, described
        self._on_bad_key = on_bad_key
        self._rekeyed = rekeyed
        self.origins: list[Origin] = []
        self._numbers: dict[Origin, int] = {}
        self._names: list[FoldedName] = []
        self._readers: dict[int, KeyReader] = {}
        self._used: set[int] = set()
        self._tables: dict[FoldedName, FinalRows] = {}
        self._columns: dict[int, ColumnSet] = {}
        """Of each origin whose images are partial: their columns."""
        self._partial: dict[FoldedName, PartialRows] = {}
        self._without_key: set[int] = set()
        """The origins without a key."""
        self._keyless: dict[FoldedName, KeylessRows] = {}
        # A dictionary, for its order: nearly sorted, it is sorted in no time.
        self._commits: dict[int, None] = {}

    def feed(self, chunk: Chunk) -> None:
        """Take the rows of one chunk; those outside of the window are skipped."""
        numbers = list(map(self._number, origins_of(chunk)))
        # Two passes over a column in C instead of a comparison per row: nearly all chunks lie inside of their segment.
        if self._window.selects_all(min(chunk.commit_ts), max(chunk.commit_ts)):
            self._commits.update(dict.fromkeys(chunk.commit_ts))
        else:
            chunk = self._inside(chunk, numbers)
            self._commits.update(dict.fromkeys(self._window.own(chunk.commit_ts)))
        names = [self._names[number] for number in numbers]
        tables = list(dict.fromkeys(names))
        if len(tables) == 1:
            self._feed_table(tables[0], chunk, numbers)
            return
        ranks = list(map({name: rank for rank, name in enumerate(tables)}.__getitem__, names))
        for rank, rows in divided(chunk, map(ranks.__getitem__, chunk.origin), len(tables)):
            self._feed_table(tables[rank], rows, numbers)

    def _number(self, origin: Origin) -> int:
        number = self._numbers.setdefault(origin, len(self.origins))
        if number == len(self.origins):
            table = origin.folded
            self.origins.append(origin)
            self._names.append(table)
            if (readers := self._rekeyed.get(table)) is not None:
                self._readers[number] = readers(origin)
            elif not origin.shape.handle_key:
                self._without_key.add(number)
                return number
            if table in self._ordered:
                return number
            if (description := self._described.get(table)) is not None and is_partial(origin.shape, description):
                self._columns[number] = frozenset(column.name.casefold() for column in origin.shape.columns)
        return number

    def _inside(self, chunk: Chunk, numbers: Sequence[int]) -> Chunk:
        """Return the rows inside of the window."""
        # Rows that are written in order, as those without a key, are never applied again.
        is_keyed = [
            (number in self._readers or bool(self.origins[number].shape.handle_key)) and self._names[number] not in self._ordered
            for number in numbers
        ]
        bounds = [
            self._window.bound(self.origins[number].stream, self._names[number], keyed=keyed)
            for number, keyed in zip(numbers, is_keyed, strict=True)
        ]
        inside = self._window.inside(chunk.commit_ts, map(bounds.__getitem__, chunk.origin))
        return chunk if all(inside) else selected(chunk, list(compress(range(len(inside)), inside)))

    def _feed_table(self, table: FoldedName, rows: Chunk, numbers: Sequence[int]) -> None:
        if not rows.origin:
            return
        used = set(rows.origin)
        self._used.update(map(numbers.__getitem__, used))
        keys: Sequence[Key] = rows.key
        if table in self._rekeyed:
            rows, keys = self._rekey(rows, numbers)
        # Most chunks hold rows of one origin: then its number is not looked up row by row.
        if len(used) == 1:
            origin = array("i", (numbers[min(used)],)) * len(rows.origin)
        else:
            origin = array("i", map(numbers.__getitem__, rows.origin))
        if (ordered := self._ordered.get(table)) is not None:
            ordered.feed(rows, keys, origin)
            return
        # By the rows of the window, not of the chunk: another table may have had the name before.
        if self._without_key and not self._without_key.isdisjoint(map(numbers.__getitem__, used)):
            self._keyless.setdefault(table, KeylessRows()).feed(rows, origin)
            return
        if (final := self._tables.get(table)) is None:
            final = self._tables[table] = FinalRows(keeps_order=self._keeps_order)
        # Per origin and not per row: tables without partial rows pay nothing.
        if not self._columns.keys().isdisjoint(map(numbers.__getitem__, used)):
            rows, keys, origin = self._take_parts(table, RowsOfTable(rows, keys, origin))
        final.feed(rows, keys, origin)

    def _take_parts(self, table: FoldedName, rows: RowsOfTable) -> RowsOfTable:
        """Set the partial rows aside and return the others. A delete is whole by its key, and a marker has no columns."""
        columns = [
            self._columns.get(number) if kind and image != MARKER_IMAGE else None
            for number, kind, image in zip(rows.origin, rows.chunk.kind, rows.chunk.image, strict=True)
        ]
        if not any(columns):
            return rows
        return self._partial.setdefault(table, PartialRows(keeps_order=self._keeps_order)).feed(rows, columns)

    def _rekey(self, rows: Chunk, numbers: Sequence[int]) -> tuple[Chunk, list[Key]]:
        """Return the rows whose key can be read from their image, and their keys."""
        kept: list[int] = []
        keys: list[Key] = []
        for row, (number, image) in enumerate(zip(map(numbers.__getitem__, rows.origin), rows.image, strict=True)):
            if image == MARKER_IMAGE:  # a marker has no image, so it has no key of the sink's
                continue
            position = RowPosition(self.origins[number], rows.commit_ts[row], rows.offset[row], rows.index[row], rows.key[row])
            try:
                keys.append(self._readers[number](position, image))
            except ApplierError as error:
                self._on_bad_key(position, error)
            else:
                kept.append(row)
        return selected(rows, kept), keys

    def ordered(self) -> dict[FoldedName, FinalRows]:
        """Return all rows of each table that is written in order, once."""
        found, self._ordered = {table: rows.finish() for table, rows in self._ordered.items()}, {}
        return {table: rows for table, rows in found.items() if rows.keys}

    def tables(self) -> Iterator[tuple[FoldedName, FinalRows, PartialRows | None]]:
        """Yield each table's final rows, and its partial ones; of a table without a key all rows.

        InvariantViolation if its rows disagree on the key and were not rekeyed.
        """
        # The caller has rekeyed these tables; if one was missed, versions of one row are in two buckets and both would be written.
        keys: dict[FoldedName, tuple[tuple[str, ...], ...]] = {}
        for number in self._used:
            table, shape = self._names[number], self.origins[number].shape
            form = key_names(shape), bytes_key_names(shape)
            if table not in self._rekeyed and keys.setdefault(table, form) != form:
                raise InvariantViolation("rows of one table disagree on its key and were not rekeyed", table=str(table))
        # Each table is freed once its statements are taken.
        for table in list(self._tables):
            rows, partial = self._tables.pop(table), self._partial.pop(table, None)
            rows.finish()
            if rows.keys or partial is not None:
                yield table, rows, partial
        for table in list(self._keyless):
            rows = self._keyless.pop(table).finish()
            if rows.keys:
                yield table, rows, None

    def transactions(self) -> TransactionSet:
        """Return the distinct commit_ts in the window; those applied again are not counted again."""
        return TransactionSet.of(self._commits)
