"""Literals against the server itself: what is stored, and which row a key finds, are exactly the value's own."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.session import driver_of, execute_text
from applier.planner.port import TableDescription, WireColumn
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.integration.literal_case import CASES, KEYED, Case, exact_row, hexed, rows_at_once

SCHEMA = "literals `%s:name"


QUOTED = "`literals ``%s:name`"


DIALECT = MysqlDialect()


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    connection = open_session(SinkSettings(url=mysql_url), Purpose.WRITE)
    run(connection, f"DROP DATABASE IF EXISTS {QUOTED}")
    run(connection, f"CREATE DATABASE {QUOTED} DEFAULT CHARACTER SET utf8mb4")
    yield connection
    run(connection, f"DROP DATABASE {QUOTED}")
    connection.close()


def run(connection: Connection, statement: str | bytes) -> list[Any]:
    """Run a text as the writer does, and see that the server has nothing to complain about."""
    with driver_of(connection).cursor() as cursor:
        cursor.execute(statement)
        rows, has_warned = list(cursor.fetchall()), cursor.warning_count
        if has_warned:
            cursor.execute("SHOW WARNINGS")
            assert [warning for warning in cursor.fetchall() if not _is_usual(warning)] == []
    return rows


def _is_usual(warning: tuple[str, int, str]) -> bool:
    """Return whether it is about a schema that is not there yet, or a character set that MySQL takes and does not like."""
    return "database doesn't exist" in warning[2] or warning[1] in {1287, 3778}


def create(connection: Connection, columns: str) -> TableDescription:
    """Make the table `t`, and describe it."""
    if describe(connection, [TableName(SCHEMA, "t")]):
        run(connection, f"DROP TABLE {QUOTED}.t")
    run(connection, f"CREATE TABLE {QUOTED}.t ({columns})")
    return describe(connection, [TableName(SCHEMA, "t")])[TableName(SCHEMA, "t").fold()]


def columns_of(table: TableDescription, case: Case) -> list[WireColumn]:
    """The number, and the column of the case."""
    return [WireColumn(table.columns[0], 3), WireColumn(table.columns[1], case.mysql_type, case.is_bytes)]


def insert(connection: Connection, table: TableDescription, rows: list[str]) -> None:
    for text, _ in DIALECT.replaces(table, [column.name for column in table.columns], rows):
        run(connection, text)


@pytest.mark.parametrize("whole", [True, False], ids=["all rows at once", "value by value"])
def test_s17_s18_s19_a_value_is_stored_exactly(session: Connection, subtests: pytest.Subtests, *, whole: bool) -> None:
    for case in CASES:
        with subtests.test(str(case)):
            table = create(session, f"id int NOT NULL PRIMARY KEY, v {case.sql_type} NULL DEFAULT NULL")
            columns, values = columns_of(table, case), [*case.values, None]
            if whole:
                for statement in rows_at_once(DIALECT, table, columns, list(enumerate(values))):
                    run(session, statement)
            else:
                insert(session, table, list(map(exact_row(DIALECT, columns), enumerate(values))))
            found = [value for (value,) in run(session, f"SELECT {case.read} FROM {QUOTED}.t ORDER BY id")]
            assert found == [None if value is None else case.stored(value) for value in values]


@pytest.mark.parametrize("compound", [False, True], ids=["single key", "compound key"])
def test_a_key_finds_its_row_and_no_other_and_uses_the_index(session: Connection, subtests: pytest.Subtests, *, compound: bool) -> None:
    for case in KEYED:
        with subtests.test(str(case)):
            table = create(session, f"id int NOT NULL, v {case.sql_type} NOT NULL, PRIMARY KEY ({'v, id' if compound else 'v'})")
            number, literal = (
                DIALECT.literal(column.column, column.mysql_type, is_bytes=column.is_bytes) for column in columns_of(table, case)
            )
            insert(session, table, [f"({number(row)},{literal(value)})" for row, value in enumerate(case.values)])
            columns = ["v", "id"] if compound else ["v"]
            keys = [[literal(value), number(row)][: len(columns)] for row, value in enumerate(case.values)]
            left = list(range(len(keys)))
            for row in range(len(keys)):
                [(text, _)] = DIALECT.deletes(table, columns, keys[row : row + 1])
                assert key_in_use(session, text) == "PRIMARY"
                run(session, text)
                left.remove(row)
                assert sorted(found for (found,) in run(session, f"SELECT id FROM {QUOTED}.t")) == left


def test_a_list_of_compound_keys_finds_all_of_its_rows_and_uses_the_index(session: Connection, subtests: pytest.Subtests) -> None:
    for case in KEYED:
        with subtests.test(str(case)):
            table = create(session, f"id int NOT NULL, v {case.sql_type} NOT NULL, PRIMARY KEY (v, id)")
            number, literal = (
                DIALECT.literal(column.column, column.mysql_type, is_bytes=column.is_bytes) for column in columns_of(table, case)
            )
            rows = range(0, 3000, len(case.values))
            insert(session, table, [f"({number(row + n)},{literal(value)})" for row in rows for n, value in enumerate(case.values)])
            keys = [[literal(value), number(row)] for row, value in enumerate(case.values)]
            for text, _ in DIALECT.deletes(table, ["v", "id"], keys):
                assert key_in_use(session, text) == "PRIMARY"
                run(session, text)
            assert run(session, f"SELECT MIN(id) FROM {QUOTED}.t") == [(len(keys),)]


def key_in_use(connection: Connection, statement: str) -> str | None:
    run(connection, f"ANALYZE TABLE {QUOTED}.t")
    [plan] = connection.exec_driver_sql("EXPLAIN FORMAT=TRADITIONAL " + statement.replace("%", "%%")).mappings()
    return plan["key"]


@pytest.mark.parametrize("null", [False, True], ids=["alone", "beside NULL"])
def test_a_list_of_keys_finds_all_of_its_rows_null_safe_or_not(session: Connection, subtests: pytest.Subtests, *, null: bool) -> None:
    for case in KEYED:
        with subtests.test(str(case)):
            table = create(session, f"id int NOT NULL, v {case.sql_type} NOT NULL, n int NULL, KEY (v)")
            number, literal = (
                DIALECT.literal(column.column, column.mysql_type, is_bytes=column.is_bytes) for column in columns_of(table, case)
            )
            insert(session, table, [f"({number(row)},{literal(value)},NULL)" for row, value in enumerate(case.values)])
            keys = [[literal(value), *(["NULL"] if null else [])] for value in case.values]
            for text, _ in DIALECT.deletes(table, ["v", "n"] if null else ["v"], keys):
                run(session, text)
            assert run(session, f"SELECT id FROM {QUOTED}.t") == []


def test_text_that_is_not_utf8_is_found_and_kept_byte_by_byte_where_the_sink_can_hold_it(session: Connection) -> None:
    table = create(session, "id int NOT NULL, v varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL PRIMARY KEY")
    literal = DIALECT.literal(table.columns[1], 15)
    insert(session, table, [f"(1,{literal(chr(0xDCFF) + 'a')})", f"(2,{literal('b')})"])
    assert run(session, f"SELECT HEX(v) FROM {QUOTED}.t WHERE id = 1") == [("FF61",)]
    for text, _ in DIALECT.deletes(table, ["v"], [[literal(chr(0xDCFF) + "a")], [literal("b")]]):
        run(session, text)
    assert run(session, f"SELECT id FROM {QUOTED}.t") == []


def test_keys_are_found_by_the_columns_own_collation_in_lists_and_apart(session: Connection) -> None:
    for words in (["Straße", "ÉTÉ"], ["Plain", "ASCII"]):
        for charset in ("utf8mb4 COLLATE utf8mb4_general_ci", "utf8mb3 COLLATE utf8mb3_general_ci", "latin1 COLLATE latin1_swedish_ci"):
            for key in (["v"], ["v", "id"]):
                table = create(session, f"id int NOT NULL, v varchar(20) CHARACTER SET {charset} NOT NULL, PRIMARY KEY (v, id)")
                literal = DIALECT.literal(table.columns[1], 15)
                insert(session, table, [f"({number},{literal(word)})" for number, word in enumerate(words)])
                keys = [[literal(word.swapcase() if word.isascii() else word.lower()), str(number)] for number, word in enumerate(words)]
                for text, _ in DIALECT.deletes(table, key, [row[: len(key)] for row in keys]):
                    run(session, text)
                assert run(session, f"SELECT id FROM {QUOTED}.t") == []


def test_a_negative_zero_is_found_among_other_doubles(session: Connection) -> None:
    table = create(session, "id int NOT NULL, v double NOT NULL, PRIMARY KEY (v, id)")
    literal = DIALECT.literal(table.columns[1], 5)
    for key in (["v"], ["v", "id"]):
        insert(session, table, [f"({number},{literal(value)})" for number, value in enumerate([-0.0, 0.1, 1e300])])
        keys = [[literal(value), str(number)][: len(key)] for number, value in enumerate([-0.0, 0.1])]
        for text, _ in DIALECT.deletes(table, key, keys):
            run(session, text)
        assert run(session, f"SELECT id FROM {QUOTED}.t") == [(2,)]


def test_text_in_a_column_with_a_generated_one_behind_it_is_not_binary(session: Connection) -> None:
    table = create(session, "id int NOT NULL PRIMARY KEY, v varchar(20) NOT NULL, up varchar(40) AS (upper(v)) STORED")
    assert [column.name for column in table.columns if column.generated] == ["up"]
    literal = DIALECT.literal(table.columns[1], 15)
    for text, _ in DIALECT.replaces(table, ["id", "v"], [f"(1,{literal('é')})"]):
        run(session, text)
    assert run(session, f"SELECT up FROM {QUOTED}.t") == [("É",)]


def test_ordinal_zero_of_an_enum_is_stored_and_is_the_one_literal_that_warns(session: Connection) -> None:
    table = create(session, "id int NOT NULL PRIMARY KEY, v enum('0','a') NULL")
    [text] = rows_at_once(DIALECT, table, columns_of(table, Case("enum", 247, 0, [])), [(1, 0)])
    execute_text(session, text)
    assert [(code, message) for _, code, message in session.exec_driver_sql("SHOW WARNINGS")] == [
        (1265, "Data truncated for column 'v' at row 1")
    ]
    assert run(session, f"SELECT v, v + 0 FROM {QUOTED}.t") == [("", 0)]
    [(text, _)] = DIALECT.deletes(table, ["v"], [[DIALECT.literal(table.columns[1], 247)(0)]])
    run(session, text)
    assert run(session, f"SELECT id FROM {QUOTED}.t") == []


@pytest.fixture(scope="module")
def free_text(session: Connection) -> TableDescription:
    run(session, f"CREATE TABLE {QUOTED}.free (id int NOT NULL PRIMARY KEY, v longtext NOT NULL, d double NOT NULL)")
    return describe(session, [TableName(SCHEMA, "free")])[TableName(SCHEMA, "free").fold()]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=20,
    )
)
def test_any_text_and_any_double_come_back(session: Connection, free_text: TableDescription, rows: list[tuple[str, float]]) -> None:
    types = [(3, False), (251, False), (5, False)]
    columns = [WireColumn(column, *kind) for column, kind in zip(free_text.columns, types, strict=True)]
    run(session, f"DELETE FROM {QUOTED}.free")
    for statement in rows_at_once(DIALECT, free_text, columns, [(number, *values) for number, values in enumerate(rows)]):
        run(session, statement)
    found = run(session, f"SELECT HEX(v), d FROM {QUOTED}.free ORDER BY id")
    assert found == [(hexed(text), number) for text, number in rows]
