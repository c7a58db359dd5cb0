"""Column types of the simulated upstream: what TiDB would call them, and how they appear on the wire.

Written for the simulator alone: it must not learn anything from ``applier.sources.open_protocol`` or from a sink, since it checks them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from applier.demo.simulator.session_zone import in_session
from applier.model.events import Value
from applier.sources.column_flags import Flag


class TypeClass(StrEnum):
    """What kind of values a type holds: decides encoding, literals and comparison."""

    INTEGER = "integer"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    TEXT = "text"
    BLOB = "blob"
    DATE = "date"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    TIME = "time"
    YEAR = "year"
    BIT = "bit"
    ENUM = "enum"
    SET = "set"
    JSON = "json"


# Classes whose column charset is not "binary": everything else carries flag bit 0 (open_protocol.md 2.5).
CHARACTER_CLASSES = frozenset({TypeClass.STRING, TypeClass.TEXT, TypeClass.ENUM, TypeClass.SET})
NUMBER_CLASSES = frozenset(
    {TypeClass.INTEGER, TypeClass.FLOAT, TypeClass.DOUBLE, TypeClass.YEAR, TypeClass.BIT, TypeClass.ENUM, TypeClass.SET}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamType:
    """A type as DDL spells it. ``size``: bits (integers, BIT), characters, precision (DECIMAL) or fractional digits (times)."""

    sql: str
    code: int
    kind: TypeClass
    size: int = 0
    scale: int = 0
    unsigned: bool = False
    labels: tuple[str, ...] = ()
    collation: str = "utf8mb4_bin"

    @property
    def flags(self) -> int:
        """The bits of ``f`` that follow from the type alone."""
        bits = 0 if self.kind in CHARACTER_CLASSES else int(Flag.BINARY)
        # YEAR and BIT carry the unsigned bit in TiDB's catalogue.
        if self.unsigned or self.kind in (TypeClass.YEAR, TypeClass.BIT):
            bits |= Flag.UNSIGNED
        return bits


_INTEGERS = {"TINYINT": (1, 8), "SMALLINT": (2, 16), "MEDIUMINT": (9, 24), "INT": (3, 32), "BIGINT": (8, 64)}
_TEXT_CODES = {"TINY": 249, "": 252, "MEDIUM": 250, "LONG": 251}


def integer(name: str = "INT", *, unsigned: bool = False) -> UpstreamType:
    """TINYINT, SMALLINT, MEDIUMINT, INT or BIGINT."""
    code, bits = _INTEGERS[name]
    return UpstreamType(sql=name + (" UNSIGNED" if unsigned else ""), code=code, kind=TypeClass.INTEGER, size=bits, unsigned=unsigned)


def real(name: str = "DOUBLE") -> UpstreamType:
    """FLOAT or DOUBLE."""
    kind = TypeClass.FLOAT if name == "FLOAT" else TypeClass.DOUBLE
    return UpstreamType(sql=name, code=4 if kind is TypeClass.FLOAT else 5, kind=kind)


def decimal(precision: int, scale: int) -> UpstreamType:
    """DECIMAL(precision, scale)."""
    return UpstreamType(sql=f"DECIMAL({precision},{scale})", code=246, kind=TypeClass.DECIMAL, size=precision, scale=scale)


def varchar(size: int, collation: str = "utf8mb4_bin") -> UpstreamType:
    """VARCHAR(size), by default under TiDB's default collation."""
    suffix = "" if collation == "utf8mb4_bin" else f" CHARACTER SET UTF8MB4 COLLATE {collation}"
    return UpstreamType(sql=f"VARCHAR({size}){suffix}", code=15, kind=TypeClass.STRING, size=size, collation=collation)


def char(size: int) -> UpstreamType:
    """CHAR(size)."""
    return UpstreamType(sql=f"CHAR({size})", code=254, kind=TypeClass.STRING, size=size)


def binary(size: int) -> UpstreamType:
    """BINARY(size): values are padded with zero bytes."""
    return UpstreamType(sql=f"BINARY({size})", code=254, kind=TypeClass.BINARY, size=size)


def varbinary(size: int) -> UpstreamType:
    """VARBINARY(size)."""
    return UpstreamType(sql=f"VARBINARY({size})", code=15, kind=TypeClass.BINARY, size=size)


def text(prefix: str = "") -> UpstreamType:
    """TEXT, or TINYTEXT, MEDIUMTEXT, LONGTEXT by prefix."""
    return UpstreamType(sql=f"{prefix}TEXT", code=_TEXT_CODES[prefix], kind=TypeClass.TEXT, size=255)


def blob(prefix: str = "") -> UpstreamType:
    """BLOB, or TINYBLOB, MEDIUMBLOB, LONGBLOB by prefix."""
    return UpstreamType(sql=f"{prefix}BLOB", code=_TEXT_CODES[prefix], kind=TypeClass.BLOB, size=255)


def bit(size: int) -> UpstreamType:
    """BIT(size)."""
    return UpstreamType(sql=f"BIT({size})", code=16, kind=TypeClass.BIT, size=size, unsigned=True)


def enum(*labels: str) -> UpstreamType:
    """ENUM over ``labels``; values are ordinals from 1."""
    return UpstreamType(sql=f"ENUM({_label_list(labels)})", code=247, kind=TypeClass.ENUM, labels=labels)


def set_of(*labels: str) -> UpstreamType:
    """SET over ``labels``; values are bit masks."""
    return UpstreamType(sql=f"SET({_label_list(labels)})", code=248, kind=TypeClass.SET, labels=labels)


def _label_list(labels: tuple[str, ...]) -> str:
    return ",".join("'" + label.replace("\\", "\\\\").replace("'", "''") + "'" for label in labels)


def date() -> UpstreamType:
    """DATE."""
    return UpstreamType(sql="DATE", code=10, kind=TypeClass.DATE)


def datetime(fsp: int = 0) -> UpstreamType:
    """DATETIME(fsp)."""
    return UpstreamType(sql=_with_fsp("DATETIME", fsp), code=12, kind=TypeClass.DATETIME, size=fsp)


def timestamp(fsp: int = 0) -> UpstreamType:
    """TIMESTAMP(fsp); text on the wire is UTC."""
    return UpstreamType(sql=_with_fsp("TIMESTAMP", fsp), code=7, kind=TypeClass.TIMESTAMP, size=fsp)


def time(fsp: int = 0) -> UpstreamType:
    """TIME(fsp)."""
    return UpstreamType(sql=_with_fsp("TIME", fsp), code=11, kind=TypeClass.TIME, size=fsp)


def year() -> UpstreamType:
    """YEAR."""
    return UpstreamType(sql="YEAR", code=13, kind=TypeClass.YEAR)


def json() -> UpstreamType:
    """JSON."""
    return UpstreamType(sql="JSON", code=245, kind=TypeClass.JSON)


def _with_fsp(name: str, fsp: int) -> str:
    return f"{name}({fsp})" if fsp else name


class GeneratedRule(StrEnum):
    """What a generated column holds. Of one column: its ``source``."""

    SESSION_DAY = "session_day"
    """The day of a TIMESTAMP, in the zone of the session that wrote the row."""
    FLOAT_TEXT = "float_text"
    """A FLOAT as text. Servers write it with different digits."""
    LETTER = "letter"
    """Whether a number's hexadecimal text begins with a small letter: never under a binary collation."""
    SUCCESSOR = "successor"
    """A number and one: the same in every database."""


_EXPRESSIONS = {
    GeneratedRule.SESSION_DAY: "DATE({})",
    GeneratedRule.FLOAT_TEXT: "CONCAT({})",
    GeneratedRule.LETTER: "LEFT(HEX({}), 1) = _UTF8MB4'f'",
    GeneratedRule.SUCCESSOR: "{} + 1",
}
_VALUES: dict[GeneratedRule, Callable[[Value], Value]] = {
    GeneratedRule.SESSION_DAY: lambda value: in_session(str(value))[:10],
    GeneratedRule.FLOAT_TEXT: lambda value: f"{cast('float', value):.9g}",
    GeneratedRule.LETTER: lambda _: 0,
    GeneratedRule.SUCCESSOR: lambda value: cast("int", value) + 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How a column is generated: of the column ``source``; ``stored`` False: VIRTUAL, which the wire never has."""

    rule: GeneratedRule
    source: str
    stored: bool = True

    def expression(self, quoted_source: str) -> str:
        """Return the expression as DDL spells it."""
        return _EXPRESSIONS[self.rule].format(quoted_source)

    def value(self, source: Value) -> Value:
        """Return what upstream computes."""
        return None if source is None else _VALUES[self.rule](source)
