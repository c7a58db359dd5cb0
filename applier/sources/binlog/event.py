"""Events of a binlog: their types, their header, and the few bodies that say where groups begin and end.

Version 4 of the format, which both servers write: a header of 19 bytes, the body, and a checksum of 4 bytes that is no part of it here.
"""

import struct
from typing import Final, NamedTuple

from applier.model.errors import SourceError

HEADER_BYTES: Final = 19
CHECKSUM_BYTES: Final = 4

QUERY: Final = 2
STOP: Final = 3
ROTATE: Final = 4
INTVAR: Final = 5
APPEND_BLOCK: Final = 9
DELETE_FILE: Final = 11
RAND: Final = 13
USER_VAR: Final = 14
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
BEGIN_LOAD_QUERY: Final = 17
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
INCIDENT: Final = 26
HEARTBEAT: Final = 27
IGNORABLE: Final = 28
ROWS_QUERY: Final = 29
GTID: Final = 33
ANONYMOUS_GTID: Final = 34
PREVIOUS_GTIDS: Final = 35
TRANSACTION_CONTEXT: Final = 36
VIEW_CHANGE: Final = 37
XA_PREPARE: Final = 38
PARTIAL_UPDATE_ROWS: Final = 39
TRANSACTION_PAYLOAD: Final = 40
HEARTBEAT_V2: Final = 41
GTID_TAGGED: Final = 42
MARIADB_ANNOTATE_ROWS: Final = 160
MARIADB_BINLOG_CHECKPOINT: Final = 161
MARIADB_GTID: Final = 162
MARIADB_GTID_LIST: Final = 163
MARIADB_START_ENCRYPTION: Final = 164
MARIADB_QUERY_COMPRESSED: Final = 165

MARIADB_ROWS: Final = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""MariaDB's compressed rows events (versions 1 and 2), and the types that they are without compression."""
ROWS: Final = frozenset({23, 24, 25, 30, 31, 32, PARTIAL_UPDATE_ROWS})
"""WRITE, UPDATE and DELETE of versions 1 and 2, and updates of parts of a JSON value."""
TEXTS: Final = frozenset({ROWS_QUERY, MARIADB_ANNOTATE_ROWS})
"""Statements as a comment on the rows that they have changed: nobody gets them."""
BULKY: Final = ROWS | TEXTS | frozenset(MARIADB_ROWS) | {TABLE_MAP}
"""Types whose content says nothing about where a group ends."""
HEARTBEATS: Final = frozenset({HEARTBEAT, HEARTBEAT_V2})

IGNORABLE_FLAG: Final = 0x80
"""A replica that does not know the type may pass the event."""
IN_USE_FLAG: Final = 0x01
"""Of a format description: the file is not closed. Its checksum is that without the flag."""


class BinlogEvent(NamedTuple):
    """One event. ``begin`` and ``end`` are numbers (``position``); equal where the event is in no file, as a heartbeat.

    ``data`` is header and body without checksum. None: the stream was not asked for it.
    """

    kind: int
    begin: int
    end: int
    time_s: int
    flags: int
    data: bytes | None


_QUERY_HEAD: Final = struct.Struct("<8xBxxH")


def sql_of(data: bytes) -> bytes:
    """Return the statement of a QUERY event."""
    schema_bytes, status_bytes = _QUERY_HEAD.unpack_from(data, HEADER_BYTES)
    return data[HEADER_BYTES + 13 + status_bytes + schema_bytes + 1 :]


def xid_text(data: bytes) -> tuple[str, bool]:
    """Return the xid of an XA_PREPARE event, as servers write it in statements, and whether it is a commit in one phase."""
    one_phase, format_id, branch, qualifier = struct.unpack_from("<Biii", data, HEADER_BYTES)
    first = HEADER_BYTES + 13
    middle = first + branch
    return f"X'{data[first:middle].hex()}',X'{data[middle : middle + qualifier].hex()}',{format_id}", bool(one_phase)


def unreadable(event: BinlogEvent, message: str, **facts: object) -> SourceError:
    """Make the error for an event that the applier cannot follow."""
    return SourceError(
        message,
        remedy="Look at the event: `applier inspect`. Report it with the server's version",
        kind="event",
        offset=event.begin,
        event_type=event.kind,
        **facts,
    )
