"""What a value of a dump is in a file of SQLite: what the stream would have brought for it, in the form in which rows are stored. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias
from uuid import UUID

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.mysql.charset_text import UTF8, texts
from applier.mysql.float32 import read_vectors
from applier.mysql.insert_values import LiteralKind
from applier.sinks.sqlite.stored_value import (
    DdlTime,
    Inexact,
    Stored,
    binary,
    date,
    date_and_time,
    decimal_text,
    floating,
    labels,
    store_integer,
    time_of_day,
)

ValueRead: TypeAlias = Callable[[LiteralKind, bytes], Stored]
"""ValueError (``Inexact`` too): the value is none of the column's type."""

BINARY: Final = "binary"
_UTC: Final = frozenset({"UTC", "+00:00", "-00:00", "Etc/UTC", "GMT"})
_ASCII_COMPATIBLE: Final = frozenset(
    {
        "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew",
        "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "tis620",
    }
)  # fmt: skip
"""One byte per character: a quote or a backslash is never a part of another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """How a file of a dump writes texts and times.

    ``charset``: of its texts; ``binary``: each text is in its column's character set. ``zone``: of its TIMESTAMP values; ``wire_zone``: of
    the sink's. ``is_of_log``: upstream is MySQL or MariaDB; TiDB writes all texts as UTF-8.
    """

    charset: str
    zone: str
    wire_zone: str
    is_of_log: bool


def is_known_charset(charset: str) -> bool:
    """Return whether texts of this character set can be read."""
    return charset in {BINARY, "utf8"} | UTF8 | _ASCII_COMPATIBLE


def value_read(column: ColumnType, named: str, text: FileText) -> ValueRead:
    """Return the function that reads values of a column. ``named``: MariaDB's own name of its type (uuid, inet4, inet6), or ''."""
    decode = _decoder(column, text)
    reads: dict[TypeFamily, ValueRead] = {
        TypeFamily.INTEGER: lambda kind, data: store_integer(_integer(kind, data), column),
        TypeFamily.YEAR: lambda kind, data: store_integer(_integer(kind, data), column),
        TypeFamily.BIT: lambda kind, data: store_integer(int(data) if kind is LiteralKind.NUMBER else int.from_bytes(data), column),
        TypeFamily.DECIMAL: lambda _, data: decimal_text(Decimal(data.decode()), column),
        TypeFamily.FLOAT: lambda _, data: floating(float(data), column),
        TypeFamily.DOUBLE: lambda _, data: floating(float(data), column),
        TypeFamily.DATE: lambda _, data: date(data.decode()),
        TypeFamily.TIME: lambda _, data: time_of_day(data.decode(), column),
        TypeFamily.DATETIME: lambda _, data: date_and_time(data.decode(), column),
        TypeFamily.TIMESTAMP: _timestamp(column, text),
        TypeFamily.ENUM: lambda kind, data: labels(decode(_in_quotes(kind), data), column),
        TypeFamily.SET: lambda kind, data: labels(decode(_in_quotes(kind), data), column),
        TypeFamily.BINARY: _named_bytes(named) if named else lambda _, data: binary(data, column),
        # A binlog has it as bytes, and so have dumps of the servers that write one. TiDB's have text.
        TypeFamily.VECTOR: (lambda _, data: read_vectors([data])[0]) if text.is_of_log else decode,
        TypeFamily.CHARACTER: decode,
        TypeFamily.JSON: decode,
    }
    return reads[column.family]


def _integer(kind: LiteralKind, data: bytes) -> int:
    return int.from_bytes(data) if kind is LiteralKind.BYTES else int(data)


def _in_quotes(kind: LiteralKind) -> LiteralKind:
    if kind is LiteralKind.NUMBER:
        raise Inexact("a number where a label is expected")
    return kind


def _decoder(column: ColumnType, text: FileText) -> Callable[[LiteralKind, bytes], str]:
    """Return what makes characters: of a text by the file's character set, of bytes by the column's."""
    own = texts(column.charset or "utf8mb4") if text.is_of_log else texts("utf8mb4")
    of_file = own if text.charset == BINARY else texts("utf8mb4" if text.charset == "utf8" else text.charset)
    return lambda kind, data: (own if kind is LiteralKind.BYTES else of_file)([data])[0]


def _timestamp(column: ColumnType, text: FileText) -> ValueRead:
    if text.zone == text.wire_zone or {text.zone, text.wire_zone} <= _UTC:
        return lambda _kind, data: date_and_time(data.decode(), column)
    zones = DdlTime(moment=datetime.fromtimestamp(0, UTC), zone=text.wire_zone, session_zone=text.zone)
    return lambda _kind, data: zones.in_wire_zone(date_and_time(data.decode(), column))


def _named_bytes(named: str) -> ValueRead:
    """Read a type that MariaDB writes as text and stores as bytes, which is what its binlog has."""

    def read(kind: LiteralKind, data: bytes) -> Stored:
        if kind is LiteralKind.BYTES:
            return data
        text = data.decode()
        match named:
            case "inet4":
                return IPv4Address(text).packed
            case "inet6":
                return IPv6Address(text).packed
            case _:
                return UUID(text).bytes

    return read
