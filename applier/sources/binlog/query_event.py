"""Reads a QUERY event: a statement as upstream wrote it to its log, and the session in which it ran. Pure.

The event's data: the length of the schema's name, an error code, status variables of the session, the schema's name, a zero byte, the text.
A status variable is a code and what belongs to it, without a length: behind an unknown code nothing more can be read. Sources: MySQL's
"Query_event" (libbinlogevents) and MariaDB's "QUERY_EVENT" pages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError  # noqa: N812 - a module's own exception
from typing import Any, Final, NamedTuple

from applier.model.errors import ProtocolError

HEADER_BYTES: Final = 19
_POST_HEADER: Final = Struct("<IIBHH")  # thread, execution time, length of the schema's name, error code, length of the status variables
_TIME: Final = Struct("<I")

_LOAD_DATA: Final = 18
"""EXECUTE_LOAD_QUERY: a QUERY event with the place of a file's name in the text."""
_LOAD_DATA_BYTES: Final = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySession:
    """What the event says of the session. None, 0 or '': it does not say. Collations are numbers."""

    flags: int | None = None
    sql_mode: int = 0
    client_charset: int = 0
    connection_collation: int = 0
    server_collation: int = 0
    time_zone: str = ""
    time_names: int = 0
    """lc_time_names; 0 is en_US. MySQL and MariaDB number the others alike."""
    microseconds: int = 0
    has_explicit_timestamps: bool | None = None
    utf8mb4_collation: int = 0
    """MySQL's default_collation_for_utf8mb4."""
    charset_collations: Mapping[int, int]
    """MariaDB's character_set_collations: a collation of the character set, and that which is its default."""


class QueryEvent(NamedTuple):
    """One statement. ``text`` is in the client's character set; ``error_code``: with which error it ended upstream, 0 without.

    ``thread`` is the number of the connection.
    """

    time_s: int
    thread: int
    schema: str
    text: bytes
    error_code: int
    session: QuerySession


def read_query_event(event: bytes) -> QueryEvent:
    """Read an event: 19 bytes of header and its body. ProtocolError, without a place, if it is cut off."""
    if len(event) < HEADER_BYTES:
        raise _cut_off()
    try:
        (time_s,) = _TIME.unpack_from(event)
        thread, _, schema_bytes, error_code, status_bytes = _POST_HEADER.unpack_from(event, HEADER_BYTES)
    except StructError as error:
        raise _cut_off() from error
    status = HEADER_BYTES + _POST_HEADER.size + (_LOAD_DATA_BYTES if event[4] == _LOAD_DATA else 0)
    schema = status + status_bytes
    text = schema + schema_bytes + 1
    if text > len(event):
        raise _cut_off()
    name = event[schema : text - 1].decode("utf-8", "surrogateescape")
    return QueryEvent(time_s, thread, name, event[text:], error_code, read_session(event[status:schema]))


def _cut_off() -> ProtocolError:
    return ProtocolError("a QUERY event of the binlog is cut off", kind="query")


def read_session(data: bytes) -> QuerySession:
    """Read the status variables. Those behind an unknown one are not known; the servers write what matters here first."""
    status = _Status(data)
    while (code := status.integer(1)) is not None:
        read = _VARIABLES.get(code)
        if read is None or not read(status):
            break
    return QuerySession(charset_collations=status.charset_collations, **status.found)


class _Status:
    """The status variables of one event, from left to right."""

    __slots__ = ("_at", "_data", "charset_collations", "found")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self.found: dict[str, Any] = {}
        self.charset_collations: dict[int, int] = {}

    def integer(self, size: int) -> int | None:
        """Take an integer; None at the end."""
        taken = self.take(size)
        return None if taken is None else int.from_bytes(taken, "little")

    def take(self, size: int) -> bytes | None:
        """Take some bytes; None if they are not there."""
        end = self._at + size
        if end > len(self._data):
            self._at = len(self._data)
            return None
        taken, self._at = self._data[self._at : end], end
        return taken

    def text(self, *, has_zero: bool = False) -> bytes | None:
        """Take a length of one byte and so many bytes; with ``has_zero``, a zero byte behind them."""
        size = self.integer(1)
        if size is None:
            return None
        taken = self.take(size)
        return taken if not has_zero or self.take(1) is not None else None

    def until_zero(self) -> bytes | None:
        """Take bytes up to a zero byte."""
        end = self._data.find(b"\0", self._at)
        return None if end < 0 else (self.take(end + 1 - self._at) or b"")[:-1]


_Reader = Callable[[_Status], bool]
"""Takes what belongs to a code; False if that is cut off."""


def _skip(size: int) -> _Reader:
    return lambda status: status.take(size) is not None


def _number(name: str, size: int) -> _Reader:
    def read(status: _Status) -> bool:
        value = status.integer(size)
        if value is not None:
            status.found[name] = value
        return value is not None

    return read


def _charset(status: _Status) -> bool:
    taken = status.take(6)
    if taken is None:
        return False
    names = ("client_charset", "connection_collation", "server_collation")
    status.found.update(zip(names, Struct("<HHH").unpack(taken), strict=True))
    return True


def _time_zone(status: _Status) -> bool:
    taken = status.text()
    if taken is not None:
        status.found["time_zone"] = taken.decode("utf-8", "replace")
    return taken is not None


def _explicit_timestamps(status: _Status) -> bool:
    value = status.integer(1)
    if value is not None:
        status.found["has_explicit_timestamps"] = bool(value)
    return value is not None


def _invoker(status: _Status) -> bool:
    return status.text() is not None and status.text() is not None


def _updated_schemas(status: _Status) -> bool:
    count = status.integer(1)
    # 254: too many to name them.
    return count is not None and (count == 254 or all(status.until_zero() is not None for _ in range(count)))


def _gtid_flags(status: _Status) -> bool:
    """Read MariaDB's flags of a two-phase ALTER TABLE: with COMMIT or ROLLBACK they hold the number of its START ALTER."""
    flags = status.integer(2)
    return flags is not None and (not flags & 0b1100 or status.take(8) is not None)


def _charset_collations(status: _Status) -> bool:
    count = status.integer(1)
    pairs = [(status.integer(2), status.integer(2)) for _ in range(count or 0)]
    status.charset_collations.update((one, other) for one, other in pairs if one is not None and other is not None)
    return count is not None and len(status.charset_collations) == count


_VARIABLES: Final[Mapping[int, _Reader]] = {
    0: _number("flags", 4),
    1: _number("sql_mode", 8),
    2: lambda status: status.text(has_zero=True) is not None,  # the catalogue, of servers before 5.0.4
    3: _skip(4),  # auto_increment_increment and auto_increment_offset
    4: _charset,
    5: _time_zone,
    6: lambda status: status.text() is not None,  # the catalogue
    7: _number("time_names", 2),
    8: _skip(2),  # collation_database
    9: _skip(8),  # the tables that an UPDATE of several has changed
    10: _skip(4),  # the size of the event on the first server
    11: _invoker,
    12: _updated_schemas,
    13: _number("microseconds", 3),
    14: _skip(8),  # a commit's logical timestamp
    15: _skip(8),
    16: _explicit_timestamps,
    17: _skip(8),  # the number of an atomic DDL
    18: _number("utf8mb4_collation", 2),
    19: _skip(1),  # sql_require_primary_key
    20: _skip(1),  # default_table_encryption
    128: _number("microseconds", 3),  # from here on MariaDB's
    129: _skip(8),  # the number of an atomic DDL
    130: _gtid_flags,
    131: _charset_collations,
}
