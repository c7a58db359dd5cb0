"""What a listener's report says of its range, collected while the range is read: small, whatever the range holds.

Resume points, row counts and tables are bounded, because a driver gets one report per range and cycle: 10,000 streams must cost a few
megabytes (DESIGN.md 15).
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, compress, pairwise
from typing import Any, Final
from zlib import crc32

from applier.model.chunk import bucket_seed
from applier.model.errors import Remedy, SourceError
from applier.model.events import AdminEvent, DdlEvent, ExcludedTable, FoldedName, ResolvedEvent, Shape, SkippedStatement, TableName
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Offset, Stream, Ts
from applier.model.range_report import ChangedKey, DdlArrival, Promises, RangeId, RangeReport, RepeatPoint, ResumePoint, RowCount, TableRows
from applier.model.rejected_event import MAX_QUARANTINED, EventPosition, QuarantineState, RejectedEvent
from applier.model.segment import behind_promise, has_shown_past, is_behind_promise, is_past
from applier.planner import bytes_key_names, reported_key, unique_names
from applier.sources.port import PlacedRows

# --- content ---------------------------------------------------------------------------------------------------------
# The checksum of a range's content: equal for every reading of the same records, however they are divided into batches and chunks.
#
# A range that is read again for the cache must hold what its report says. Rows and bytes may be equal where a value differs.


class RangeChecksum:
    """Checksums of one range, each over one column of all its rows: so it does not matter which rows come together."""

    __slots__ = ("_commit_ts", "_images", "_index", "_keys", "_kinds", "_offsets")

    def __init__(self) -> None:
        self._keys = self._images = self._commit_ts = self._offsets = self._index = self._kinds = 0

    def add(self, rows: PlacedRows) -> None:
        """Add some rows. The hot path: a call per column and batch. Measured: 0.2 µs a row of 310 bytes, of 8."""
        self._keys = crc32(b"".join(rows.key), self._keys)
        self._images = crc32(b"".join(rows.image), self._images)
        self._commit_ts = _of_numbers(rows.commit_ts, self._commit_ts)
        self._offsets = _of_numbers(rows.offset, self._offsets)
        self._index = _of_numbers(rows.index, self._index)
        self._kinds = crc32(bytes(rows.kind), self._kinds)

    def of(self, resolved_ts: int, ddls: Iterable[DdlArrival], tables: Iterable[tuple[str, str, int, Ts, Ts]]) -> int:
        """Return the checksum of the rows and of the rest of the range. ``tables``: name, rows and first and last commit_ts of each."""
        rows = (self._keys, self._images, self._commit_ts, self._offsets, self._index, self._kinds)
        statements = [(ddl.offset, ddl.index, ddl.ddl.commit_ts, ddl.ddl.query) for ddl in ddls]
        return crc32(repr((rows, resolved_ts, statements, sorted(tables))).encode("utf-8", "surrogatepass"))


def _of_numbers(numbers: Sequence[int], before: int) -> int:
    # A column of small numbers may be bytes, which array would take for numbers of eight bytes each.
    return crc32(array("Q", list(numbers) if isinstance(numbers, bytes) else numbers), before)


# --- promises --------------------------------------------------------------------------------------------------------


class RangePromises:
    """The resolved events of one range. ``resolved_ts``: the greatest so far."""

    __slots__ = ("_behind_ts", "_first_ts", "_least_later_ts", "_unpromised_ts", "resolved_ts")

    def __init__(self) -> None:
        self.resolved_ts = NO_TS
        self._first_ts = self._least_later_ts = self._unpromised_ts = self._behind_ts = NO_TS

    def rows(self, times: Sequence[int]) -> None:
        """Add rows that follow one another without a resolved event between them."""
        if not self._first_ts:
            self._unpromised_ts = max(self._unpromised_ts, Ts(max(times)))
        else:
            self._behind_ts = max(self._behind_ts, behind_promise(min(times), max(times), self.resolved_ts))

    def resolved(self, ts: Ts) -> None:
        """Add a resolved event."""
        if self._first_ts:
            self._least_later_ts = min(self._least_later_ts or ts, ts)
        self._first_ts = self._first_ts or ts
        self.resolved_ts = max(self.resolved_ts, ts)

    def found(self) -> Promises:
        """Return what was found."""
        return Promises(
            first_ts=self._first_ts,
            least_later_ts=self._least_later_ts,
            unpromised_ts=self._unpromised_ts,
            behind_ts=self._behind_ts,
        )


# --- repeat points ---------------------------------------------------------------------------------------------------


class RepeatPoints:
    """Collects the points of one range: few between two rows of tables without a key."""

    __slots__ = ("_last", "_open", "_points", "_returned")

    def __init__(self) -> None:
        """Begin before the first event."""
        self._points: list[RepeatPoint] = []
        self._open: list[RepeatPoint] = []
        self._last = Ts(0)
        self._returned: set[FoldedName] = set()
        """The tables without a row since their last return: of several returns without one between them, the first is enough."""

    def promise(self, offset: int, ts: Ts) -> None:
        """Add a resolved event."""
        point = RepeatPoint(Offset(offset), ts, is_behind_promise(ts, self._last))
        self._last = ts
        # Of several promises without such a row between them, the first shows whether the range begins below what was promised before
        # it, and the last is the greatest.
        if len(self._open) > 1 and self._open[-1].is_return == point.is_return:
            self._open.pop()
        self._open.append(point)

    def rows(self) -> None:
        """Record that rows of tables without a key have come."""
        self._points += self._open
        self._open.clear()
        self._returned.clear()

    def replays(self, rows: PlacedRows, kept: Iterable[bool]) -> None:
        """Add rows, some of them below the floor. They were sent and applied before: their table is sent again from there on."""
        tables = [None if shape.handle_key else shape.name.fold() for shape in rows.shapes]
        for offset, shape, is_kept in zip(rows.offset, rows.shape, kept, strict=True):
            if (table := tables[shape]) is None:
                continue
            if is_kept:
                self._returned.discard(table)
            elif table not in self._returned:
                self._points += self._open
                self._open.clear()
                self._points.append(RepeatPoint(Offset(offset), Ts(0), is_return=True, table=table))
                self._returned.add(table)

    def found(self) -> tuple[RepeatPoint, ...]:
        """Return the points."""
        return (*self._points, *self._open)


# --- range summary ---------------------------------------------------------------------------------------------------


MAX_RESUME_POINTS: Final = 256
MAX_ROW_COUNTS: Final = 64

ROW_BYTES: Final = 24
"""What a row takes in a chunk in addition to its key and image. Fixed, so that a range counts the same whatever it shares its chunks
with."""


class TableSummary:
    """What the report says about the rows of one shape. ``seed``: what their bucket hashes begin with."""

    __slots__ = (
        "first_offset",
        "max_ts",
        "min_ts",
        "rows",
        "seed",
        "shape",
    )

    def __init__(self, shape: Shape, offset: int, ts: int) -> None:
        """Begin with the first row of the shape."""
        self.shape, self.seed = shape, bucket_seed(shape)
        self.rows, self.min_ts, self.max_ts, self.first_offset = 0, ts, ts, offset

    def count(self, rows: int, min_ts: int, max_ts: int) -> None:
        """Count rows between two commit_ts."""
        self.rows += rows
        if min_ts < self.min_ts:  # noqa: PLR1730 - called per row where tables are mixed: a third of the time of min() and max()
            self.min_ts = min_ts
        if max_ts > self.max_ts:  # noqa: PLR1730 - see above
            self.max_ts = max_ts


class RangeSummary:
    """Collects the report of one range."""

    __slots__ = (
        "_bytes",
        "_changed_key",
        "_checksum",
        "_ddls",
        "_early",
        "_ends_announced",
        "_floor_ts",
        "_has_keyless",
        "_held",
        "_left_out",
        "_partitions",
        "_promises",
        "_range",
        "_rejected",
        "_repeats",
        "_replays",
        "_resume_points",
        "_shared_ddls",
        "_skipped",
        "_stored",
        "_tables",
        "_top",
        "_ts",
        "events",
        "records",
    )  # fmt: skip

    def __init__(
        self,
        range_id: RangeId,
        floor_ts: Ts,
        stored: Collection[tuple[int, int]],
        ddls: dict[DdlEvent, DdlEvent],
        *,
        notes_repeats: bool = False,
    ) -> None:
        """``stored``: the (offset, event) of rejected events that the quarantine has already. ``ddls``: of all ranges of the task."""
        self._shared_ddls = ddls
        self._range, self._floor_ts, self._stored = range_id, floor_ts, stored
        self._tables: dict[int, TableSummary] = {}
        self._ts: list[int] = []
        self._resume_points: list[tuple[int, int]] = []
        """Of each record that keeps the stored offset as long as the checkpoint is at or below a value: (its offset, the value)."""
        self._ddls: list[DdlArrival] = []
        self._rejected: dict[EventPosition, RejectedEvent] = {}
        self._left_out: dict[TableName, None] = {}
        self._skipped = Counter[str]()
        self._held = 0
        self._early: tuple[int, int] | None = None
        self._changed_key: ChangedKey | None = None
        self._promises = RangePromises()
        self._replays = self._bytes = 0
        self.records = self.events = self._partitions = 0
        self._ends_announced = False
        self._top = -1
        self._has_keyless = False
        self._checksum = RangeChecksum()
        self._repeats = RepeatPoints() if notes_repeats else None

    def add_rows(self, rows: PlacedRows) -> tuple[PlacedRows, list[TableSummary]]:
        """Count some rows. Return the rows that are not below the floor, and their tables, parallel to ``shapes``."""
        self.events += len(rows.key)
        self._ends_announced = False
        if is_past(min(rows.commit_ts), self._floor_ts):
            rows = self._drop_replays(rows)
            if not rows.key:
                return rows, []
        self._checksum.add(rows)
        times = rows.commit_ts
        self._promises.rows(times)
        if max(times) > self._top:
            self._hold_rows(rows.offset, times)
        self._ts += times
        self._bytes += sum(map(len, rows.key)) + sum(map(len, rows.image)) + ROW_BYTES * len(times)
        tables = [self._table(shape, rows, number) for number, shape in enumerate(rows.shapes)]
        # Once one is known, all rows count as rows of such a table: a point too many does no harm.
        if self._has_keyless and self._repeats is not None:
            self._repeats.rows()
        if len(tables) == 1:
            tables[0].count(len(times), min(times), max(times))
        else:
            for table, ts in zip(map(tables.__getitem__, rows.shape), times, strict=True):
                table.count(1, ts, ts)
        return rows, tables

    def note_changed_key(self, rows: PlacedRows) -> None:
        """Note the first update that has changed its key: two rows of one event, which follow one another.

        Each update of a table without a key is two rows; such a table is never written ahead.
        """
        if self._changed_key is not None or len(set(rows.offset)) == len(rows.offset):
            return
        for row, (position, following) in enumerate(pairwise(zip(rows.offset, rows.index, strict=True))):
            shape = rows.shapes[rows.shape[row]]
            if position == following and shape.handle_key:
                self._changed_key = ChangedKey(Offset(position[0]), shape.name, Ts(rows.commit_ts[row]))
                return

    def _drop_replays(self, rows: PlacedRows) -> PlacedRows:
        """Return the rows that are not below the floor; count the others."""
        kept = [not is_past(ts, self._floor_ts) for ts in rows.commit_ts]
        self._replays += kept.count(False)
        if self._repeats is not None:
            self._repeats.replays(rows, kept)
        first = kept.index(False)
        # Of the first one only: within a run of rows there is no promise, so it speaks for the later ones.
        self._note_early(rows.offset[first], rows.commit_ts[first])
        shapes = list(compress(rows.shape, kept))
        used = sorted(set(shapes))
        renumbered = {shape: number for number, shape in enumerate(used)}
        columns: Iterable[Any] = (list(compress(column, kept)) for column in rows[2:])
        return PlacedRows([rows.shapes[shape] for shape in used], [renumbered[shape] for shape in shapes], *columns)

    def _hold_rows(self, offsets: Sequence[int], times: Sequence[int]) -> None:
        """Note the rows that are above all before them."""
        tops = list(accumulate(times, max, initial=self._top))
        self._resume_points += [(offset, top) for offset, top, before in zip(offsets, tops[1:], tops, strict=False) if top > before]
        self._top = tops[-1]

    def _table(self, shape: Shape, rows: PlacedRows, number: int) -> TableSummary:
        """Return what is known of the shape with this number in ``rows``."""
        # Shapes are interned, so their identity is enough as key. The hash of a shape would go through all of its columns.
        table = self._tables.get(id(shape))
        if table is None:
            first = rows.shape.index(number)
            table = self._tables[id(shape)] = TableSummary(shape, rows.offset[first], rows.commit_ts[first])
            self._has_keyless = self._has_keyless or not shape.handle_key
        return table

    def add_event(
        self, offset: int, index: int, event: DdlEvent | ResolvedEvent | AdminEvent | RejectedEvent | ExcludedTable | SkippedStatement
    ) -> None:
        """Add an event that is not a row. SourceError if too many are rejected."""
        self._ends_announced = isinstance(event, AdminEvent)
        if isinstance(event, ExcludedTable):
            if not is_past(event.ts, self._floor_ts):
                self._left_out[event.name] = None
            return
        self.events += 1
        if isinstance(event, ResolvedEvent):
            self._promises.resolved(event.ts)
            if self._repeats is not None:
                self._repeats.promise(offset, event.ts)
            # ts - 1: a restart needs the first resolved event *above* A again, and the first row at or above A (model.segment).
            self._hold_rows([offset], [event.ts - 1])
        elif isinstance(event, DdlEvent):
            self._note_early(offset, event.commit_ts)
            # A DDL is in all partitions. Its copies count once here and, since they travel together, in the driver.
            self._ddls.append(DdlArrival(Offset(offset), index, self._shared_ddls.setdefault(event, event)))
        elif isinstance(event, AdminEvent):
            self._partitions = event.partition
        elif isinstance(event, RejectedEvent):
            self._add_rejected(event)
        elif not is_past(Ts(event.ts), self._floor_ts):
            self._skipped[event.kind] += 1

    def _add_rejected(self, event: RejectedEvent) -> None:
        """Report an event that is not in the quarantine yet. Events that the operator skips are not limited in number."""
        is_held = event.state is QuarantineState.HELD
        if is_held and event.commit_ts:
            self._note_early(event.position.offset, event.commit_ts)
        # An update that changes its key is one event with two rows: it is reported once.
        if event.position[1:] in self._stored or event.position in self._rejected:
            return
        self._rejected[event.position] = event
        self._held += is_held
        if self._held > MAX_QUARANTINED:
            raise SourceError(
                f"more than {MAX_QUARANTINED} events of one range cannot be read",
                remedy=Remedy(
                    "tasks.find-common-cause", "Find the common cause: `applier inspect --topic … --partition … --from …` shows the events"
                ),
                kind=FailureKind.TOO_MANY_BAD_EVENTS,
                topic=event.position.stream.topic,
                partition=event.position.stream.partition,
                offset=event.position.offset,
                reason=event.error,
            )

    def _note_early(self, offset: int, ts: int) -> None:
        """Note the first event below the floor: proof that something was missed, unless it is a replay."""
        # After a resolved event above the floor it is a replay: the stream had promised that nothing new below it follows (DESIGN.md 3).
        if self._early is None and is_past(ts, self._floor_ts) and not has_shown_past(self._promises.resolved_ts, self._floor_ts):
            self._early = (ts, offset)

    def report(self) -> RangeReport:
        """Return the report. To be called once, at the end of the range."""
        self._ts.sort()
        early_ts, early_offset = self._early or (0, 0)
        return RangeReport(
            range=self._range,
            resolved_ts=self._promises.resolved_ts,
            resume_points=merge_resume_points(self._resume_points),
            ddls=tuple(self._ddls),
            tables=tuple(_table_rows(table, self._range.stream) for table in self._tables.values()),
            rows=len(self._ts),
            bytes=self._bytes,
            min_ts=Ts(self._ts[0] if self._ts else 0),
            max_ts=Ts(self._ts[-1] if self._ts else 0),
            row_counts=count_rows(self._ts),
            early_ts=Ts(early_ts),
            early_offset=Offset(early_offset),
            replays=self._replays,
            records=self.records,
            events=self.events,
            left_out=tuple(self._left_out),
            skipped_statements=tuple(sorted(self._skipped.items())),
            partitions=self._partitions,
            ends_announced=self._ends_announced,
            promises=self._promises.found(),
            changed_key=self._changed_key,
            rejected_events=tuple(self._rejected.values()),
            checksum=self._checksum.of(self._promises.resolved_ts, self._ddls, map(_counted, self._tables.values())),
            repeats=() if self._repeats is None else self._repeats.found(),
        )


def _counted(table: TableSummary) -> tuple[str, str, int, Ts, Ts]:
    return table.shape.schema, table.shape.table, table.rows, Ts(table.min_ts), Ts(table.max_ts)


def _table_rows(table: TableSummary, stream: Stream) -> TableRows:
    shape = table.shape
    return TableRows(
        shape.name,
        reported_key(shape),
        table.rows,
        Ts(table.min_ts),
        Ts(table.max_ts),
        Offset(table.first_offset),
        bytes_key_names(shape),
        stream,
        table.rows if shape.placeholder else 0,
        unique_names(shape),
        shape.routed_from,
        shape.hides_actions,
        shape.keys.unique is not None,
        shape.tells_generated,
    )


def merge_resume_points(points: Sequence[tuple[int, int]]) -> tuple[ResumePoint, ...]:
    """Thin resume points to MAX_RESUME_POINTS: each kept one has the first offset and the last value of the points that it represents.

    So an offset is never too late: a few records more may be read again after a restart, none is missed.
    """
    width = -(-len(points) // MAX_RESUME_POINTS) or 1
    runs = (points[i : i + width] for i in range(0, len(points), width))
    return tuple(ResumePoint(Offset(run[0][0]), Ts(run[-1][1])) for run in runs)


def count_rows(sorted_ts: list[int]) -> tuple[RowCount, ...]:
    """Count rows up to at most MAX_ROW_COUNTS timestamps; a count includes all rows of its timestamp."""
    counts: list[RowCount] = []
    width = max(1, -(-len(sorted_ts) // MAX_ROW_COUNTS))
    for i in range(width - 1, len(sorted_ts), width):
        ts = sorted_ts[i]
        if counts and counts[-1].ts == ts:
            continue
        counts.append(RowCount(Ts(ts), bisect_right(sorted_ts, ts, i)))
    if sorted_ts and counts[-1].ts != sorted_ts[-1]:
        counts.append(RowCount(Ts(sorted_ts[-1]), len(sorted_ts)))
    return tuple(counts)
