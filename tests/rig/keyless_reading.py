"""Tables without a key, read and counted as a replica does it, without an engine and a sink: a random history takes 0.1 s instead of 3."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import NamedTuple, Self
from uuid import uuid4

from applier.demo.simulator.producer import LogRecord
from applier.demo.simulator.wire_format import WireFormat
from applier.model.events import FoldedName, ResolvedEvent, RowKind, Shape
from applier.model.position import NO_TS, Listing, Offset, PartitionExtent, Stream, Ts
from applier.model.range_report import RangeId
from applier.planner.column_match import Origin
from applier.planner.keyless import EqualRows, Image, KeylessRows, counted_rows, net_rows
from applier.replica.segment_writer import PartitionGrowth, RepeatLog
from applier.selection import EVERYTHING
from applier.sources.formats import FORMATS
from applier.sources.port import Decoder, LogDecoder, PlacedRows, Record
from applier.sources.ticdc.large_row import REFUSED
from applier.sources.ticdc.tso import later_by
from applier.tasks.range_summary import RangeSummary
from tests.rig.fake_source import MemoryLog


class ReadRow(NamedTuple):
    stream: Stream
    offset: int
    index: int
    commit_ts: int
    kind: int
    shape: Shape
    image: Image


class Log:
    """A producer's log by streams. ``held``: of each record the greatest checkpoint at which a restart needs it.

    ``growth`` tells the numbers of partitions so far. ``shown``: how much of each stream can be seen, empty ones too: all of it, or
    with ``hidden`` what ``advance`` has shown. ``decoder``: of its format.
    """

    def __init__(
        self,
        records: Iterable[LogRecord],
        growth: Mapping[str, int] | None = None,
        *,
        hidden: bool = False,
        protocol: str = WireFormat.OPEN_PROTOCOL.protocol,
    ) -> None:
        self.records: dict[Stream, list[Record]] = defaultdict(list)
        self._order: list[tuple[Stream, int]] = []
        self._times: dict[Stream, list[int]] = defaultdict(list)
        for record in records:
            stream = self.records[record.stream]
            stream.append(Record(Offset(len(stream)), record.key, record.value))
            self._times[record.stream].append(record.time_ms)
            self._order.append((record.stream, (growth or {}).get(record.stream.topic, 0)))
        self._place = 0
        self.shown: Counter[Stream] = Counter()
        if not hidden:
            self.advance(len(self._order))
        self.ends = {stream: len(records) for stream, records in self.records.items()}
        self.decoder = self._decoder(protocol)
        self.held = {stream: [self._held(stream, record) for record in records] for stream, records in self.records.items()}

    def _decoder(self, protocol: str) -> Decoder:
        decoder = FORMATS[protocol](REFUSED, EVERYTHING)
        if not isinstance(decoder, LogDecoder):
            return decoder
        extents = {stream: PartitionExtent(Offset(0), Offset(end)) for stream, end in self.ends.items()}
        return decoder.in_log(MemoryLog(records=self.records, earliest={}, log_name=uuid4().hex, extents=extents))

    def _held(self, stream: Stream, record: Record) -> int:
        placed = [item for _, item in self.decoder.placer(stream).place_each(*record)]
        return max((item.ts - 1 if isinstance(item, ResolvedEvent) else item.commit_ts for item in placed), default=0)

    @property
    def is_shown(self) -> bool:
        return self._place >= len(self._order)

    def advance(self, records: int) -> None:
        """Show some records more, in the order of real time."""
        for stream, partitions in self._order[self._place : self._place + records]:
            self.shown.update(dict.fromkeys((Stream(stream.topic, number) for number in range(partitions)), 0))
            self.shown[stream] += 1
        self._place += records

    @property
    def times(self) -> Self:
        return self

    def time_ms(self, stream: Stream, offset: int) -> int:
        return self._times[stream][offset]

    def ts_at(self, time_ms: int) -> Ts:
        return later_by(NO_TS, time_ms)

    def first_needed(self, stream: Stream, checkpoint_ts: int) -> int:
        return next((offset for offset, held in enumerate(self.held[stream]) if held >= checkpoint_ts), self.ends[stream])


class Reading:
    """One run of the applier, from its checkpoint on. ``stored``: the streams that have a position."""

    def __init__(self, log: Log, checkpoint_ts: int, stored: Collection[Stream] = ()) -> None:
        self._log, self.checkpoint_ts = log, Ts(checkpoint_ts)
        self.rows: list[ReadRow] = []
        self._repeats = RepeatLog()
        self._stored, self._growth = frozenset(stored), PartitionGrowth(log, 1)
        self._growth.begin(stored)
        self._states: dict[Stream, SimpleNamespace] = {}
        self.promised: dict[Stream, int] = {}
        self.list()

    @property
    def positions(self) -> set[Stream]:
        """The streams that have a position now."""
        return set(self._growth.without_new(self._states))

    def list(self) -> None:
        """List the partitions."""
        for stream, end in self._log.shown.items():
            if end and stream not in self._states:
                # Where none has a position, the run is the first one, and begins at the beginning.
                first = 0 if self._stored and stream not in self._stored else self._log.first_needed(stream, self.checkpoint_ts)
                self._states[stream] = SimpleNamespace(prefix=first)
                self.promised[stream] = self.checkpoint_ts
            if end:
                self._states[stream].end = end
        listing = Listing({stream: PartitionExtent(Offset(0), Offset(end)) for stream, end in self._log.shown.items()})
        self._repeats.unordered_ts = self._growth.listed(listing, self.checkpoint_ts)

    def is_at_end(self, stream: Stream) -> bool:
        return self._states[stream].prefix >= self._states[stream].end

    def read(self, stream: Stream, records: int) -> None:
        """Read one range."""
        state = self._states[stream]
        start, end = state.prefix, max(state.prefix, min(state.prefix + records, state.end))
        state.prefix = end
        summary = RangeSummary(RangeId(stream, Offset(start), Offset(end)), self.checkpoint_ts, (), {}, notes_repeats=True)
        for placed in self._log.decoder.placer(stream).place_all(self._log.records[stream][start:end]):
            if isinstance(placed, PlacedRows):
                self.rows += _read_rows(stream, summary.add_rows(placed)[0], self._log.decoder)
            else:
                summary.add_event(placed.offset, placed.index, placed.event)
        report = summary.report()
        self._repeats.add(report, self.checkpoint_ts)
        self.promised[stream] = max(self.promised[stream], report.resolved_ts)

    def net(self, table: FoldedName, upto_ts: int) -> Counter[Image]:
        """Count what the rows of a table do up to a commit_ts. AmbiguousRows where that cannot be told."""
        rows = [row for row in self.rows if row.shape.name.fold() == table and self.checkpoint_ts < row.commit_ts <= upto_ts]
        origins: dict[tuple[Stream, Shape], int] = {}
        numbers = [origins.setdefault((row.stream, row.shape), len(origins)) for row in rows]
        columns = {name: [getattr(row, name) for row in rows] for name in ("commit_ts", "kind", "offset", "index")}
        final = KeylessRows()
        final.feed(SimpleNamespace(**columns, key=[b""] * len(rows), image=[b""] * len(rows)), array("i", numbers))
        images = {number: row.image for number, row in enumerate(rows)}
        repeats = self._repeats.since(self.checkpoint_ts)
        deleted, inserted = net_rows(counted_rows(final.finish(), [Origin(*origin) for origin in origins], images, repeats, EqualRows.STOP))
        found = Counter(images[row] for row in inserted)
        found.subtract(images[row] for row in deleted)
        return without_zeros(found)

    def applied(self, upto_ts: int) -> None:
        self.checkpoint_ts = Ts(upto_ts)
        self.rows = [row for row in self.rows if row.commit_ts > upto_ts]


def _read_rows(stream: Stream, rows: PlacedRows, decoder: Decoder) -> Iterator[ReadRow]:
    for number, commit_ts, kind, offset, index, image in zip(
        rows.shape, rows.commit_ts, rows.kind, rows.offset, rows.index, rows.image, strict=True
    ):
        shape = rows.shapes[number]
        if not shape.handle_key:
            values = decoder.image_decoder(shape)(image)
            named = sorted((column.name, repr(value)) for column, value in zip(shape.columns, values, strict=True))
            yield ReadRow(stream, offset, index, commit_ts, kind, shape, tuple(f"{name} {value}" for name, value in named))


def changes_of(log: Log) -> dict[FoldedName, dict[int, Counter[Image]]]:
    """Return what each commit does to each table, by a log in which nothing is repeated."""
    reading = Reading(log, 0)
    found: dict[FoldedName, dict[int, Counter[Image]]] = defaultdict(lambda: defaultdict(Counter))
    for stream in log.records:
        reading.read(stream, log.ends[stream])
    for row in reading.rows:
        found[row.shape.name.fold()][row.commit_ts][row.image] += 1 if row.kind == RowKind.UPSERT else -1
    return found


def without_zeros(counted: Counter[Image]) -> Counter[Image]:
    return Counter({image: number for image, number in counted.items() if number})
