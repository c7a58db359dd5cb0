"""Reports: what a listener read in one offset range. Small, however much the range holds: reports go to the driver, rows do not."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import NO_TS, Offset, Stream, Ts
from applier.model.rejected_event import RejectedEvent

# --- promises --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Each is 0 if there is no such event or row. Rows below the floor do not count."""

    first_ts: Ts = NO_TS
    """The first resolved event."""
    least_later_ts: Ts = NO_TS
    """The least of the resolved events after the first."""
    unpromised_ts: Ts = NO_TS
    """The greatest commit_ts of the rows before the first resolved event; of all rows, if there is none."""
    behind_ts: Ts = NO_TS
    """No row above it comes after a greater promise of the range."""


NO_PROMISES = Promises()


# --- range report ----------------------------------------------------------------------------------------------------


class RangeId(NamedTuple):
    """An offset range of one stream: ``start`` <= offset < ``end``. It never has two lengths."""

    stream: Stream
    start: Offset
    end: Offset


class ResumePoint(NamedTuple):
    """A record whose value is greater than in all records before it in its range (``RangeReport.resume_points``)."""

    offset: Offset
    value: Ts


class RepeatPoint(NamedTuple):
    """What shows which rows of tables without a key are repeated: a promise, or that the producer went back (``is_return``).

    ``ts`` is that of the promise; 0: none. ``table``: the only one that it is about (tables keep no order among one another); None: all.
    """

    offset: Offset
    ts: Ts
    is_return: bool = False
    table: FoldedName | None = None


class DdlArrival(NamedTuple):
    """A DDL and its position in a range; ``index`` counts the events of one record."""

    offset: Offset
    index: int  # type: ignore[assignment] # hides tuple.index, which nobody needs here
    ddl: DdlEvent


class TableRows(NamedTuple):
    """The cached rows of one table in one range.

    ``handle_key``: casefolded names of the key columns, sorted; a table has several entries if its rows disagree. An empty tuple is a table
    without a key, None one whose key the rows' format does not tell: the sink's catalogue gives it. ``bytes_key``: the ones among them
    whose values are bytes and not text. ``min_ts``/``max_ts`` bound the commit_ts of these rows; ``first_offset`` in ``stream`` is the
    position to name in a message. ``placeholders``: how many of them are read from upstream before they are written, and then take far more
    than in the cache. ``routed_from``: upstream's name, where it is another one. ``hides_actions``: as in ``Shape``, of any of them.
    ``tells_indexes``: their format names the members of unique indexes (``KnownKeys.unique``). ``tells_generated``: it tells which columns
    upstream computes.
    """

    name: TableName
    handle_key: tuple[str, ...] | None
    rows: int
    min_ts: Ts
    max_ts: Ts
    first_offset: Offset
    bytes_key: tuple[str, ...] = ()
    stream: Stream | None = None
    placeholders: int = 0
    unique_columns: tuple[str, ...] = ()
    """Casefolded names of the columns that all of these images have and that are members of unique indexes upstream (all columns, where
    the key is not known); empty where they are the handle key. A column selector may exclude the handle key, but never all unique keys."""
    routed_from: TableName | None = None
    hides_actions: bool = False
    tells_indexes: bool = True
    tells_generated: bool = True

    @property
    def upstream_name(self) -> TableName:
        """The table in upstream."""
        return self.routed_from or self.name

    @property
    def identifying(self) -> frozenset[str]:
        """The columns among which a unique key identifies the rows, where the wire shows them."""
        return frozenset(self.unique_columns or self.handle_key or ())

    def joined(self, other: "TableRows") -> "TableRows":
        """Return what is said of these rows and of others of the same table and key."""
        unique = self.identifying & other.identifying
        return self._replace(
            rows=self.rows + other.rows,
            min_ts=min(self.min_ts, other.min_ts),
            max_ts=max(self.max_ts, other.max_ts),
            placeholders=self.placeholders + other.placeholders,
            unique_columns=() if unique == frozenset(self.handle_key or ()) else tuple(sorted(unique)),
            hides_actions=self.hides_actions or other.hides_actions,
        )


class ChangedKey(NamedTuple):
    """A raw update that has changed its handle key: a delete and an upsert in one event."""

    offset: Offset
    table: TableName
    commit_ts: Ts


class RowCount(NamedTuple):
    """How many of a range's cached rows have commit_ts <= ``ts``."""

    ts: Ts
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeReport:
    """What a listener read in one range. Rows below the floor were dropped (``replays``).

    ``resume_points`` says for every later checkpoint A where a restart must begin, without keeping each record. The value of a cached row
    is its commit_ts, that of a resolved event is ts - 1. The points are the running maxima of these values in offset order, so the first
    record with a row >= A or a resolved event > A is the first point whose value is >= A. Points may be merged (an earlier offset with a
    later value): a restart then reads more, never less. DDLs are not in it, since the ledger decides about them.
    ``row_counts`` are cumulative, ascending, at most 64, each at the commit_ts of a row, the last one at ``max_ts`` with all ``rows``.
    """

    range: RangeId
    resolved_ts: Ts
    resume_points: tuple[ResumePoint, ...] = ()
    ddls: tuple[DdlArrival, ...] = ()
    tables: tuple[TableRows, ...] = ()
    rows: int = 0
    bytes: int = 0
    min_ts: Ts = Ts(0)
    max_ts: Ts = Ts(0)
    row_counts: tuple[RowCount, ...] = ()
    early_ts: Ts = Ts(0)
    """ts of the first row or DDL below the floor, if no resolved event above the floor precedes it in the range; 0: none."""
    early_offset: Offset = Offset(0)
    replays: int = 0
    records: int = 0
    """Fewer than the range has offsets where there are gaps."""
    events: int = 0
    partitions: int = 0
    """The number of partitions that the last admin event of the range announces; 0: there is none."""
    ends_announced: bool = False
    """Whether no event follows that admin event in the range."""
    left_out: tuple[TableName, ...] = ()
    """Tables with rows that the filter has skipped, replays not counted."""
    skipped_statements: tuple[tuple[str, int], ...] = ()
    """How many statements of each kind were skipped, because they change no table of a replica."""
    promises: Promises = NO_PROMISES
    changed_key: ChangedKey | None = None
    """The first raw update that has changed its handle key, where the listener looks for them (``ListenTask.watches_keys``)."""
    rejected_events: tuple[RejectedEvent, ...] = ()
    """Few. No position may pass them before they are stored."""
    checksum: int = 0
    """Of what it holds: every key, image, commit_ts and offset of its rows, its DDLs and its resolved timestamp."""
    repeats: tuple[RepeatPoint, ...] = ()
    """Of rows of tables without a key; empty where no one needs to know."""

    def kept(self) -> "RangeReport":
        """Return what may be kept of it once its DDLs are taken in: a DDL is in the reports of all partitions."""
        return replace(self, ddls=()) if self.ddls else self
