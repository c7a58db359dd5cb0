"""Places the records of one range: runs of plain rows by their matchers (``row_run``), everything else one by one."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, LeftOutTable, PlacedRow, ResolvedEvent, RowKind, RowOperation, Shape, TableName
from applier.model.position import Offset, Stream
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.canal_json.large_row import CanalLargeRows
from applier.sources.canal_json.placing import markers_of, place_row
from applier.sources.canal_json.record import CanalRecord, CanalRow, read_record, unpacked
from applier.sources.canal_json.row_run import (
    DATA,
    END,
    HEAD_END,
    IMAGE_AT,
    TAIL,
    TAIL_BYTES,
    TS_AT,
    USUAL_IMAGE_END,
    USUAL_TAIL,
    USUAL_TS,
    Matched,
    RowMatcher,
    begin_range,
    matcher_of,
)
from applier.sources.compiled import intern_shape
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.selected_events import SelectedEvents, gather_rows
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources

RUN_ROWS: Final = 256
"""Rows of a run at most. What one call decodes should stay in the processor's cache."""
MAX_HEADS: Final = 65_536
"""Beginnings of records that a placer remembers; then it begins again."""
MAX_MATCHERS: Final = 8
"""Shapes of one table and operation that are tried: deletes may be reduced, and types change."""


class KnownHead:
    """Rows that begin with the same bytes: of one table and operation. ``matchers``: their shapes, the last used one first."""

    __slots__ = ("_routed", "matchers", "selected")

    def __init__(self, selected: SelectedTable) -> None:
        # Of this range only. What the process knows from earlier ranges must not count: a bad value outside of the key is found by the
        # full parse and not by a matcher, and a range that another process reads again must give the same report.
        self.matchers: list[RowMatcher] = []
        self.selected = selected
        self._routed: dict[int, Shape] = {}

    def learn(self, matcher: RowMatcher) -> None:
        """Remember how rows are read."""
        if matcher not in self.matchers:
            self.matchers.insert(0, matcher)
            del self.matchers[MAX_MATCHERS:]

    def match(self, records: Sequence[bytes], images: Sequence[bytes]) -> tuple[RowMatcher, Matched] | None:
        """Return what the first matcher that knows all of these rows says of them."""
        for matcher in self.matchers:
            if (found := matcher.match(records, images)) is not None:
                if matcher is not self.matchers[0]:
                    self.matchers.remove(matcher)
                    self.matchers.insert(0, matcher)
                return matcher, found
        return None

    def shape_of(self, matcher: RowMatcher) -> Shape:
        """Return the shape of a matcher's rows in the sink."""
        if not self.selected.is_routed:
            return matcher.shape
        if id(matcher) not in self._routed:
            self._routed[id(matcher)] = intern_shape(self.selected.routed(matcher.shape))
        return self._routed[id(matcher)]


RunRow: TypeAlias = tuple[KnownHead, int, bytes, bytes]
"""A row of a run: its head, its offset, the record, its image."""


class _Columns:
    """The rows of a run, as columns. The key is None where no matcher has read the row."""

    __slots__ = ("_numbers", "_rows", "commit_ts", "keys", "kinds", "olds", "shape", "shapes")

    def __init__(self, rows: Sequence[RunRow]) -> None:
        self._rows = rows
        self.shapes: list[Shape] = []
        self.shape = [0] * len(rows)
        self.commit_ts = [0] * len(rows)
        self.kinds = bytearray(len(rows))
        self.keys: list[Any] = [None] * len(rows)
        self.olds: dict[int, bytes] = {}
        self._numbers: dict[int, int] = {}

    def match(self, head: KnownHead, chosen: Sequence[int]) -> None:
        """Read the rows of one head: together, and divided where they do not match as a whole."""
        found = head.match([self._rows[at][2] for at in chosen], [self._rows[at][3] for at in chosen])
        if found is not None:
            matcher, (commit_ts, keys, olds) = found
            self.olds.update(zip(chosen, olds, strict=False))
            number = self._number(head.shape_of(matcher))
            for at, ts, key in zip(chosen, commit_ts, keys, strict=True):
                self.keys[at], self.commit_ts[at], self.kinds[at], self.shape[at] = key, ts, matcher.kind, number
        elif len(chosen) > 1 and head.matchers:
            middle = len(chosen) // 2
            self.match(head, chosen[:middle])
            self.match(head, chosen[middle:])

    def rows(self, at: int) -> list[PlacedRow]:
        """Return a row, behind the one that it replaces; [] if no matcher knows it."""
        if self.keys[at] is None:
            self.match(self._rows[at][0], (at,))
        if self.keys[at] is None:
            return []
        shape = self.shapes[self.shape[at]]
        row = PlacedRow(self.commit_ts[at], self.kinds[at], shape, self.keys[at], self._rows[at][3])
        if at not in self.olds:
            return [row]
        return [row._replace(kind=int(RowKind.DELETE), image=self.olds[at]), row]

    def _number(self, shape: Shape) -> int:
        number = self._numbers.get(id(shape))
        if number is None:
            number = self._numbers[id(shape)] = len(self.shapes)
            self.shapes.append(shape)
        return number


class CanalJsonPlacer:
    """Implements ``Placer``. Not thread-safe; compiled matchers are shared by the process."""

    def __init__(self, stream: Stream, whole_rows: WholeRowSources = REFUSED, selection: TableSelection = EVERYTHING) -> None:
        begin_range()
        self._events = SelectedEvents(stream, selection)
        self._large_rows = CanalLargeRows(stream, whole_rows, lambda head: self._events.table(head.name).is_out)
        self._heads: dict[bytes, KnownHead] = {}
        self._has_out = False

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order: rows as columns. ProtocolError names the first record that cannot be read.

        Bad values outside of the handle key may be found only by the image decoder.
        """
        for first in range(0, len(records), RUN_ROWS):
            some = records[first : first + RUN_ROWS]
            self._large_rows.begin(some)
            yield from self._place_some(some)

    def _place_some(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        run: list[RunRow] = []
        known = self._heads.get
        for record in records:
            offset, _, value = record
            # Written out here: a call per row would be a tenth of its cost. Slices, since rfind() takes five times as long.
            if value is not None and value[USUAL_TAIL] == TAIL and value[-2:] == END and value[USUAL_TS].isdigit():
                head, data_at = known(value[: value.find(HEAD_END)]), value.rfind(DATA)
                if head is not None and data_at > 0:
                    run.append((head, offset, value, value[data_at + IMAGE_AT : USUAL_IMAGE_END]))
                    continue
            if (row := self._unusual_row(record)) is not None:
                run.append(row)
                continue
            yield from self._end_run(run)
            run = []
            yield from gather_rows((record.offset, 0, placed) for placed in self._place_other(record))
        yield from self._end_run(run)

    def _unusual_row(self, record: Record) -> RunRow | None:
        """Return a row as one of a run that is compressed, followed by white space, or has a timestamp of other digits; None for others."""
        plain = record.value or b""
        if plain[-2:] != END or plain[:1] != b"{":
            try:
                plain = unpacked(plain).rstrip()
            except ProtocolError:
                return None
        head = self._heads.get(plain[: plain.find(HEAD_END)])
        tail_at, data_at = plain.rfind(TAIL, -TAIL_BYTES), plain.rfind(DATA)
        if head is None or plain[-2:] != END or not 0 < data_at < tail_at or not plain[tail_at + TS_AT : -2].isdigit():
            return None
        return head, record.offset, plain, plain[data_at + IMAGE_AT : tail_at + 1]

    def _end_run(self, run: Sequence[RunRow]) -> Iterator[PlacedRows | PlacedEvent]:
        if self._has_out:
            yield from _left_out(run)
            run = [row for row in run if not row[0].selected.is_out]
        if not run:
            return
        heads, offset, record, image = zip(*run, strict=True)
        head: KnownHead = heads[0]
        if heads.count(head) == len(heads) and (found := head.match(record, image)) is not None:
            matcher, matched = found
            yield _rows_of(head.shape_of(matcher), matcher.kind, matched, offset, image)
            return
        columns = _Columns(run)
        by_head: dict[KnownHead, list[int]] = {}
        for at, one in enumerate(heads):
            by_head.setdefault(one, []).append(at)
        for one, of_head in by_head.items():
            columns.match(one, of_head)
        if columns.olds or None in columns.keys:
            yield from gather_rows(self._place_in_order(run, columns))
        else:
            index = bytes(len(run))
            yield PlacedRows(columns.shapes, columns.shape, columns.commit_ts, columns.kinds, offset, index, columns.keys, image)

    def _place_in_order(self, run: Sequence[RunRow], columns: _Columns) -> Iterator[tuple[int, int, Placed]]:
        """Place what no matcher has read by the full parse. In order, so that the first error is that of the first row."""
        for at, (_, offset, record, _) in enumerate(run):
            # What the full parse has learned of one row counts for those after it, however a reader divides the records.
            placed: Sequence[Placed] = columns.rows(at) or self._place_other(Record(Offset(offset), None, record))
            yield from ((offset, 0, one) for one in placed)

    def _place_other(self, record: Record) -> Sequence[Placed]:
        """Place what is not known, and learn it if it is a plain row. ProtocolError names its position."""
        try:
            event = CanalEvent(read_record(record.key, record.value), self, record.offset)
        except ProtocolError as error:
            raise self._events.located(error, record.offset, None) from error
        placed = self._events.place(event, record.offset, 0)
        self._learn_excluded(event)
        return placed

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the event of one record; one that cannot be read as markers and an ``Unplaced``. Raises nothing."""
        self._large_rows.begin(())
        try:
            event = CanalEvent(read_record(key, value), self, offset)
        except ProtocolError as error:
            return self._events.unplaced(error, offset)
        return [(0, found) for found in self._events.place_or_mark(event, offset, 0)]

    def place_parsed(self, record: CanalRecord, head: EventHead, row: CanalRow, offset: int) -> list[PlacedRow]:
        """Place a row by the full parse, and learn how to read the others of its kind. ProtocolError, without a position."""
        if row.is_reduced:
            return self._large_rows.place(head, row, offset)
        placed = place_row(head, row)
        self._learn(record, head.name, row, placed[-1].shape)
        return placed

    def _learn(self, record: CanalRecord, name: TableName, row: CanalRow, shape: Shape) -> None:
        selected = self._events.table(name)
        # Which rows of such a table are excluded is decided row by row.
        if selected.ignored or (start := record.beginning(HEAD_END)) is None:
            return
        if (matcher := matcher_of(shape, name, row, record.pk_names)) is not None:
            self._head(start, selected).learn(matcher)

    def _learn_excluded(self, event: "CanalEvent") -> None:
        """Remember how rows begin that are not applied, so that they are not parsed."""
        if event.head is None or not event.is_row() or not (selected := self._events.table(event.head.name)).is_out:
            return
        if (start := event.beginning()) is not None:
            self._has_out = True
            self._head(start, selected)

    def _head(self, start: bytes, selected: SelectedTable) -> KnownHead:
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
        return self._heads.setdefault(start, KnownHead(selected))


def _rows_of(shape: Shape, kind: int, matched: Matched, offset: Sequence[int], image: Sequence[bytes]) -> PlacedRows:
    commit_ts, keys, olds = matched
    kinds = bytes((kind,)) * len(keys)
    if olds:
        commit_ts = [ts for ts in commit_ts for _ in RowKind]
        offset = [one for one in offset for _ in RowKind]
        keys = [key for key in keys for _ in RowKind]
        kinds = bytes((RowKind.DELETE, RowKind.UPSERT)) * len(olds)
        image = [one for pair in zip(olds, image, strict=True) for one in pair]
    return PlacedRows((shape,), bytes(len(keys)), commit_ts, kinds, offset, bytes(len(keys)), keys, image)


def _left_out(run: Sequence[RunRow]) -> Iterator[PlacedEvent]:
    """Yield each table of which rows are skipped, at its last row: of a replay that comes first, nothing is missed."""
    last = {row[0].selected.name: row for row in run if row[0].selected.is_filtered}
    for name, (_, offset, record, _) in last.items():
        yield PlacedEvent(offset, 0, LeftOutTable(int(record[record.rfind(TAIL) + TS_AT : -2]), name))


class CanalEvent:
    """Implements ``UnreadEvent``."""

    __slots__ = ("_head", "_offset", "_placer", "_record")

    def __init__(self, record: CanalRecord, placer: CanalJsonPlacer, offset: int) -> None:
        self._record, self._placer, self._offset = record, placer, offset
        self._head: EventHead | None = None

    @property
    def head(self) -> EventHead | None:
        """What ``read_head`` has returned."""
        return self._head

    def beginning(self) -> bytes | None:
        """Return the bytes that all rows of this table and operation begin with."""
        return self._record.beginning(HEAD_END)

    def read_head(self) -> EventHead:
        """Read timestamp, table and kind."""
        self._head = self._record.head()
        return self._head

    def is_row(self) -> bool:
        """Whether it is the change of a row."""
        return self._record.is_row

    def operation(self) -> RowOperation:
        """Return what happened to the row."""
        return self._record.operation()

    def rows(self) -> list[PlacedRow]:
        """Place the row."""
        return self._placer.place_parsed(self._record, self._known, self._record.row(), self._offset)

    def plain(self) -> DdlEvent | ResolvedEvent | AdminEvent:
        """Read a DDL or a watermark."""
        return self._record.plain_event()

    def markers(self) -> list[PlacedRow]:
        """Return a marker for each row whose key can be read."""
        try:
            return markers_of(self._known, self._record.row())
        except ProtocolError:
            return []

    @property
    def _known(self) -> EventHead:
        if self._head is None:
            raise AssertionError("the head is read first")
        return self._head
