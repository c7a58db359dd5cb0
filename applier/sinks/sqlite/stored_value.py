"""How SQLite stores MySQL's column types, and what a value becomes when a column of another type stores it.

Tables are STRICT, so SQLite refuses what does not fit instead of converting it. Affinity decides what stays exact: INTEGER holds signed
64 bits; BIGINT UNSIGNED and BIT(64) are ANY, which converts nothing, and their values above 2^63-1 are decimal text (as a number SQLite
would make them floating point); DECIMAL, dates and times are TEXT; FLOAT and DOUBLE are REAL; ENUM and SET are the TEXT of their labels.

Each conversion raises ``Inexact`` where the result is not certain.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.parser import BY_HAND
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.mysql.float32 import shortest, single_precision

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
        """Return a time of the session's zone as the wire writes a TIMESTAMP. Inexact: it is no time there, two times, or no TIMESTAMP."""
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
