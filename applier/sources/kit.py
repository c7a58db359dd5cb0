"""The port of a kit: what commands, checks and statuses ask of a source without a run. ``factory.kit_of`` gives the one of the settings.

No one else knows which sources there are, what their streams are called, or how their positions are spelled.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from applier.copy.port import CopyUpstream
from applier.model.events import DdlEvent
from applier.model.position import NO_TS, Listing, Offset, RecordPosition, Stream, Timeline, Ts
from applier.model.range_report import RangeId
from applier.planner.port import RowLookup
from applier.planner.table_check import UpstreamTables
from applier.selection import EVERYTHING, TableSelection
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.port import Decoder, RangeReader, Record, Source


class RecordOrigin(NamedTuple):
    """The transaction of a log that a record belongs to: its time, where it begins (``FILE:POSITION``), and its GTID, '' without."""

    time_ms: int
    position: str
    gtid: str


OriginOf: TypeAlias = Callable[[Record], RecordOrigin | None]
"""Names the transaction of a record; None: its source knows none, or the record cannot be read."""


class AskedRecords(NamedTuple):
    """Which records ``applier inspect`` is asked for, as the options name them."""

    start: str | None = None
    ts: Ts | None = None
    position: str | None = None
    gtid: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


Records: TypeAlias = Iterator[tuple[Stream, Record]]


class ChosenRecords(NamedTuple):
    """What the options mean for a source. ``since`` and ``until``: the events' timestamps; ``of`` passes the chosen records."""

    start: Offset | None
    of: Callable[[Records], Records] = iter
    since: Ts | None = None
    until: Ts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """Where a replica is in the log of its primary. ``end`` and ``behind_bytes`` are None while the server does not answer.

    ``oldest_file``: the first file that the replica still reads. That is not the one of its position while XA transactions are prepared in
    earlier files and not committed, and the sink does not keep them: ``prepared`` of them.
    """

    primary: str
    position: str
    gtid_set: str
    end: str | None = None
    behind_bytes: int | None = None
    oldest_file: str = ""
    prepared: int = 0


class SourceAnswer(NamedTuple):
    """``listing`` is None where the source was not asked, or does not answer. ``log``: of a source that is one log."""

    listing: Listing | None
    timeline: Timeline
    log: LogStatus | None = None


class SourceView(Protocol):
    """Asks a source for its ends; connects when it is first asked."""

    def stored(self, state: str | None) -> SourceAnswer:
        """Return what the stored state of a replica tells, without asking the source."""
        ...

    def ask(self, state: str | None) -> SourceAnswer:
        """Return what the source adds. SourceError: it does not answer."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class PositionColumns(Protocol):
    """The columns of the changelog between ``commit_time`` and ``event``: where an event is. Crosses to executors: frozen and picklable."""

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """Return their names and Spark types."""
        ...

    def of(self, record: Record, position: RecordPosition) -> tuple[Any, ...]:
        """Return their values for the events of a record."""
        ...

    def time(self, ts: Ts, record: Record) -> datetime | None:
        """Return when an event of a record was committed."""
        ...


class LogExtent(Protocol):
    """What a source that is one log holds at one time. Frozen and picklable: a query reads the same events each time."""

    @property
    def identity(self) -> str:
        """What tells its server from others."""
        ...

    @property
    def stream(self) -> Stream:
        """Its one stream."""
        ...

    @property
    def earliest(self) -> Offset:
        """Where it begins."""
        ...

    @property
    def end(self) -> Offset:
        """Where the server writes."""
        ...

    @property
    def columns(self) -> PositionColumns:
        """How a record says where it is."""
        ...

    def reader(self) -> RangeReader:
        """Return the reader of its ranges."""
        ...

    def offset(self, text: str) -> Offset | None:
        """Read a position as people write it; None: it is not of that form."""
        ...

    def text(self, offset: Offset) -> str:
        """Spell an offset as people write it: ``FILE:POSITION``."""
        ...

    def parts(self, whole: RangeId) -> Iterator[RangeId]:
        """Yield the parts of a range that a task each reads: its files; nothing for an empty one."""
        ...

    def end_of_files(self, start: Offset, files: int) -> Offset:
        """Return where so many files end, the one at ``start`` included; the log's end at most."""
        ...


class DeclaredStart(NamedTuple):
    """The position of a sink that other programs have loaded. ``told``: the text that names it more exactly, or ''."""

    start_ts: Ts
    told: str
    timeline: Timeline
    is_end: bool = False
    """Whether the settings name the end of the source: asked later, it is a later one."""


class SourceKit(Protocol):
    """One source by its settings. Opens a connection only where a method notes it."""

    server: str
    """What messages call the server of the source: ``Kafka``, ``primary``."""
    has_partitions: bool
    """Whether there are several streams whose offsets count records; else one log whose positions are its timestamps."""
    checks: str
    """The module of its checks, whose ``examine`` implements ``Examination`` of ``applier.check.everything``. Imported by checks alone."""
    changelog: str
    """Its data source for PySpark, as ``module:class``. Imported by ``applier.dataframe`` alone, which needs PySpark and pyarrow."""
    may_begin_empty: bool
    """Whether the source may hold everything that upstream ever had: then a replica may begin without a load."""

    def with_patience(self, seconds: float) -> "SourceKit":
        """Return the kit of a source that is given up after so long without an answer."""
        ...

    # --- reading ---------------------------------------------------------------------------------------------------

    def open(
        self, decoder: Decoder | None = None, zone_of_sessions: Callable[[], str] = str, tables: UpstreamTables | None = None
    ) -> Source:
        """Make the source. ConfigError if a property is refused; it connects when it is first asked.

        ``decoder``: of ``decoder``. None is for commands that apply nothing: rows that were too large for their record are refused.
        ``zone_of_sessions``: returns the time zone of upstream's sessions, '' if it is not known. ``tables``: what answers for upstream's
        tables, where that is not the source's server.
        """
        ...

    def decoder(
        self, selection: TableSelection = EVERYTHING, claim_check: ClaimCheckSettings | None = None, lookup: RowLookup | None = None
    ) -> Decoder:
        """Return how records are read to be applied. ConfigError: a package for the storage is missing, or an option of it is wrong.

        ``lookup``: what reads upstream's rows, for records that have the handle key only.
        """
        ...

    def upstream_tables(self, selection: TableSelection, state: str | None = None) -> UpstreamTables | None:
        """Return what answers for upstream's tables, where the source's server is upstream. It connects when it is first asked.

        ``state``: that of the replica whose positions are asked about; None: of one that has not begun.
        """
        ...

    # --- positions -------------------------------------------------------------------------------------------------

    def timeline(self, state: str | None = None) -> Timeline:
        """Return what timestamps mean, by the stored state of a replica."""
        ...

    def ts(self, text: str, state: str | None) -> Ts:
        """Read a timestamp of the command line. ConfigError: it is one of another kind of source, or of another log."""
        ...

    def record_position(self, position: str | None, gtid: str | None, state: str | None) -> tuple[RecordPosition, Timeline]:
        """Return the record that ``--position`` or ``--gtid`` names. ConfigError: no such record. It may ask the server."""
        ...

    def records(self, asked: AskedRecords) -> ChosenRecords:
        """Return which records are read and shown. ConfigError: an option is wrong, or of the other kind of source."""
        ...

    def origin_of(self, source: Source) -> OriginOf:
        """Return what names the transactions of the records of an open source."""
        ...

    def refuse_start_ts(self, start_ts: Ts | None) -> None:
        """Refuse the option ``--start-ts`` where it would be ignored. ConfigError."""
        ...

    # --- the beginning of a replica --------------------------------------------------------------------------------

    @property
    def names_start(self) -> bool:
        """Whether the settings name where a new replica begins; ``start_ts`` of the configuration apart."""
        ...

    @property
    def begins_with_copy(self) -> bool:
        """Whether the settings say that a new replica begins with a copy of upstream (``source.start = "copy"``)."""
        ...

    def copy_upstream(self, selection: TableSelection) -> CopyUpstream | None:
        """Return what reads upstream's rows for a copy; None: the source's server does not have them. Connects when it is first asked."""
        ...

    def start_of_dump(self, directory: Path, given: Ts | None, configured: Ts = NO_TS) -> tuple[Ts, Timeline]:
        """Return the position of a dump. ConfigError: no one tells it, or two tell different ones. It may ask the server."""
        ...

    def declared_start(self, given: Ts | None, configured: Ts) -> DeclaredStart:
        """Return the position that the settings or ``given`` name. ConfigError, SourceError, NeedsOperator: there is none."""
        ...

    @property
    def dumped_ddl(self) -> Callable[[DdlEvent, str], DdlEvent] | None:
        """What makes a DDL of the source of a dump's definition and the zone of its TIMESTAMP values; None: it is one."""
        ...

    @property
    def start_at_dump(self) -> Callable[[Path], str] | None:
        """What returns ``source.start`` for a dump, ConfigError if it does not say its position; None: there is no such key."""
        ...

    # --- status and queries ----------------------------------------------------------------------------------------

    def view(self) -> SourceView:
        """Return what tells how far the source goes."""
        ...

    def extent(self) -> LogExtent | None:
        """Ask the server what its log holds now; None: the source is not one log. SourceError: no answer."""
        ...


class KindOfSource(Protocol):
    """The class of a kit: makes one of settings, and reads what is known without any."""

    changelog: str

    def __call__(self, settings: Any, /) -> SourceKit:
        """Make the kit."""
        ...

    def is_position(self, text: str, /) -> bool:
        """Return whether a text has the form of its positions, digits apart."""
        ...

    def executed(self, state: str, /) -> str | None:
        """Return the transactions that a replica with this state has applied; None: it is of another kind, or has no such set."""
        ...

    def timeline_of(self, state: str | None, /) -> Timeline | None:
        """Return what timestamps mean to a replica with this stored state; None: the state is of another kind of source."""
        ...
