"""Rows of one segment that are not reduced to one final row each: rows written in their order, and partial rows.

Tables that foreign keys join (``KeyGroups``) are written in the order of their rows. A partial row, whose image lacks columns of the sink's
table, supersedes only columns: the latest one of each key *and set of columns* is kept. A key's row at the end is its latest whole row or
delete (``FinalRows``), with the later partial rows laid over it in order.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any, Final, NamedTuple

from applier.model.chunk import Chunk
from applier.model.events import MARKER_IMAGE, FoldedName, RowKind
from applier.model.segment import is_later_version
from applier.planner.division import selected
from applier.planner.final_rows import FinalRows, Key
from applier.planner.table_check import Acceptance, DifferenceKind

# --- key actions -----------------------------------------------------------------------------------------------------
# Which tables are written in order: tables that foreign keys join, if an action of one of these keys changes rows without an event. Pure.
#
# InnoDB executes the actions of foreign keys below the binlog. A replica of the server does the same: it changes row after row, in their
# order, with ``foreign_key_checks = 1``. So does the sink, for these tables alone. It then checks all their foreign keys, those without an
# action too, and a check holds only if both tables are at the same row of the log. So a group is closed over all foreign keys.

_ACTING: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


class KeyLink(NamedTuple):
    """A foreign key of ``child``, which references ``parent``."""

    name: str
    child: FoldedName
    parent: FoldedName
    on_delete: str
    on_update: str

    @property
    def acts(self) -> bool:
        """Whether a change of the parent may change the child."""
        return not _ACTING.isdisjoint({self.on_delete.upper(), self.on_update.upper()})

    def __str__(self) -> str:
        """Name the key and its actions."""
        return f"foreign key {self.name} of {self.child} (ON DELETE {self.on_delete}, ON UPDATE {self.on_update})"


class KeyGroups:
    """The foreign keys of a sink. A key counts as one without an action if the operator accepts both of its tables."""

    def __init__(self, links: Iterable[KeyLink], accept: Acceptance) -> None:
        self.links = tuple(links)
        self._neighbours: defaultdict[FoldedName, list[KeyLink]] = defaultdict(list)
        for link in self.links:
            for table in {link.child, link.parent}:
                self._neighbours[table].append(link)
        self._acting = {link for link in self.links if link.acts and not _accepts(accept, link)}
        self._groups: dict[FoldedName, frozenset[FoldedName]] = {}
        for link in self._acting:
            if link.child not in self._groups:
                group = self._joined(link.child)
                self._groups |= dict.fromkeys(group, group)

    def _joined(self, table: FoldedName) -> frozenset[FoldedName]:
        found, left = {table}, [table]
        while left:
            for link in self._neighbours[left.pop()]:
                new = {link.child, link.parent} - found
                found |= new
                left += new
        return frozenset(found)

    def group(self, table: FoldedName) -> frozenset[FoldedName]:
        """Return the tables that are written in order with this one; none if it is in no such group."""
        return self._groups.get(table, frozenset())

    def acting(self, group: frozenset[FoldedName]) -> list[KeyLink]:
        """Return the keys of a group that have actions, in a fixed order."""
        return sorted(link for link in self._acting if link.child in group)

    def links_of(self, tables: Iterable[FoldedName]) -> list[KeyLink]:
        """Return the keys of these tables, and the keys that reference them."""
        return [link for table in tables for link in self._neighbours.get(table, ())]


def _accepts(accept: Acceptance, link: KeyLink) -> bool:
    return all(accept.accepts(table, DifferenceKind.FOREIGN_KEY) for table in (link.child, link.parent))


# --- ordered rows ----------------------------------------------------------------------------------------------------


class OrderedRows:
    """All rows of one table in one segment."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._rows = FinalRows(keeps_order=True)

    def feed(self, rows: Chunk, keys: Sequence[Key], origin: "array[int]") -> None:
        """Take rows of the table, as ``FinalRows.feed``. None of them supersedes another."""
        # A range that was read again is in the cache twice until its first copy is released.
        events: list[Any] = list(zip(rows.commit_ts, rows.offset, rows.index, rows.kind, keys, strict=True))
        self._rows.feed(rows, events, origin)

    def finish(self) -> FinalRows:
        """Return the rows with their keys."""
        self._rows.finish()
        self._rows.keys = [event[-1] for event in self._rows.keys]  # type: ignore[misc] # as ``feed`` has made them
        return self._rows


class Change(Enum):
    """What an event does to a row."""

    DELETE = "delete"
    UPSERT = "upsert"
    """It adds a row, or changes one under its key."""
    REKEY = "rekey"
    """It changes a row and its key. ``OrderedChange.row`` is the row before."""


class OrderedChange(NamedTuple):
    """One event: ``row`` of ``table``, of a REKEY also the row that it becomes."""

    position: tuple[int, int, int]
    table: FoldedName
    change: Change
    row: int
    after: int = -1


_POSITION: Final = attrgetter("position")


def in_order(tables: Mapping[FoldedName, FinalRows]) -> list[OrderedChange]:
    """Return the events of some tables in the order in which upstream has executed them."""
    changes = [change for table, rows in tables.items() for change in _changes(table, rows)]
    changes.sort(key=_POSITION)
    return changes


def _changes(table: FoldedName, rows: FinalRows) -> Iterator[OrderedChange]:
    # Of an update that comes as a delete and an upsert both have one position.
    deleted: dict[tuple[int, int, int], int] = {}
    upserted: dict[tuple[int, int, int], int] = {}
    for row, (kind, *position, image) in enumerate(zip(rows.kind, rows.commit_ts, rows.offset, rows.index, rows.image, strict=True)):
        # The event of a marker is quarantined.
        if image != MARKER_IMAGE:
            (deleted if kind == RowKind.DELETE else upserted)[position[0], position[1], position[2]] = row
    for at, row in deleted.items():
        after = upserted.pop(at, None)
        yield OrderedChange(at, table, Change.DELETE, row) if after is None else OrderedChange(at, table, Change.REKEY, row, after)
    for at, row in upserted.items():
        yield OrderedChange(at, table, Change.UPSERT, row)


ColumnSet = frozenset[str]


class Part(NamedTuple):
    """One partial row: its position among the rows of its column set."""

    final: FinalRows
    row: int

    @property
    def version(self) -> tuple[int, ...]:
        """What orders the versions of a key."""
        return self.final.version(self.row)


class RowsOfTable(NamedTuple):
    """Some rows of one table, with their keys and the numbers of their origins."""

    chunk: Chunk
    keys: Sequence[Key]
    origin: "array[int]"

    def some(self, chosen: Sequence[int]) -> "RowsOfTable":
        """Return some of them."""
        return RowsOfTable(
            selected(self.chunk, chosen), [self.keys[row] for row in chosen], array("i", [self.origin[row] for row in chosen])
        )

    def position(self, row: int) -> tuple[int, int, int]:
        """Return commit_ts, offset and index: what rows of one event share."""
        return self.chunk.commit_ts[row], self.chunk.offset[row], self.chunk.index[row]


def _unsplit_updates(rows: RowsOfTable, columns: Sequence[ColumnSet | None]) -> set[tuple[Any, ...]]:
    """Return key and position of the partial rows: of a delete with the same ones, the row is not gone."""
    return {(rows.keys[row], *rows.position(row)) for row, found in enumerate(columns) if found is not None}


class PartialRows:
    """Feed partial rows, ``finish``, then read the changes on top of the whole rows."""

    __slots__ = ("_by_columns", "_keeps_order")

    def __init__(self, *, keeps_order: bool = False) -> None:
        """Begin without rows. ``keeps_order``: as in ``RowDecoder``."""
        self._keeps_order = keeps_order
        self._by_columns: dict[ColumnSet, FinalRows] = {}

    def feed(self, rows: RowsOfTable, columns: Sequence[ColumnSet | None]) -> RowsOfTable:
        """Take the partial rows of some rows of the table; return the others. ``columns``: the column set of each; None: not partial."""
        updates = _unsplit_updates(rows, columns)
        others: list[int] = []
        parts: dict[ColumnSet, list[int]] = {}
        for row, found in enumerate(columns):
            if found is not None:
                parts.setdefault(found, []).append(row)
            # An update of a row without handle key comes as a delete and an upsert. What it leaves is not a new row.
            elif rows.chunk.kind[row] or (rows.keys[row], *rows.position(row)) not in updates:
                others.append(row)
        for found, chosen in parts.items():
            self._by_columns.setdefault(found, FinalRows(keeps_order=self._keeps_order)).feed(*rows.some(chosen))
        return rows.some(others)

    def laid_over(self, whole: FinalRows) -> Iterator[tuple[Key, int | None, list[Part]]]:
        """Yield each key with the row of ``whole`` (None: it does not have one) and the parts that follow it, in order.

        A key whose parts are all superseded is skipped.
        """
        parts: dict[Key, list[Part]] = {}
        for final in self._by_columns.values():
            final.finish()
            for row, key in enumerate(final.keys):
                base = whole.row_of(key)
                # An empty image marks an event that cannot be read. The plan of the key needs all of its parts.
                if base is None or whole.image[base] == MARKER_IMAGE or is_later_version(final.version(row), whole.version(base)):
                    parts.setdefault(key, []).append(Part(final, row))
        for key, found in parts.items():
            yield key, whole.row_of(key), sorted(found, key=lambda part: part.version)
