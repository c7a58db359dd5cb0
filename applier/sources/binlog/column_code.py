"""How a column's values are written in a row image: a type, its metadata, its sign and its character set.

``ColumnCode`` is what ``Shape.encoding`` keeps of a column. Source: MySQL's ``binary log event`` headers and ``field.cc`` (pack).
"""

from enum import IntEnum
from typing import Final, NamedTuple

from applier.model.events import Flag


class TypeCode(IntEnum):
    """Types that are more than a number of bytes."""

    YEAR = 13
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    DECIMAL = 246
    ENUM = 247
    SET = 248
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


BLOBS: Final = frozenset({249, 250, 251, 252})
_BLOB_BY_PREFIX: Final = {1: 249, 2: 252, 3: 250, 4: 251}
_AS_IN_EVENTS: Final[dict[int, int]] = {
    TypeCode.TIMESTAMP2: 7,
    TypeCode.DATETIME2: 12,
    TypeCode.TIME2: 11,
    TypeCode.VARCHAR_COMPRESSED: 15,
    TypeCode.VECTOR: 225,
}
_STRING_LENGTH: Final = 0x30


class ColumnCode(NamedTuple):
    """How values are written. ``meta``: the type's metadata as one number, the first byte lowest. ``charset``: "" where there is none."""

    type: int
    meta: int
    is_unsigned: bool
    charset: str

    @property
    def mysql_type(self) -> int:
        """The type as ``ColumnShape`` has it."""
        if self.type in BLOBS or self.type == TypeCode.BLOB_COMPRESSED:
            return _BLOB_BY_PREFIX.get(self.meta, 252)
        return _AS_IN_EVENTS.get(self.type, self.type)

    @property
    def flags(self) -> int:
        """The flags that the type itself gives a column."""
        is_bytes = self.charset == "binary" or self.type == TypeCode.GEOMETRY
        return (Flag.BINARY if is_bytes else 0) | (Flag.UNSIGNED if self.is_unsigned else 0)

    @property
    def string_bytes(self) -> int:
        """The length of a CHAR or BINARY in bytes; two bits of it are in the byte of the type."""
        return (self.meta & _STRING_LENGTH ^ _STRING_LENGTH) << 4 | self.meta >> 8


def real_type(kind: int, meta: int) -> int:
    """Return the type of a column: ENUM and SET are written as STRING, with their own type in the metadata."""
    return meta & 0xFF if kind == TypeCode.STRING and meta & 0xFF in {TypeCode.ENUM, TypeCode.SET} else kind
