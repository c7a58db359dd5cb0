"""Which events belong together: the rule of groups of both servers, for the driver's scan and for the readers of ranges. Does no I/O.

A group begins with a GTID event. MariaDB's says whether one statement follows or a transaction does; in MySQL's binlog a transaction
begins with the statement BEGIN or XA START, and any other statement is a group of its own. A transaction ends with an XID event, with
COMMIT or ROLLBACK, with XA_PREPARE, or is one compressed payload. A new file inside of a group means that the server has crashed: what
came of the group was never committed.
"""

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.event_stream import (
    BinlogEvent,
    GroupStart,
    group_start,
    payload_events,
    plain_event,
    sql_of,
    unreadable,
    xid_text,
)

_OUTSIDE: Final = frozenset(
    {kinds.PREVIOUS_GTIDS, kinds.MARIADB_GTID_LIST, kinds.MARIADB_BINLOG_CHECKPOINT, kinds.MARIADB_START_ENCRYPTION} | kinds.HEARTBEATS
)
"""Events that belong to no group, wherever they come."""
_INSIDE: Final = kinds.BULKY | {
    kinds.INTVAR,
    kinds.RAND,
    kinds.USER_VAR,
    kinds.APPEND_BLOCK,
    kinds.DELETE_FILE,
    kinds.BEGIN_LOAD_QUERY,
    kinds.EXECUTE_LOAD_QUERY,
    kinds.IGNORABLE,
    kinds.TRANSACTION_CONTEXT,
    kinds.VIEW_CHANGE,
}
_LONGEST_CONTROL: Final = 300
"""No statement that ends a transaction is longer: XA COMMIT with the longest xid has 270 bytes."""


class GroupKind(Enum):
    """What a group is."""

    TRANSACTION = "transaction"
    QUERY = "query"
    """One statement."""
    XA_PREPARE = "xa_prepare"
    """Its rows count at the XA_COMMIT of its xid."""
    XA_COMMIT = "xa_commit"
    XA_ROLLBACK = "xa_rollback"
    ROLLBACK = "rollback"
    """A transaction whose changes do not count."""
    INCIDENT = "incident"
    """Upstream says that changes are missing in its binlog."""
    IGNORED = "ignored"
    """MariaDB's announcement of an ALTER TABLE, which counts in another group."""
    UNFINISHED = "unfinished"
    """Cut by a crash of the server."""


class Group(NamedTuple):
    """A group, known at its end. ``begin`` and ``end`` are numbers; ``xid`` is '' where the group does not have one."""

    kind: GroupKind
    begin: int
    end: int
    gtid: str
    xid: str
    time_us: int


class GroupFinder:
    """Takes the events of a binlog from a boundary, one by one. ``is_open``: whether a group has begun and not ended."""

    def __init__(self) -> None:
        self.is_open = False
        self._begin = 0
        self._start = GroupStart("", 0, None)
        self._is_transaction = False

    def take(self, event: BinlogEvent) -> Group | None:
        """Return the group that ends with this event. SourceError: an event of an unknown type, which the group might need."""
        handler = _HANDLERS.get(event.kind)
        if handler is None:
            self._take_other(event)
            return None
        try:
            return handler(self, event)
        except (struct.error, IndexError, ValueError) as error:
            raise unreadable(event, "an event of the binlog cannot be read", cause=str(error)) from error

    def _take_other(self, event: BinlogEvent) -> None:
        if event.kind in _INSIDE:
            self._check_open(event)
        elif event.kind not in _OUTSIDE and not event.flags & kinds.IGNORABLE_FLAG:
            raise unreadable(event, "an event of the binlog has a type that is not known")

    def _open(self, event: BinlogEvent) -> Group | None:
        if self.is_open:
            raise unreadable(event, "a group of the binlog begins inside of another")
        self._start = group_start(event, event.data or b"")
        self.is_open, self._begin = True, event.begin
        self._is_transaction = self._start.is_statement is False
        return None

    def _take_query(self, event: BinlogEvent) -> Group | None:
        self._check_open(event)
        sql = sql_of(plain_event(event).data or b"")
        words = sql.upper().split(None, 2)[:2] if len(sql) <= _LONGEST_CONTROL else []
        first = words[0] if words else b""
        if not self._is_transaction:
            if self._start.is_statement is None and (first == b"BEGIN" or words == [b"XA", b"START"]):
                self._is_transaction = True
                return None
            return self._close_statement(event, sql, words)
        if first == b"COMMIT":
            return self._close(GroupKind.TRANSACTION, event)
        if words == [b"ROLLBACK"]:
            return self._close(GroupKind.ROLLBACK, event)
        return None

    def _close_statement(self, event: BinlogEvent, sql: bytes, words: list[bytes]) -> Group:
        if words in ([b"XA", b"COMMIT"], [b"XA", b"ROLLBACK"]):
            xid = sql.split(None, 2)[2].decode("ascii", "replace").strip()
            return self._close(GroupKind.XA_COMMIT if words[1] == b"COMMIT" else GroupKind.XA_ROLLBACK, event, xid)
        return self._close(GroupKind.IGNORED if self._start.is_ignored else GroupKind.QUERY, event)

    def _take_xid(self, event: BinlogEvent) -> Group | None:
        return self._close(GroupKind.TRANSACTION, event)

    def _take_xa_prepare(self, event: BinlogEvent) -> Group | None:
        xid, is_commit = xid_text(event.data or b"")
        if is_commit:
            return self._close(GroupKind.TRANSACTION, event)
        return self._close(GroupKind.XA_PREPARE, event, xid)

    def _take_payload(self, event: BinlogEvent) -> Group | None:
        # A whole transaction. Only where it begins as a distributed one, its last event is looked at.
        events = payload_events(event)
        first = next(events, event)
        if first.kind == kinds.QUERY and sql_of(first.data or b"").startswith(b"XA"):
            for last in events:
                if last.kind == kinds.XA_PREPARE:
                    return self._take_xa_prepare(last)
        return self._close(GroupKind.TRANSACTION, event)

    def _take_incident(self, event: BinlogEvent) -> Group | None:
        if not self.is_open:
            self._begin, self._start = event.begin, GroupStart("", event.time_s * 1_000_000, None)
        return self._close(GroupKind.INCIDENT, event)

    def _at_file(self, event: BinlogEvent) -> Group | None:
        """End a group that the server's crash has cut: the file continues with another one."""
        return self._close(GroupKind.UNFINISHED, event) if self.is_open else None

    def _close(self, kind: GroupKind, event: BinlogEvent, xid: str = "") -> Group:
        if kind is not GroupKind.INCIDENT:
            self._check_open(event)
        self.is_open = False
        return Group(kind, self._begin, event.end, self._start.gtid, xid, self._start.time_us)

    def _check_open(self, event: BinlogEvent) -> None:
        if not self.is_open:
            raise unreadable(event, "an event of the binlog belongs to no group")


_HANDLERS: Final[Mapping[int, Callable[[GroupFinder, BinlogEvent], Group | None]]] = {
    **dict.fromkeys((kinds.GTID, kinds.ANONYMOUS_GTID, kinds.GTID_TAGGED, kinds.MARIADB_GTID), GroupFinder._open),  # noqa: SLF001 - its own
    **dict.fromkeys((kinds.ROTATE, kinds.STOP, kinds.FORMAT_DESCRIPTION), GroupFinder._at_file),  # noqa: SLF001
    **dict.fromkeys((kinds.QUERY, kinds.MARIADB_QUERY_COMPRESSED), GroupFinder._take_query),  # noqa: SLF001
    kinds.XID: GroupFinder._take_xid,  # noqa: SLF001
    kinds.XA_PREPARE: GroupFinder._take_xa_prepare,  # noqa: SLF001
    kinds.TRANSACTION_PAYLOAD: GroupFinder._take_payload,  # noqa: SLF001
    kinds.INCIDENT: GroupFinder._take_incident,  # noqa: SLF001
}
