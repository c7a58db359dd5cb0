"""Finds a replica's position in the log: its last position on this server, or, by its executed set, a position on another one.

The driver asks for it at the beginning of a run and after each reload. Whether it is still the same log is shown by the last group that
is applied: it must be at the same position. A log that is another one, or another server, is followed under the next generation. A new
replica begins at ``source.start``: ``FILE:POS``, ``gtid:SET``, ``now`` or ``dump:PATH``.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pymysql.constants import ER

from applier.model.errors import ConfigError, NeedsOperator, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.sources.binlog.dump import DumpPosition, position_of_dump
from applier.sources.binlog.group import Group
from applier.sources.binlog.gtid_set import GtidSet, MariadbGtidSet, MysqlGtidSet
from applier.sources.binlog.position import FIRST_POSITION, BinlogPosition, file_name, parse_place, split_file_name
from applier.sources.binlog.refusal import OTHER_LOG
from applier.sources.binlog.scan import EventFeed
from applier.sources.binlog.server import LogEnd, LogFile, Server
from applier.sources.binlog.state import Beginning, SourceState, ended_group
from applier.sources.binlog.walk import (
    NONE_SKIPPED,
    DomainSearch,
    SkippedGroups,
    first_group,
    first_time_s,
    is_executed,
    search_domains,
    walk_to,
    walk_while,
)

_AGAIN: Final = "Create the replica again from a dump (`applier docs start_over`)"
_LONGER: Final = Remedy(
    "binlog.create-again-and-keep-binlogs",
    f"{_AGAIN}. Keep binlogs on the server for longer than a replica may lag: binlog_expire_logs_seconds",
)
_NO_LOG: Final = Remedy("binlog.set-log-bin", "Set log_bin and server_id in the server's configuration, and restart it")
_WHICH: Final = Remedy("binlog.show-binary-logs", "SHOW BINARY LOGS names the files that it has")
_RIGHT_SERVER: Final = Remedy(
    "binlog.use-followed-server",
    "Give the url of the server that was followed. If it is gone, create the replica again from a dump (`applier docs start_over`)",
)
_NOT_LOGGED: Final = Remedy(
    "binlog.use-server-with-gtids",
    "Give the url of a server that has logged it: the one that was followed, or a replica with log_slave_updates and without filters. "
    "A new replica: correct the GTIDs of source.start. Otherwise create the replica again from its dump (`applier docs start_over`)",
)

_LOG_UPDATES: Final = Remedy(
    "binlog.set-log-slave-updates-and-create-again",
    "Create the replica again from a dump of this server (`applier docs start_over`). For the next failover, set log_slave_updates = ON "
    "in the configuration of all servers that may become the primary, and restart them",
)

_LOG_REPLICA_UPDATES: Final = Remedy(
    "binlog.set-log-replica-updates-and-create-again",
    "Create the replica again from a dump of this server (`applier docs start_over`). For the next failover, set log_replica_updates = ON "
    "in the configuration of all servers that may become the primary, and restart them",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart:
    """A position in the log of a server: everything before it is applied."""

    is_mariadb: bool
    server: str
    generation: int
    base_name: str
    beginning: Beginning
    skipped: SkippedGroups = NONE_SKIPPED


class LogStartFinder:
    """Asks the server. ``open_feed`` opens a feed of a log's base name at a position."""

    def __init__(self, server: Server, open_feed: Callable[[str, int], EventFeed]) -> None:
        self._server, self._open_feed = server, open_feed

    def resumed(self, state: SourceState) -> LogStart:
        """Return where the log continues behind what is applied. NeedsOperator: it is gone, or this server cannot continue."""
        identity = self._server.identity()
        is_same_server = (self._server.is_mariadb, identity) == (state.is_mariadb, state.server)
        files, is_same_log = self._compared(state) if is_same_server else (self.files(), False)
        if is_same_log:
            return LogStart(
                is_mariadb=state.is_mariadb,
                server=identity,
                generation=state.generation,
                base_name=state.base_name,
                beginning=state.beginning(),
                skipped=self._skipped(state),
            )
        if is_same_server and files[0].base_name == state.base_name and files[0].number <= BinlogPosition.of(state.position).file:
            raise self._renewed(state)
        if state.is_mariadb != self._server.is_mariadb or not state.gtid_set or (state.last is not None and not state.last.gtid):
            raise self._not_found(state, files, identity)
        kept = state.kept_positions
        start = self.behind(state.executed, state.generation + 1, has_prepared=len(kept) < len(state.prepared))
        start.beginning.prepared.update(kept)
        return start

    def at(self, base_name: str, file: int, position: int) -> LogStart:
        """Return a position of this server's log. SourceError: no transaction ends there. NeedsOperator: the file is gone."""
        files = self.files()
        if not _holds(files, base_name, file):
            if base_name != files[0].base_name or file > files[-1].number:
                raise ConfigError(f"the server has no binlog {file_name(base_name, file)}", remedy=_WHICH, key="source.start")
            raise _purged(f"{file_name(base_name, file)}:{position}", files, self._server)
        found = self._beginning_of(base_name, BinlogPosition(0, file, FIRST_POSITION))
        with closing(self._open_feed(base_name, found.position)) as feed:
            walk_to(feed, found, BinlogPosition(0, file, position).number, base_name)
        return self._start_at(0, base_name, found)

    def behind(self, executed: GtidSet, generation: int = 0, *, has_prepared: bool = False) -> LogStart:
        """Return where the transactions begin that are not in ``executed``. NeedsOperator: some of them are not in the log any more.

        ``has_prepared``: XA transactions are open, wherever they were prepared.
        """
        files = self.files()
        held = self._check_complete(executed, files)
        # Prepared transactions are found only by looking at every group.
        first = files[0] if has_prepared else self._last_file_within(executed, files)
        found = self._beginning_of(first.base_name, BinlogPosition(generation, first.number, FIRST_POSITION))
        skipped = self._walk_behind(first.base_name, found, executed, held)
        found.executed = executed.copy()
        return replace(self._start_at(generation, first.base_name, found), skipped=skipped)

    def proven(self, base_name: str, file: int, position: int, executed: GtidSet) -> LogStart | None:
        """Return a position of this server's log if exactly ``executed`` is before it; None: it does not."""
        try:
            start = self.at(base_name, file, position)
        except (ConfigError, NeedsOperator, SourceError) as error:
            if error.kind in {FailureKind.UNREACHABLE, FailureKind.REFUSED}:
                raise
            return None
        return start if str(start.beginning.executed) == str(executed) else None

    def _walk_behind(self, base_name: str, found: Beginning, executed: GtidSet, held: GtidSet) -> SkippedGroups:
        """Move ``found`` to the first group that is not executed; return the executed ones after it."""
        if isinstance(executed, MysqlGtidSet) and isinstance(found.executed, MysqlGtidSet):
            self._walk_on(base_name, found, partial(is_executed, executed=executed))
            return NONE_SKIPPED if executed.precedes(found.executed) else SkippedGroups(found.position, str(executed))
        search = self._searched(base_name, found.position, executed, found.executed)
        if lost := search.lost(held):
            raise _not_in_log(",".join(map(str, lost)), self._server)
        self._walk_on(base_name, found, search.is_executed)
        return SkippedGroups(found.position, passed={gtid: end for gtid, end in search.ends.items() if end > found.position})

    def _searched(self, base_name: str, position: int, executed: GtidSet, before: GtidSet) -> DomainSearch:
        search, end = DomainSearch(executed, before), self.end()
        upto = BinlogPosition(BinlogPosition.of(position).generation, end.number, end.position).number
        if not search.is_over and position < upto:
            with closing(self._open_feed(base_name, position)) as feed:
                search_domains(feed, search, upto)
        return search

    def _skipped(self, state: SourceState) -> SkippedGroups:
        if not state.is_mariadb:
            return SkippedGroups(state.position, state.gtid_set if state.has_gaps else "")
        if state.passed or not state.has_gaps:
            return SkippedGroups(state.position, passed=state.passed)
        # A state of version 1 names the last GTIDs only. What does not lie behind the position lies before it.
        search = self._searched(state.base_name, state.position, state.executed, self._server.gtid_set(""))
        return SkippedGroups(state.position, passed=search.ends)

    def at_time(self, time_ms: int, generation: int) -> int:
        """Return the first position whose groups were written at a time or later; the end of the log if there is none."""
        files = self.files()
        first = files[bisect_right(files, time_ms, lo=1, key=self._time_ms) - 1]
        position = BinlogPosition(generation, first.number, FIRST_POSITION).number
        found = Beginning(position=position, executed=self._server.gtid_set(""))
        self._walk_on(first.base_name, found, lambda group: group.time_us < time_ms * 1000)
        return found.position

    def created_s(self, base_name: str, position: int) -> int:
        """Return when the server began the file of a position, in seconds since the epoch."""
        with closing(self._open_feed(base_name, BinlogPosition.of(position)._replace(position=FIRST_POSITION).number)) as feed:
            return first_time_s(feed)

    def _time_ms(self, file: LogFile) -> int:
        with closing(self._open_feed(file.base_name, BinlogPosition(0, file.number, FIRST_POSITION).number)) as feed:
            return first_time_s(feed) * 1000

    def _walk_on(self, base_name: str, found: Beginning, is_before: Callable[[Group], bool]) -> None:
        end = self.end()
        upto = BinlogPosition(BinlogPosition.of(found.position).generation, end.number, end.position).number
        with closing(self._open_feed(base_name, found.position)) as feed:
            walk_while(feed, found, is_before, upto)

    def end(self) -> LogEnd:
        """Return where the server writes now. NeedsOperator: it writes no binlog."""
        end = self._server.end()
        if end is None:
            raise _no_log(self._server)
        return end

    def files(self) -> list[LogFile]:
        """Return the files that the server holds. NeedsOperator: it writes none."""
        try:
            files = self._server.files()
        except SourceError as error:
            if error.facts.get("code") != ER.NO_BINARY_LOGGING:
                raise
            files = []
        if not files:
            raise _no_log(self._server)
        return files

    # --- this log, or another one ----------------------------------------------------------------------------------

    def _compared(self, state: SourceState) -> tuple[list[LogFile], bool]:
        """Return the files that the server holds, and whether they are the log that was followed."""
        files = self.files()
        try:
            return files, self._is_same_log(state, files)
        except SourceError as error:
            if error.kind is not FailureKind.PURGED:
                raise
        # The file was purged, or the log was reset, since the files were listed.
        files = self.files()
        return files, self._is_same_log(state, files)

    def _is_same_log(self, state: SourceState, files: Sequence[LogFile]) -> bool:
        position, last = BinlogPosition.of(state.position), state.last
        size = next((file.size for file in files if (file.base_name, file.number) == (state.base_name, position.file)), -1)
        if size < position.position or (state.gtid_set and state.executed.missing_in(self._server.executed())):
            return False
        if state.created_s and self.created_s(state.base_name, state.position) != state.created_s:
            return False
        if last is None or not _holds(files, state.base_name, BinlogPosition.of(last.begin).file):
            return True
        try:
            with closing(self._open_feed(state.base_name, last.begin)) as feed:
                found = first_group(feed)
        except SourceError as error:
            if error.kind in {FailureKind.UNREACHABLE, FailureKind.PURGED}:
                raise
            return False
        return found is not None and ended_group(found) == last

    def _renewed(self, state: SourceState) -> NeedsOperator:
        """Say that the log of the same server is another one: it gives GTIDs again that the replica knows, to other transactions."""
        return NeedsOperator(
            "the server's binlog is not the one that was followed"
            + (", and its GTIDs may name other transactions now" if state.gtid_set else ""),
            remedy=OTHER_LOG,
            kind=FailureKind.OTHER_LOG,
            position=BinlogPosition.of(state.position).text(state.base_name),
            address=self._server.address,
        )

    def _not_found(self, state: SourceState, files: Sequence[LogFile], identity: str) -> NeedsOperator:
        position = BinlogPosition.of(state.position)
        if identity == state.server and files[0].base_name == state.base_name and position.file < files[0].number:
            return _purged(position.text(state.base_name), files, self._server)
        return NeedsOperator(
            "the server is not the one that was followed, and without GTIDs the replica's position cannot be found on it",
            remedy=_RIGHT_SERVER,
            kind=FailureKind.OTHER_SERVER,
            followed=state.server,
            server=identity,
            position=position.text(state.base_name),
            address=self._server.address,
        )

    def _check_complete(self, executed: GtidSet, files: Sequence[LogFile]) -> GtidSet:
        """Return what the server has executed."""
        server = self._server
        held = server.executed()
        if lacking := executed.missing_in(held):
            if not executed.missing_in(server.logged_or_replicated()):
                raise _not_logged(lacking, server)
            # Its own position names one GTID of a domain: behind a server that writes too, it may have the others, and has not logged them.
            if not server.logs_replication():
                raise _not_in_log(lacking, server)
            raise NeedsOperator(
                "the server lacks transactions that the replica has applied",
                remedy=Remedy(
                    "binlog.use-followed-server-or-correct-gtids", f"{_RIGHT_SERVER}. A new replica: correct the GTIDs of source.start"
                ),
                kind=FailureKind.OTHER_SERVER,
                lacking=lacking,
                address=server.address,
            )
        for gone in (server.purged(), self._before(files[0])):
            if not gone.precedes(executed):
                missing = gone.missing_in(executed) or str(gone)
                # MySQL counts what it has never logged as purged. The first file begins with what was purged of the log.
                if unlogged := "" if server.is_mariadb else server.gtid_set(missing).missing_in(self._before(files[0])):
                    raise _never_logged(unlogged, server)
                raise _purged(f"gtid:{executed}", files, server, missing=missing)
        return held

    def _last_file_within(self, executed: GtidSet, files: Sequence[LogFile]) -> LogFile:
        """Return the last file that begins with nothing but executed transactions: the first one does."""
        # Each file begins with all that those before it hold, so they can be searched by halves: ten thousand by fourteen questions.
        return files[bisect_right(files, False, lo=1, key=lambda file: not self._before(file).precedes(executed)) - 1]

    def _before(self, file: LogFile) -> GtidSet:
        return self._server.executed_before(file_name(file.base_name, file.number))

    def _beginning_of(self, base_name: str, position: BinlogPosition) -> Beginning:
        return Beginning(position=position.number, executed=self._server.executed_before(file_name(base_name, position.file)))

    def _start_at(self, generation: int, base_name: str, found: Beginning) -> LogStart:
        server = self._server
        return LogStart(is_mariadb=server.is_mariadb, server=server.identity(), generation=generation, base_name=base_name, beginning=found)


def _holds(files: Sequence[LogFile], base_name: str, number: int) -> bool:
    return any((file.base_name, file.number) == (base_name, number) for file in files)


def _purged(position: str, files: Sequence[LogFile], server: Server, **missing: str) -> NeedsOperator:
    first = files[0]
    return NeedsOperator(
        "the server has purged binlogs that the replica needs",
        remedy=_LONGER,
        kind=FailureKind.RETENTION,
        needed_from=position,
        first_file=file_name(first.base_name, first.number),
        **missing,
        address=server.address,
    )


def _not_in_log(gtids: str, server: Server) -> NeedsOperator:
    return NeedsOperator(
        "the server's binlog does not have the last transaction that the replica has applied in a domain, so nothing shows what follows it",
        remedy=_NOT_LOGGED,
        kind=FailureKind.OTHER_SERVER,
        missing=gtids,
        address=server.address,
    )


def _not_logged(gtids: str, server: Server) -> NeedsOperator:
    return NeedsOperator(
        "the server has replicated transactions of the replica without logging them, so nothing shows what follows them",
        remedy=_LOG_UPDATES,
        kind=FailureKind.OTHER_SERVER,
        missing=gtids,
        address=server.address,
    )


def _never_logged(gtids: str, server: Server) -> NeedsOperator:
    return NeedsOperator(
        "the server has executed transactions without logging them, and the replica lacks them",
        remedy=_LOG_REPLICA_UPDATES,
        kind=FailureKind.OTHER_SERVER,
        missing=gtids,
        address=server.address,
    )


def _no_log(server: Server) -> NeedsOperator:
    return NeedsOperator("the server writes no binlog", remedy=_NO_LOG, kind=FailureKind.NO_BINLOG, address=server.address)


GTIDS: Final = "gtid:"
_FORMS: Final = Remedy("binlog.write-source-start", 'Write source.start = "FILE:POS", "gtid:SET", "now" or "dump:PATH"')
_SAY: Final = Remedy(
    "binlog.load-dump-or-set-start",
    "Load a dump with `applier load`. Or set source.start to the position of the dump that was loaded: dump:PATH reads it from the dump. "
    '"now" begins after everything that the server has logged so far',
)


def read_start(start: str, server: Server, finder: LogStartFinder) -> LogStart:
    """Return the position. ConfigError: the text cannot be read. NeedsOperator: the server does not hold what follows it."""
    kind, _, rest = start.partition(":")
    match kind:
        case "":
            raise ConfigError("it is not said where the replica begins", remedy=_SAY, key="source.start")
        case "now":
            end = finder.end()
            return finder.at(end.base_name, end.number, end.position)
        case "gtid":
            return finder.behind(_gtid_set(server, rest, start))
        case "dump":
            return _of_dump(position_of_dump(rest), server, finder, start)
        case _:
            return _at(start, finder)


def _of_dump(dump: DumpPosition, server: Server, finder: LogStartFinder, start: str) -> LogStart:
    if not dump.gtid_set:
        return _at(dump.position, finder)
    executed = _gtid_set(server, dump.gtid_set, start)
    # FILE:POS is exact, but of the server that was dumped. Its log shows whether this is that server: what lies before is the dump's set.
    written = parse_place(dump.position)
    proven = None if written is None else finder.proven(*written, executed)
    return proven or finder.behind(executed)


def _gtid_set(server: Server, text: str, start: str) -> GtidSet:
    try:
        found = server.gtid_set(text)
    except ValueError as error:
        raise _no_set(start, str(error)) from error
    if isinstance(found, MariadbGtidSet) and found.ambiguous:
        raise _no_set(start, f"it has GTIDs of several servers of domain {found.ambiguous}")
    return found


def _no_set(start: str, cause: str) -> ConfigError:
    remedy = Remedy(
        "binlog.write-gtid-set", "Write it as the server does: SELECT @@GLOBAL.gtid_executed (MySQL), SELECT @@gtid_binlog_pos (MariaDB)"
    )
    return ConfigError(f"{start!r} is not a set of GTIDs of this server", remedy=remedy, key="source.start", cause=cause)


def _at(text: str, finder: LogStartFinder) -> LogStart:
    name, _, position = text.rpartition(":")
    try:
        base_name, number = split_file_name(name)
        at = int(position)
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a position in a binlog", remedy=_FORMS, key="source.start", cause=str(error)) from error
    return finder.at(base_name, number, at)
