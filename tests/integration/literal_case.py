"""Types of columns with values at their bounds: what the literals of the dialect are tried with."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from applier.planner.port import TableDescription, WireColumn
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sources.column_flags import column_of

BYTES = [b"", b"\0", b"'", b"\\", bytes(range(256)), b"\xff\xfe", b"_binary", b" ", b"a\0", b"100%s :x"]


HOSTILE = [
    "",
    "'",
    "\\",
    "\\'",
    "'; DROP TABLE t; -- ",
    "\0",
    "a\0b",
    "\x1a",
    "\n\r\t\b\f\v",
    "%s %(x)s %% :name ::x ?",
    '"',
    "`",
    "x'41'",
    "_binary'x'",
    "NULL",
    "é",
    "日本語",
    "😀",
    "\u2028",
    "\ufffe",
    "\\0",
    "\\x00",
    "/* */ # --",
    "a" * 255,
]


FINITE = [0.0, 1.0, -1.5, 0.1, 1 / 3, 1e22, 1e-7, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 123456789.12345679, -1e-300]


GREATEST_FLOATS = [3.4028235e38, -3.4028235e38, 3.4028233e38, 1.1754944e-38, 1e-45, -1e-45, 1.17549421e-38, 16777216.0, 9.999999e20]
"""Bounds of FLOAT as they come on the wire: shortest texts, the first two of which are greater than what they stand for."""


FLOATS32 = [struct.unpack("<f", struct.pack("<f", value))[0] for value in (3.14, 0.1, 1e-38, 3.4028234e38, -1 / 3, 16777217.0, 1e-45, 0.0)]


def exact_row(dialect: MysqlDialect, columns: Sequence[WireColumn]) -> Callable[[tuple[Any, ...]], str]:
    """Return the function that renders a row value by value."""
    functions = [dialect.literal(column.column, column.mysql_type, is_bytes=column.is_bytes) for column in columns]
    return lambda values: f"({','.join(literal(value) for literal, value in zip(functions, values, strict=True))})"


def rows_at_once(
    dialect: MysqlDialect, table: TableDescription, columns: Sequence[WireColumn], rows: Sequence[tuple[Any, ...]]
) -> list[bytes]:
    """Render all rows at once, and return the statements."""
    text = dialect.rows_text(table, columns)(list(zip(*rows, strict=True)))
    assert text is not None
    names = [column.column.name for column in columns]
    return [statement for statement, _ in dialect.joined_replaces(table, names)([(text, len(rows))])]


@dataclass(frozen=True)
class Case:
    """A column type of the sink, the wire's view of it, and values; ``read`` turns the column into what a driver returns unchanged."""

    sql_type: str
    mysql_type: int
    flags: int
    values: list[Any]
    read: str = "v"
    stored: Callable[[Any], Any] = lambda value: value
    key: str | None = "k"

    @property
    def is_bytes(self) -> bool:
        return column_of("v", self.mysql_type, self.flags).is_bytes

    def __str__(self) -> str:
        return self.sql_type


def hexed(value: str | bytes) -> str:
    return (value.encode() if isinstance(value, str) else value).hex().upper()


BIN, LATIN = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "CHARACTER SET latin1 COLLATE latin1_bin"


ZERO = "0000-00-00 00:00:00.000000"


CASES = [
    Case("tinyint", 1, 1, [-128, 0, 127]),
    Case("tinyint unsigned", 1, 129, [0, 255]),
    Case("smallint", 2, 1, [-32768, 32767]),
    Case("int", 3, 1, [-(2**31), -1, 0, 2**31 - 1]),
    Case("mediumint unsigned", 9, 129, [0, 2**24 - 1]),
    Case("bigint", 8, 1, [-(2**63), -1, 2**53 + 1, 2**63 - 1]),
    Case("bigint unsigned", 8, 129, [0, 2**53 + 1, 2**63, 2**64 - 1]),
    Case("bit(64)", 16, 129, [0, 1, 2**63, 2**64 - 1], read="v + 0"),
    Case("bit(7)", 16, 129, [0, 127], read="v + 0"),
    Case("year", 13, 129, [0, 1901, 2155], read="v + 0"),
    Case("double", 5, 1, FINITE),
    Case("float", 4, 1, FLOATS32, read="CAST(v AS DOUBLE)"),
    Case("float", 4, 1, [3.14, 0.1, 1e-7], read="CAST(v AS DOUBLE)", stored=lambda v: struct.unpack("<f", struct.pack("<f", v))[0]),
    Case("float", 4, 1, GREATEST_FLOATS, read="CAST(v AS DOUBLE)", stored=lambda v: struct.unpack("<f", struct.pack("<f", v))[0]),
    Case("double", 4, 1, GREATEST_FLOATS),
    Case("double", 5, 1, [-1.7976931348623157e308, -5e-324, 2.2250738585072011e-308, 9007199254740993.0, 1e21, 1e-6]),
    Case("decimal(65,30)", 246, 1, ["1." + "0" * 29 + "1", "-" + "9" * 35 + "." + "9" * 30, "0." + "0" * 30], read="CAST(v AS CHAR)"),
    Case("decimal(40,0)", 246, 1, ["9007199254740993", "9007199254740992", "9" * 40, "-1"], read="CAST(v AS CHAR)"),
    Case("decimal(10,2)", 246, 1, ["0.10", "-12345678.90", "1.00"], read="CAST(v AS CHAR)"),
    Case("date", 10, 1, ["0000-00-00", "2020-00-00", "2021-02-31", "9999-12-31", "0001-01-01"], read="CAST(v AS CHAR)"),
    Case("time(3)", 11, 1, ["-838:59:59.000", "517:51:04.777", "00:00:00.001", "-733:00:00.001"], read="CAST(v AS CHAR)"),
    Case(
        "datetime(6)",
        12,
        1,
        ["0000-00-00 00:00:00.000000", "2021-02-31 01:02:03.000001", "9999-12-31 23:59:59.999999"],
        read="CAST(v AS CHAR)",
    ),
    Case(
        "timestamp(6)",
        7,
        1,
        ["1970-01-01 00:00:01.000000", "2038-01-19 03:14:07.999999", "0000-00-00 00:00:00.000000"],
        read="CAST(v AS CHAR)",
    ),
    Case(f"varchar(300) {BIN}", 15, 0, HOSTILE, read="HEX(v)", stored=hexed),
    Case(
        "char(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        254,
        0,
        [v for v in HOSTILE if not v.endswith(" ")],
        read="HEX(v)",
        stored=hexed,
    ),
    Case(
        "varchar(300) CHARACTER SET latin1 COLLATE latin1_bin",
        15,
        0,
        ["é'\\\0", "plain"],
        read="HEX(CONVERT(v USING utf8mb4))",
        stored=hexed,
    ),
    Case("text", 252, 0, HOSTILE, read="HEX(v)", stored=hexed, key=None),
    Case("longtext", 251, 0, ["é'\\" * 20_000], read="HEX(v)", stored=hexed, key=None),
    Case("varbinary(300)", 15, 1, BYTES, read="HEX(v)", stored=hexed),
    Case("binary(3)", 254, 1, [b"\0\0\0", b"a\0\0", b"\xff'\\"], read="HEX(v)", stored=hexed),
    Case("blob", 252, 1, BYTES, read="HEX(v)", stored=hexed, key=None),
    Case("json", 245, 1, ['{"a": "x\'\\"\\\\ é😀\\u0001"}', "[]", "null", "1.5"], read="HEX(v)", stored=hexed, key=None),
    Case("enum('1','b''','c\\\\d','é')", 247, 0, [1, 2, 3, 4], read="v + 0"),
    Case("set('x','1','y''')", 248, 0, [0, 1, 2, 7], read="v + 0"),
    Case("text", 225, 1, ["[1,2.5,-3e10]"], read="CAST(v AS CHAR)", key=None),
]


KEYED = [case for case in CASES if case.key]
