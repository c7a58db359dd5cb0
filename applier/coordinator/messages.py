"""What goes into the coordinator (reports, listings, outcomes) and what comes out of it (steps)."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from applier.bad_event import BadEvent
from applier.events import DdlEvent, FoldedName, TableName
from applier.events import DdlIdentity as DdlIdentity  # noqa: PLC0414 - part of these messages for those who read them
from applier.position import Offset, Place, Stream, Ts


class RangeId(NamedTuple):
    """An offset range of one stream: ``start`` <= offset < ``end``. It never has two lengths."""

    stream: Stream
    start: Offset
    end: Offset


class Step(NamedTuple):
    """One stair of a range's hold line: the first record whose value is >= ``value``'s predecessor stair lies at ``offset``."""

    offset: Offset
    value: Ts


class DdlArrival(NamedTuple):
    """A DDL in a range: where (``index`` counts the events inside one record), and what."""

    offset: Offset
    index: int  # type: ignore[assignment] # hides tuple.index, which nobody needs here
    ddl: DdlEvent


class TableRows(NamedTuple):
    """The cached rows of one table in one range.

    ``handle_key``: casefolded names of the key columns, sorted; a table has several entries if its rows disagree, and
    an empty tuple is a table without a key. ``bytes_key``: those of them whose values are bytes and not text. ``min_ts``/``max_ts``
    bound the commit_ts of these rows; ``first_offset`` in ``stream`` is the place to name in a message.
    """

    name: TableName
    handle_key: tuple[str, ...]
    rows: int
    min_ts: Ts
    max_ts: Ts
    first_offset: Offset
    bytes_key: tuple[str, ...] = ()
    stream: Stream | None = None


class RowCount(NamedTuple):
    """How many of a range's cached rows have commit_ts <= ``ts``."""

    ts: Ts
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeReport:
    """What a listener read in one range: small, whatever the range held. Rows below the floor were dropped (``replays``).

    ``hold`` is the staircase of running maxima over the records in offset order, of the value commit_ts of a row (cached ones
    only) and ts - 1 of a resolved event: the first record with a row >= A or a resolved event > A is the first stair whose value
    is >= A. Stairs may be merged conservatively (an earlier offset with a later value). DDLs are not in it.
    ``row_counts`` are cumulative, ascending, at most 64, each at the commit_ts of a row, the last one at ``max_ts`` with all ``rows``.
    """

    range: RangeId
    resolved_ts: Ts
    hold: tuple[Step, ...] = ()
    ddls: tuple[DdlArrival, ...] = ()
    tables: tuple[TableRows, ...] = ()
    rows: int = 0
    bytes: int = 0
    chunks: int = 0
    min_ts: Ts = Ts(0)
    max_ts: Ts = Ts(0)
    row_counts: tuple[RowCount, ...] = ()
    early_ts: Ts = Ts(0)
    """ts of the range's first row or DDL below the floor, unless a resolved event above the floor precedes it in the range; 0: none."""
    early_offset: Offset = Offset(0)
    replays: int = 0
    events: int = 0
    bad_events: tuple[BadEvent, ...] = ()
    """What the listener passed by; few. No position may pass them before they are stored."""


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The offsets that one partition holds: ``earliest`` <= offset < ``end``."""

    earliest: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class Listing:
    """All partitions of the topics with their extents, as Kafka gave them just now."""

    extents: dict[Stream, PartitionExtent]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """The durable position of one stream."""

    next_offset: Offset
    resolved_ts: Ts


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """The durable state from which a coordinator begins: read from the sink."""

    checkpoint_ts: Ts
    start_ts: Ts
    positions: dict[Stream, StreamPosition] = field(default_factory=dict)
    settled: frozenset[DdlIdentity] = frozenset()
    """Identities in the ledger at or above checkpoint_ts, done and skipped (intents were settled before)."""
    ddl_touched_at_checkpoint: frozenset[FoldedName] | None = frozenset()
    """Names touched by the ledger's DDLs at checkpoint_ts; a schema name stands as (schema, ''); None: everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySegment:
    """Write all cached rows with ``after_ts`` < commit_ts <= ``upto_ts`` in one transaction that moves the checkpoint to ``upto_ts``.

    With ``again``, rows at exactly ``after_ts`` too, except those of tables without a key and of tables that ``settled_tables`` names:
    themselves, or by a schema entry (schema, ''). Where a DDL at ``after_ts`` may have touched everything there is no ``again``.
    ``ranges`` are those whose rows may lie inside; empty: no job, only progress. ``positions`` are the streams' positions at ``upto_ts``.
    ``tables`` are the tables that may have rows in it, one entry per table and reported handle key over all ranges.
    """

    after_ts: Ts
    upto_ts: Ts
    again: bool
    settled_tables: frozenset[FoldedName]
    ranges: tuple[RangeId, ...]
    tables: tuple[TableRows, ...]
    positions: dict[Stream, StreamPosition]
    rows: int = 0
    """Rows of the segment at most, before compaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteDdl:
    """Write the intent (which moves the checkpoint to the DDL's ts), run the DDL, write done."""

    identity: DdlIdentity
    ddl: DdlEvent
    place: Place
    """Where it arrived first, for messages."""
    positions: dict[Stream, StreamPosition]
    positions_done: dict[Stream, StreamPosition]
    """The positions once the DDL is settled."""


@dataclass(frozen=True, slots=True)
class NeedNames:
    """Say which of these tables (and views) the sink has now: DDLs of one ts came in several topics, and names decide their order."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Evict:
    """Release these cached ranges: all their rows are below the checkpoint."""

    ranges: tuple[RangeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveProgress:
    """Write the positions without moving the checkpoint (they grew, and stored offsets must not expire).

    ``bad_events`` are stored in the quarantine by the same transaction.
    """

    positions: dict[Stream, StreamPosition]
    bad_events: tuple[BadEvent, ...] = ()


CoordinatorStep: TypeAlias = ApplySegment | ExecuteDdl | NeedNames | Evict | SaveProgress
