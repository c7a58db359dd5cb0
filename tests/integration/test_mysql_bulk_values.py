"""Bulk loads against REPLACE on the server itself: each type that is loaded is stored with the same bytes, whatever its values.

This is the proof of the list in `applier/sinks/mysql/row.py`: each type of it is in a group here.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import driver_of, execute_text
from applier.planner.port import TableDescription, WireColumn
from applier.sinks.mysql.bulk_write import send_load
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.fitting import data_type_of
from applier.sinks.mysql.row import _LOADED
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.integration.literal_case import BIN, BYTES, CASES, FINITE, GREATEST_FLOATS, HOSTILE, exact_row

SCHEMA = "applier_test_bulk"
DIALECT = MysqlDialect()
GBK = "CHARACTER SET gbk COLLATE gbk_chinese_ci"
LATIN = "CHARACTER SET latin1 COLLATE latin1_swedish_ci"
THREE = "CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci"
ASCII = "CHARACTER SET ascii COLLATE ascii_bin"

# What a load reads in another way than a literal: its own ends and escape, the letters after an escape, NULL as it is written.
SIGNS = [
    "\x1b",
    "\x1e",
    "\x1f",
    "\x1bN",
    "\x1b\x1b",
    "\x1b\x1f\x1e",
    "\\N",
    "\\",
    "\\\\",
    "N",
    "NULL",
    "None",
    "\\t\\n",
    "\t",
    "\n",
    "\r\n",
    "\x1a",
]
ENDS = ["\x1f", "\x1e", "\x1b", "a\x1b", "\x1fa", " ", "a ", "\ta", "\0", "'", '"', "-", ""]
EVERY_ASCII = "".join(map(chr, range(128)))
TEXTS = [*HOSTILE, *SIGNS, *ENDS, EVERY_ASCII, *map(chr, range(33))]
EVERY_BYTE = [bytes([byte]) for byte in range(256)]


class Kind(NamedTuple):
    """A column type of the sink, the wire's view of it, and values."""

    sql_type: str
    mysql_type: int
    is_bytes: bool
    values: Sequence[Any]


def kinds_of(*sql_types: str) -> list[Kind]:
    """Return the existing cases of some types: bounds and hostile values, with which the literals are tried."""
    return [Kind(case.sql_type, case.mysql_type, case.is_bytes, case.values) for case in CASES if case.sql_type.startswith(sql_types)]


INTEGERS = [("tinyint", 1, 7), ("smallint", 2, 15), ("mediumint", 9, 23), ("int", 3, 31), ("bigint", 8, 63)]
WHOLE = [Kind(name, code, 1, [-(2**bits), -1, 0, 1, 10, 2**bits - 1]) for name, code, bits in INTEGERS]
WHOLE += [Kind(f"{name} unsigned", code, 129, [0, 7, 2**bits, 2 ** (bits + 1) - 1]) for name, code, bits in INTEGERS]
WIDER = [
    Kind("bigint", 3, 1, [-(2**31), 0, 2**31 - 1]),
    Kind("decimal(20,0)", 8, 129, [0, 2**64 - 1]),
    Kind("double", 3, 1, [-(2**31), 0, 2**31 - 1]),
    Kind("float", 1, 1, [-128, 0, 127]),
    Kind("int", 13, 129, [0, 1901, 2155]),
    Kind("bigint unsigned", 16, 129, [0, 2**63, 2**64 - 1]),
    Kind("double", 4, 1, GREATEST_FLOATS),
    Kind("datetime(6)", 10, 1, ["2020-02-29", "0000-00-00"]),
    Kind("datetime(6)", 7, 1, ["2020-02-29 01:02:03", "2020-02-29 01:02:03.000001"]),
    Kind(f"longtext {BIN}", 225, 1, []),
]
BITS = [Kind(f"bit({n})", 16, 129, [0, 1, 2**n - 1, 2 ** (n - 1), 48 % 2**n, 49 % 2**n, 2**n // 3]) for n in (1, 7, 8, 9, 31, 32, 63, 64)]
YEARS = [Kind("year", 13, 129, [0, 1901, 1970, 1999, 2000, 2155])]
REALS = [
    Kind("double", 5, 1, [*FINITE, -0.0, -1.7976931348623157e308, -5e-324, 9007199254740993.0, 1e15, 1e16, 1e17, 123456789012345680.0]),
    Kind("double unsigned", 5, 129, [0.0, 1e-7, 1e300]),
    Kind("float", 4, 1, [*GREATEST_FLOATS, 3.14, 0.1, 1e-7, -0.0, 1e10, 123456.79, 8388608.0, 8388609.0, 0.33333334, 7.038531e-26]),
    Kind("float unsigned", 4, 129, [0.0, 3.4028235e38, 1.1]),
    *kinds_of("float", "double", "decimal"),
    Kind("decimal(5,0)", 246, 1, ["-99999", "0", "-0", "007"]),
    Kind("decimal(30,30)", 246, 1, ["0." + "9" * 30, "-0." + "0" * 29 + "1"]),
    Kind("decimal(10,2) unsigned", 246, 129, ["0.00", "99999999.99"]),
]
TIMES = [
    Kind("date", 10, 1, ["0000-00-00", "2020-00-00", "2021-02-31", "9999-12-31", "0001-01-01", "1969-12-31"]),
    Kind("time", 11, 1, ["-838:59:59", "838:59:59", "00:00:00", "-00:00:01", "100:00:00"]),
    Kind("datetime", 12, 1, ["0000-00-00 00:00:00", "2021-02-31 01:02:03", "9999-12-31 23:59:59", "1000-01-01 00:00:00"]),
    Kind("timestamp", 7, 1, ["1970-01-01 00:00:01", "2038-01-19 03:14:07", "0000-00-00 00:00:00", "2024-03-31 02:30:00"]),
    *(Kind(f"time({n})", 11, 1, [f"{at}.{'0123456789'[-n:]}" for at in ("-838:59:58", "00:00:00", "23:59:59")]) for n in range(1, 7)),
    *(Kind(f"datetime({n})", 12, 1, [f"2021-02-28 23:59:59.{'9' * n}", f"0000-00-00 00:00:00.{'0' * n}"]) for n in range(1, 7)),
    *(Kind(f"timestamp({n})", 7, 1, [f"2021-02-28 23:59:59.{'9' * n}", f"1970-01-01 00:00:01.{'0' * n}"]) for n in range(1, 7)),
]
LABELS = [
    Kind("enum('1','b''','c\\\\d','é','NULL','\\\\N')", 247, 0, [1, 2, 3, 4, 5, 6]),
    Kind("enum('','0','3','2','1')", 247, 0, [1, 2, 3, 4, 5]),
    Kind(f"enum('a','B','') {GBK}", 247, 0, [1, 2, 3]),
    Kind("set('x','1','y''')", 248, 0, [0, 1, 2, 3, 4, 7]),
    Kind("set('0','2','')", 248, 0, [0, 1, 2, 3, 4, 7]),
    Kind(f"set({','.join(repr(f'm{bit}') for bit in range(64))})", 248, 0, [0, 1, 2**63, 2**64 - 1, 2**63 - 1]),
]
UNENDED = [value for value in TEXTS if not value.endswith(" ")]
LATINS = [*(value for value in TEXTS if value.isascii()), "é'\\\0", "".join(map(chr, range(0xA0, 0x100))), "ÿ\x1b"]
STRINGS = [
    *(Kind(f"{name} {BIN}", code, 0, TEXTS) for name, code in (("varchar(300)", 15), ("tinytext", 249), ("text", 252))),
    Kind("mediumtext", 250, 0, TEXTS),
    Kind("longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", 251, 0, TEXTS),
    Kind(f"char(255) {BIN}", 254, 0, UNENDED),
    Kind("char(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", 254, 0, UNENDED),
    Kind(f"varchar(300) {LATIN}", 15, 0, LATINS),
    Kind(f"char(255) {LATIN}", 254, 0, [value for value in LATINS if not value.endswith(" ")]),
    Kind(f"text {THREE}", 252, 0, [value for value in TEXTS if "😀" not in value]),
    Kind(f"varchar(300) {ASCII}", 15, 0, [value for value in TEXTS if value.isascii()]),
    Kind(f"text {GBK}", 252, 0, ["中文\\", "一丁七\x1f", "\x1b乗", *(value for value in TEXTS if value.isascii())]),
    Kind("varchar(300) CHARACTER SET utf16 COLLATE utf16_general_ci", 15, 0, TEXTS),
]
DOCUMENTS = [
    '{"a": "x\'\\"\\\\ é😀\\u0001\\u001b\\n"}',
    "[]",
    "null",
    "1.5",
    '""',
    '"\\u001f"',
    "{}",
    "18446744073709551615",
    '["\\\\N", null]',
]
JSONS = [Kind("json", 245, 1, DOCUMENTS), Kind(f"longtext {BIN}", 245, 1, DOCUMENTS)]
BLOBS = ("varbinary(300)", "blob", "mediumblob", "longblob")
BINARIES = [
    *(Kind(name, 15 if name.startswith("var") else 252, 1, [*BYTES, *EVERY_BYTE]) for name in BLOBS),
    Kind("tinyblob", 249, 1, [bytes(range(255)), b"\xff" * 255]),
    Kind("binary(3)", 254, 1, [b"\0\0\0", b"a\0\0", b"\xff'\\", b"   ", b"\x1b\x1f\x1e"]),
    Kind("binary", 254, 1, EVERY_BYTE),
]
LARGE = [
    Kind("longtext", 251, 0, ["é'\\\x1b\x1f\t\n" * 150_000, "x" * 1_000_000]),
    Kind("longblob", 251, 1, [bytes(range(256)) * 4000]),
    Kind("json", 245, 1, ['{"a": "' + "\\\\\\n" * 200_000 + '"}']),
]
GROUPS = {
    "integers": WHOLE,
    "wider columns": [kind for kind in WIDER if kind.values],
    "bits": BITS,
    "years": YEARS,
    "reals": REALS,
    "times": TIMES,
    "labels": LABELS,
    "texts": STRINGS,
    "documents": JSONS,
    "bytes": BINARIES,
    "large": LARGE,
}


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    connection = open_session(SinkSettings(url=mysql_url), Purpose.WRITE)
    [(_, before)] = connection.exec_driver_sql("SHOW GLOBAL VARIABLES LIKE 'local_infile'")
    execute_text(connection, "SET GLOBAL local_infile = ON")
    execute_text(connection, f"DROP DATABASE IF EXISTS {SCHEMA}")
    execute_text(connection, f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4")
    yield connection
    connection.rollback()
    execute_text(connection, f"DROP DATABASE {SCHEMA}")
    execute_text(connection, f"SET GLOBAL local_infile = {before}")
    connection.close()


class Table:
    """A table twice: `by_replace` and `by_load`."""

    def __init__(self, session: Connection, columns: str) -> None:
        self.session = session
        for name in ("by_replace", "by_load"):
            execute_text(session, f"DROP TABLE IF EXISTS {SCHEMA}.{name}")
            execute_text(session, f"CREATE TABLE {SCHEMA}.{name} ({columns})")
        described = describe(session, [TableName(SCHEMA, "by_replace")])
        self.description: TableDescription = described[TableName(SCHEMA, "by_replace").fold()]

    def wire(self, *types: tuple[int, bool]) -> list[WireColumn]:
        return [WireColumn(column, *kind) for column, kind in zip(self._written, types, strict=True)]

    @property
    def _written(self) -> list[Any]:
        return [column for column in self.description.columns if not column.generated]

    def fill(self, columns: list[WireColumn], rows: Sequence[tuple[Any, ...]], batch: int = 100) -> None:
        """Write the rows into one table by REPLACE and into the other by loads; neither may warn."""
        names = [column.name for column in self._written]
        lines = DIALECT.bulk_line(columns)
        assert lines is not None
        for text, _ in DIALECT.replaces(self.description, names, map(exact_row(DIALECT, columns), rows)):
            assert execute_text(self.session, text)[1] == 0
        batches = [rows[start : start + batch] for start in range(0, len(rows), batch)]
        rendered = [(lines(list(zip(*part, strict=True))), len(part)) for part in batches]
        assert None not in [content for content, _ in rendered]
        other = replace(self.description, table="by_load")
        for text, content, number in DIALECT.bulk_loads(other, names, rendered):
            assert send_load(driver_of(self.session), text, content) == (number, 0)

    def differences(self, key: str = "id") -> list[Any]:
        """Return the rows that are not the same bytes in both."""
        same = []
        for column in self.description.columns:
            for seen in _views(column):
                one, other = (seen.format(f"{table}.`{column.name}`") for table in ("r", "l"))
                same.append(f"({one} <=> {other})")
        joined = f"{SCHEMA}.by_replace r JOIN {SCHEMA}.by_load l ON l.{key} = r.{key}"
        counts = [f"(SELECT COUNT(*) FROM {tables})" for tables in (f"{SCHEMA}.by_replace", joined, f"{SCHEMA}.by_load")]
        [(replaced, both, loaded)] = self.session.exec_driver_sql(f"SELECT {', '.join(counts)}")
        assert replaced == both == loaded > 0
        query = f"SELECT {', '.join(same)} FROM {joined} WHERE NOT ({' AND '.join(same)})"
        return list(self.session.exec_driver_sql(query.replace("%", "%%")))


def _views(column: Any) -> list[str]:
    """Return how a column is looked at so that every bit of it counts."""
    match data_type_of(column):
        case "float" | "double":
            return ["{}", "CAST({} AS BINARY)"]
        case "bit" | "enum" | "set" | "year":
            return ["({} + 0)", "HEX({})"]
        case _:
            return ["HEX(CAST({} AS BINARY))"]


def cycled(kinds: Sequence[Kind]) -> list[tuple[Any, ...]]:
    """Return rows in which each kind has all of its values, and NULLs among them."""
    most = max(len(kind.values) for kind in kinds) + 1
    pools = [[*kind.values, None] for kind in kinds]
    return [(number, *(pool[number % len(pool)] for pool in pools)) for number in range(most)]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("batch", [1, 50])
def test_a_load_stores_the_bytes_that_replace_stores(session: Connection, group: str, batch: int) -> None:
    kinds = GROUPS[group]
    table = Table(session, "id int NOT NULL PRIMARY KEY," + ",".join(f"v{at} {kind.sql_type} NULL" for at, kind in enumerate(kinds)))
    columns = table.wire((3, False), *((kind.mysql_type, kind.is_bytes) for kind in kinds))
    table.fill(columns, cycled(kinds), batch)
    assert table.differences() == []


def test_every_type_of_the_list_is_in_a_group(session: Connection) -> None:
    named = {kind.sql_type.partition("(")[0].partition(" ")[0] for kinds in GROUPS.values() for kind in kinds}
    assert named == _LOADED


def test_rows_of_one_column_are_loaded_also_if_it_is_empty(session: Connection) -> None:
    table = Table(session, f"v varchar(255) {BIN} NOT NULL PRIMARY KEY")
    values = sorted({value for value in TEXTS if len(value) < 200 and not value.endswith(" ")})
    table.fill(table.wire((15, False)), [(value,) for value in values], batch=1)
    assert table.differences("v") == []
    table.fill(table.wire((15, False)), [(value,) for value in values])
    assert table.differences("v") == []


def test_generated_columns_are_left_out(session: Connection) -> None:
    table = Table(
        session, f"id int NOT NULL PRIMARY KEY, up varchar(40) AS (upper(v)) STORED, v varchar(20) {BIN}, n int AS (id + 1) VIRTUAL"
    )
    table.fill(table.wire((3, False), (15, 0)), [(1, "é"), (2, None), (3, "\x1f")])
    assert table.differences() == []


def test_an_auto_increment_zero_is_zero(session: Connection) -> None:
    table = Table(session, "id int NOT NULL AUTO_INCREMENT PRIMARY KEY, v int")
    table.fill(table.wire((3, False), (3, 0)), [(0, 1), (5, 2)])
    assert table.differences() == []
    assert list(session.exec_driver_sql(f"SELECT id FROM {SCHEMA}.by_load ORDER BY id")) == [(0,), (5,)]


def test_an_auto_increment_zero_is_zero_beside_a_column_that_is_assigned(session: Connection) -> None:
    """MariaDB takes a zero that is read for the next number as soon as the load assigns another column."""
    table = Table(session, "id INT AUTO_INCREMENT PRIMARY KEY, e ENUM('a', 'b'), n INT")
    table.fill(table.wire((3, False), (247, False), (3, False)), [(7, 1, 1), (0, 2, 2), (-5, 1, 3)])
    assert table.differences() == []


def test_texts_of_random_signs_are_loaded(session: Connection) -> None:
    draw = random.Random(4)
    alphabet = ["\x1b", "\x1e", "\x1f", "\\", "N", "0", "Z", "b", "n", "t", "'", "\0", "\n", "é", "😀", "x", " ", "%", ""]
    table = Table(session, f"id int NOT NULL PRIMARY KEY, a varchar(99) {BIN}, b text, c varchar(99) {THREE}, d varbinary(99)")

    def text(letters: Sequence[str]) -> str:
        return "".join(draw.choices(letters, k=draw.randrange(9)))

    three = [letter for letter in alphabet if letter != "😀"]
    rows = [(number, text(alphabet), text(alphabet), text(three), text(alphabet).encode()) for number in range(2000)]
    table.fill(table.wire((3, False), (15, 0), (252, 0), (15, 0), (15, 1)), rows)
    assert table.differences() == []
