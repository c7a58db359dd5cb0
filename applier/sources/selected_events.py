"""Select first, decode after: what a placer does with events that it takes one by one, whatever format they have.

A format cuts a record into ``UnreadEvent`` and reads their parts when it is asked. Here is what every format needs again: the tables that
the filter excludes, the row changes that an event filter excludes, the sink's names, markers for rows that cannot be read, and errors
that name their event.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, ExcludedTable, PlacedRow, ResolvedEvent, RowOperation, Shape, TableName
from applier.model.position import Offset, RecordPosition, Stream
from applier.model.rejected_event import WHOLE_RECORD, RejectedEvent
from applier.selection import SelectedTable, TableSelection, select_ddl
from applier.sources.compiled import intern_shape
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Unplaced


def gather_rows(events: Iterable[tuple[int, int, Placed | RejectedEvent]]) -> Iterator[PlacedRows | PlacedEvent]:
    """Turn (offset, index, event) into what ``Placer.place_all`` yields: rows that follow one another become columns."""
    rows: list[tuple[int, int, PlacedRow]] = []
    for offset, index, event in events:
        if isinstance(event, PlacedRow):
            rows.append((offset, index, event))
            continue
        if rows:
            yield rows_of(rows)
            rows = []
        yield PlacedEvent(offset, index, event)
    if rows:
        yield rows_of(rows)


def rows_of(rows: list[tuple[int, int, PlacedRow]]) -> PlacedRows:
    """Return the columns of at least one (offset, index, row)."""
    offset, index, placed = zip(*rows, strict=True)
    commit_ts, kind, shape, key, image = zip(*placed, strict=True)
    shapes: dict[int, Shape] = {id(one): one for one in shape}
    numbers = {identity: number for number, identity in enumerate(shapes)}
    return PlacedRows(tuple(shapes.values()), [numbers[id(one)] for one in shape], commit_ts, kind, offset, index, key, image)


MAX_TABLES: Final = 65_536
"""Tables that a placer remembers."""


class UnreadEvent(Protocol):
    """One event of a record. No part of it is read before it is asked for. Each method raises ProtocolError, without a position."""

    @property
    def head(self) -> EventHead | None:
        """What ``read_head`` has returned; None before, and where the head cannot be read. ``name`` is upstream's."""
        ...

    def read_head(self) -> EventHead:
        """Read the timestamp, the table and the kind of the event."""
        ...

    def is_row(self) -> bool:
        """Whether it is the change of a row. Called after ``read_head``."""
        ...

    def operation(self) -> RowOperation:
        """Return what happened to the row. Called where an event filter asks for it, before ``rows``."""
        ...

    def rows(self) -> list[PlacedRow]:
        """Return the row, or two where an update changed its key."""
        ...

    def plain(self) -> DdlEvent | ResolvedEvent | AdminEvent:
        """Return an event that is not a row."""
        ...

    def markers(self) -> list[PlacedRow]:
        """Return a marker (``MARKER_IMAGE``) for each row of an unreadable event, if its keys can be read. Raises nothing."""
        ...


def routed_rows(table: SelectedTable, rows: list[PlacedRow]) -> list[PlacedRow]:
    """Return rows of a table under its name in the sink."""
    return [row._replace(shape=intern_shape(table.routed(row.shape))) for row in rows] if table.is_routed else rows


class SelectedEvents:
    """Applies a selection to the events of one range."""

    def __init__(self, stream: Stream, selection: TableSelection) -> None:
        self._stream, self._selection = stream, selection
        self._tables: dict[TableName, SelectedTable] = {}

    def table(self, name: TableName) -> SelectedTable:
        """Return the selection's decision about a table of upstream."""
        found = self._tables.get(name)
        if found is None:
            if len(self._tables) >= MAX_TABLES:
                self._tables.clear()
            found = self._tables[name] = self._selection.table(name)
        return found

    def place(self, event: UnreadEvent, offset: int, index: int) -> Sequence[Placed]:
        """Return what is applied of an event; () if the selection excludes it. ProtocolError, with its position."""
        try:
            return self._place(event)
        except ProtocolError as error:
            raise self.located(error, offset, index, event.head) from error

    def place_or_mark(self, event: UnreadEvent, offset: int, index: int) -> Sequence[Placed | Unplaced]:
        """Return what is applied of an event; for one that cannot be read its markers and an ``Unplaced``."""
        try:
            return self._place(event)
        except ProtocolError as error:
            return [*self._markers(event), Unplaced(self.located(error, offset, index, event.head), self._sink_head(event.head))]

    def located(self, error: ProtocolError, offset: int, index: int | None, head: EventHead | None = None) -> ProtocolError:
        """Return the error with the facts of the record and the event that it arose in."""
        return located(error, RecordPosition(self._stream, Offset(offset)), index, head)

    def unplaced(self, error: ProtocolError, offset: int) -> list[tuple[int, Placed | Unplaced]]:
        """Return what ``Placer.place_each`` returns for a record that cannot be taken apart."""
        return [(WHOLE_RECORD, Unplaced(self.located(error, offset, None), None))]

    def _place(self, event: UnreadEvent) -> Sequence[Placed]:
        head = event.read_head()
        if not event.is_row():
            plain = event.plain()
            return (select_ddl(plain, self._selection) if isinstance(plain, DdlEvent) else plain,)
        table = self.table(head.name)
        if table.is_filtered:
            return (ExcludedTable(head.ts, head.name),)
        if table.is_out or (table.ignored and event.operation() in table.ignored):
            return ()
        return routed_rows(table, event.rows())

    def _markers(self, event: UnreadEvent) -> list[PlacedRow]:
        return [] if event.head is None or not event.is_row() else routed_rows(self.table(event.head.name), event.markers())

    def _sink_head(self, head: EventHead | None) -> EventHead | None:
        return None if head is None else head._replace(name=self._selection.name(head.name))


def located(error: ProtocolError, position: RecordPosition | None, index: int | None, head: EventHead | None) -> ProtocolError:
    """Return the error with the facts of the record at ``place`` and of the event; only rows and DDLs have a table."""
    facts = dict(error.facts)
    kind = facts.pop("kind")
    where: dict[str, object] = {} if index is None else {"event": index}
    if head is not None and (head.is_ddl or head.name.table):
        where |= {"schema": head.name.schema, "table": head.name.table, "commit_ts": head.ts}
    found = ProtocolError.at(position, kind, error.message, **(where | facts))
    found.remedy = error.remedy
    return found
