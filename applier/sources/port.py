"""The port of a source: its offsets and records (``Source``, ``RangeReader``), and how their bytes are read (``Decoder``, ``Placer``).

Nothing outside of a source knows the format of its records: every reader of one is given the source's decoder. What crosses to executors
(``RangeReader``, ``Decoder``) is frozen and picklable, and small: it travels with the code of each job.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import (
    AdminEvent,
    DdlEvent,
    Event,
    ExcludedTable,
    PlacedRow,
    ResolvedEvent,
    Shape,
    SkippedStatement,
    TableName,
)
from applier.model.position import NO_TS, Listing, Offset, RecordPosition, Stream, Timeline, Ts
from applier.model.range_report import RangeId
from applier.model.rejected_event import RejectedEvent
from applier.planner.port import RowDecoder
from applier.planner.table_check import UpstreamTables
from applier.sources.start import ReplicaPosition, StartPoint


class Record(NamedTuple):
    """One record: ``key`` and ``value`` may be None (a Kafka null)."""

    offset: Offset
    key: bytes | None
    value: bytes | None


Placed: TypeAlias = PlacedRow | DdlEvent | ResolvedEvent | AdminEvent | ExcludedTable | SkippedStatement
"""An event whose position is known: table, timestamp, operation and key. The image of a row is left as the bytes that came."""


class EventHead(NamedTuple):
    """What an event says besides its content: its timestamp, its table, and whether it is a DDL."""

    ts: Ts
    name: TableName
    is_ddl: bool


class Unplaced(NamedTuple):
    """An event that cannot be read, with the error that says where and why. ``head`` is None where not even that can be read."""

    error: ProtocolError
    head: EventHead | None


class PlacedRows(NamedTuple):
    """Rows of one range in the order of their events, one column per member of ``PlacedRow``: columns cost half of a tuple per row.

    ``shape`` indexes ``shapes``, which are different objects. ``offset`` and ``index`` name the event; an event may give several rows: an
    update that changes the key is a delete and an upsert.
    """

    shapes: Sequence[Shape]
    shape: Sequence[int]
    commit_ts: Sequence[int]
    kind: Sequence[int]
    offset: Sequence[int]
    index: Sequence[int]  # type: ignore[assignment] # hides tuple.index, which nobody needs here
    key: Sequence[bytes]
    image: Sequence[bytes]


class PlacedEvent(NamedTuple):
    """An event that is not a row, a row that was rejected, or that rows of a table are skipped; with its position in the range."""

    offset: int
    index: int  # type: ignore[assignment] # as above
    event: DdlEvent | ResolvedEvent | AdminEvent | RejectedEvent | ExcludedTable | SkippedStatement


class Placer(Protocol):
    """Finds the events of one range's records. Made by ``Decoder.placer``, called by one thread, with the records in offset order.

    This is the hot path of listening: ``place_all`` may keep what it learns from one record for the next.
    """

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order. ProtocolError if one of them cannot be read, or cannot be applied.

        The error is that of the first such event. Rows of events before it may have been yielded. A listener calls it again with the
        same records, otherwise divided, when a range is read again: the events must be the same.
        """
        ...

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> Sequence[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index. Raises nothing: called where ``place_all`` has, and for tolerance.

        An event that cannot be read comes as an ``Unplaced``; if its keys can be read, a marker row for each key precedes it. A record
        that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``.
        """
        ...


class Decoder(RowDecoder, Protocol):
    """Reads the bytes of a source's records and of what its placers return. Frozen and picklable; used on executors and on the driver.

    What rows tell of their table's keys is in the ``Shape`` of each placed row: ``KnownKeys``, in which None is what the format does not
    tell. Nothing after the port reads another description of a column.

    Two ways lead to an event's values, and they agree on every record: ``placer`` and then ``image_decoder`` for the rows that are
    applied, ``events`` for people. What the planner asks of it is ``RowDecoder``.
    """

    def placer(self, stream: Stream) -> Placer:
        """Make the placer of one range of a stream. Called once per range; compiled shapes may be shared by the process."""
        ...

    def events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return the whole events of one record with all values decoded. ProtocolError names ``position``. For inspection, not for rows."""
        ...

    def whole_events(self, record: Record, position: RecordPosition) -> Sequence[Event]:
        """Return what ``events`` returns, with the columns of rows that were too large for Kafka, where their storage is known.

        ProtocolError names ``position``; another SourceError if the storage fails. For readers that land rows elsewhere (``dataframe``).
        """
        ...


class RangeReader(Protocol):
    """Executor side. Frozen and picklable; makes its own consumer (kept per process)."""

    def read(self, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record] | SourceError]]:
        """Yield the records of all ranges in batches, each batch with its range; a range that cannot be read whole yields its error last.

        The ranges come in any order and interleave, also ranges of one stream; the records of one range come in offset order. The ranges
        do not overlap. Offsets may have gaps (transactions, compaction), and a batch may be empty. A range without an error was read
        whole when the iterator ends; an error ends its own range only. Its ``kind`` is "retention" if the range's beginning is
        gone, "unreachable" if a retry may help, and otherwise the reason. What no range can survive is raised (ConfigError).

        Called once per task and listening; again for the same range where Spark repeats a task, perhaps among other ranges: the content
        of a range must be the same. A caller may stop early, by closing the iterator; it has one iterator at a time.
        """
        ...

    def records_at(self, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
        """Yield the records of one offset, each with the index of its first event, ascending: of a large transaction there are several.

        Nothing if no record has this offset. SourceError as for a range.
        """
        ...


class LogReader(RangeReader, Protocol):
    """A reader of ranges that also says which offsets there are. Frozen and picklable. For formats that need records of other ranges."""

    @property
    def log_name(self) -> str:
        """What names the log: what a process has learned of one log is not used for another."""
        ...

    def listing(self) -> Listing:
        """Return the partitions of all topics with their earliest and end offsets, now. SourceError: the log does not answer."""
        ...


@runtime_checkable
class LogDecoder(Protocol):
    """A decoder whose records need others of their log, which may be outside of their range. Optional: a kit asks."""

    def in_log(self, log: LogReader) -> Decoder:
        """Return the decoder of the records of one log."""
        ...


@runtime_checkable
class ZonedDecoder(Protocol):
    """A decoder whose records name the zone of their TIMESTAMP values. Optional: a kit asks."""

    def in_zone(self, time_zone: str) -> Decoder:
        """Return the decoder that stops where a value names another zone than ``time_zone``."""
        ...


class LogPosition(Protocol):
    """How a replica finds its position again in a source that is one log, and has more to remember than offsets. Driver side."""

    def start_point(self, loaded: Ts = NO_TS, declared: str = "") -> StartPoint:
        """Return where a new replica begins. SourceError, NeedsOperator.

        ``loaded``: the position of the dump that the sink was loaded from; the source's own settings count where there is none.
        ``declared``: what the settings said when an operator declared the sink as loaded; more exact than ``loaded`` for a set of GTIDs.
        """
        ...

    def resume(self, stored: ReplicaPosition) -> None:
        """Take the position to read from, before the listing by which a run begins, or continues after a reload. NeedsOperator: it is gone.

        A run asks for one listing before, only to see that the source answers: nothing is read by that one.
        """
        ...

    def state_at(self, ts: Ts) -> str | None:
        """Return what the source must be told to resume at this checkpoint: stored with it."""
        ...


class TopicFacts(Protocol):
    """What a broker knows of the topics of a source, except their records. Driver side."""

    def ids(self) -> Mapping[str, str]:
        """Return the ids that the topics got when they were created; a topic without one is absent (mock clusters have none)."""
        ...

    def check(self) -> None:
        """Raise NeedsOperator if a topic loses rows unnoticed: it is compacted.

        Called after each listing, for the topics that it has shown; asks seldom. What the user may not see is logged, and not refused.
        """
        ...

    def show_offsets(self, offsets: Mapping[Stream, Offset]) -> None:
        """Let lag tools see how far each stream is applied. Information only: returns at once, and a failure is logged."""
        ...


class RecordTimes(Protocol):
    """When records were written. Driver side; SourceError: the source does not answer."""

    def holds_all_since(self, stream: Stream, earliest: Offset, start_ts: Ts) -> bool:
        """Whether a stream that begins at ``earliest`` still holds every event after ``start_ts``."""
        ...

    def time_ms(self, stream: Stream, offset: Offset) -> int | None:
        """Return when the record at or after ``offset`` was written (ms since the epoch); None if there is none."""
        ...

    def offsets_at(self, streams: Collection[Stream], time_ms: int) -> Mapping[Stream, Offset]:
        """Return the first offset of each stream whose record time is >= ``time_ms``; its end offset if there is none."""
        ...

    def ts_at(self, time_ms: int) -> Ts:
        """Return the timestamp at which a catch-up ends that applies what was written before ``time_ms``. Called after a resume."""
        ...


class Source(AbstractContextManager["Source"], Protocol):
    """Driver side. Not thread-safe, except for ``reader``, ``decoder`` and ``timeline``. A context manager that closes it.

    ``position`` and ``topics`` are parts that a source has or has not: who asks says what None means there.
    """

    @property
    def timeline(self) -> Timeline:
        """What timestamps mean to people."""
        ...

    @property
    def reader(self) -> RangeReader:
        """The reading part, for executors. Asked again for each job: it may carry what the source has learned since."""
        ...

    @property
    def decoder(self) -> Decoder:
        """The decoding part, for executors and for commands that show a record."""
        ...

    @property
    def times(self) -> RecordTimes:
        """When records were written."""
        ...

    @property
    def position(self) -> LogPosition | None:
        """How a replica finds its position again; None: its stored offsets, and ``start_ts`` of the configuration, suffice."""
        ...

    @property
    def topics(self) -> TopicFacts | None:
        """What a broker knows of the topics; None: there are none."""
        ...

    @property
    def upstream_tables(self) -> UpstreamTables | None:
        """What answers for upstream's own tables, where events do not show enough of them; None: events do, or nothing can be asked."""
        ...

    def resolved(self, ddl: DdlEvent) -> DdlEvent:
        """Return a DDL with what only upstream can say of its session. Called before it runs. SourceError; NeedsOperator: it cannot run."""
        ...

    def listing(self) -> Listing:
        """Fetch the partitions of all topics with their earliest and end offsets, now. Called once per cycle.

        The ends are fetched after the partitions, and never include what a reader does not get yet (open transactions). The earliest
        offsets of partitions that held records before may be some seconds old: a range that has expired since fails when it is read.
        SourceError: unknown topic, unreachable.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
