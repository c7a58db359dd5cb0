"""Every column type of MariaDB and MySQL with the edges of its values: what a primary writes into its binlog.

Values are SQL literals: the primary stores them as an application would, and what it has stored is what the sink must store. The types
that a TiCDC feed has too come from ``every_type``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from applier.demo.simulator.column_type import TypeClass
from tests.integration.every_type import CASES, VECTOR

MARIADB, MYSQL = "mariadb", "mysql"
BOTH = frozenset({MARIADB, MYSQL})
NUMBERS = {TypeClass.INTEGER, TypeClass.BIT, TypeClass.YEAR}
REALS = {TypeClass.FLOAT, TypeClass.DOUBLE, TypeClass.DECIMAL}
TIMES = {TypeClass.DATE, TypeClass.DATETIME, TypeClass.TIMESTAMP, TypeClass.TIME}
CHOICES = {TypeClass.ENUM, TypeClass.SET}
HEXED, NUMBER, MASK, AS_DOUBLE, AS_TEXT = "HEX({})", "{} + 0", "CAST({} AS UNSIGNED)", "CAST({} AS DOUBLE)", "CAST({} AS CHAR)"
DOCUMENTS = (
    '{"a": [1, -1, 32767, -32768, 32768, 65535, 2147483647, 4294967295, 18446744073709551615, -9223372036854775808]}',
    '{"": null, "b": true, "c": false, "é😀": "x\\"y\\\\z", "d": 1.0, "e": 1e-300, "f": [[], {}, [[]]]}',
    "[0.1, 1.7976931348623157e308, -0.0, 100, 1.5e10]",
    '"' + "long " * 40 + '"',
    '["' + "x" * 70_000 + '", 1]',
    "[" + ",".join(str(number) for number in range(20_000)) + "]",
    "{" + ",".join(f'"key{number}": {number}' for number in range(300)) + "}",
)
"""The binary form of MySQL has small and large arrays, integers of three sizes within a container, and lengths of one to three bytes."""


@dataclass(frozen=True)
class ColumnCase:
    """A column and what is written into it. ``compared``: the expression whose results must be equal on both servers."""

    sql: str
    literals: tuple[str, ...]
    compared: str = HEXED
    is_key: bool = True
    servers: frozenset[str] = BOTH


def column(sql: str, *literals: str, compared: str = HEXED, is_key: bool = True, on: str = "") -> ColumnCase:
    return ColumnCase(sql, literals, compared, is_key, frozenset({on}) if on else BOTH)


def of_the_wire(kinds: set[TypeClass], compared: str) -> Iterator[ColumnCase]:
    """The columns of ``every_type`` of these kinds."""
    for case in CASES:
        if case.type.kind in kinds and not case.stored_as:
            literals = tuple(case.literal(value) for value in case.values if value is not None)
            is_key = case.type.kind not in {TypeClass.TEXT, TypeClass.BLOB, TypeClass.JSON}
            form = AS_DOUBLE if case.type.kind is TypeClass.FLOAT else compared
            yield ColumnCase(case.sql, literals, form, is_key)


def quoted(*values: str) -> tuple[str, ...]:
    return tuple("'" + value.replace("\\", "\\\\").replace("'", "''") + "'" for value in values)


def fractions(kind: str, *values: str) -> Iterator[ColumnCase]:
    """A type of time with each number of fractional digits."""
    for digits in range(7):
        yield column(f"{kind}({digits})", *(f"'{value[: len(value) - 6 + digits]}'" for value in values), compared=AS_TEXT)


def decimals() -> Iterator[ColumnCase]:
    """Each number of digits that a group of nine leaves over, before and behind the point."""
    for whole in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 28):
        scale = (whole * 7) % 19 or 1
        most = "9" * whole + "." + "9" * scale
        values = (most, "-" + most, "0", "-0." + "0" * (scale - 1) + "1", ("1" if whole else "0") + "." + "0" * (scale - 1) + "1")
        yield column(f"DECIMAL({whole + scale},{scale})", *values, compared=AS_TEXT)


def text_of(charset: str, *values: str, on: str = "") -> ColumnCase:
    """Texts written as Unicode, stored in a character set."""
    return column(f"VARCHAR(60) CHARACTER SET {charset} COLLATE {charset}_bin", *quoted(*values), on=on)


def point(x: float, y: float, srid: int = 0) -> str:
    return f"ST_GeomFromText('POINT({x} {y})', {srid})"


TEXTS = (
    *of_the_wire({TypeClass.STRING, TypeClass.TEXT}, HEXED),
    column("VARCHAR(255) CHARACTER SET latin1 COLLATE latin1_bin", f"_latin1 x'{bytes(range(1, 256)).hex()}'", "''", "'€'"),
    column("CHAR(1)", "'a'", "'é'", "'😀'", "''"),
    column("CHAR(63)", "'" + "😀" * 63 + "'", "'a'"),
    column("CHAR(64)", "'" + "😀" * 64 + "'", "'a'"),
    column("VARCHAR(63)", "'" + "😀" * 63 + "'", "''"),
    column("VARCHAR(64)", "'" + "😀" * 64 + "'", "''"),
    column("TEXT CHARACTER SET latin1 COLLATE latin1_bin", "'naïve'", "REPEAT('ÿ', 60000)", is_key=False),
    column("TEXT CHARACTER SET utf16 COLLATE utf16_bin", "'日本😀'", "''", is_key=False),
)
CHARSETS = (
    text_of("utf8mb3", "日本", "é\\'"),
    text_of("utf16", "日本😀", "a"),
    text_of("ucs2", "日本", "a"),
    text_of("utf32", "日本😀", "a"),
    text_of("utf16le", "日本😀", "a"),
    text_of("ascii", "abc", "~"),
    text_of("cp1251", "Привет", "№Ђ"),
    text_of("koi8r", "Привет", "ё"),
    text_of("greek", "Ελλάδα"),
    text_of("latin2", "Žluťoučký"),
    text_of("cp1250", "Žluťoučký"),
    text_of("cp850", "éüß"),
    text_of("latin5", "İstanbul ğ"),
    text_of("hebrew", "שלום"),
    text_of("tis620", "ไทย"),
    text_of("big5", "中文", "許功蓋"),
    text_of("euckr", "한국어"),
    text_of("sjis", "日本語", "ｱ"),
    text_of("cp932", "日本ソ表", "①\uff5e"),
    text_of("ujis", "日本表", "ｱ"),
    text_of("eucjpms", "日本表", "①"),
    text_of("gb2312", "中文"),
    text_of("gb18030", "中文😀", on=MYSQL),
    column("ENUM('é','ÿ') CHARACTER SET latin1 COLLATE latin1_bin", "'é'", "'ÿ'"),
    column("SET('日','本') CHARACTER SET gbk COLLATE gbk_bin", "'日'", "'日,本'", "''"),
    column("ENUM('日','本') CHARACTER SET utf16 COLLATE utf16_bin", "'本'"),
)
BYTES = (
    *of_the_wire({TypeClass.BINARY, TypeClass.BLOB}, HEXED),
    column("VARBINARY(255)", "''", f"x'{bytes(range(255)).hex()}'"),
    column("VARBINARY(256)", "''", f"x'{bytes(range(256)).hex()}'"),
    column("BINARY(16)", "x'00112233445566778899aabbccddee00'", "''"),
    column("BINARY(255)", "REPEAT(x'00', 255)", "REPEAT(x'20', 255)"),
    column("MEDIUMBLOB", "REPEAT(x'c3', 70000)", "''", is_key=False),
    column("LONGTEXT", "REPEAT('日', 30000)", "''", is_key=False),
)
TEMPORALS = (
    *of_the_wire(TIMES, AS_TEXT),
    *fractions("TIME", "-838:59:58.999999", "838:59:58.999999", "-00:00:00.100001", "-00:00:01.999999", "00:00:00.000001"),
    *fractions("DATETIME", "0000-00-00 00:00:00.000000", "1000-01-01 00:00:00.100001", "9999-12-31 23:59:59.999999"),
    *fractions("TIMESTAMP", "0000-00-00 00:00:00.000000", "1970-01-01 00:00:01.100001", "2038-01-19 03:14:07.999999"),
)
DOCUMENT_COLUMNS = (
    *of_the_wire({TypeClass.JSON}, AS_TEXT),
    column("JSON", *quoted(*DOCUMENTS), compared=AS_TEXT, is_key=False),
)
TYPED_DOCUMENTS = (
    column(
        "JSON",
        "CAST(DATE'2020-02-29' AS JSON)",
        "JSON_ARRAY(CAST('12:34:56.7' AS TIME(1)), TIMESTAMP'2020-02-29 01:02:03.4', 1.5, x'00ff', b'1')",
        compared=AS_TEXT,
        is_key=False,
        on=MYSQL,
    ),
)
"""MySQL's documents may hold dates, times, decimals and bytes. JSON text has no types for them: the text stays, the types do not."""
SPATIAL = (
    column("GEOMETRY", point(1, -1), "ST_GeomFromText('LINESTRING(0 0, 1 1)')", point(10, 20, 4326), is_key=False),
    column("POINT", point(0.1, 1e-300), is_key=False),
    column("GEOMETRYCOLLECTION", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))')", is_key=False),
)
OF_ONE_SERVER = (
    ColumnCase(
        VECTOR.sql, tuple(VECTOR.literal(value) for value in VECTOR.values if value), HEXED, is_key=False, servers=frozenset({MYSQL})
    ),
    column("UUID", "'00112233-4455-6677-8899-aabbccddeeff'", "'ffffffff-ffff-4fff-bfff-ffffffffffff'", compared=AS_TEXT, on=MARIADB),
    column("INET4", "'0.0.0.0'", "'255.255.255.255'", compared=AS_TEXT, on=MARIADB),
    column("INET6", "'::'", "'ffff::1'", "'::ffff:1.2.3.4'", compared=AS_TEXT, on=MARIADB),
    column("VARCHAR(2000) COMPRESSED", "''", "'short'", "REPEAT('日本', 300)", is_key=False, on=MARIADB),
    column("BLOB COMPRESSED", "''", "x'00ff'", "REPEAT(x'00', 5000)", is_key=False, on=MARIADB),
)
TYPED = "typed documents"
GROUPS = {
    "numbers": (
        *of_the_wire(NUMBERS, NUMBER),
        column("INT(5) ZEROFILL", "0", "42", "4294967295", compared=NUMBER),
        column("BOOLEAN", "TRUE", "FALSE", compared=NUMBER),
        *(column(f"BIT({size})", "0", "1", f"{(1 << size) - 1}", compared=NUMBER) for size in (7, 9, 17, 33, 57)),
    ),
    "reals": (*of_the_wire(REALS, AS_TEXT), *decimals()),
    "temporals": TEMPORALS,
    "choices": (
        *of_the_wire(CHOICES, MASK),
        column("ENUM(" + ",".join(f"'v{number}'" for number in range(300)) + ")", "'v0'", "'v254'", "'v255'", "'v299'", compared=MASK),
        *(column(f"SET({','.join(quoted(*map(str, range(size))))})", "0", f"{(1 << size) - 1}", compared=MASK) for size in (8, 9, 17, 33)),
    ),
    "texts": TEXTS,
    "charsets": CHARSETS,
    "bytes": BYTES,
    "documents": DOCUMENT_COLUMNS,
    TYPED: TYPED_DOCUMENTS,
    "spatial": SPATIAL,
    "of one server": OF_ONE_SERVER,
}
"""One table for each of them: its columns are read from the same row image."""


def group_of(name: str, servers: frozenset[str]) -> list[ColumnCase]:
    """The columns of a group that all of these servers have."""
    return [case for case in GROUPS[name] if servers <= case.servers]


def keys_of(servers: frozenset[str]) -> list[ColumnCase]:
    """The columns that can be a primary key, each of a table of its own."""
    return [case for columns in GROUPS.values() for case in columns if case.is_key and servers <= case.servers]
