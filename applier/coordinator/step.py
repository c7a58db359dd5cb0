"""The steps that the coordinator asks for. The engine performs them in order and confirms each when it is durable."""

from dataclasses import dataclass
from typing import TypeAlias

from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.position import RecordPosition, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, TableRows
from applier.model.rejected_event import RejectedEvent
from applier.model.segment import RowWindow, SegmentWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The cached rows of a window. It can be prepared early; its step then has an equal one.

    ``ranges`` are those whose rows may be inside; empty: no job, only progress. ``tables`` are the tables that may have rows in it, one
    entry per table and reported handle key over all ranges. ``rows``: how many it has at most, before compaction.
    """

    window: SegmentWindow
    ranges: tuple[RangeId, ...]
    tables: tuple[TableRows, ...]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySegment:
    """Write a segment in one transaction that moves the checkpoint to its end, where ``positions`` are the streams' positions.

    Where a DDL at the beginning of its window may have touched everything, the window is not ``again``.
    """

    segment: Segment
    positions: dict[Stream, StreamPosition]
    later: tuple[Ts, ...] = ()
    """The commit_ts of the known DDLs after the one at the segment's end: segments will end there."""

    @property
    def window(self) -> SegmentWindow:
        """The rows that are written."""
        return self.segment.window


KeyAnswer: TypeAlias = tuple[str, ...] | None
"""The key of a table whose rows can be written one by one, as a report gives it (``TableRows.handle_key``); None: they cannot."""


@dataclass(frozen=True, slots=True)
class AskKeys:
    """Answer which of these tables have rows that can be written ahead of W: one unique key in the sink, which compares bytes.

    ``by_table``: all rows of a table come in one stream.
    """

    tables: tuple[TableRows, ...]
    by_table: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRows:
    """Write cached rows ahead of W: of ``tables``, for each stream between the two commit_ts of its span, the second included.

    They may be written in any number of transactions. When all are durable, ``positions`` and ``ahead_tables`` are, in one more; the
    checkpoint stays where it is.
    """

    spans: dict[Stream, tuple[Ts, Ts]]
    ranges: tuple[RangeId, ...]
    tables: tuple[TableRows, ...]
    positions: dict[Stream, StreamPosition]
    ahead_tables: dict[FoldedName, bool]
    rows: int

    @property
    def window(self) -> RowWindow:
        """The rows that are written."""
        return RowWindow.of(self.spans, frozenset(table.name.fold() for table in self.tables))


@dataclass(frozen=True, slots=True)
class ForgetRows:
    """Store ``positions``, by which no row is ahead of the checkpoint, and reload state: all rows since the checkpoint are written again.

    Ranges with such rows are released already, so the coordinator has no further step: a new one reads them again.
    """

    positions: dict[Stream, StreamPosition]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteDdl:
    """Write the intent (which moves the checkpoint to the DDL's ts), run the DDL, write done."""

    identity: DdlIdentity
    ddl: DdlEvent
    position: RecordPosition
    """Where it arrived first, for messages."""
    # The intent moves the checkpoint to the DDL's ts: with an intent that leaves A behind, 1,162 of 3,000 simulated histories
    # end wrong after a crash between the DDL and ``done``.
    positions: dict[Stream, StreamPosition]
    positions_done: dict[Stream, StreamPosition]
    """The positions once the DDL is settled."""


@dataclass(frozen=True, slots=True)
class NeedNames:
    """Answer which of these tables and views the sink has now: DDLs of one ts came in several topics, and names decide their order."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Evict:
    """Release these cached ranges: all their rows are below the checkpoint."""

    ranges: tuple[RangeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveProgress:
    """Write the positions without moving the checkpoint (they grew, and stored offsets must not expire).

    ``rejected_events`` are stored in the quarantine by the same transaction.
    """

    positions: dict[Stream, StreamPosition]
    rejected_events: tuple[RejectedEvent, ...] = ()


Step: TypeAlias = ApplySegment | ApplyRows | AskKeys | ForgetRows | ExecuteDdl | NeedNames | Evict | SaveProgress
