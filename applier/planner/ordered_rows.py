"""The rows of one segment that are written in their order: all of them, of all tables that foreign keys join (``key_actions``)."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any, Final, NamedTuple

from applier.model.chunk import Chunk
from applier.model.events import MARKER_IMAGE, FoldedName, RowKind
from applier.planner.final_rows import FinalRows, Key


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
