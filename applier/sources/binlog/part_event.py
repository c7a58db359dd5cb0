"""The events of a record: rows events with their tables, and statements. One way for all who read a record; nothing here looks at rows."""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, TypeAlias

from applier.model.errors import ApplierError, NeedsOperator, ProtocolError
from applier.model.position import Place
from applier.sources.binlog.event import HEADER_BYTES, INCIDENT, PARTIAL_UPDATE_ROWS, TABLE_MAP
from applier.sources.binlog.excluded_table import ExcludedTable
from applier.sources.binlog.part import ROWS_PER_EVENT, PartHead
from applier.sources.binlog.rows_event import OPERATIONS, MappedTable

KnownTable: TypeAlias = MappedTable | ExcludedTable
FoundTable: TypeAlias = KnownTable | ApplierError | None
PartEvent: TypeAlias = tuple[int, int, int, int, FoundTable]
"""Type, where it begins and ends in the record, index of its first row; of a rows event its table, or why that cannot be read."""
KnowTable: TypeAlias = Callable[[bytes, bool], KnownTable]
"""Body of a TABLE_MAP event without the table's number, whether MariaDB wrote it -> the table."""

_NUMBER_END: Final = HEADER_BYTES + 6
_NO_TABLE: Final = b"\xff\xff\xff\0\0\0"
"""The number of the table of a rows event without rows, which ends a statement."""
_header = Struct("<4xB4xI").unpack_from
_ROWS: Final = frozenset(OPERATIONS) | {PARTIAL_UPDATE_ROWS}
_SILENT: Final = frozenset({5, 13, 14, 16, 28, 29, 33, 34, 36, 37, 38, 42, 160, 162})
"""Events of a group that hold no rows: variables of a statement, XIDs, GTIDs, texts. What a statement does is in QUERY."""

_UNREADABLE: Final = frozenset({"charset", "column_type", "event_type", "framing", "row_image", "rows_event", "table_map"})
"""Kinds of errors that nothing else is known to be done about."""
BY_GTID: Final = (
    "Look at the transaction: `applier inspect --gtid …`. If the replica can do without it, skip it: `applier skip --gtid …`. "
    "Report it with the server's version"
)
BY_POSITION: Final = (
    "Look at the transaction: `applier inspect --position …`. If the replica can do without it, skip it: `applier skip --position …`. "
    "Report it with the server's version"
)

PARTIAL_REMEDY: Final = (
    "Run on the primary: SET GLOBAL binlog_row_value_options = ''. Rows written so before cannot be read: create the replica from a dump"
)
INCIDENT_REMEDY: Final = (
    "Create the replica again from a dump that was made after this. Or correct the sink's rows by hand, and skip the event: "
    "`applier skip --position …`"
)


def events_of(head: PartHead, value: bytes, know: KnowTable) -> Iterator[PartEvent]:
    """Yield the events that mean something. ProtocolError, without a place: the record cannot be taken apart."""
    number, tables = head.first_event, dict[bytes, KnownTable | ApplierError]()
    at, whole = 0, len(value)
    while at < whole:
        kind, size = _header(value, at) if whole - at >= HEADER_BYTES else (0, 0)
        end = at + size
        if size < HEADER_BYTES or end > whole:
            raise ProtocolError.at(None, "framing", "an event of the binlog is too short or too long")
        if kind in _ROWS:
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


def located(error: ApplierError, place: Place, head: PartHead | None, event: PartEvent | None) -> ApplierError:
    """Return the error with the facts of the record and the event that it arose in."""
    facts: dict[str, Any] = {} if event is None else {"event": event[3]}
    if head is not None:
        facts |= {"commit_ts": head.commit_ts} | ({"gtid": head.gtid} if head.gtid else {})
    if event is not None and isinstance(event[4], MappedTable | ExcludedTable):
        facts |= {"schema": event[4].name.schema, "table": event[4].name.table}
    remedy = error.remedy
    if isinstance(error, ProtocolError) and error.facts.get("kind") in _UNREADABLE:
        remedy = BY_GTID if facts.get("gtid") else BY_POSITION
    return type(error)(error.message, remedy=remedy, **(place.facts | facts | error.facts))
