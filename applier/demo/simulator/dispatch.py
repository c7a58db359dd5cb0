"""Where producers put things: topics by schema, partitions by TiCDC's dispatchers (open_protocol.md 3.1, 3.2)."""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from zlib import crc32

from applier.demo.simulator.operation import Row
from applier.demo.simulator.schema import Table
from applier.model.events import TableName, Value


class Dispatcher(StrEnum):
    """The partition rule of a changefeed."""

    TABLE = "table"
    INDEX_VALUE = "index-value"
    COLUMNS = "columns"
    TS = "ts"


class PositionHash:
    """TiCDC's position-inert hash: each write XORs the state with the CRC32 of its concatenated arguments."""

    def __init__(self) -> None:
        self.state = 0

    def write(self, *parts: bytes) -> None:
        """Mix in one call's arguments."""
        self.state ^= crc32(b"".join(parts))


def value_text(value: Value) -> bytes:
    """Return the text of a value that is hashed; NULL is spelled as tiflow does."""
    match value:
        case None:
            return b"null"
        case bytes():
            return value
        case float():
            return f"{value:f}".encode()
        case _:
            return str(value).encode("utf-8", "surrogateescape")


def row_hash(name: TableName, pairs: Iterable[tuple[str, Value]]) -> int:
    """Hash a table and some (column name, value) pairs."""
    state = PositionHash()
    state.write(name.schema.encode(), name.table.encode())
    for column, value in pairs:
        state.write(column.encode(), value_text(value))
    return state.state


def hash_of(dispatcher: Dispatcher, table: Table, row: Row, ts: int) -> int:
    """Return the number whose remainder by the partition count is the row's partition."""
    match dispatcher:
        case Dispatcher.TABLE:
            return row_hash(table.name, ())
        case Dispatcher.TS:
            return ts
        case Dispatcher.INDEX_VALUE:
            return row_hash(table.name, _pairs(table, row, table.handle_places))
        case Dispatcher.COLUMNS:
            # A column that changes: the hardest case, versions of one row spread over partitions.
            places = [place for place in range(len(table.columns)) if place not in table.handle_places][:1] or [0]
            return row_hash(table.name, _pairs(table, row, places))


def _pairs(table: Table, row: Row, places: Sequence[int]) -> list[tuple[str, Value]]:
    return [(table.columns[place].name, row[place]) for place in places]


def topic_of(schema: str, default: str, *, per_schema: bool) -> str:
    """Return the topic of a table in ``schema``; names are sanitised as TiCDC does."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{default}_{schema}")[:249] if per_schema else default
