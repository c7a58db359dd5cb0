"""How SQLite stores MySQL's column types, and what a value becomes when a column of another type stores it.

Tables are STRICT, so SQLite refuses what does not fit instead of converting it. Affinity decides what stays exact: INTEGER holds signed
64 bits; BIGINT UNSIGNED and BIT(64) are ANY, which converts nothing, and their values above 2^63-1 are decimal text (as a number SQLite
would make them floating point); DECIMAL, dates and times are TEXT; FLOAT and DOUBLE are REAL; ENUM and SET are the TEXT of their labels.

Each conversion raises ``Inexact`` where the result is not certain.

Conversions of stored values when a column's type changes: exactly as MySQL converts them, or the replica stops.
``applier.ddl.conversion_rule`` says which pairs of types convert, and which of their values each server converts alike. A conversion runs
once per existing value (NULL is never passed), inside SQLite, as a function of the connection. What is not certain: rounding that depends
on the server, text that is not the plain form of the new type, a value out of range.

A value of a dump becomes what the stream would have sent for it, in the form in which rows are stored.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from datetime import date as Date  # noqa: N812 - ``date`` stores one
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily
from applier.ddl.conversion_rule import Certainty, capacity, conversion_rule
from applier.ddl.parser import BY_HAND
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.mysql.charset_text import UTF8, texts
from applier.mysql.float32 import read_vectors, shortest, single_precision
from applier.mysql.insert_values import LiteralKind

MAX_SIGNED: Final = 2**63 - 1


def affinity(column: ColumnType) -> str:
    """Return the type of the SQLite column."""
    match column.family:
        case TypeFamily.INTEGER | TypeFamily.BIT | TypeFamily.YEAR:
            return "ANY" if column.highest > MAX_SIGNED else "INTEGER"
        case TypeFamily.FLOAT | TypeFamily.DOUBLE:
            return "REAL"
        case TypeFamily.BINARY:
            return "BLOB"
        case _:
            return "TEXT"


Stored: TypeAlias = int | float | str | bytes | None

_CONTEXT: Final = Context(prec=200, rounding=ROUND_HALF_UP)
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_DATETIME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?")
_TIME: Final = re.compile(r"(-?\d{2,3}:\d{2}:\d{2})(?:\.(\d{1,6}))?")


class Inexact(ValueError):
    """The value cannot be converted so that it is certainly MySQL's."""


def integer(value: Stored) -> int:
    """Read a stored integer: text above 2^63-1."""
    return int(as_text(value)) if isinstance(value, str) else int(as_number(value))


def store_integer(number: int, new: ColumnType) -> Stored:
    """Store an integer; Inexact if it is out of the range of the type."""
    if not new.lowest <= number <= new.highest:
        raise Inexact(f"out of range for {new}")
    return number if number <= MAX_SIGNED else str(number)


def decimal_text(number: Decimal, new: ColumnType) -> str:
    """Write a DECIMAL with its scale, rounded half away from zero as MySQL does."""
    rounded = rounded_decimal(number, new.scale)
    if rounded.is_signed() and (new.unsigned and rounded):
        raise Inexact(f"out of range for {new}")
    # ``abs()`` would round to the 28 digits of the context.
    if rounded.copy_abs() >= Decimal(10) ** (new.precision - new.scale):
        raise Inexact(f"out of range for {new}")
    return f"{rounded or abs(rounded):f}"


def rounded_decimal(number: Decimal, scale: int) -> Decimal:
    """Round half away from zero; Inexact for a number that no DECIMAL can hold."""
    try:
        return number.quantize(Decimal(1).scaleb(-scale), context=_CONTEXT)
    except InvalidOperation as error:
        raise Inexact("out of range for decimal") from error


def floating(number: float, new: ColumnType) -> float:
    """Store a FLOAT as the double of its shortest 32-bit text, which is what the wire carries."""
    if new.unsigned and number < 0:
        raise Inexact(f"out of range for {new}")
    if new.family is TypeFamily.DOUBLE:
        return number
    try:
        return shortest(single_precision(number))
    except OverflowError as error:
        raise Inexact("out of range for float") from error


def character(text: str, new: ColumnType) -> str:
    """Store text: CHAR loses trailing spaces; Inexact if it is too long."""
    if new.base == "char":
        text = text.rstrip(" ")
    if new.max_characters is not None and len(text) > new.max_characters:
        raise Inexact(f"too long for {new}")
    if new.max_bytes is not None and len(text.encode("utf-8", "surrogateescape")) > new.max_bytes:
        raise Inexact(f"too long for {new}")
    return text


def binary(data: bytes, new: ColumnType) -> bytes:
    """Store bytes: BINARY is filled up with zero bytes; Inexact if they are too long."""
    longest = new.max_characters if new.max_characters is not None else new.max_bytes
    if longest is not None and len(data) > longest:
        raise Inexact(f"too long for {new}")
    # MySQL fills BINARY(n) with zero bytes, and shows them (manual, "The BINARY and VARBINARY Types").
    return data.ljust(new.max_characters or 0, b"\0") if new.base == "binary" else data


def labels(text: str, new: ColumnType) -> str:
    """Store the label of an ENUM, or the labels of a SET in the order of their definition."""
    if new.family is TypeFamily.ENUM:
        if text and text not in new.labels:
            raise Inexact(f"the label is not one of {new}")
        return text
    wanted = set(text.split(",")) if text else set()
    if not wanted <= set(new.labels):
        raise Inexact(f"a label is not one of {new}")
    return ",".join(label for label in new.labels if label in wanted)


def date(text: str) -> str:
    """Store a DATE; Inexact if a time of day would be cut off."""
    found = _DATETIME.fullmatch(text)
    if found is None or (found[2] not in (None, "00:00:00")) or int(found[3] or 0):
        raise Inexact("not a plain date")
    return found[1]


def date_and_time(text: str, new: ColumnType) -> str:
    """Store a DATETIME or TIMESTAMP with the fraction of its type."""
    found = _DATETIME.fullmatch(text)
    if found is None:
        raise Inexact("not a plain date and time")
    return f"{found[1]} {found[2] or '00:00:00'}" + _fraction(found[3] or "", new.scale)


def time_of_day(text: str, new: ColumnType) -> str:
    """Store a TIME with the fraction of its type."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Inexact("not a plain time")
    return found[1] + _fraction(found[2] or "", new.scale)


def _fraction(digits: str, scale: int) -> str:
    """Lengthen or shorten a fraction; what is cut off must be zeros, because rounding may carry into the date."""
    if int(digits[scale:] or 0):
        raise Inexact("fractional digits would be rounded")
    return "." + digits[:scale].ljust(scale, "0") if scale else ""


def parse_integer(text: str) -> int:
    """Read plain digits; Inexact for what MySQL would cut or round."""
    if _INTEGER.fullmatch(text.strip(" ")) is None:
        raise Inexact("not a plain integer")
    return int(text)


def parse_decimal(text: str) -> Decimal:
    """Read a plain number without exponent."""
    if _DECIMAL.fullmatch(text.strip(" ")) is None:
        raise Inexact("not a plain number")
    return Decimal(text.strip(" "))


def parse_year(text: str) -> int:
    """Read a year of four digits."""
    if not (len(text) == 4 and text.isdecimal()):
        raise Inexact("not a year of four digits")
    return int(text)


def as_text(value: Stored) -> str:
    """Return text as it is; Inexact for anything else."""
    if not isinstance(value, str):
        raise Inexact("the stored value is not text")
    return value


def as_bytes(value: Stored) -> bytes:
    """Return bytes as they are; Inexact for anything else."""
    if not isinstance(value, bytes):
        raise Inexact("the stored value is not bytes")
    return value


def as_number(value: Stored) -> float:
    """Return a number as it is; Inexact for anything else."""
    if not isinstance(value, int | float):
        raise Inexact("the stored value is not a number")
    return value


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS: Final = "%Y-%m-%d %H:%M:%S"
_ZERO: Final = "0000"
_LAST: Final = 2**31
"""TIMESTAMP ends before this second (manual, "The DATE, DATETIME, and TIMESTAMP Types")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlTime:
    """``zone`` is that of times on the wire, ``session_zone`` that of upstream's session ('': not needed by this DDL).

    ``keeps_fraction``: TiDB drops the fraction of CURRENT_TIMESTAMP for existing rows, MySQL and MariaDB keep it.
    """

    moment: datetime
    zone: str
    session_zone: str = ""
    keeps_fraction: bool = False

    @classmethod
    def of(cls, ddl: DdlEvent, zone: str) -> "DdlTime":
        """Read what a DDL says about its time."""
        session = dict(ddl.session)
        if exact := str(session.get("timestamp", "")):
            seconds, _, fraction = exact.partition(".")
            moment = _EPOCH + timedelta(seconds=int(seconds), microseconds=int(fraction.ljust(6, "0") or 0))
        else:
            moment = _EPOCH + timedelta(milliseconds=ddl.time_ms or 0)
        return cls(moment=moment, zone=zone, session_zone=str(session.get("time_zone", "")), keeps_fraction=ddl.is_of_log)

    def now(self, scale: int, *, is_timestamp: bool) -> str:
        """Return CURRENT_TIMESTAMP of so many digits, as the wire writes it: of a DATETIME the time that upstream's session saw."""
        moment = self.moment.astimezone(_zone(self.zone if is_timestamp else self.session_zone or self.zone))
        fraction = f"{moment.microsecond if self.keeps_fraction else 0:06d}"[:scale]
        return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{fraction}" if scale else "")

    def in_wire_zone(self, text: str) -> str:
        """Return a time of the session's zone as the wire writes a TIMESTAMP. Inexact: it is no time there, two times, or out of range."""
        if not self.session_zone or text.startswith(_ZERO):
            return text
        moment, fraction = _moment(text, _zone(self.session_zone))
        if not 0 < moment.timestamp() < _LAST:
            raise Inexact("out of range for timestamp")
        return f"{moment.astimezone(_zone(self.zone)):{_SECONDS}}{fraction}"

    def in_session_zone(self, text: str) -> str:
        """Return a TIMESTAMP of the wire as upstream's session sees it. Inexact: an hour of the wire's zone that comes twice."""
        if not self.session_zone or text.startswith(_ZERO):
            return text
        moment, fraction = _moment(text, _zone(self.zone))
        return f"{moment.astimezone(_zone(self.session_zone)):{_SECONDS}}{fraction}"


def _moment(text: str, zone: tzinfo) -> tuple[datetime, str]:
    """Return the point in time of a text without its fraction, and the fraction."""
    whole, dot, fraction = text.partition(".")
    try:
        local = datetime.strptime(whole, _SECONDS).replace(tzinfo=zone)
    except ValueError:
        raise Inexact("no date of the calendar") from None
    # Where the clock is moved, a time comes twice, or never: then the two readings differ.
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        raise Inexact("the time comes twice, or never, in its zone")
    return local.astimezone(UTC), dot + fraction


def _zone(name: str) -> tzinfo:
    """Return the zone of an offset (+05:30) or a name. NeedsOperator."""
    if name[:1] in {"+", "-"}:
        hours, _, minutes = name[1:].partition(":")
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-offset if name[0] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = "the time zone of the DDL's session is not known here"
        raise NeedsOperator(message, remedy=BY_HAND, time_zone=name) from error


Conversion: TypeAlias = Callable[[Stored], Stored]

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_CALENDAR: Final = (TypeFamily.DATE, TypeFamily.DATETIME, TypeFamily.TIMESTAMP)
_NUMBERS: Final = (TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.YEAR)


def conversion(old: ColumnType, new: ColumnType) -> Conversion:
    """Return the function that converts a stored value; it raises Inexact. ``same`` if nothing changes."""
    if old == new or _keeps_every_value(old, new):
        return same
    rule = conversion_rule(old, new)
    if rule.certainty is not Certainty.EXACT and rule.plain is None:
        return _refuse(old, new)
    found = _same_family(old, new) if old.family is new.family else _to_other(old, new)
    return found or _refuse(old, new)


def conversion_of_rows(old: ColumnType, new: ColumnType, ddl_time: DdlTime) -> Conversion:
    """As ``conversion``, for values that a table holds. A literal has passed upstream's sql_mode already; text of rows has not.

    A TIMESTAMP is converted to and from other types in the zone of upstream's session.
    """
    if old.family is not new.family and ddl_time.session_zone:
        if old.family is TypeFamily.TIMESTAMP:
            seen = _of_rows(replace(old, base="datetime"), new)
            return lambda value: seen(ddl_time.in_session_zone(as_text(value)))
        if new.family is TypeFamily.TIMESTAMP:
            made = _of_rows(old, replace(new, base="datetime"))
            return lambda value: ddl_time.in_wire_zone(as_text(made(value)))
    return _of_rows(old, new)


def _of_rows(old: ColumnType, new: ColumnType) -> Conversion:
    convert = conversion(old, new)
    if old.family is TypeFamily.CHARACTER and new.family in _CALENDAR:
        return lambda value: convert(_of_calendar(as_text(value)))
    return convert


def _of_calendar(text: str) -> str:
    """Return the text; Inexact for zeros and 31 February: the sql_mode of upstream's session decides what they become."""
    try:
        Date.fromisoformat(text[:10])
    except ValueError:
        raise Inexact("no date of the calendar") from None
    return text


def _keeps_every_value(old: ColumnType, new: ColumnType) -> bool:
    """Return whether every stored value of ``old`` is one of ``new`` as it is: then no value has to be checked."""
    if old.family is not new.family or old.charset != new.charset:
        return False
    match new.family:
        case TypeFamily.INTEGER | TypeFamily.BIT:
            return new.lowest <= old.lowest and old.highest <= new.highest
        case TypeFamily.CHARACTER | TypeFamily.BINARY:
            return new.base not in ("char", "binary") and capacity(old) <= capacity(new)
        # MySQL converts an ENUM by label, so their order does not matter. A SET's value lists its labels in the order of the definition.
        case TypeFamily.ENUM:
            return set(old.labels) <= set(new.labels)
        case TypeFamily.SET:
            return new.labels[: len(old.labels)] == old.labels
        case _:
            return False


def same(value: Stored) -> Stored:
    """Keep the value."""
    return value


def _refuse(old: ColumnType, new: ColumnType) -> Conversion:
    def refuse(_value: Stored) -> Stored:
        raise Inexact(f"there is no exact conversion from {old} to {new}")

    return refuse


def _same_family(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family in (TypeFamily.DATE, TypeFamily.VECTOR, TypeFamily.JSON):
        return same
    within: dict[TypeFamily, Conversion] = {
        TypeFamily.INTEGER: lambda value: store_integer(integer(value), new),
        TypeFamily.BIT: lambda value: store_integer(integer(value), new),
        TypeFamily.YEAR: same,
        TypeFamily.FLOAT: lambda value: floating(as_number(value), new),
        TypeFamily.DOUBLE: lambda value: floating(as_number(value), new),
        TypeFamily.DECIMAL: lambda value: decimal_text(Decimal(as_text(value)), new),
        TypeFamily.BINARY: lambda value: binary(as_bytes(value), new),
        TypeFamily.DATETIME: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIMESTAMP: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIME: lambda value: time_of_day(as_text(value), new),
        TypeFamily.ENUM: lambda value: labels(as_text(value), new),
        TypeFamily.SET: lambda value: labels(as_text(value), new),
        TypeFamily.CHARACTER: lambda value: character(as_text(value), new),
    }
    return within[old.family]


def _to_other(old: ColumnType, new: ColumnType) -> Conversion | None:
    sources: dict[TypeFamily, Callable[[ColumnType, ColumnType], Conversion | None]] = {
        **dict.fromkeys((TypeFamily.INTEGER, TypeFamily.BIT, TypeFamily.YEAR), _from_integer),
        **dict.fromkeys((TypeFamily.FLOAT, TypeFamily.DOUBLE), _from_float),
        **dict.fromkeys((TypeFamily.ENUM, TypeFamily.SET), _from_labels),
        TypeFamily.DECIMAL: _from_decimal,
        TypeFamily.CHARACTER: _from_text,
        TypeFamily.BINARY: _from_binary,
    }
    return sources.get(old.family, _from_temporal)(old, new)


def _from_integer(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family in _NUMBERS and TypeFamily.YEAR not in (old.family, new.family):
        return lambda value: store_integer(integer(value), new)
    if new.family is TypeFamily.DECIMAL and old.family is not TypeFamily.YEAR:
        return lambda value: decimal_text(Decimal(integer(value)), new)
    if new.family in (TypeFamily.FLOAT, TypeFamily.DOUBLE):
        return lambda value: floating(float(integer(value)), new)
    # ZEROFILL pads the text with zeros, and BIT gives bytes: neither is the number's text.
    if new.family is TypeFamily.CHARACTER and old.family is not TypeFamily.BIT and not old.zerofill:
        return lambda value: character(str(integer(value)), new)
    return None


def _from_decimal(_old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is TypeFamily.INTEGER:
        return lambda value: store_integer(int(rounded_decimal(Decimal(as_text(value)), 0)), new)
    if new.family in (TypeFamily.FLOAT, TypeFamily.DOUBLE):
        return lambda value: floating(float(as_text(value)), new)
    if new.family is TypeFamily.CHARACTER:
        return lambda value: character(as_text(value), new)
    return None


def _from_float(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is TypeFamily.FLOAT:
        return lambda value: floating(as_number(value), new)
    if new.family is TypeFamily.DOUBLE and old.family is TypeFamily.FLOAT:
        # The wire carries the shortest text of the 32-bit value; as DOUBLE that very 32-bit value shows all its digits.
        return lambda value: single_precision(as_number(value))
    return None


def _from_text(old: ColumnType, new: ColumnType) -> Conversion | None:
    family = new.family
    if family is TypeFamily.BINARY and old.charset in UTF8_CHARSETS:
        return lambda value: binary(as_text(value).encode("utf-8", "surrogateescape"), new)
    simple: dict[TypeFamily, Conversion] = {
        TypeFamily.INTEGER: lambda value: store_integer(parse_integer(as_text(value)), new),
        TypeFamily.DECIMAL: lambda value: decimal_text(parse_decimal(as_text(value)), new),
        TypeFamily.FLOAT: lambda value: floating(float(parse_decimal(as_text(value))), new),
        TypeFamily.DOUBLE: lambda value: float(parse_decimal(as_text(value))),
        TypeFamily.YEAR: lambda value: store_integer(parse_year(as_text(value)), new),
        TypeFamily.DATE: lambda value: date(as_text(value)),
        TypeFamily.DATETIME: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIMESTAMP: lambda value: date_and_time(as_text(value), new),
        TypeFamily.TIME: lambda value: time_of_day(as_text(value), new),
        TypeFamily.ENUM: lambda value: labels(as_text(value), new),
        TypeFamily.SET: lambda value: labels(as_text(value), new),
    }
    return simple.get(family)


def _from_binary(_old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is not TypeFamily.CHARACTER or new.charset not in UTF8_CHARSETS:
        return None

    def convert(value: Stored) -> Stored:
        try:
            return character(as_bytes(value).decode(), new)
        except UnicodeDecodeError as error:
            raise Inexact("the bytes are not UTF-8") from error

    return convert


def _from_labels(old: ColumnType, new: ColumnType) -> Conversion | None:
    if new.family is TypeFamily.CHARACTER:
        return lambda value: character(as_text(value), new)
    if new.family is TypeFamily.INTEGER and old.family is TypeFamily.ENUM:
        return lambda value: store_integer(old.labels.index(as_text(value)) + 1 if value else 0, new)
    if new.family is TypeFamily.INTEGER:
        return lambda value: store_integer(sum(1 << old.labels.index(label) for label in as_text(value).split(",") if label), new)
    return None


def _from_temporal(_old: ColumnType, new: ColumnType) -> Conversion | None:
    """From dates, times, JSON, VECTOR. DATETIME and TIMESTAMP do not convert into one another: that takes the zone of the DDL's session."""
    if new.family is TypeFamily.CHARACTER:
        return lambda value: character(as_text(value), new)
    if new.family is TypeFamily.DATETIME:
        return lambda value: date_and_time(_plain_date(as_text(value)), new)
    if new.family is TypeFamily.DATE:
        return lambda value: date(as_text(value))
    return None


def _plain_date(text: str) -> str:
    if _DATE.fullmatch(text) is None:
        raise Inexact("its time zone or its date is unknown")
    return text


ValueRead: TypeAlias = Callable[[LiteralKind, bytes], Stored]
"""ValueError (``Inexact`` too): the value is not one of the column's type."""

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
