"""New columns and tables of the simulated upstream, with names that are used once, and random values of every column type.

Some values are hostile: they break naive decoders, renderers and columns.
"""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from applier.demo.simulator import column_type as of
from applier.demo.simulator.column_type import GeneratedRule, Generation, TypeClass, UpstreamType
from applier.demo.simulator.schema import (
    Table,
    UpstreamColumn,
    UpstreamIndex,
    column,
    column_with_default,
    generated,
    index,
    primary,
    unique,
)
from applier.model.events import TableName, Value

HOSTILE_TEXTS = (
    "",
    "'; DROP TABLE `t`; --",
    '"quoted" \\backslash\\ \\\' %s %(x)s ? :name',
    "line\nfeed\ttab\r\x00nul\x1a\x08\x0c\x7f",
    '<a href="x">&amp;</a> \u2028\u2029',
    "日本語 😀🏳️‍🌈 𝒳 ñ",  # noqa: RUF001 - a character beyond the basic plane is wanted
    "\\x41\\u0041\\101",
    "/*T! comment */ # -- ;",
    "NULL",
    "-0",
    "1e5",
    '{"u":1}',
    " leading",
    "ends with backslash\\",
)
HOSTILE_BYTES = (b"", b"\x89PNG\r\n\x1a\n", b"\x00\x00", b"\\x41\\", b"'\"`;", bytes(range(256)), "日本".encode(), b"\xff\xfe\xed\xa0\x80")
_ZERO_DAY = "0000-00-00"
_WORDS = ("alpha", "beta", "gamma", "delta", "kiwi", "lime", "Straße", "naïve", "Ωmega")
# The greatest, the least normal and the least number of each floating type. Not -0.0: SQLite stores it as 0.0.
EDGE_FLOATS = (3.4028234663852886e38, -3.4028234663852886e38, 1.1754943508222875e-38, 1.401298464324817e-45)
EDGE_DOUBLES = (1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308, 5e-324)
_NULL_SHARE = 0.12
_HOSTILE_SHARE = 0.3


def random_value(rng: random.Random, column: UpstreamColumn) -> Value:
    """Return a value that the column may hold, NULL now and then where it may."""
    if column.nullable and rng.random() < _NULL_SHARE:
        return None
    return _MAKERS[column.type.kind](rng, column.type)


def _integer(rng: random.Random, kind: UpstreamType) -> int:
    low, high = (0, (1 << kind.size) - 1) if kind.unsigned else (-(1 << kind.size - 1), (1 << kind.size - 1) - 1)
    return rng.choice((low, high)) if rng.random() < 0.1 else rng.randint(max(low, -100_000), min(high, 100_000))


def _float(rng: random.Random, _kind: UpstreamType) -> float:
    # Six digits survive a FLOAT column of any server; its text form decides the comparison. All digits of the edges matter.
    usual = rng.random() < 0.8
    value = float(f"{rng.uniform(-1000, 1000):.6g}") if usual else rng.choice((0.0, 1.5e10, -2.5e-9, 1e-07, 16777216.0, *EDGE_FLOATS))
    return float(cast("float", struct.unpack("<f", struct.pack("<f", value))[0]))


def _double(rng: random.Random, _kind: UpstreamType) -> float:
    return rng.uniform(-1e6, 1e6) if rng.random() < 0.8 else rng.choice((0.0, 1e300, -2.5e-300, 1e21, 1e-7, 0.1, *EDGE_DOUBLES))


def _decimal(rng: random.Random, kind: UpstreamType) -> str:
    digits = kind.size if rng.random() < 0.2 else rng.randint(1, min(kind.size, kind.scale + 6))
    number = rng.randrange(10**digits)
    text = str(number).rjust(kind.scale + 1, "0")
    whole, fraction = (text[: -kind.scale], text[-kind.scale :]) if kind.scale else (text, "")
    return ("-" if number and rng.random() < 0.3 else "") + whole + ("." + fraction if fraction else "")


def _string(rng: random.Random, kind: UpstreamType) -> str:
    if kind.collation.endswith("_ci"):  # accents and signs are equal to one another there; letters are not
        word = "".join(rng.choice("abcdefgh") for _ in range(rng.randint(1, 3)))
        return "".join(rng.choice((letter, letter.upper())) for letter in word)
    text = rng.choice(HOSTILE_TEXTS) if rng.random() < _HOSTILE_SHARE else f"{rng.choice(_WORDS)} {rng.randint(0, 9999)}"
    # CHAR columns lose trailing spaces; a fixed rule for all strings keeps values the same everywhere.
    return text[: kind.size].rstrip(" ")


def _binary(rng: random.Random, kind: UpstreamType) -> bytes:
    raw = rng.choice(HOSTILE_BYTES) if rng.random() < _HOSTILE_SHARE else rng.randbytes(rng.randint(0, min(kind.size, 24)))
    return raw[: kind.size].ljust(kind.size, b"\0") if kind.sql.startswith("BINARY") else raw[: kind.size]


def _text(rng: random.Random, _kind: UpstreamType) -> str:
    return rng.choice(HOSTILE_TEXTS) if rng.random() < _HOSTILE_SHARE else " ".join(rng.choice(_WORDS) for _ in range(rng.randint(0, 9)))


def _fraction(rng: random.Random, kind: UpstreamType) -> str:
    return f".{rng.randrange(10**kind.size):0{kind.size}d}" if kind.size else ""


def _clock(rng: random.Random, kind: UpstreamType) -> str:
    return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}{_fraction(rng, kind)}"


def _date(rng: random.Random, _kind: UpstreamType) -> str:
    if rng.random() < 0.08:
        return rng.choice((_ZERO_DAY, "1000-01-01", "9999-12-31"))
    return f"{rng.randint(1971, 2037)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def _datetime(rng: random.Random, kind: UpstreamType) -> str:
    day = _date(rng, kind)
    if day == _ZERO_DAY:
        return f"{day} 00:00:00" + ("." + "0" * kind.size if kind.size else "")
    return f"{day} {_clock(rng, kind)}"


def _timestamp(rng: random.Random, kind: UpstreamType) -> str:
    if rng.random() < 0.08:
        edge = rng.choice(("0000-00-00 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07"))
        return edge + ("." + "0" * kind.size if kind.size else "")
    return f"{rng.randint(1971, 2037)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d} {_clock(rng, kind)}"


def _time(rng: random.Random, kind: UpstreamType) -> str:
    if rng.random() < 0.05:
        return rng.choice(("-", "")) + "838:59:59" + ("." + "0" * kind.size if kind.size else "")
    hours = rng.choice((0, 8, 23, 101, 517, 837))
    clock = f"{hours:02d}:{rng.randint(0, 59):02d}:{rng.randint(1, 59):02d}{_fraction(rng, kind)}"
    return ("-" if rng.random() < 0.3 else "") + clock


def _year(rng: random.Random, _kind: UpstreamType) -> int:
    return rng.choice((0, 1901, 2155, rng.randint(1950, 2050)))


def _bit(rng: random.Random, kind: UpstreamType) -> int:
    return (1 << kind.size) - 1 if rng.random() < 0.15 else rng.getrandbits(kind.size)


def _enum(rng: random.Random, kind: UpstreamType) -> int:
    return rng.randint(1, len(kind.labels))


def _set(rng: random.Random, kind: UpstreamType) -> int:
    return rng.choice((0, (1 << len(kind.labels)) - 1, rng.getrandbits(len(kind.labels)), rng.getrandbits(len(kind.labels))))


def _json(rng: random.Random, _kind: UpstreamType) -> str:
    value = {"k": rng.randint(0, 99), "s": rng.choice(HOSTILE_TEXTS), "list": [1, 2.5, None, True, "<&>"]}
    return json.dumps(value, ensure_ascii=False)


_MAKERS: dict[TypeClass, Callable[[random.Random, UpstreamType], Value]] = {
    TypeClass.INTEGER: _integer,
    TypeClass.FLOAT: _float,
    TypeClass.DOUBLE: _double,
    TypeClass.DECIMAL: _decimal,
    TypeClass.STRING: _string,
    TypeClass.BINARY: _binary,
    TypeClass.TEXT: _text,
    TypeClass.BLOB: _binary,
    TypeClass.DATE: _date,
    TypeClass.DATETIME: _datetime,
    TypeClass.TIMESTAMP: _timestamp,
    TypeClass.TIME: _time,
    TypeClass.YEAR: _year,
    TypeClass.BIT: _bit,
    TypeClass.ENUM: _enum,
    TypeClass.SET: _set,
    TypeClass.JSON: _json,
}


EXTRA_PREFIX = "extra_"
PARENT = "parent"
"""A column that may refer to the key of its own table."""
_PARENT_SHARE = 0.5
_GENERATED_SHARE = 0.4
_GENERATED_KEY_SHARE = 0.1
_GENERATED_TYPES = {
    GeneratedRule.SESSION_DAY: (of.timestamp(), of.date()),
    GeneratedRule.FLOAT_TEXT: (of.real("FLOAT"), of.varchar(40)),
    GeneratedRule.LETTER: (of.integer("INT", unsigned=True), of.integer("INT")),
    GeneratedRule.SUCCESSOR: (of.integer("INT"), of.integer("BIGINT")),
}
_DISTINCT_RULES = (GeneratedRule.SESSION_DAY, GeneratedRule.FLOAT_TEXT)
"""Rules of STORED columns whose values differ often enough for a unique index."""
_EXTRA_TYPES: tuple[UpstreamType, ...] = (
    of.integer("INT"),
    of.integer("BIGINT", unsigned=True),
    of.varchar(30),
    of.decimal(12, 3),
    of.datetime(),
    of.timestamp(),
    of.enum("x", "y", "z"),
    of.set_of("p", "q", "r"),
    of.real("DOUBLE"),
    of.varbinary(20),
    of.char(8),
    of.date(),
    of.bit(9),
)
TYPES_WITHOUT_DEFAULT = frozenset({TypeClass.TEXT, TypeClass.BLOB, TypeClass.JSON})


@dataclass(slots=True)
class TableFactory:
    """Draws columns and tables. ``serial`` numbers everything that is named, so that no name comes back."""

    rng: random.Random
    _serial: int = 0

    def serial(self) -> int:
        """Return the next number."""
        self._serial += 1
        return self._serial

    def new_table(self, name: TableName) -> Table:
        """Define a table with some columns of any kind, a key of one or two columns, and perhaps a unique index."""
        keys = [column("id", self.rng.choice((of.integer("BIGINT"), of.integer("INT", unsigned=True), of.varchar(40))), null=False)]
        if self.rng.random() < 0.3:
            keys.append(column("part", of.integer("SMALLINT"), null=False))
        others = [self.extra_column() for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < _GENERATED_KEY_SHARE:
            others.append(column("at", of.timestamp(), null=False))
            keys.insert(0, generated("day", of.date(), Generation(rule=GeneratedRule.SESSION_DAY, source="at"), null=False))
        columns = [*keys, *others]
        if self.rng.random() < 0.3:
            self.rng.shuffle(columns)
        indexes: list[UpstreamIndex] = [primary(*(key.name for key in keys))]
        if self.rng.random() < 0.4:
            columns.append(column("tag", of.integer("INT")))
            # TiDB names an index after its first column if the statement does not.
            indexes.append(
                self.rng.choice((unique("one_tag", "tag"), UpstreamIndex(name="tag", columns=("tag",), unique=True, named=False)))
            )
        if len(keys) == 1 and self.rng.random() < _PARENT_SHARE:
            columns.append(column(PARENT, keys[0].type))
            indexes.append(index("by_parent", PARENT))
        if self.rng.random() < _GENERATED_SHARE:
            made, made_indexes = self._generated()
            columns += made
            indexes += made_indexes
        return Table(name=name, columns=tuple(columns), indexes=tuple(indexes))

    def _generated(self) -> tuple[list[UpstreamColumn], list[UpstreamIndex]]:
        """Return a generated column with its source, and perhaps a unique index over it. Later DDLs leave both as they are."""
        rule = self.rng.choice(list(GeneratedRule))
        source, kind = _GENERATED_TYPES[rule]
        columns = [
            column("source", source),
            generated("made", kind, Generation(rule=rule, source="source", stored=rule is not GeneratedRule.SUCCESSOR)),
        ]
        is_unique = rule in _DISTINCT_RULES and self.rng.random() < 0.6
        return columns, [unique("one_made", "made")] if is_unique else []

    def extra_column(self) -> UpstreamColumn:
        """Return a column of any kind that later DDLs may change or drop."""
        name, kind = f"{EXTRA_PREFIX}{self.serial()}", self.rng.choice(_EXTRA_TYPES)
        nullable = self.rng.random() < 0.6
        if self.rng.random() < 0.5 and kind.kind not in TYPES_WITHOUT_DEFAULT:
            value = random_value(self.rng, column(name, kind, null=False))
            if not (isinstance(value, str) and not value.isprintable()):
                return column_with_default(name, kind, value, null=nullable)
        return column(name, kind, null=nullable)
