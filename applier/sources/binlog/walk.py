"""Walks a binlog from the beginning of a file: what was executed up to a position, where transactions end, the records of one group.

Another server may have logged its own transactions earlier, so executed ones may come after the replica's position. MySQL's are known by
their GTIDs. A domain's numbers of MariaDB do not say which comes first: a replica that writes for itself (``ANALYZE TABLE`` does) logs
0-2-13, and 0-1-6 of its primary after it. So ``DomainSearch`` reads the log, as MariaDB does for its own replicas: all of a domain up to
its last executed GTID is executed, and nothing after it is. A greater number of the same server before it shows that it is missing, or that
numbers have gone back: then nothing is certain.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final

from applier.model.errors import Remedy, SourceError
from applier.model.events import TableName
from applier.model.failure import FailureKind
from applier.model.position import Offset
from applier.sources.binlog.event_stream import (
    HEARTBEATS,
    INCIDENT,
    MARIADB_QUERY_COMPRESSED,
    QUERY,
    BinlogEvent,
    EventStream,
    payload_events,
    plain_event,
    sql_of,
)
from applier.sources.binlog.group import Group, GroupFinder, GroupKind
from applier.sources.binlog.gtid_set import Gtid, GtidSet, MariadbGtidSet, MysqlGtidSet
from applier.sources.binlog.part import ROWS_PER_EVENT, PartKind, decode_head
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.scan import READ_WAIT_S, EventFeed
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.state import Beginning, ended_group
from applier.sources.port import Record

_WITH_CHANGES: Final = frozenset({GroupKind.TRANSACTION, GroupKind.QUERY, GroupKind.XA_COMMIT})
"""What a group of another kind does is needed by the next groups."""


@dataclass(frozen=True, slots=True)
class SkippedGroups:
    """The groups that end after a position and are executed.

    ``behind``: all groups that end at or before it are applied. ``gtid_set``: of MySQL, as text; '' does not have one. ``passed``: of
    MariaDB, the last executed GTID of a domain and where it ends: that and what the domain has before it is executed.
    """

    behind: int = 0
    gtid_set: str = ""
    passed: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.gtid_set or self.passed)

    def contain(self, group: Group) -> bool:
        """Whether the changes of a group are in the sink."""
        if not self or group.end <= self.behind or not group.gtid or group.kind not in _WITH_CHANGES:
            return False
        if self.passed:
            return is_passed(group, self.passed)
        return Gtid.parse(group.gtid) in _parsed(self.gtid_set)

    def passed_behind(self, position: int) -> dict[str, int]:
        """Return the domains that are still ahead of a position."""
        return {gtid: end for gtid, end in self.passed.items() if end > position}


NONE_SKIPPED: Final = SkippedGroups()


def is_passed(group: Group, passed: Mapping[str, int]) -> bool:
    """Return whether a group of MariaDB ends at or before the last executed transaction of its domain."""
    domain = domain_of(group.gtid)
    return any(group.end <= end for gtid, end in passed.items() if domain_of(gtid) == domain)


def domain_of(gtid: str) -> str:
    """Return the domain of one of MariaDB's GTIDs."""
    return gtid.partition("-")[0]


@lru_cache(maxsize=2)
def _parsed(text: str) -> MysqlGtidSet:
    return MysqlGtidSet.parse(text)


class DomainSearch:
    """Takes the groups of a log from the beginning of a file on. ``before``: what that file says was logged before it."""

    def __init__(self, executed: GtidSet, before: GtidSet) -> None:
        last, passed = _last(executed), _last(before)
        self._sought = {domain: gtid for domain, gtid in last.items() if gtid != passed.get(domain)}
        self._logged = set(passed)
        self.ends: dict[str, int] = {}
        """Where the GTIDs end that were found."""
        self._holes: list[Gtid] = []
        """The groups that the log does not have where they should be."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is sought any more."""
        return not self._sought

    def lost(self, held: GtidSet) -> tuple[Gtid, ...]:
        """Return what the log does not show the position of, after the search. ``held``: what the server has executed.

        A domain that it has never logged is complete if the last transaction is the same.
        """
        last = _last(held)
        return (*self._holes, *(gtid for domain, gtid in self._sought.items() if domain in self._logged or last.get(domain) != gtid))

    def take(self, group: Group) -> None:
        """Take the next group."""
        if not group.gtid or group.kind is GroupKind.UNFINISHED:
            return
        domain = domain_of(group.gtid)
        sought = self._sought.get(domain)
        if sought is not None:
            self._compare(group, Gtid.parse(group.gtid), domain, sought)
        self._logged.add(domain)

    def _compare(self, group: Group, gtid: Gtid, domain: str, sought: Gtid) -> None:
        if gtid == sought:
            self.ends[str(sought)] = group.end
            del self._sought[domain]
        elif gtid.source == sought.source and gtid.number > sought.number:
            # A server that was made from a copy has logged nothing before that copy: its log may begin right behind.
            if domain in self._logged or gtid.number != sought.number + 1:
                self._holes.append(sought)
            del self._sought[domain]

    def is_executed(self, group: Group) -> bool:
        """Return whether a group is executed, after the search: its domain is not passed yet."""
        return is_passed(group, self.ends)


def _last(gtid_set: GtidSet) -> dict[str, Gtid]:
    if not isinstance(gtid_set, MariadbGtidSet):
        return {}
    return {domain: gtid for domain in gtid_set.domains if (gtid := gtid_set.last(domain)) is not None}


_BOUNDARY: Final = Remedy(
    "binlog.give-end-of-transaction",
    "Give a position where a transaction ends: SHOW MASTER STATUS and dumps show such positions",
)

STATEMENTS: Final = frozenset({QUERY, MARIADB_QUERY_COMPRESSED})
_FIRST_EVENTS: Final = 3
"""The statement of a compressed CREATE TABLE ... SELECT is one of so many events."""
_WORDS: Final = re.compile(r"[0-9a-z_$]+")
_OF_ROWS: Final = frozenset(
    {"begin", "commit", "rollback", "savepoint", "release", "xa", "insert", "update", "delete", "replace", "load", "set", "truncate"}
)
_OF_SERVER: Final = frozenset({"grant", "revoke", "analyze", "flush", "optimize", "repair", "check"})
_ACCOUNTS: Final = frozenset({"user", "role"})


@dataclass(slots=True)
class SchemaChanges:
    """The words of DDLs: which tables they may have created, dropped or renamed. Read as text, so any form of statement counts."""

    words: set[str] = field(default_factory=set)
    words_of_schemas: set[str] = field(default_factory=set)
    """The skipped statements about whole schemas."""
    counts: Callable[[str], bool] = lambda _: True
    """Whether a statement is added."""

    def add(self, sql: bytes) -> None:
        """Add a statement, unless it makes and removes no table."""
        text = sql.decode("utf-8", "replace")
        words = _WORDS.findall(text.casefold())
        if not words or words[0] in _OF_ROWS | _OF_SERVER or not _ACCOUNTS.isdisjoint(words[1:2]):
            return
        if not self.counts(text):
            return
        self.words.update(words)
        if not {"database", "schema"}.isdisjoint(words):
            self.words_of_schemas.update(words)

    def may_name(self, table: TableName) -> bool:
        """Whether one of them may be about a table. A name that is not one word may be spelled in several ways."""
        schema, name = table.schema.casefold(), table.table.casefold()
        if self.words and not (_WORDS.fullmatch(schema) and _WORDS.fullmatch(name)):
            return True
        return name in self.words or schema in self.words_of_schemas


def walk_to(feed: EventFeed, found: Beginning, position: int, base_name: str) -> Beginning:
    """Count everything up to ``position`` and return it. SourceError: no transaction ends there."""
    boundary: int | None = found.position
    steps = _steps(feed)
    while boundary is None or boundary < position:
        found.position = boundary or found.position
        group, boundary = next(steps, (None, position + 1))
        if group is not None and group.end <= position:
            _count(found, group)
    if boundary > position:
        raise SourceError(
            "no transaction ends at the position where the replica should begin",
            remedy=_BOUNDARY,
            kind=FailureKind.POSITION,
            position=BinlogPosition.of(position).text(base_name),
            transaction_ends_at=BinlogPosition.of(found.position).text(base_name),
        )
    found.position = position
    return found


def walk_while(feed: EventFeed, found: Beginning, is_before: Callable[[Group], bool], end: int) -> Beginning:
    """Count groups up to the first one that is not before the position that is looked for, or to ``end``; return where that is."""
    if found.position >= end:
        return found
    for group, boundary in _steps(feed):
        if group is not None:
            if not is_before(group):
                return found
            _count(found, group)
        if boundary is not None:
            found.position = boundary
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


def changes_until(feed: EventFeed, end: int, changes: SchemaChanges) -> SchemaChanges | None:
    """Add the DDLs that are logged before ``end``, those inside of transactions too; None: the log does not tell all of them."""
    finder = GroupFinder()
    while True:
        for event in feed.read(READ_WAIT_S):
            if event.kind in HEARTBEATS or event.kind == INCIDENT:
                return None
            for sql in _statements(event):
                changes.add(sql)
            finder.take(event)
            if event.end >= end and not finder.is_open:
                return changes


def _statements(event: BinlogEvent) -> Iterator[bytes]:
    # MySQL compresses whole transactions; CREATE TABLE ... SELECT has its statement before its rows.
    for inner in islice(payload_events(event), _FIRST_EVENTS):
        if inner.kind in STATEMENTS:
            yield sql_of(plain_event(inner).data or b"")


def first_group(feed: EventFeed) -> Group | None:
    """Return the first group after the position of the feed; None: there is none yet."""
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
        position = BinlogPosition.of(offset).text(self.base_name)
        try:
            with closing(self._feed(offset)) as feed:
                group = first_group(feed)
        except SourceError as error:
            if error.kind is FailureKind.UNREACHABLE:
                raise
            raise _no_group(position, str(error.facts.get("cause", error.message))) from error
        if group is None or group.begin != offset:
            raise _no_group(position, "the log ends there" if group is None else "one begins after it")
        return Offset(group.end)

    def begin_of(self, gtid: str, since: int, upto: int) -> Offset | None:
        """Return where a transaction begins between two positions, the first of them a boundary; None: it is not there."""
        found: list[int] = []

        def is_before(group: Group) -> bool:
            if group.gtid == gtid:
                found.append(group.begin)
            return not found

        # The executed set is counted along the way, and no one asks for it.
        beginning = Beginning(position=since, executed=MysqlGtidSet())
        with closing(self._feed(since)) as feed:
            walk_while(feed, beginning, is_before, upto)
        return Offset(found[0]) if found else None

    def _feed(self, at: int) -> EventStream:
        return EventStream(self.settings, self.base_name, at, bodies=False)


def numbered(batches: Iterator[list[Record]], offset: Offset) -> Iterator[tuple[int, Record]]:
    """Yield the records of one offset, each with the index of its first event: a promise is none."""
    for records in batches:
        for record in records:
            head = decode_head(record.key)
            if record.offset == offset and head.kind != PartKind.PROMISE:
                yield head.first_event * ROWS_PER_EVENT, record


def _no_group(position: str, cause: str) -> SourceError:
    return SourceError(
        "no transaction begins at this position of the binlog",
        remedy=Remedy("binlog.inspect-transactions", "`applier inspect` shows where each transaction begins"),
        kind=FailureKind.POSITION,
        at=position,
        cause=cause,
    )
