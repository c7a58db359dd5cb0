"""Every type of the wire with the edges of its values (open_protocol.md 2.6), for a round trip: wire, sink, stored bytes."""

from dataclasses import dataclass, replace
from typing import Any

from applier.demo.simulator import column_type as of
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.mysql_text import literal
from applier.demo.simulator.schema import UpstreamColumn
from tests.integration.literal_case import HOSTILE

GREATEST_FLOAT, LEAST_NORMAL_FLOAT, LEAST_FLOAT = 3.4028234663852886e38, 1.1754943508222875e-38, 1.401298464324817e-45
GREATEST_DOUBLE, LEAST_NORMAL_DOUBLE, LEAST_DOUBLE = 1.7976931348623157e308, 2.2250738585072014e-308, 5e-324
BYTES = [b"", b"\0", bytes(range(256)), b"\\x41\\", b"'\"`;\x1a", b"\xff\xfe\xed\xa0\x80", b"a ", b"a\0"]
LETTERS = tuple(f"{number:02}" for number in range(64))
LATIN, GBK = ["", "é", "£ÿ", "a'\\", "naïve"], ["", "日本", "中文'\\", "a"]
"""GBK's second byte may be that of a backslash or of a quote in ASCII."""


@dataclass(frozen=True)
class TypeCase:
    """A column type, and values at its edges. ``stored_as``: what the sink's column is, if not what upstream's is."""

    type: UpstreamType
    values: tuple[Any, ...]
    stored_as: str = ""

    def __str__(self) -> str:
        return f"{self.type.sql[:40]}{self.stored_as and f' as {self.stored_as}'}"

    @property
    def column(self) -> UpstreamColumn:
        """The column that holds the values."""
        return UpstreamColumn(name="v", type=self.type, nullable=True)

    @property
    def sql(self) -> str:
        """The type of the sink's column."""
        return self.stored_as or self.type.sql

    def literal(self, value: Any) -> str:
        """Write a value as an application would, for a database into which it is really inserted."""
        if value is not None and self.sql.startswith("VECTOR"):
            # The shortest text of the greatest number, which the wire carries, is a greater one: out of range to MySQL.
            return f"STRING_TO_VECTOR('{value.replace('3.4028235e+38', repr(GREATEST_FLOAT))}')"
        # The parser takes the sign of a zero away from a number.
        return "'-0'" if value == 0.0 and str(value) == "-0.0" else literal(self.column, value)


def case(kind: UpstreamType, *values: Any, stored_as: str = "") -> TypeCase:
    return TypeCase(kind, (*values, None), stored_as)


def integer(name: str, bits: int) -> list[TypeCase]:
    half = 1 << bits - 1
    return [
        case(of.integer(name), -half, -half + 1, -1, 0, 1, half - 1),
        case(of.integer(name, unsigned=True), 0, 1, half - 1, half, half + 1, 2 * half - 1),
    ]


def text_in(charset: str, values: list[str]) -> TypeCase:
    return case(replace(of.varchar(40), sql=f"VARCHAR(40) CHARACTER SET {charset} COLLATE {charset}_bin"), *values)


def zeros(digits: int) -> str:
    return "." + "0" * digits


CASES = [
    *[
        one
        for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64))
        for one in integer(name, bits)
    ],
    case(of.integer("BIGINT", unsigned=True), 2**53, 2**53 + 1, 2**63, 2**64 - 1),
    *(case(of.bit(size), 0, 1, 1 << size - 1, (1 << size) - 1) for size in (1, 8, 63, 64)),
    case(of.year(), 0, 1901, 1970, 2000, 2155),
    case(of.real("FLOAT"), 0.0, -0.0, GREATEST_FLOAT, -GREATEST_FLOAT, LEAST_NORMAL_FLOAT, LEAST_FLOAT, -LEAST_FLOAT, 16777216.0, 1e20),
    case(of.real("FLOAT"), 0.10000000149011612, -2.499999936844688e-09, 1.0000000200408773e20, 3.140000104904175),
    case(of.real(), 0.0, -0.0, GREATEST_DOUBLE, -GREATEST_DOUBLE, LEAST_NORMAL_DOUBLE, LEAST_DOUBLE, -LEAST_DOUBLE, 1 / 3, 1e21, 1e-7),
    case(of.decimal(65, 30), "9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "9" * 30, "0" + zeros(30), "0" + zeros(29) + "1"),
    case(of.decimal(65, 0), "9" * 65, "-" + "9" * 65, "0", "18446744073709551616"),
    case(of.decimal(10, 2), "0.00", "-0.01", "99999999.99", "129012.10"),
    case(of.date(), "0000-00-00", "0001-01-01", "2020-00-00", "2021-01-00", "2021-02-31", "9999-12-31"),
    case(of.datetime(), "0000-00-00 00:00:00", "2020-00-00 00:00:00", "2021-02-31 01:02:03", "9999-12-31 23:59:59"),
    case(of.datetime(6), "0000-00-00 00:00:00" + zeros(6), "2021-02-31 01:02:03.000001", "9999-12-31 23:59:59.999999"),
    case(of.timestamp(), "0000-00-00 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07"),
    case(of.timestamp(6), "0000-00-00 00:00:00" + zeros(6), "1970-01-01 00:00:01.000001", "2038-01-19 03:14:07.999999"),
    case(of.time(), "-838:59:59", "838:59:59", "00:00:00", "-00:00:01", "100:00:00"),
    case(of.time(3), "-838:59:59" + zeros(3), "838:59:59" + zeros(3), "517:51:04.777", "-733:00:00.001", "-00:00:00.001"),
    case(of.time(6), "-838:59:59" + zeros(6), "-00:00:00.000001", "838:59:58.999999"),
    case(of.varchar(300), *HOSTILE),
    case(of.char(255), *(value for value in HOSTILE if not value.endswith(" "))),
    *(case(of.text(prefix), *(value for value in HOSTILE if len(value) < 60), "日" * 80) for prefix in ("TINY", "", "MEDIUM", "LONG")),
    text_in("latin1", LATIN),
    text_in("gbk", GBK),
    case(of.varbinary(300), *BYTES),
    case(of.binary(4), b"\0\0\0\0", b"a\0\0\0", b"a\0\0 ", b"\xff" * 4, b"'\\\0\0"),
    case(of.binary(255), bytes(range(1, 256)), bytes(255)),
    case(of.blob("TINY"), b"", b"\0", bytes(range(1, 256)), bytes(255)),
    *(case(of.blob(prefix), *BYTES) for prefix in ("", "MEDIUM", "LONG")),
    case(of.enum("x", "1", "b'", "c\\d", "é😀"), 0, 1, 2, 3, 4, 5),
    case(of.set_of("x", "1", "b'", "é😀"), 0, 1, 2, 4, 8, 15),
    case(of.set_of(*LETTERS), 0, 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1),
    case(
        of.json(), '{"a": "x\'\\"\\\\ é😀\\u0001", "b": [1, 2.5, null, true]}', "[]", "{}", "null", "1.5", '"日本"', "18446744073709551615"
    ),
    case(UpstreamType(sql="VECTOR", code=225, kind=TypeClass.STRING), "[1,2.5,-3e10]", "[]", "[0]", stored_as="LONGTEXT"),
]
"""-0.0 is a number of upstream's that some servers store without its sign: what counts is what they store when it is inserted."""
VECTOR = case(
    UpstreamType(sql="VECTOR", code=225, kind=TypeClass.STRING),
    "[1,2.5,-3e10]", "[0.1,3.4028235e+38,1.1754944e-38]", "[0,0,0]",
    stored_as="VECTOR(3)",
)  # fmt: skip
"""For servers that have the type."""
