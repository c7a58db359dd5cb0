"""Walks a binlog from the beginning of a file: what was executed up to a position, where transactions end, the records of one group."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset
from applier.model.remedy import Remedy
from applier.sources.binlog.event import HEARTBEATS
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.executed_groups import DomainSearch
from applier.sources.binlog.group import Group, GroupFinder, GroupKind
from applier.sources.binlog.gtid_set import Gtid, MysqlGtidSet
from applier.sources.binlog.journal import Beginning, ended_group
from applier.sources.binlog.part import ROWS_PER_EVENT, PartKind, decode_head
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.scan import READ_WAIT_S, EventFeed
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.port import Record

_BOUNDARY: Final = Remedy(
    "binlog.give-end-of-transaction",
    "Give a place where a transaction ends: the positions of SHOW MASTER STATUS, and those of a dump, are such places",
)


def walk_to(feed: EventFeed, found: Beginning, place: int, base_name: str) -> Beginning:
    """Count everything up to ``place`` and return it. SourceError: no transaction ends there."""
    boundary: int | None = found.place
    steps = _steps(feed)
    while boundary is None or boundary < place:
        found.place = boundary or found.place
        group, boundary = next(steps, (None, place + 1))
        if group is not None and group.end <= place:
            _count(found, group)
    if boundary > place:
        raise SourceError(
            "no transaction ends at the place where the replica should begin",
            remedy=_BOUNDARY,
            kind=FailureKind.POSITION,
            position=BinlogPosition.of(place).text(base_name),
            transaction_ends_at=BinlogPosition.of(found.place).text(base_name),
        )
    found.place = place
    return found


def walk_while(feed: EventFeed, found: Beginning, is_before: Callable[[Group], bool], end: int) -> Beginning:
    """Count groups up to the first one that is not before the place that is looked for, or to ``end``; return where that is."""
    if found.place >= end:
        return found
    for group, boundary in _steps(feed):
        if group is not None:
            if not is_before(group):
                return found
            _count(found, group)
        if boundary is not None:
            found.place = boundary
            if boundary >= end:
                break
    return found


def is_executed(group: Group, executed: MysqlGtidSet) -> bool:
    """Whether a group is one of the executed ones."""
    return bool(group.gtid) and Gtid.parse(group.gtid) in executed


def search_domains(feed: EventFeed, search: DomainSearch, end: int) -> None:
    """Let a search see the groups up to the last one that it needs, or to ``end``."""
    for group, boundary in _steps(feed):
        if group is not None:
            search.take(group)
        if search.is_over or (boundary is not None and boundary >= end):
            return


def first_time_s(feed: EventFeed) -> int:
    """Return when the first event was written that is in the file."""
    while True:
        for event in feed.read(READ_WAIT_S):
            if event.begin < event.end:
                return event.time_s


def first_group(feed: EventFeed) -> Group | None:
    """Return the first group behind the place of the feed; None: there is none yet."""
    return next((group for group, _ in _steps(feed) if group is not None), None)


def _steps(feed: EventFeed) -> Iterator[tuple[Group | None, int | None]]:
    """Yield, for each event, the group that ends with it, and the boundary that it makes. Ends where the log does now."""
    finder = GroupFinder()
    while True:
        for event in feed.read(READ_WAIT_S):
            if event.kind in HEARTBEATS:
                return  # it has nothing to send
            group = finder.take(event)
            yield group, None if finder.is_open else event.end


def _count(found: Beginning, group: Group) -> None:
    if group.kind is GroupKind.UNFINISHED:
        return
    if group.gtid:
        found.executed.add(Gtid.parse(group.gtid))
    found.last = ended_group(group)
    if group.kind is GroupKind.XA_PREPARE:
        found.prepared[group.xid] = group.begin
    elif group.kind in {GroupKind.XA_COMMIT, GroupKind.XA_ROLLBACK}:
        found.prepared.pop(group.xid, None)


@dataclass(frozen=True, slots=True)
class LogLookup:
    """Finds single groups in the log of a server."""

    settings: BinlogSettings
    base_name: str

    def end_of(self, offset: int) -> Offset:
        """Return where the group ends that begins at ``offset``. SourceError of kind "position": none begins there."""
        place = BinlogPosition.of(offset).text(self.base_name)
        try:
            with closing(self._feed(offset)) as feed:
                group = first_group(feed)
        except SourceError as error:
            if error.kind is FailureKind.UNREACHABLE:
                raise
            raise _no_group(place, str(error.facts.get("cause", error.message))) from error
        if group is None or group.begin != offset:
            raise _no_group(place, "the log ends there" if group is None else "one begins behind it")
        return Offset(group.end)

    def begin_of(self, gtid: str, since: int, upto: int) -> Offset | None:
        """Return where a transaction begins between two places, the first of them a boundary; None: it is not there."""
        found: list[int] = []

        def is_before(group: Group) -> bool:
            if group.gtid == gtid:
                found.append(group.begin)
            return not found

        # The executed set is counted along the way, and nobody asks for it.
        beginning = Beginning(place=since, executed=MysqlGtidSet())
        with closing(self._feed(since)) as feed:
            walk_while(feed, beginning, is_before, upto)
        return Offset(found[0]) if found else None

    def _feed(self, at: int) -> EventStream:
        return EventStream(self.settings, self.base_name, at, bodies=False)


def numbered(batches: Iterator[list[Record]], offset: Offset) -> Iterator[tuple[int, Record]]:
    """Yield the records of one offset, each with the index of its first event: a promise is none of them."""
    for records in batches:
        for record in records:
            head = decode_head(record.key)
            if record.offset == offset and head.kind != PartKind.PROMISE:
                yield head.first_event * ROWS_PER_EVENT, record


def _no_group(place: str, cause: str) -> SourceError:
    return SourceError(
        "no transaction begins at this place of the binlog",
        remedy=Remedy("binlog.inspect-transactions", "`applier inspect` shows where each transaction begins"),
        kind=FailureKind.POSITION,
        at=place,
        cause=cause,
    )
