"""Column types of MySQL: their families, ranges and lengths, as its catalogue spells them."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from applier.ddl.tokens import quote_text


class TypeFamily(StrEnum):
    """Types whose values look alike on the wire."""

    INTEGER = "integer"
    BIT = "bit"
    YEAR = "year"
    DECIMAL = "decimal"
    FLOAT = "float"
    DOUBLE = "double"
    CHARACTER = "character"
    BINARY = "binary"
    DATE = "date"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    TIME = "time"
    ENUM = "enum"
    SET = "set"
    JSON = "json"
    VECTOR = "vector"


_FAMILIES: Final = {
    "tinyint": TypeFamily.INTEGER,
    "smallint": TypeFamily.INTEGER,
    "mediumint": TypeFamily.INTEGER,
    "int": TypeFamily.INTEGER,
    "bigint": TypeFamily.INTEGER,
    "bit": TypeFamily.BIT,
    "year": TypeFamily.YEAR,
    "decimal": TypeFamily.DECIMAL,
    "float": TypeFamily.FLOAT,
    "double": TypeFamily.DOUBLE,
    "char": TypeFamily.CHARACTER,
    "varchar": TypeFamily.CHARACTER,
    "tinytext": TypeFamily.CHARACTER,
    "text": TypeFamily.CHARACTER,
    "mediumtext": TypeFamily.CHARACTER,
    "longtext": TypeFamily.CHARACTER,
    "binary": TypeFamily.BINARY,
    "varbinary": TypeFamily.BINARY,
    "tinyblob": TypeFamily.BINARY,
    "blob": TypeFamily.BINARY,
    "mediumblob": TypeFamily.BINARY,
    "longblob": TypeFamily.BINARY,
    "date": TypeFamily.DATE,
    "datetime": TypeFamily.DATETIME,
    "timestamp": TypeFamily.TIMESTAMP,
    "time": TypeFamily.TIME,
    "enum": TypeFamily.ENUM,
    "set": TypeFamily.SET,
    "json": TypeFamily.JSON,
    "vector": TypeFamily.VECTOR,
}
_INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
# Bytes, not characters (manual, "String Type Storage Requirements").
_TEXT_BYTES: Final = {"tinytext": 255, "text": 65_535, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOB_BYTES: Final = {"tinyblob": 255, "blob": 65_535, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_TO_BINARY: Final = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
UTF8_CHARSETS: Final = frozenset({"", "utf8", "utf8mb3", "utf8mb4", "ascii"})


def is_known_base(base: str) -> bool:
    """Return whether ``base`` is the catalogue's name of a type."""
    return base in _FAMILIES


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """A type as MySQL's catalogue spells it. ``charset`` is '' unless it was declared and is not a kind of UTF-8."""

    base: str
    arguments: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    unsigned: bool = False
    zerofill: bool = False
    charset: str = ""

    @property
    def family(self) -> TypeFamily:
        """The family of the type."""
        return _FAMILIES[self.base]

    @property
    def lowest(self) -> int:
        """The smallest value of an integer type."""
        return 0 if self.unsigned or self.family is not TypeFamily.INTEGER else -(1 << (_INTEGER_BITS[self.base] - 1))

    @property
    def highest(self) -> int:
        """The greatest value of INTEGER, BIT and YEAR types."""
        match self.family:
            case TypeFamily.BIT:
                return (1 << (self.arguments[0] if self.arguments else 1)) - 1
            case TypeFamily.YEAR:
                # 1901 to 2155, and 0000 (manual, "The YEAR Type").
                return 2155
            case _:
                bits = _INTEGER_BITS[self.base]
                return (1 << (bits if self.unsigned else bits - 1)) - 1

    @property
    def scale(self) -> int:
        """Digits after the decimal point of DECIMAL; fractional digits of times."""
        if self.family is TypeFamily.DECIMAL:
            return self.arguments[1] if len(self.arguments) > 1 else 0
        return self.arguments[0] if self.arguments else 0

    @property
    def precision(self) -> int:
        """Digits of DECIMAL."""
        return self.arguments[0] if self.arguments else 10

    @property
    def max_characters(self) -> int | None:
        """The declared length of CHAR, VARCHAR, BINARY and VARBINARY; None for the TEXT and BLOB types."""
        if self.base in ("char", "varchar", "binary", "varbinary"):
            return self.arguments[0] if self.arguments else 1
        return None

    @property
    def max_bytes(self) -> int | None:
        """The size of TEXT and BLOB types in bytes."""
        return _TEXT_BYTES.get(self.base) or _BLOB_BYTES.get(self.base)

    def as_binary(self) -> "ColumnType":
        """Return the type that a character type becomes with ``CHARACTER SET binary``."""
        return replace(self, base=_TO_BINARY.get(self.base, self.base), charset="")

    def __str__(self) -> str:
        """Spell the type as MySQL's catalogue does, with lower-case words."""
        text = self.base
        if self.labels:
            text += "(" + ",".join(map(quote_text, self.labels)) + ")"
        elif self.arguments:
            text += "(" + ",".join(map(str, self.arguments)) + ")"
        text += (" unsigned" if self.unsigned else "") + (" zerofill" if self.zerofill else "")
        return text + (f" character set {self.charset}" if self.charset else "")
