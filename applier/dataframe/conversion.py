"""From values of the decoder to values of Spark's types. A value that does not fit is an error, never a NULL.

The type of a column is that of Spark's JDBC source for MySQL, where the Open Protocol shows it: the wire has the kind of a type and
whether it is unsigned or binary, and no lengths. The scale of a DECIMAL is that of its values.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal, Inexact, InvalidOperation
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from applier.model.errors import ConfigError, Remedy
from applier.model.events import ColumnShape, Value

DECIMAL: Final = 246
DECIMAL_DIGITS: Final = 38
"""Spark's limit; MySQL has 65."""
UNSEEN_SCALE: Final = 18
"""Of a DECIMAL that has no value yet."""

_SIGNED: Final[Mapping[int, str]] = MappingProxyType({1: "TINYINT", 2: "SMALLINT", 9: "INT", 3: "INT", 8: "BIGINT"})
_UNSIGNED: Final[Mapping[int, str]] = MappingProxyType({1: "SMALLINT", 2: "INT", 9: "INT", 3: "BIGINT", 8: "DECIMAL(20,0)"})
_OTHERS: Final[Mapping[int, str]] = MappingProxyType(
    {
        4: "FLOAT",
        5: "DOUBLE",
        7: "TIMESTAMP",
        10: "DATE",
        12: "TIMESTAMP_NTZ",
        13: "INT",  # YEAR
        14: "DATE",
        16: "DECIMAL(20,0)",  # BIT: up to 64 of them
        247: "INT",  # ENUM: the ordinal
        248: "DECIMAL(20,0)",  # SET: the bit mask
    }
)


class Digits(NamedTuple):
    """The most digits before and after the point among the values of a DECIMAL."""

    whole: int = 0
    scale: int = -1

    def with_value(self, text: str) -> "Digits":
        """Return the digits that hold this value too."""
        whole, _, fraction = text.lstrip("-").partition(".")
        return Digits(max(self.whole, len(whole.lstrip("0"))), max(self.scale, len(fraction)))


def spark_type(column: ColumnShape, digits: Digits | None = None) -> str:
    """Return the type in Spark's DDL. ``digits``: of the values of a DECIMAL."""
    kind = column.mysql_type
    if kind == DECIMAL:
        return _decimal_type(digits or Digits())
    integers = _UNSIGNED if column.is_unsigned else _SIGNED
    if kind in integers:
        return integers[kind]
    if kind in _OTHERS:
        return _OTHERS[kind]
    return "BINARY" if column.is_bytes else "STRING"


def wider(one: str, other: str) -> str:
    """Return the type of a column that had both: the wider integer; BINARY, which holds texts too; or STRING."""
    if one == other:
        return one
    ranks = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)")
    if one in ranks and other in ranks:
        return max(one, other, key=ranks.index)
    return {frozenset({"FLOAT", "DOUBLE"}): "DOUBLE", frozenset({"STRING", "BINARY"}): "BINARY"}.get(frozenset({one, other}), "STRING")


def _decimal_type(digits: Digits) -> str:
    scale = UNSEEN_SCALE if digits.scale < 0 else digits.scale
    return f"DECIMAL({DECIMAL_DIGITS},{scale})" if digits.whole + scale <= DECIMAL_DIGITS else "STRING"


Conversion: TypeAlias = Callable[[Value], Any]

_BITS: Final[dict[type[DataType], int]] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


def conversion_to(data_type: DataType, zone: str) -> Conversion:
    """Return the function for a type; it raises ValueError for a value that the type cannot hold. ConfigError: no such conversion.

    ``zone``: of the TIMESTAMP text on the wire.
    """
    kind = type(data_type)
    if kind in _BITS:
        return _to_integer(_BITS[kind])
    if isinstance(data_type, DecimalType):
        return _to_decimal(data_type.precision, data_type.scale)
    if isinstance(data_type, TimestampType):
        info = zone_of(zone)
        return lambda value: datetime.fromisoformat(_text(value)).replace(tzinfo=info).astimezone(UTC)
    found = _PLAIN.get(kind)
    if found is None:
        raise ConfigError(
            "a column cannot have this type",
            remedy=Remedy("dataframe.choose-column-type", f"Choose one of {NAMES}"),
            type=data_type.simpleString(),
        )
    return found


def zone_of(name: str) -> tzinfo:
    """Return the zone of a name as the configuration has it: UTC, an offset such as +08:00, or a name of the zone database."""
    if name == "UTC":
        return UTC
    if name[0] in "+-":
        hours, _, minutes = name[1:].partition(":")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-offset if name[0] == "-" else offset)
    return ZoneInfo(name)


def _to_integer(bits: int) -> Conversion:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert(value: Value) -> int:
        # Text: a DECIMAL without digits behind the point.
        number = int(value) if isinstance(value, int | str) else None
        if number is None or not low <= number <= high:
            raise ValueError("out of range")
        return number

    return convert


def _to_decimal(precision: int, scale: int) -> Conversion:
    unit = Decimal(1).scaleb(-scale)
    # Not rounded: an audit shows what was there.
    exact = Context(prec=precision, traps=[InvalidOperation, Inexact])

    def convert(value: Value) -> Decimal:
        if isinstance(value, bytes):
            raise ValueError("not a number")  # noqa: TRY004 - one class for each value that does not fit
        try:
            return Decimal(str(value)).quantize(unit, context=exact)
        except (InvalidOperation, Inexact):
            raise ValueError("not a number, or too many digits") from None

    return convert


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("not a text")


def clean_text(text: str) -> str:
    """Return valid Unicode: bytes of upstream that are not UTF-8 (lone surrogates here) become U+FFFD."""
    return text if text.isascii() or not _has_surrogates(text) else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _to_string(value: Value) -> str:
    if isinstance(value, bytes):
        raise ValueError("bytes that are no text")  # noqa: TRY004 - one class for each value that does not fit
    return clean_text(value) if isinstance(value, str) else str(value)


def _to_bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else _text(value).encode("utf-8", "surrogateescape")


def _to_float(value: Value) -> float:
    if isinstance(value, bytes) or value is None:
        raise ValueError("not a number")
    return float(value)


def _to_boolean(value: Value) -> bool:
    if value not in {0, 1}:
        raise ValueError("neither 0 nor 1")
    return bool(value)


_PLAIN: Final[dict[type[DataType], Conversion]] = {
    StringType: _to_string,
    BinaryType: _to_bytes,
    FloatType: _to_float,
    DoubleType: _to_float,
    BooleanType: _to_boolean,
    DateType: lambda value: date.fromisoformat(_text(value)),
    TimestampNTZType: lambda value: datetime.fromisoformat(_text(value)),
}


NAMES: Final = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ"
