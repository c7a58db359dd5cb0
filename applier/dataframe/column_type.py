"""The Spark type of an upstream column: that of Spark's JDBC source for MySQL, as far as the Open Protocol shows the type.

The wire has the kind of a type and whether it is unsigned or binary, and no lengths: the scale of a DECIMAL is that of its values.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from applier.model.events import ColumnShape, Flag

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
    integers = _UNSIGNED if column.flags & Flag.UNSIGNED else _SIGNED
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
