"""What the range reader gives to the decoder: records that can be read alone, each a transaction or a part of one; and their events.

The value of a record holds version 4 events, each of 19 bytes of header and its body, without checksum, and never compressed. In a part of
a transaction the table maps that its rows events need come before them.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Any, Final, TypeAlias

import msgspec

from applier.model.errors import ApplierError, NeedsOperator, ProtocolError, Remedy
from applier.model.failure import RecordFault
from applier.model.position import RecordPosition
from applier.selection import SelectedTable
from applier.sources.binlog.event_stream import HEADER_BYTES, INCIDENT, PARTIAL_UPDATE_ROWS, ROWS, TABLE_MAP
from applier.sources.binlog.rows_event import MappedTable

PART_BYTES: Final = 1 << 20
"""A transaction is divided into parts of about this size; an event is never divided."""

ROWS_PER_EVENT: Final = 1 << 32
"""The index of a row in its transaction is the number of its rows event, times this, plus the row's number in the event.

An event has less than 4 GiB and a row at least a byte: so many rows are in no event, and an index fits into 63 bits.
"""


class PartKind(IntEnum):
    """What a record holds."""

    ROWS = 0
    """The events of a transaction, or of a part of it; statements inside of it (SAVEPOINT, DML) come along."""
    QUERY = 1
    """One statement that is a group of its own, or that comes before the rows of its group. Its ``commit_ts`` is its end - 1."""
    PROMISE = 2
    """No events: everything up to ``commit_ts``, the end of the range, was read."""


class PartHead(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The key of a record.

    ``first_event``: the number of the part's first rows event in its transaction; ``time_us``: when upstream wrote it, in microseconds
    since the epoch; ``gtid``: of the group, '' without; ``has_variables``: values of the session come before the statement of a QUERY
    (USER_VAR, INTVAR, RAND events), which its text needs.
    """

    kind: int
    commit_ts: int
    first_event: int
    time_us: int
    is_mariadb: bool
    gtid: str
    has_variables: bool = False


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(PartHead)


def encode_head(head: PartHead) -> bytes:
    """Return the key of a record."""
    return _ENCODER.encode(head)


def decode_head(key: bytes | None) -> PartHead:
    """Read the key of a record. ProtocolError, without a position, if it is not one."""
    try:
        return _DECODER.decode(key or b"")
    except msgspec.DecodeError as error:
        raise ProtocolError("the head of a record of the binlog cannot be read", cause=str(error)) from error


KnownTable: TypeAlias = MappedTable | SelectedTable
FoundTable: TypeAlias = KnownTable | ApplierError | None
PartEvent: TypeAlias = tuple[int, int, int, int, FoundTable]
"""Type, where it begins and ends in the record, index of its first row; of a rows event its table, or why that cannot be read."""
KnowTable: TypeAlias = Callable[[bytes, bool], KnownTable]
"""Body of a TABLE_MAP event without the table's number, whether MariaDB wrote it -> the table."""

_NUMBER_END: Final = HEADER_BYTES + 6
_NO_TABLE: Final = b"\xff\xff\xff\0\0\0"
"""The number of the table of a rows event without rows, which ends a statement."""
_header = Struct("<4xB4xI").unpack_from
_SILENT: Final = frozenset({5, 13, 14, 16, 28, 29, 33, 34, 36, 37, 38, 42, 160, 162})
"""Events of a group that hold no rows: variables of a statement, XIDs, GTIDs, texts. What a statement does is in QUERY."""

_UNREADABLE: Final[frozenset[RecordFault]] = frozenset(
    {"charset", "column_type", "event_type", "framing", "row_image", "rows_event", "table_map"}
)
"""Kinds of errors that nothing else is known to be done about."""
BY_GTID: Final = Remedy(
    "binlog.look-at-gtid",
    "Look at the transaction: `applier inspect --gtid …`. If the replica can do without it, skip it: `applier skip --gtid …`. "
    "Report it with the server's version",
)
BY_POSITION: Final = Remedy(
    "binlog.look-at-position",
    "Look at the transaction: `applier inspect --position …`. If the replica can do without it, skip it: `applier skip --position …`. "
    "Report it with the server's version",
)

PARTIAL_REMEDY: Final = Remedy(
    "binlog.unset-row-value-options",
    "Run on the primary: SET GLOBAL binlog_row_value_options = ''. Rows written so before cannot be read: create the replica from a dump",
)
INCIDENT_REMEDY: Final = Remedy(
    "binlog.create-again-after-event",
    "Create the replica again from a dump that was made after this. Or correct the sink's rows by hand, and skip the event: "
    "`applier skip --position …`",
)


def events_of(head: PartHead, value: bytes, know: KnowTable) -> Iterator[PartEvent]:
    """Yield the events that mean something. ProtocolError, without a position: the record cannot be taken apart."""
    number, tables = head.first_event, dict[bytes, KnownTable | ApplierError]()
    at, whole = 0, len(value)
    while at < whole:
        kind, size = _header(value, at) if whole - at >= HEADER_BYTES else (0, 0)
        end = at + size
        if size < HEADER_BYTES or end > whole:
            raise ProtocolError.at(None, "framing", "an event of the binlog is too short or too long")
        if kind in ROWS:
            table = value[at + HEADER_BYTES : at + _NUMBER_END]
            if table != _NO_TABLE:
                yield kind, at, end, number * ROWS_PER_EVENT, tables.get(table)
            number += 1
        elif kind == TABLE_MAP:
            # An error is raised where rows of the table come: there it belongs to an event.
            try:
                known: KnownTable | ApplierError = know(value[at + _NUMBER_END : end], head.is_mariadb)
            except ApplierError as error:
                known = error
            tables[value[at + HEADER_BYTES : at + _NUMBER_END]] = known
        elif kind not in _SILENT:
            yield kind, at, end, number * ROWS_PER_EVENT, None
        at = end


def table_of(table: FoundTable) -> MappedTable:
    """Return the table of a rows event that has rows of a replica; raise why it cannot be read."""
    if isinstance(table, MappedTable):
        return table
    if isinstance(table, ApplierError):
        raise table
    raise ProtocolError.at(None, "table_map", "a rows event has no table map before it")


def refusal_of(kind: int) -> ApplierError:
    """Return the error for an event of a type that is neither rows nor a statement."""
    if kind == PARTIAL_UPDATE_ROWS:
        return NeedsOperator("upstream writes changes of JSON values in parts, which the applier does not read", remedy=PARTIAL_REMEDY)
    if kind == INCIDENT:
        message = "the primary says that changes are missing in its binlog (an incident event)"
        return ProtocolError.at(None, "incident", message, remedy=INCIDENT_REMEDY)
    return ProtocolError.at(None, "event_type", "an event of this type is not known among rows", event_type=kind)


def located(error: ApplierError, position: RecordPosition, head: PartHead | None, event: PartEvent | None) -> ApplierError:
    """Return the error with the facts of the record and the event that it arose in."""
    facts: dict[str, Any] = {} if event is None else {"event": event[3]}
    if head is not None:
        facts |= {"commit_ts": head.commit_ts} | ({"gtid": head.gtid} if head.gtid else {})
    if event is not None and isinstance(event[4], MappedTable | SelectedTable):
        facts |= {"schema": event[4].name.schema, "table": event[4].name.table}
    remedy = error.remedy
    if isinstance(error, ProtocolError) and error.fault in _UNREADABLE:
        remedy = BY_GTID if facts.get("gtid") else BY_POSITION
    return type(error)(error.message, remedy=remedy, **(position.facts | facts | error.facts))
