"""The driver's view of a binlog: how far it goes, where ranges may end, and where a replica is in it."""

from collections.abc import Collection, Mapping
from typing import Final, Self

from msgspec import structs

from applier.model.errors import NeedsOperator, Remedy, SourceError
from applier.model.events import DdlEvent
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Cut, Listing, Offset, PartitionExtent, Stream, Ts
from applier.sources.binlog.catalogue import FollowedLog, UpstreamCatalogue
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.gtid_set import Gtid
from applier.sources.binlog.log_start import GTIDS, LogStart, LogStartFinder, read_start
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, parse_place
from applier.sources.binlog.reader import BinlogRangeReader, Log
from applier.sources.binlog.refusal import reset_log
from applier.sources.binlog.scan import Scan
from applier.sources.binlog.server import Server, in_known_zone, require
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import Journal, SourceState
from applier.sources.binlog.timeline import BinlogTimeline
from applier.sources.binlog.xa_keeper import XaKeeper
from applier.sources.binlog.xa_rows import NOTHING_KEPT
from applier.sources.port import RangeReader
from applier.sources.start import ReplicaPosition, StartPoint


class ScanSession:
    """Implements ``LogSession`` for the log of one position."""

    def __init__(self, settings: BinlogSettings, log_start: LogStart) -> None:
        self._settings, self._log_start = settings, log_start
        self._server = Server(settings)

    def open_feed(self, at: int) -> EventStream:
        """Begin to read at a position. SourceError "other_server": another one answers, as after a failover of one address."""
        self._server.close()
        log_start, server = self._log_start, self._server.identity()
        if server != log_start.server:
            raise SourceError(
                "another server answers",
                kind=FailureKind.OTHER_SERVER,
                followed=log_start.server,
                server=server,
                address=self._server.address,
            )
        return EventStream(self._settings, log_start.base_name, at, bodies=False)

    def end(self) -> int:
        """Return where the server writes now."""
        end = self._server.end()
        if end is None or end.base_name != self._log_start.base_name:
            raise SourceError("the server writes another binlog", kind=FailureKind.OTHER_SERVER, address=self._server.address)
        return BinlogPosition(self._log_start.generation, end.number, end.position).number

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


_NO_STATE: Final = Remedy("binlog.create-again", "Create the replica again from a dump (`applier docs start_over`)")


class BinlogSource:
    """Implements ``Source`` and ``LogPosition`` on a MySQL or MariaDB server. It connects when it is first asked."""

    def __init__(self, settings: BinlogSettings, decoder: BinlogDecoder) -> None:
        self._settings, self._decoder = settings, decoder
        self._server = Server(settings)
        self._catalogue = UpstreamCatalogue(self._server, decoder.selection, self._open_feed)
        self._finder = LogStartFinder(self._server, self._open_feed)
        self._timeline = BinlogTimeline()
        self._log_start: LogStart | None = None
        self._scan: Scan | None = None
        self._stored = ReplicaPosition(checkpoint_ts=Ts(0), positions={})
        self._listed_end = 0
        """The greatest end that a listing has shown: a log that ends before it was reset."""
        self._keeper: XaKeeper | None = None
        """What keeps prepared transactions; None: the sink of this run keeps nothing."""
        self._stored_position = 0
        """The position of the last state that was given to be stored."""

    def _open_feed(self, base_name: str, position: int) -> EventStream:
        return EventStream(self._settings, base_name, position, bodies=False)

    # --- what executors need ---------------------------------------------------------------------------------------

    @property
    def reader(self) -> RangeReader:
        """The reading part, for executors: it knows where the XA transactions were prepared that may be committed."""
        log_start = self._log_start
        if log_start is None or self._scan is None:
            base_name = self._finder.end().base_name
            self._timeline.name(0, base_name)
            return BinlogRangeReader(self._settings, base_name, {}, self._server.identity())
        with self._scan.journal() as journal:
            prepared, files = journal.ever_prepared(), journal.files
        kept = self._keeper.kept if self._keeper is not None else NOTHING_KEPT
        return BinlogRangeReader(self._settings, log_start.base_name, prepared, log_start.server, log_start.skipped, kept, files)

    @property
    def decoder(self) -> BinlogDecoder:
        """The decoding part."""
        return self._decoder

    @property
    def upstream_tables(self) -> UpstreamCatalogue:
        """Upstream's catalogue, under the sink's names."""
        return self._catalogue

    def resolved(self, ddl: DdlEvent) -> DdlEvent:
        """Return a DDL with an offset instead of upstream's SYSTEM zone."""
        return in_known_zone(ddl, self._server)

    @property
    def topics(self) -> None:
        """None: a log is kept whole, or its files are gone, and no one looks for offsets in a database server."""
        return

    @property
    def times(self) -> "BinlogTimes":
        """When the groups were written."""
        return BinlogTimes(self._timeline, self._finder, self._log_start.generation if self._log_start else 0)

    @property
    def position(self) -> Self:
        """The position in the log: of the scan, which the listing and the reader share."""
        return self

    # --- the position of the replica ----------------------------------------------------------------------------------

    @property
    def timeline(self) -> BinlogTimeline:
        """The times of the groups that the scan has seen."""
        return self._timeline

    def start_point(self, loaded: Ts = NO_TS, declared: str = "") -> StartPoint:
        """Return the position of the dump that was loaded; without one, where ``source.start`` lets a new replica begin."""
        require(self._server)
        if declared.startswith(GTIDS):  # the server may have logged some of them behind others: one position does not say which
            start = declared
        else:  # the dump's directory may be gone since, and "now" is later
            start = BinlogPosition.of(loaded).text(self._finder.end().base_name) if loaded else self._settings.start
        if named := parse_place(start):
            self._timeline.name(0, named[0])
        log_start = read_start(start, self._server, self._finder)
        log_start.beginning.created_s = self._finder.created_s(log_start.base_name, log_start.beginning.position)
        position = log_start.beginning.position
        return StartPoint(Ts(position), _state_of(log_start, Journal(log_start.beginning), position).text())

    def resume(self, stored: ReplicaPosition) -> None:
        """Find the position again, and let the scan walk from there. One that is there already continues."""
        if stored.state is None:
            raise NeedsOperator(
                "the progress of the replica has no position in a binlog: it was made from another source", remedy=_NO_STATE
            )
        if self._is_there(stored.checkpoint_ts):
            return
        self._end_scan()
        require(self._server)
        state = SourceState.parse(stored.state)
        # An error of what follows names positions of the log as the server names its files.
        self._timeline.name(state.generation, state.base_name)
        log_start = self._finder.resumed(state)
        self._log_start, self._stored, self._stored_position = log_start, stored, log_start.beginning.position
        self._keeper = None
        if stored.xa is not None:
            log = Log(self._settings, log_start.base_name, {}, log_start.server)
            self._keeper = XaKeeper.resumed(stored.xa, log, log_start.beginning.position, state.kept_positions.values())
        self._scan = Scan(ScanSession(self._settings, log_start), log_start.beginning).start()
        self._timeline.follow(self._scan, log_start.generation, log_start.base_name)
        self._catalogue.follow(FollowedLog(log_start.server, log_start.generation, log_start.base_name, self._boundary_of))

    def _boundary_of(self, ts: Ts) -> int | None:
        """Return a boundary up to which everything is applied at a checkpoint; None: the scan does not know it."""
        if self._scan is None:
            return None
        with self._scan.journal() as journal:
            if journal.beginning <= ts <= journal.last:
                return journal.boundary_at(ts)
            # The checkpoint of the DDL right before.
            return journal.beginning if ts == journal.beginning - 1 else None

    def _is_there(self, checkpoint_ts: Ts) -> bool:
        if self._scan is None or not self._scan.is_well:
            return False
        with self._scan.journal() as journal:
            return journal.beginning <= checkpoint_ts <= journal.last

    def state_at(self, ts: Ts) -> str | None:
        """Return the position, the executed set, and what else a resume needs. Everything before the last one may be removed."""
        if self._log_start is None or self._scan is None:
            return None
        with self._scan.journal() as journal:
            if ts < journal.beginning:
                return self._stored.state  # the position on the server before: its end is not passed yet
            position = journal.boundary_at(ts)
            state = _state_of(self._log_start, journal, position)
        if self._keeper is not None:
            state = structs.replace(state, kept=self._keeper.keep(state.prepared))
        self._scan.forget(min(self._stored_position, position))
        self._scan.applied(position)
        self._stored_position = position
        if self._keeper is not None:
            with self._scan.journal() as journal:
                needed = {begin for begins in journal.ever_prepared().values() for begin in begins}
            self._keeper.forget_all_but(needed)
        return state.text()

    # --- how far the log goes --------------------------------------------------------------------------------------

    def listing(self) -> Listing:
        """Return the log as one stream, with the cuts that the scan has found. SourceError, NeedsOperator."""
        log_start, scan = self._log_start, self._scan
        if log_start is None or scan is None:
            return Listing({STREAM: self._files()})
        scan.raise_failure(self._settings.unreachable_after_s)
        with scan.journal() as journal:
            cuts, last = journal.cuts(), journal.last
        begins = log_start.beginning.position
        earliest = min([begins, *(position.next_offset for position in self._stored.positions.values())])
        if BinlogPosition.of(earliest).generation != log_start.generation:
            # On the server before, nothing follows what is applied.
            cuts = (Cut(Offset(begins), 0), *(cut for cut in cuts if cut.offset > begins))
        end = max(last, scan.server_end)
        if end < self._listed_end:
            raise reset_log(self._timeline.text(Ts(self._listed_end)))
        self._listed_end = end
        return Listing({STREAM: PartitionExtent(Offset(earliest), Offset(end), cuts)})

    def _files(self) -> PartitionExtent:
        """Return what the server holds, for callers without a replica: a range may end where a file does."""
        require(self._server)
        files, end = self._finder.files(), self._finder.end()
        numbers = [BinlogPosition(0, file.number, FIRST_POSITION).number for file in files]
        last = BinlogPosition(0, end.number, end.position).number
        cuts = tuple(Cut(Offset(begin), file.size) for file, begin in zip(files, [*numbers[1:], last], strict=True))
        return PartitionExtent(Offset(numbers[0]), Offset(last), cuts)

    def close(self) -> None:
        """End the scan, and close the connections."""
        self._end_scan()
        self._server.close()

    def _end_scan(self) -> None:
        scan, self._scan = self._scan, None
        if scan is not None:
            scan.close()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


class BinlogTimes:
    """Implements ``RecordTimes``. ``generation``: of the replica's position; 0 without one."""

    def __init__(self, timeline: BinlogTimeline, finder: LogStartFinder, generation: int) -> None:
        self._timeline, self._finder, self._generation = timeline, finder, generation

    def holds_all_since(self, stream: Stream, earliest: Offset, start_ts: Ts) -> bool:  # noqa: ARG002 - of the port
        """Compare positions: a log is contiguous."""
        return earliest <= start_ts

    def time_ms(self, stream: Stream, offset: Offset) -> int | None:  # noqa: ARG002 - of the port
        """Return when the group before ``offset`` was written."""
        return self._timeline.time_ms(Ts(offset))

    def offsets_at(self, streams: Collection[Stream], time_ms: int) -> Mapping[Stream, Offset]:
        """Return the first position whose groups were written at ``time_ms`` or later."""
        return dict.fromkeys(streams, Offset(self.ts_at(time_ms)))

    def ts_at(self, time_ms: int) -> Ts:
        """Return where the first group begins that was written then or later; the present end of the log if there is none."""
        return Ts(self._finder.at_time(time_ms, self._generation))


def _state_of(log_start: LogStart, journal: Journal, at: int) -> SourceState:
    executed, passed = journal.executed_at(at), log_start.skipped.passed_behind(at)
    if passed:
        executed = executed.copy()  # the journal's own
        for gtid in passed:
            executed.add(Gtid.parse(gtid))
    return SourceState(
        is_mariadb=log_start.is_mariadb,
        server=log_start.server,
        generation=log_start.generation,
        base_name=log_start.base_name,
        position=at,
        gtid_set=str(executed),
        has_gaps=bool(log_start.skipped.gtid_set or passed),
        passed=passed,
        last=journal.last_at(at),
        created_s=journal.created_at(at),
        prepared=dict(journal.prepared_at(at)),
    )
