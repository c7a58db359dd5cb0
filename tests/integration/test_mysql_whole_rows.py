"""Tables without a key on the server itself: a DELETE of a whole row finds that row, whatever equality means there."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import execute_text
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.integration.test_mysql_keys import KEYS, WORDS, Key, collated, run

SCHEMA = "applier_test_whole_rows"
KEYED = MysqlDialect()
DIALECT = KEYED.whole_rows()
COLUMNS = [
    *KEYS,
    *(Key(collated("varchar(50)", name), 15, 0, WORDS) for name in ("utf8mb4_general_ci", "utf8mb4_unicode_ci")),
    Key("text", 252, 0, [*WORDS, "a" * 3_000]),
    Key("longblob", 251, 1, [b"", b"\0", bytes(range(256))]),
    Key("json", 245, 1, ['{"a": 1}', '{"a": 1.5}', '{"a": "1"}', '"a"', '"A"', "1", "null", "[]", '{"é": "日本 \\u0001"}']),
]


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    connection = open_session(SinkSettings(url=mysql_url), Purpose.WRITE)
    execute_text(connection, f"DROP DATABASE IF EXISTS {SCHEMA}")
    execute_text(connection, f"CREATE DATABASE {SCHEMA} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    yield connection
    run(connection, f"DROP DATABASE {SCHEMA}")
    connection.close()


def test_s22_a_whole_row_is_deleted_and_no_other(session: Connection, subtests: pytest.Subtests) -> None:
    for number, column in enumerate(COLUMNS):
        execute_text(session, f"CREATE TABLE {SCHEMA}.t{number} (id INT NOT NULL AUTO_INCREMENT, v {column.sql_type} NULL, INDEX (id))")
    described = describe(session, [TableName(SCHEMA, f"t{number}") for number in range(len(COLUMNS))])
    for number, column in enumerate(COLUMNS):
        table = described[TableName(SCHEMA, f"t{number}").fold()]
        literal = KEYED.literal(table.columns[1], column.mysql_type, is_bytes=column.is_bytes)
        rows = [literal(value) for value in [*column.values, None]]
        with subtests.test(str(column)):
            for text, _ in DIALECT.replaces(table, ["v"], (f"({row})" for row in rows)):
                run(session, text)
            for gone, row in enumerate(rows, 1):
                # Twice the same delete: the second finds nothing, since every other row differs.
                for text, _ in DIALECT.deletes(table, ["v"], [[row], [row]]):
                    run(session, text)
                left = [one for (one,) in run(session, f"SELECT id FROM {SCHEMA}.t{number} ORDER BY id")]
                assert left == list(range(gone + 1, len(rows) + 1)), row


def test_one_of_several_equal_rows_is_deleted(session: Connection) -> None:
    execute_text(session, f"CREATE TABLE {SCHEMA}.equal (v INT, w VARCHAR(9))")
    table = describe(session, [TableName(SCHEMA, "equal")])[TableName(SCHEMA, "equal").fold()]
    for text, _ in DIALECT.replaces(table, ["v", "w"], ["(1,'a')"] * 3):
        run(session, text)
    for text, number in DIALECT.deletes(table, ["v", "w"], [["1", "'a'"], ["1", "'a'"]]):
        assert execute_text(session, text)[0] == number == 1
    assert run(session, f"SELECT v, w FROM {SCHEMA}.equal") == [(1, "a")]


def test_of_two_zeros_that_of_the_same_sign_is_deleted(session: Connection) -> None:
    execute_text(session, f"CREATE TABLE {SCHEMA}.zeros (v DOUBLE)")
    table = describe(session, [TableName(SCHEMA, "zeros")])[TableName(SCHEMA, "zeros").fold()]
    literal = KEYED.literal(table.columns[0], 5)
    for first, last in ((0.0, -0.0), (-0.0, 0.0)):
        for text, _ in DIALECT.replaces(table, ["v"], [f"({literal(first)})", f"({literal(last)})"]):
            run(session, text)
        for value, left in ((last, [first]), (first, [])):
            for text, _ in DIALECT.deletes(table, ["v"], [[literal(value)]]):
                assert execute_text(session, text)[0] == 1
            # MariaDB stores both without a sign, and shows none.
            shown = [one for (one,) in run(session, f"SELECT CAST(v AS CHAR) FROM {SCHEMA}.zeros")]
            assert shown == [f"{number:g}" for number in left] or shown == ["0"] * len(left)
