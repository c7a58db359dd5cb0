"""The kit of a binlog: its positions as ``FILE:POS`` and GTIDs, where dumps begin in it, and a replica's distance from its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from applier.model.errors import ConfigError, ProtocolError, Remedy, SourceError
from applier.model.events import DdlEvent
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Listing, Offset, PartitionExtent, RecordPosition, Timeline, Ts
from applier.planner.port import RowLookup
from applier.planner.table_check import UpstreamTables
from applier.selection import EVERYTHING, TableSelection
from applier.sources.binlog.catalogue import FollowedLog, UpstreamCatalogue
from applier.sources.binlog.copy import BinlogCopyUpstream
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.binlog.dump import as_of_log, start_of_dump
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.extent import BinlogExtent
from applier.sources.binlog.gtid_set import Gtid
from applier.sources.binlog.log_start import GTIDS
from applier.sources.binlog.part import decode_head
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, file_name, parse_place
from applier.sources.binlog.server import LogFile, Server, address_of
from applier.sources.binlog.settings import COPY, BinlogSettings
from applier.sources.binlog.source import BinlogSource
from applier.sources.binlog.state import SourceState
from applier.sources.binlog.timeline import StoredTimeline, read_state
from applier.sources.binlog.walk import LogLookup
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.kit import AskedRecords, ChosenRecords, DeclaredStart, LogStatus, OriginOf, RecordOrigin, Records, SourceAnswer
from applier.sources.port import Decoder, Record, Source


class LogView:
    """Implements ``SourceView``. Asks the server at each call; connects when it is first asked."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._address = address_of(settings)
        self._server = Server(settings)

    def stored(self, state: str | None) -> SourceAnswer:
        """Return what a stored state alone tells: position and GTID set, of a replica that has them."""
        found = read_state(state)
        if found is None:
            return SourceAnswer(None, StoredTimeline())
        position = BinlogPosition.of(found.position).text(found.base_name)
        needed = [at for xid, at in found.prepared.items() if xid not in found.kept]
        first = BinlogPosition.of(min([found.position, *needed]))
        status = LogStatus(
            primary=self._address,
            position=position,
            gtid_set=found.gtid_set,
            oldest_file=file_name(found.base_name, first.file),
            prepared=len(needed),
        )
        return SourceAnswer(None, StoredTimeline.of(found), status)

    def ask(self, state: str | None) -> SourceAnswer:
        """Return the end of the log too, and the bytes of log before it. SourceError: no answer, or that of a different server."""
        stored, status = read_state(state), self.stored(state).log
        if stored is not None and self._server.identity() != stored.server:
            raise SourceError(
                "another server answers than the one that the replica has followed",
                remedy=Remedy(
                    "binlog.accept-found-position",
                    "A run finds its position there by its GTID set. If it is the wrong server, correct source.url",
                ),
                kind=FailureKind.OTHER_SERVER,
                address=self._address,
            )
        end, files = self._server.end(), self._server.files()
        if end is None or not files:
            raise SourceError(
                "the server writes no binlog",
                remedy=Remedy("binlog.start-with-log-bin", "Start it with log_bin"),
                kind=FailureKind.REFUSED,
                address=self._address,
            )
        generation = 0 if stored is None else stored.generation
        written = BinlogPosition(generation, end.number, end.position)
        earliest = BinlogPosition(generation, files[0].number, FIRST_POSITION)
        listing = Listing({STREAM: PartitionExtent(Offset(earliest.number), Offset(written.number))})
        if stored is not None and status is not None:
            behind = bytes_between(files, BinlogPosition.of(stored.position), written)
            status = replace(status, end=written.text(end.base_name), behind_bytes=behind)
        timeline = StoredTimeline.of(stored)
        timeline = replace(timeline, base_name=end.base_name, end=written.number, now_ms=int(time.time() * 1000))
        return SourceAnswer(listing, timeline, status)

    def close(self) -> None:
        """Close the session."""
        self._server.close()


def bytes_between(files: list[LogFile], begin: BinlogPosition, end: BinlogPosition) -> int:
    """Return the bytes of log between two positions of one generation. What was purged does not count."""
    sizes = {file.number: file.size for file in files} | {end.file: end.position}
    whole = sum(size for number, size in sizes.items() if begin.file <= number <= end.file)
    return max(0, whole - begin.position)


IN_LOG: Final = Remedy("cli.inspect-gtids", "`applier inspect` shows the transactions of the log with their GTIDs")
POSITION_FORM: Final = Remedy(
    "cli.write-file-pos", "Write FILE:POS, for instance mariadb-bin.000042:1234. `applier inspect` shows the positions of all transactions"
)
START_OF_LOG: Final = Remedy(
    "cli.remove-log-option", "Remove it. Set source.start, or load a dump with `applier load`: the dump says where it was made"
)
GTID_FORM: Final = Remedy(
    "cli.write-gtid-as-server", "Write it as the server does: 0-1-42 (MariaDB), 3e11fa47-71ca-11e1-9e33-c80aa9429562:42 (MySQL)"
)


@dataclass(frozen=True, slots=True)
class ChosenTransactions:
    """Passes the records of chosen transactions. None: no restriction. ``position``: where one begins."""

    gtid: str | None = None
    position: Offset | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def of(self, records: Records) -> Records:
        """Yield the records of these transactions. Stops where no further one can come."""
        for stream, record in records:
            if self.position is not None and record.offset > self.position:
                return
            if self._has(record):
                yield stream, record

    def _has(self, record: Record) -> bool:
        try:
            head = decode_head(record.key)
        except ProtocolError:
            return True
        is_named = self.gtid in {None, head.gtid} and self.position in {None, record.offset}
        time_ms = head.time_us // 1000
        return is_named and (self.since_ms or 0) <= time_ms and (self.until_ms is None or time_ms <= self.until_ms)


@dataclass(frozen=True, slots=True)
class BinlogKit:
    """Implements ``SourceKit``."""

    settings: BinlogSettings
    server = "primary"
    checks = "applier.check.primary"
    changelog = "applier.dataframe.binlog_source:BinlogChangelogSource"
    has_partitions = False
    may_begin_empty = False

    def with_patience(self, seconds: float) -> "BinlogKit":
        """Return the kit of a server that is given up after so long without an answer."""
        return BinlogKit(replace(self.settings, unreachable_after_s=seconds))

    def open(
        self, decoder: Decoder | None = None, zone_of_sessions: Callable[[], str] = str, tables: UpstreamTables | None = None
    ) -> BinlogSource:
        """Make the source. A binlog says the zone of each statement, and its server has the tables."""
        del zone_of_sessions, tables
        return BinlogSource(self.settings, decoder if isinstance(decoder, BinlogDecoder) else BinlogDecoder())

    def decoder(
        self, selection: TableSelection = EVERYTHING, claim_check: ClaimCheckSettings | None = None, lookup: RowLookup | None = None
    ) -> BinlogDecoder:
        """Return the decoder. Each row of a binlog is whole, so there is no storage and no lookup."""
        del claim_check, lookup
        return BinlogDecoder(selection)

    def upstream_tables(self, selection: TableSelection, state: str | None = None) -> UpstreamCatalogue:
        """Return the server's catalogue."""
        catalogue = UpstreamCatalogue(Server(self.settings), selection, partial(EventStream, self.settings, bodies=False))
        stored = read_state(state)
        if stored is not None:
            catalogue.follow(FollowedLog(stored.server, stored.generation, stored.base_name, lambda _: stored.position))
        return catalogue

    def timeline(self, state: str | None = None) -> StoredTimeline:
        """Return what the state tells of positions."""
        return StoredTimeline.of(read_state(state))

    @staticmethod
    def timeline_of(state: str | None) -> StoredTimeline | None:
        """Return the timeline of a stored state, which each replica of a binlog has."""
        return None if state is None else StoredTimeline.of(read_state(state))

    @staticmethod
    def is_position(text: str) -> bool:
        """Return whether a text has the form ``FILE:POS``."""
        return parse_place(text) is not None

    def ts(self, text: str, state: str | None) -> Ts:
        """Read digits, or ``FILE:POS`` of the log that the replica follows."""
        return Ts(int(text)) if text.isdecimal() else Ts(_offset_at(text, read_state(state)))

    def record_position(self, position: str | None, gtid: str | None, state: str | None) -> tuple[RecordPosition, Timeline]:
        """Return where a transaction begins. One that is named by its GTID is searched after the position of the replica."""
        known = read_state(state)
        if position is None:
            return RecordPosition(STREAM, _with_gtid(self.settings, _gtid(gtid or ""), known)), StoredTimeline.of(known)
        offset = _offset_at(position, known)
        # Of a new replica nothing but the option says how the files are called.
        names = StoredTimeline(base_name=position.rpartition(".")[0]) if known is None else StoredTimeline.of(known)
        return RecordPosition(STREAM, offset), names

    def records(self, asked: AskedRecords) -> ChosenRecords:
        """Return which transactions are shown."""
        if asked.ts is not None:
            raise ConfigError(
                "--ts is for topics: a binlog has positions", remedy=Remedy("cli.use-position-or-gtid", "Use --position or --gtid")
            )
        chosen = ChosenTransactions(
            gtid=None if asked.gtid is None else _gtid(asked.gtid),
            position=None if asked.position is None else _offset(asked.position),
            since_ms=asked.since_ms,
            until_ms=asked.until_ms,
        )
        text = asked.start if asked.position is None else asked.position
        if text is None or not (text.isascii() and text.isdecimal()):
            return ChosenRecords(None if text is None else _offset(text), chosen.of)
        # An error names a record by its offset. The server knows nothing of the servers that were followed before.
        return ChosenRecords(Offset(BinlogPosition.of(int(text))._replace(generation=0).number), chosen.of)

    def origin_of(self, source: Source) -> OriginOf:
        """Return what reads the head of a record."""
        timeline = source.timeline

        def origin_of(record: Record) -> RecordOrigin | None:
            try:
                head = decode_head(record.key)
            except ProtocolError:
                return None
            return RecordOrigin(head.time_us // 1000, timeline.text(Ts(record.offset)), head.gtid)

        return origin_of

    def refuse_start_ts(self, start_ts: Ts | None) -> None:
        """Refuse a TSO: it would be ignored."""
        if start_ts is not None:
            raise ConfigError("--start-ts is for topics: a replica of a binlog begins at source.start", remedy=START_OF_LOG)

    @property
    def names_start(self) -> bool:
        """Whether ``source.start`` is set to a position."""
        return self.settings.start not in {"", COPY}

    @property
    def begins_with_copy(self) -> bool:
        """Whether ``source.start`` asks for a copy."""
        return self.settings.start == COPY

    def copy_upstream(self, selection: TableSelection) -> BinlogCopyUpstream:
        """Return the server, which has the rows."""
        return BinlogCopyUpstream(self.settings, selection)

    def start_of_dump(self, directory: Path, given: Ts | None, configured: Ts = NO_TS) -> tuple[Ts, Timeline]:
        """Return the position that the dump says, if its server is the one that was dumped."""
        del configured
        if given is not None:
            raise ConfigError(
                "--start-ts is for dumps of TiDB",
                remedy=Remedy("dump.remove-start-ts-of-binlog", "Remove it: a dump says its position in the binlog itself"),
            )
        start_ts, state = _position_of(replace(self.settings, start=start_of_dump(directory)))
        if state is not None and state.has_gaps:
            raise ConfigError(
                "the server of source.url has logged transactions of the dump after others that the dump does not have",
                remedy=Remedy("dump.give-dumped-server-url", "Give the url of the server that was dumped, or dump this one"),
                directory=directory,
                gtid_set=state.gtid_set,
            )
        return start_ts, StoredTimeline.of(state)

    def declared_start(self, given: Ts | None, configured: Ts) -> DeclaredStart:
        """Return the position that ``source.start`` names."""
        del configured
        if given is not None:
            raise ConfigError(
                "--start-ts is a TSO, and the source is a binlog",
                remedy=Remedy("dump.give-place-or-dump", "Set source.start to the position, or give the dump"),
            )
        start_ts, state = _position_of(self.settings)
        return DeclaredStart(start_ts, told_by(self.settings.start, state), StoredTimeline.of(state), is_end=self.settings.start == "now")

    @property
    def dumped_ddl(self) -> Callable[[DdlEvent, str], DdlEvent]:
        """The reader of a log's DDLs."""
        return as_of_log

    @property
    def start_at_dump(self) -> Callable[[Path], str]:
        """The reader of a dump's position, as ``source.start`` names it."""
        return start_of_dump

    @staticmethod
    def executed(state: str) -> str | None:
        """Return the transactions that a replica with this state has applied; None: it is not the state of a binlog."""
        stored = read_state(state)
        return None if stored is None else stored.gtid_set or None

    def view(self) -> LogView:
        """Return where the server writes, and the position of the replica."""
        return LogView(self.settings)

    def extent(self) -> BinlogExtent:
        """Ask the server for its files."""
        return BinlogExtent.of(self.settings)


def told_by(start: str, state: SourceState | None) -> str:
    """Return the text to store: the set of GTIDs, where the server has logged some of them after later ones; else ``start``."""
    return start if state is None or not state.has_gaps else f"{GTIDS}{state.gtid_set}"


def _position_of(settings: BinlogSettings) -> tuple[Ts, SourceState | None]:
    """Return the position that ``settings.start`` names. ConfigError, SourceError, NeedsOperator: the server does not have it."""
    with BinlogSource(settings, BinlogDecoder()) as source:
        point = source.position.start_point()
    return point.start_ts, read_state(point.state)


def _offset(text: str, generation: int = 0, base_name: str | None = None) -> Offset:
    """Read ``FILE:POS`` as an offset. ConfigError: it is not of that form, or its file is not one of ``base_name``'s."""
    parsed = parse_place(text)
    if parsed is None:
        raise ConfigError(f"{text!r} is not a position in a binlog", remedy=POSITION_FORM)
    given, file, position = parsed
    if base_name is not None and given != base_name:
        files = file_name(base_name, file)
        raise ConfigError(
            f"the replica follows no file {given}",
            remedy=Remedy("cli.show-binlog-file-names", f"Its files are called like {files}"),
            position=text,
        )
    return Offset(BinlogPosition(generation, file, position).number)


def _offset_at(position: str, state: SourceState | None) -> Offset:
    return _offset(position) if state is None else _offset(position, state.generation, state.base_name)


def _gtid(text: str) -> str:
    """Read a GTID of either server, and spell it as its server does. ConfigError if it is not a GTID."""
    try:
        return str(Gtid.parse(text))
    except ValueError:
        raise ConfigError(f"{text!r} is not the GTID of one transaction", remedy=GTID_FORM) from None


def _with_gtid(settings: BinlogSettings, gtid: str, state: SourceState | None) -> Offset:
    """Search after the replica's position: everything before it is applied."""
    with Server(settings) as server:
        end, files = server.end(), server.files()
    if end is None or not files:
        raise ConfigError("the server writes no binlog", remedy=IN_LOG)
    generation = 0 if state is None else state.generation
    since = BinlogPosition(0, files[0].number, FIRST_POSITION).number if state is None else state.position
    upto = BinlogPosition(generation, end.number, end.position).number
    found = LogLookup(settings, end.base_name).begin_of(gtid, since, upto)
    if found is None:
        raise ConfigError("the log has no such transaction after the position of the replica", remedy=IN_LOG, gtid=gtid)
    return found
