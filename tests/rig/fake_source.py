"""A source in memory: the port of a source over the simulator's log, for tests without a broker.

The log lies there whole; what a reader can see of it grows by ``advance``. Partitions appear when the first of their records does, so
that growth of topics is seen as it is on Kafka. Readers are frozen copies of the records and cross to other processes.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import uuid4

from applier.demo.simulator.producer import LogRecord
from applier.demo.simulator.session_zone import SESSION_ZONE
from applier.model.errors import SourceError
from applier.model.events import DdlEvent
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Listing, Offset, PartitionExtent, Stream, Timeline, Ts, holds_all_since
from applier.model.range_report import RangeId
from applier.selection import EVERYTHING
from applier.sources.formats import DEFAULT, FORMATS
from applier.sources.peek import single_record
from applier.sources.port import Decoder, Record
from applier.sources.ticdc.foreign_record import protocol_of
from applier.sources.ticdc.large_row import REFUSED
from applier.sources.ticdc.tso import TSO_TIMELINE, later_by

_BATCH = 500


@dataclass(frozen=True, slots=True)
class MemoryReader:
    """The reading part of a FakeSource: all records of the log and the earliest offset of each stream."""

    records: Mapping[Stream, tuple[LogRecord, ...]]
    earliest: Mapping[Stream, int] = field(default_factory=dict)
    batch: int = _BATCH

    def read(self, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record] | SourceError]]:
        """Yield the records of the ranges, a batch of each in turn; SourceError of kind "retention" if a beginning is gone."""
        reading = [(range_id, self._batches(range_id)) for range_id in ranges]
        while reading:
            still = []
            for range_id, batches in reading:
                try:
                    yield range_id, next(batches)
                except StopIteration:
                    continue
                except SourceError as error:
                    yield range_id, error
                    continue
                still.append((range_id, batches))
            reading = still

    def records_at(self, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
        """Yield the record, if there is one."""
        return single_record(self, stream, offset)

    def _batches(self, range_id: RangeId) -> Iterator[list[Record]]:
        stream, start, end = range_id
        earliest = self.earliest.get(stream, 0)
        if start < earliest:
            message = f"offset {start} of {stream} is gone"
            raise SourceError(
                message, kind=FailureKind.RETENTION, topic=stream.topic, partition=stream.partition, offset=start, earliest=earliest
            )
        records = self.records.get(stream, ())
        if end > len(records):
            message = f"offset {end - 1} of {stream} is not there"
            raise SourceError(message, kind=FailureKind.UNREACHABLE, topic=stream.topic, partition=stream.partition, offset=end - 1)
        for first in range(start, end, self.batch):
            last = min(first + self.batch, end)
            yield [Record(Offset(offset), records[offset].key, records[offset].value) for offset in range(first, last)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLog(MemoryReader):
    """The reading part of a FakeSource for decoders that look for other records of the log. ``extents``: what could be seen."""

    log_name: str
    extents: Mapping[Stream, PartitionExtent]

    def listing(self) -> Listing:
        """Return what could be seen when the decoder was made."""
        return Listing(self.extents)


class FakeSource:
    """A source whose records are a log's. ``partitions`` exist from the beginning, per topic, even while they are empty.

    Without ``hidden`` the whole log can be seen at once; with it nothing can, until ``advance`` shows it.
    """

    def __init__(self, log: Iterable[LogRecord], *, partitions: Mapping[str, int] | None = None, hidden: bool = False) -> None:
        self._log = tuple(log)
        self._partitions = dict(partitions or {})
        self._earliest: dict[Stream, int] = {}
        self._seen: dict[Stream, int] = {}
        self._place = 0
        self._format: str | None = None
        self._name = uuid4().hex
        self.shown_offsets: dict[Stream, Offset] = {}
        self.selection = EVERYTHING
        self.whole_rows = REFUSED
        self.ddl_time_zone = SESSION_ZONE
        self._records = _by_stream(self._log)
        if not hidden:
            self.advance(len(self._log))

    @property
    def reader(self) -> MemoryReader:
        """The reading part, for executors."""
        return MemoryReader(self._records, dict(self._earliest))

    @property
    def decoder(self) -> Decoder:
        """The decoding part: of the format of the first record."""
        if self._format is None and self._log:
            found = protocol_of(self._log[0].key, self._log[0].value)
            self._format = found.reader if found is not None and found.reader in FORMATS else DEFAULT
        made = FORMATS[self._format or DEFAULT](self.whole_rows, self.selection)
        # A format whose records need others of their log says so by this method.
        in_log = getattr(made, "in_log", None)
        return made if in_log is None else in_log(self._whole_log())

    def read_as(self, protocol: str) -> None:
        """Read the records as ``source.protocol`` says, whatever the first one is."""
        self._format = protocol

    def _whole_log(self) -> MemoryLog:
        # Not the listing of a test's source, which may count its calls.
        extents = FakeSource.listing(self).extents
        return MemoryLog(records=self._records, earliest=dict(self._earliest), log_name=self._name, extents=extents)

    @property
    def timeline(self) -> Timeline:
        """A TSO holds its time."""
        return TSO_TIMELINE

    @property
    def position(self) -> None:
        """None: offsets suffice."""
        return

    @property
    def topics(self) -> Self:
        """Itself: the topics are a log in memory."""
        return self

    @property
    def times(self) -> Self:
        """Itself: each record has its time."""
        return self

    @property
    def upstream_tables(self) -> None:
        """Nothing: the flags of the wire show the keys."""
        return None

    def resolved(self, ddl: DdlEvent) -> DdlEvent:
        """Say the zone of the session, as Kafka's source does."""
        return replace(ddl, session=(*ddl.session, ("time_zone", self.ddl_time_zone))) if self.ddl_time_zone else ddl

    def holds_all_since(self, stream: Stream, earliest: Offset, start_ts: Ts) -> bool:
        """Compare the time of the earliest record."""
        time_ms = self.time_ms(stream, earliest)
        return time_ms is not None and holds_all_since(time_ms, start_ts, TSO_TIMELINE)

    @property
    def exhausted(self) -> bool:
        """Whether everything can be seen."""
        return all(self._seen.get(stream, 0) == len(records) for stream, records in self._records.items())

    def extend(self, log: Iterable[LogRecord]) -> None:
        """Write more records behind the log, and show everything."""
        self._log += tuple(log)
        self._records = _by_stream(self._log)
        self.advance(len(self._log))

    def advance(self, records: int) -> None:
        """Show the next ``records`` of the log, in the order of real time."""
        for record in self._log[self._place : self._place + records]:
            self._seen[record.stream] = self._seen.get(record.stream, 0) + 1
        self._place = min(self._place + records, len(self._log))

    def advance_stream(self, stream: Stream, records: int) -> None:
        """Show the next ``records`` of one stream only: partitions at different paces. Not to be mixed with ``advance``."""
        self._seen[stream] = min(self._seen.get(stream, 0) + records, len(self._records.get(stream, ())))

    def expire(self, stream: Stream, earliest: Offset) -> None:
        """Forget the records of a stream below ``earliest``, as retention does."""
        self._earliest[stream] = int(earliest)

    def listing(self) -> Listing:
        """List the partitions with the extents that can be seen now."""
        counts = dict(self._partitions)
        for stream in self._seen:
            counts[stream.topic] = max(counts.get(stream.topic, 0), stream.partition + 1)
        streams = [Stream(topic, partition) for topic, count in counts.items() for partition in range(count)]
        return Listing({stream: PartitionExtent(Offset(self._earliest.get(stream, 0)), self._end(stream)) for stream in streams})

    def _end(self, stream: Stream) -> Offset:
        return Offset(max(self._seen.get(stream, 0), self._earliest.get(stream, 0)))

    def ids(self) -> Mapping[str, str]:
        """Return no ids, as mock clusters do."""
        return {}

    def check(self) -> None:
        """Do nothing: what it holds is not compacted."""

    def time_ms(self, stream: Stream, offset: Offset) -> int | None:
        """Return the time of the record at or after ``offset``; None if there is none yet."""
        place = max(int(offset), self._earliest.get(stream, 0))
        return self._records[stream][place].time_ms if place < self._seen.get(stream, 0) else None

    def offsets_at(self, streams: Collection[Stream], time_ms: int) -> Mapping[Stream, Offset]:
        """Return the first offset of each stream whose time is >= ``time_ms``; its end offset if there is none."""
        return {stream: self._offset_at(stream, time_ms) for stream in streams}

    def ts_at(self, time_ms: int) -> Ts:
        """Return the least TSO of the millisecond, as Kafka's source does."""
        return later_by(NO_TS, time_ms)

    def _offset_at(self, stream: Stream, time_ms: int) -> Offset:
        records = self._records.get(stream, ())
        return Offset(bisect_left(records, time_ms, self._earliest.get(stream, 0), self._end(stream), key=lambda record: record.time_ms))

    def show_offsets(self, offsets: Mapping[Stream, Offset]) -> None:
        """Remember what was shown."""
        self.shown_offsets = dict(offsets)

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _by_stream(log: Iterable[LogRecord]) -> dict[Stream, tuple[LogRecord, ...]]:
    records: dict[Stream, list[LogRecord]] = {}
    for record in log:
        records.setdefault(record.stream, []).append(record)
    return {stream: tuple(some) for stream, some in records.items()}
