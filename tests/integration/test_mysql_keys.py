"""Every type of key at its bounds, on the server itself: what our REPLACE has written, our DELETE finds, and nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import driver_of, execute_text
from applier.planner.port import TableDescription, WireColumn
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from applier.sources.column_flags import column_of
from tests.integration.literal_case import exact_row, rows_at_once

SCHEMA = "applier_test_keys"
DIALECT = MysqlDialect()
TRUNCATED = 1265
LETTERS = ",".join(f"'{number:02}'" for number in range(64))
LETTERS_AND_NONE = ",".join(f"'{number:02}'" for number in range(63)) + ",''"
WORDS = ["", "a", "A", "a ", "a\0", "\0", "'", "\\", "%", "_", "é", "日本", "0", "1", "1.0", "NULL", "x'41'"]
BINARIES = [b"", b"\0", b"a", b"a\0", b"a ", b"\xff" * 4, b"\0\0\0\0", b"'\\\0", b"1"]
GREATEST_FLOAT, LEAST_FLOAT, LEAST_NORMAL_FLOAT = 3.4028235e38, 1e-45, 1.1754944e-38
GREATEST_DOUBLE, LEAST_DOUBLE, LEAST_NORMAL_DOUBLE = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308


@dataclass(frozen=True)
class Key:
    """A column type, the wire's type and flags, and values that are all different as keys."""

    sql_type: str
    mysql_type: int
    flags: int
    values: list[Any]

    @property
    def is_bytes(self) -> bool:
        return column_of("v", self.mysql_type, self.flags).is_bytes

    def __str__(self) -> str:
        return self.sql_type[:40]


def integers(bits: int) -> list[int]:
    return sorted({-(2 ** (bits - 1)), -(2 ** (bits - 1)) + 1, -1, 0, 1, 2 ** (bits - 2), 2 ** (bits - 1) - 1})


def naturals(bits: int) -> list[int]:
    half, end = 2 ** (bits - 1), 2**bits
    return sorted(number for number in {0, 1, half - 1, half, half + 1, end - 2, end - 1} if number < end)


def collated(sql_type: str, collation: str) -> str:
    return f"{sql_type} CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}"


KEYS = [
    *(Key(name, code, 1, integers(bits)) for name, code, bits in (("tinyint", 1, 8), ("smallint", 2, 16), ("mediumint", 9, 24))),
    *(Key(name, code, 1, integers(bits)) for name, code, bits in (("int", 3, 32), ("bigint", 8, 64))),
    *(Key(f"{name} unsigned", code, 129, naturals(bits)) for name, code, bits in (("tinyint", 1, 8), ("smallint", 2, 16))),
    *(Key(f"{name} unsigned", code, 129, naturals(bits)) for name, code, bits in (("mediumint", 9, 24), ("int", 3, 32))),
    Key("bigint unsigned", 8, 129, [*naturals(64), 2**53, 2**53 + 1]),
    Key("int(5) unsigned zerofill", 3, 129, [0, 7, 2**32 - 1]),
    *(Key(f"bit({bits})", 16, 129, naturals(bits)) for bits in (1, 2, 8, 31, 32, 33, 63, 64)),
    Key("year", 13, 129, [0, 1901, 1970, 2000, 2155]),
    Key("float", 4, 1, [-GREATEST_FLOAT, -3.14, -LEAST_FLOAT, 0.0, LEAST_FLOAT, LEAST_NORMAL_FLOAT, 0.1, 16777216.0, 1e20, GREATEST_FLOAT]),
    Key("double", 5, 1, [-GREATEST_DOUBLE, -0.1, -LEAST_DOUBLE, 0.0, LEAST_DOUBLE, LEAST_NORMAL_DOUBLE, 1 / 3, 1e22, GREATEST_DOUBLE]),
    Key("float", 4, 1, [-0.0, 0.1, 1.0]),
    Key("double", 5, 1, [-0.0, 0.1, 1.0]),
    Key("decimal(65,30)", 246, 1, [f"-{'9' * 35}.{'9' * 30}", "0." + "0" * 30, "0." + "0" * 29 + "1", f"{'9' * 35}.{'9' * 30}"]),
    Key("decimal(20,0)", 246, 1, ["-18446744073709551616", "9007199254740993", "9007199254740992", "18446744073709551615"]),
    Key("decimal(10,2) unsigned", 246, 129, ["0.00", "0.10", "99999999.99"]),
    Key("date", 10, 1, ["0000-00-00", "0001-01-01", "2020-00-00", "2021-01-00", "2021-02-31", "1970-01-01", "9999-12-31"]),
    Key("datetime", 12, 1, ["0000-00-00 00:00:00", "2020-00-00 00:00:00", "2021-02-31 01:02:03", "9999-12-31 23:59:59"]),
    Key("datetime(6)", 12, 1, ["0000-00-00 00:00:00.000000", "2021-02-31 01:02:03.000001", "9999-12-31 23:59:59.999999"]),
    Key("timestamp", 7, 1, ["0000-00-00 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07"]),
    Key("timestamp(6)", 7, 1, ["0000-00-00 00:00:00.000000", "1970-01-01 00:00:01.000001", "2038-01-19 03:14:07.999999"]),
    Key("time", 11, 1, ["-838:59:59", "-00:00:01", "00:00:00", "00:00:01", "100:00:00", "838:59:59"]),
    Key("time(3)", 11, 1, ["-838:59:59.000", "-00:00:00.001", "00:00:00.000", "00:00:00.001", "517:51:04.777", "838:59:59.000"]),
    Key("time(6)", 11, 1, ["-00:00:00.000001", "00:00:00.000000", "00:00:00.000001", "12:00:00.999999"]),
    Key("enum('','a','0','1','b''','c\\\\d','é')", 247, 0, list(range(1, 8))),
    Key("enum('a','0','1')", 247, 0, [0, 1, 2, 3]),
    Key("enum('','a')", 247, 0, [0, 1, 2]),
    Key("enum('é','日本','a') character set utf8mb3", 247, 0, [0, 1, 2, 3]),
    Key("enum('é','a') character set latin1", 247, 0, [0, 1, 2]),
    Key("set('x')", 248, 0, [0, 1]),
    Key("set('','x','y')", 248, 0, [0, 1, 2, 3, 4, 5, 6, 7]),
    Key("set('é','x') character set latin1", 248, 0, [0, 1, 2, 3]),
    Key(f"set({LETTERS_AND_NONE})", 248, 0, [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]),
    Key("set('x','1','0','y''')", 248, 0, list(range(16))),
    Key(f"set({LETTERS})", 248, 0, [0, 1, 2, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]),
    *(Key(collated("varchar(50)", name), 15, 0, WORDS) for name in ("utf8mb4_bin", "utf8mb3_bin")),
    Key(collated("varchar(50)", "gbk_bin"), 15, 0, [word for word in WORDS if word != "é"]),
    Key(collated("varchar(50)", "latin1_bin"), 15, 0, [word for word in WORDS if word != "日本"]),
    Key(collated("char(50)", "utf8mb4_bin"), 254, 0, [word for word in WORDS if not word.endswith(" ")]),
    Key("varbinary(50)", 15, 1, BINARIES),
    Key("binary(4)", 254, 1, [b"\0\0\0\0", b"a\0\0\0", b"a\0\0 ", b"a   ", b"\xff" * 4, b"'\\\0\0"]),
]
"""``a `` and ``a`` are two keys under NO PAD collations only: see ``values_of``."""


def values_of(key: Key) -> list[Any]:
    """Leave out what a collation with PAD SPACE takes for another one."""
    pads = "COLLATE" in key.sql_type
    return [value for value in key.values if not (pads and value == "a ")]


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    connection = open_session(SinkSettings(url=mysql_url), Purpose.WRITE)
    execute_text(connection, f"DROP DATABASE IF EXISTS {SCHEMA}")
    execute_text(connection, f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    yield connection
    run(connection, f"DROP DATABASE {SCHEMA}")
    connection.close()


def run(connection: Connection, statement: str | bytes) -> list[Any]:
    """Run a text as the writer does, and see that the server has nothing to complain about."""
    with driver_of(connection).cursor() as cursor:
        cursor.execute(statement)
        rows, has_warned = list(cursor.fetchall()), cursor.warning_count
        if has_warned:
            cursor.execute("SHOW WARNINGS")
            # ENUM ordinal 0 is stored, and warned of.
            assert [warning for warning in cursor.fetchall() if warning[1] != TRUNCATED] == [], statement
    return rows


@dataclass(frozen=True)
class Table:
    """A table with the key in one arrangement: ``columns`` are the key."""

    session: Connection
    description: TableDescription
    columns: list[str]
    wire: dict[str, WireColumn]

    @property
    def name(self) -> str:
        return f"{SCHEMA}.{self.description.table}"

    def fill(self, values: list[Any], *, whole: bool) -> list[list[str]]:
        """Write a row per value, and return the literals of their keys. ``whole``: by the function for a row, not by those of columns."""
        run(self.session, f"DELETE FROM {self.name}")
        names = [column.name for column in self.description.columns]
        functions = {
            name: DIALECT.literal(column.column, column.mysql_type, is_bytes=column.is_bytes) for name, column in self.wire.items()
        }
        rows = [{"id": number, "v": value, "w": value, "n": None} for number, value in enumerate(values)]
        columns, written = [self.wire[name] for name in names], [tuple(row[name] for name in names) for row in rows]
        if whole:
            statements = rows_at_once(DIALECT, self.description, columns, written)
        else:
            texts = map(exact_row(DIALECT, columns), written)
            statements = [text.encode() for text, _ in DIALECT.replaces(self.description, names, texts)]
        for statement in statements:
            run(self.session, statement)
        return [[functions[name](row[name]) for name in self.columns] for row in rows]

    def delete(self, keys: list[list[str]]) -> None:
        for text, _ in DIALECT.deletes(self.description, self.columns, keys):
            run(self.session, text)

    def left(self) -> list[int]:
        return [number for (number,) in run(self.session, f"SELECT id FROM {self.name} ORDER BY id")]


ARRANGEMENTS = {
    "alone": "v",
    "first": "v,id",
    "last": "id,v",
    "twice": "v,w",
    "beside NULL": "v,n",
}


def make_tables(session: Connection, arrangement: str) -> Iterator[tuple[Key, Table]]:
    """Make a table for each type of key, and describe all of them at once."""
    columns = ARRANGEMENTS[arrangement]
    names = [f"{arrangement.replace(' ', '_')}_{number}" for number in range(len(KEYS))]
    for name, key in zip(names, KEYS, strict=True):
        parts = f"id INT NOT NULL, v {key.sql_type} NOT NULL, w {key.sql_type} NOT NULL, n INT NULL, UNIQUE KEY k ({columns})"
        execute_text(session, f"CREATE TABLE {SCHEMA}.{name} ({parts})")
    described = describe(session, [TableName(SCHEMA, name) for name in names])
    for name, key in zip(names, KEYS, strict=True):
        description = described[TableName(SCHEMA, name).fold()]
        kinds = {"id": (3,), "v": (key.mysql_type, key.is_bytes), "w": (key.mysql_type, key.is_bytes), "n": (3,)}
        wire = {column.name: WireColumn(column, *kinds[column.name]) for column in description.columns}
        yield key, Table(session, description, columns.split(","), wire)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_s17_s18_s19_what_was_written_is_deleted_by_its_key_and_nothing_else_is(
    session: Connection, arrangement: str, subtests: pytest.Subtests
) -> None:
    for key, table in make_tables(session, arrangement):
        with subtests.test(str(key)):
            values = values_of(key)
            everything = list(range(len(values)))
            for whole in (True, False):
                keys = table.fill(values, whole=whole)
                assert table.left() == everything
                table.delete(keys)
                assert table.left() == []
                keys = table.fill(values, whole=whole)
                for number, one in enumerate(keys):
                    table.delete([one])
                    assert table.left() == everything[number + 1 :], values[number]
