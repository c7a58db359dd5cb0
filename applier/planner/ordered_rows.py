"""The rows of one segment that are written in their order: all of them, of all tables that foreign keys join (``KeyGroups``)."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any, Final, NamedTuple

from applier.model.chunk import Chunk
from applier.model.events import MARKER_IMAGE, FoldedName, RowKind
from applier.planner.final_rows import FinalRows, Key
from applier.planner.table_check import Acceptance, DifferenceKind

# --- key actions -----------------------------------------------------------------------------------------------------
# Which tables are written in order: those that foreign keys join, if an action of one of these keys changes rows without an event. Pure.
#
# InnoDB executes the actions of foreign keys below the binlog. The server's own replica does the same: it changes row after row, in their
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
    """The foreign keys of a sink. Keys both of whose tables the operator accepts count as keys without an action."""

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
        """Return the keys of a group that act, in a fixed order."""
        return sorted(link for link in self._acting if link.child in group)

    def links_of(self, tables: Iterable[FoldedName]) -> list[KeyLink]:
        """Return the keys of these tables, and those that reference them."""
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

    place: tuple[int, int, int]
    table: FoldedName
    change: Change
    row: int
    after: int = -1


_PLACE: Final = attrgetter("place")


def in_order(tables: Mapping[FoldedName, FinalRows]) -> list[OrderedChange]:
    """Return the events of some tables in the order in which upstream has executed them."""
    changes = [change for table, rows in tables.items() for change in _changes(table, rows)]
    changes.sort(key=_PLACE)
    return changes


def _changes(table: FoldedName, rows: FinalRows) -> Iterator[OrderedChange]:
    # Of an update that comes as a delete and an upsert both have one place.
    deleted: dict[tuple[int, int, int], int] = {}
    upserted: dict[tuple[int, int, int], int] = {}
    for row, (kind, *place, image) in enumerate(zip(rows.kind, rows.commit_ts, rows.offset, rows.index, rows.image, strict=True)):
        # The event of a marker is quarantined.
        if image != MARKER_IMAGE:
            (deleted if kind == RowKind.DELETE else upserted)[place[0], place[1], place[2]] = row
    for at, row in deleted.items():
        after = upserted.pop(at, None)
        yield OrderedChange(at, table, Change.DELETE, row) if after is None else OrderedChange(at, table, Change.REKEY, row, after)
    for at, row in upserted.items():
        yield OrderedChange(at, table, Change.UPSERT, row)
