"""What a listener's report says of its range, collected while the range is read: small, whatever the range holds.

Hold points, row counts and tables are bounded, because a driver gets one report per range and cycle: 10,000 streams are to cost a few
megabytes (DESIGN.md 15).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, compress, pairwise
from typing import Any, Final

from applier.model.chunk import bucket_seed
from applier.model.errors import SourceError
from applier.model.events import AdminEvent, DdlEvent, LeftOutTable, ResolvedEvent, Shape, TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import ChangedKey, DdlArrival, HoldPoint, RangeId, RangeReport, RowCount, TableRows
from applier.model.rejected_event import MAX_QUARANTINED, EventPlace, QuarantineState, RejectedEvent
from applier.model.segment import has_shown_past, is_past
from applier.model.skipped_statement import SkippedStatement
from applier.planner import bytes_key_names, key_names, unique_names
from applier.sources.port import PlacedRows
from applier.tasks.content import RangeChecksum
from applier.tasks.promises import RangePromises
from applier.tasks.repeat_points import RepeatPoints

MAX_HOLD_POINTS: Final = 256
MAX_ROW_COUNTS: Final = 64

ROW_BYTES: Final = 24
"""What a row takes in a chunk beside its key and image. Fixed, so that a range counts the same whatever it shares its chunks with."""


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
        """Count rows that lie between two commit_ts."""
        self.rows += rows
        if min_ts < self.min_ts:  # noqa: PLR1730 - called per row where tables are mixed: a third of the time of min() and max()
            self.min_ts = min_ts
        if max_ts > self.max_ts:  # noqa: PLR1730 - see above
            self.max_ts = max_ts


class RangeSummary:
    """Collects the report of one range."""

    __slots__ = (
        "_bytes", "_changed_key", "_checksum", "_ddls", "_early", "_ends_announced", "_floor_ts", "_has_keyless",
        "_held", "_hold", "_left_out", "_partitions", "_promises", "_range", "_rejected", "_repeats", "_replays", "_shared_ddls",
        "_skipped", "_stored", "_tables", "_top", "_ts", "events", "records",
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
        """``stored``: the (offset, event) of rejected events that the quarantine has already. ``ddls``: those of all ranges of the task."""
        self._shared_ddls = ddls
        self._range, self._floor_ts, self._stored = range_id, floor_ts, stored
        self._tables: dict[int, TableSummary] = {}
        self._ts: list[int] = []
        self._hold: list[tuple[int, int]] = []
        """Of each record that keeps the stored offset as long as the checkpoint is at or below a value: (its offset, the value)."""
        self._ddls: list[DdlArrival] = []
        self._rejected: dict[EventPlace, RejectedEvent] = {}
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
        """Count some rows. Return those that are not below the floor, and their tables, parallel to ``shapes``."""
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
        # Once one is known, all rows count as of such a table: a point too many does no harm.
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
        for row, (place, following) in enumerate(pairwise(zip(rows.offset, rows.index, strict=True))):
            shape = rows.shapes[rows.shape[row]]
            if place == following and shape.handle_key:
                self._changed_key = ChangedKey(Offset(place[0]), shape.name, Ts(rows.commit_ts[row]))
                return

    def _drop_replays(self, rows: PlacedRows) -> PlacedRows:
        """Return the rows that are not below the floor; count the others."""
        kept = [not is_past(ts, self._floor_ts) for ts in rows.commit_ts]
        self._replays += kept.count(False)
        if self._repeats is not None:
            self._repeats.replays(rows, kept)
        first = kept.index(False)
        # Of the first one only: within a run of rows there is no promise, so it speaks for those behind it.
        self._note_early(rows.offset[first], rows.commit_ts[first])
        shapes = list(compress(rows.shape, kept))
        used = sorted(set(shapes))
        renumbered = {shape: number for number, shape in enumerate(used)}
        columns: Iterable[Any] = (list(compress(column, kept)) for column in rows[2:])
        return PlacedRows([rows.shapes[shape] for shape in used], [renumbered[shape] for shape in shapes], *columns)

    def _hold_rows(self, offsets: Sequence[int], times: Sequence[int]) -> None:
        """Note those of some rows that are above all before them."""
        tops = list(accumulate(times, max, initial=self._top))
        self._hold += [(offset, top) for offset, top, before in zip(offsets, tops[1:], tops, strict=False) if top > before]
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
        self, offset: int, index: int, event: DdlEvent | ResolvedEvent | AdminEvent | RejectedEvent | LeftOutTable | SkippedStatement
    ) -> None:
        """Add an event that is not a row. SourceError if too many are rejected."""
        self._ends_announced = isinstance(event, AdminEvent)
        if isinstance(event, LeftOutTable):
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
            # A DDL is in all partitions. Its copies are one here and, since they travel together, in the driver.
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
            self._note_early(event.place.offset, event.commit_ts)
        # An update that changes its key is one event with two rows: it is reported once.
        if event.place[1:] in self._stored or event.place in self._rejected:
            return
        self._rejected[event.place] = event
        self._held += is_held
        if self._held > MAX_QUARANTINED:
            raise SourceError(
                f"more than {MAX_QUARANTINED} events of one range cannot be read",
                remedy="Find the common cause: `applier inspect --topic … --partition … --from …` shows the events",
                kind="too_many_bad_events",
                topic=event.place.stream.topic,
                partition=event.place.stream.partition,
                offset=event.place.offset,
                reason=event.error,
            )

    def _note_early(self, offset: int, ts: int) -> None:
        """Note the first event below the floor: proof that something was missed, if it is no replay."""
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
            hold=merge_hold_points(self._hold),
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
        key_names(shape),
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
    )


def merge_hold_points(points: Sequence[tuple[int, int]]) -> tuple[HoldPoint, ...]:
    """Thin hold points to MAX_HOLD_POINTS: each kept one has the first offset and the last value of those that it stands for.

    So an offset is never too late: a few records more may be read again after a restart, none is missed.
    """
    width = -(-len(points) // MAX_HOLD_POINTS) or 1
    runs = (points[i : i + width] for i in range(0, len(points), width))
    return tuple(HoldPoint(Offset(run[0][0]), Ts(run[-1][1])) for run in runs)


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
