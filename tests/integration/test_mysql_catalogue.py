"""The sink's catalogue, and tables as text that shows whether a DDL ran."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.mysql.catalogue import FEW, describe, tables_with_rows
from applier.planner.port import TableDescription
from tests.integration.odd_name import SCHEMA, odd_schema, odd_table, quoted, run
from tests.integration.sent_statements import sent_statements


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    with odd_schema(mysql_url) as opened:
        yield opened


@pytest.fixture
def table(session: Connection, request: pytest.FixtureRequest) -> Iterator[TableName]:
    with odd_table(session, request.node.name) as name:
        yield name


def described(connection: Connection, name: TableName) -> TableDescription:
    return describe(connection, [name])[name.fold()]


def test_columns_are_described_as_they_are(session: Connection, table: TableName) -> None:
    run(
        session,
        f"CREATE TABLE {quoted(table)} (Id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,"
        " v int AS (d + 1) VIRTUAL, s int AS (d + 2) STORED,"
        " raw varbinary(9) NOT NULL, c char(3) CHARACTER SET binary, b blob, t text, j json,"
        " d int NOT NULL DEFAULT 3, n int NULL DEFAULT NULL, w datetime DEFAULT CURRENT_TIMESTAMP,"
        " e enum('a','it''s','b,c','d\\\\e'), m set('x','y'))",
    )
    columns = {column.name: column for column in described(session, table).columns}
    assert list(columns) == ["Id", "v", "s", "raw", "c", "b", "t", "j", "d", "n", "w", "e", "m"]
    assert columns["Id"].sql_type.startswith("bigint")
    assert [name for name, column in columns.items() if column.generated] == ["v", "s"]
    assert [name for name, column in columns.items() if column.binary] == ["raw", "c", "b"]
    assert [name for name, column in columns.items() if not column.nullable] == ["Id", "raw", "d"]
    assert [name for name, column in columns.items() if column.has_default] == ["Id", "d", "w"]
    assert [name for name, column in columns.items() if column.default is None] == ["raw"]
    assert columns["e"].labels == ("a", "it's", "b,c", "d\\e")
    assert (columns["m"].labels, columns["m"].is_set, columns["e"].is_set) == (("x", "y"), True, False)


def test_defaults_and_expressions_that_are_no_text_are_described(session: Connection, table: TableName) -> None:
    columns = "id INT PRIMARY KEY, b VARBINARY(9) DEFAULT 0xEDA080, g VARBINARY(9) AS (CONCAT(b, 0xEDA080)) VIRTUAL, n BINARY(2) NULL"
    run(session, f"CREATE TABLE {quoted(table)} ({columns})")
    facts = {column.name: (column.has_default, column.generated) for column in described(session, table).columns}
    assert facts == {"id": (False, False), "b": (True, False), "g": (False, True), "n": (False, False)}


def test_only_unique_indexes_of_whole_columns_that_are_never_null_are_keys(session: Connection, table: TableName) -> None:
    run(
        session,
        f"CREATE TABLE {quoted(table)} (z int NOT NULL, a int NOT NULL, n int NULL, t varchar(50) NOT NULL, p int NOT NULL,"
        " PRIMARY KEY (z, a), UNIQUE plain (t, p), UNIQUE prefix (t(5)), UNIQUE nullable (n), UNIQUE half (p, n), KEY ordinary (p))",
    )
    description = described(session, table)
    assert description.unique_keys == (("z", "a"), ("t", "p"))
    assert description.primary_key == ("z", "a")


def test_an_index_that_the_optimizer_ignores_is_no_key(session: Connection, table: TableName) -> None:
    word = "IGNORED" if session.dialect.is_mariadb else "INVISIBLE"
    run(session, f"CREATE TABLE {quoted(table)} (a int NOT NULL, b int NOT NULL, UNIQUE first (a), UNIQUE hidden (b) {word})")
    assert described(session, table).unique_keys == (("a",),)
    assert described(session, table).primary_key == ()


def test_missing_tables_and_schemas_are_left_out(session: Connection, table: TableName) -> None:
    assert describe(session, [table, TableName("no such schema", "t")]) == {}
    assert describe(session, []) == {}


def test_many_tables_are_described_in_as_many_statements_as_one(session: Connection) -> None:
    names = [TableName(SCHEMA, f"many{number}") for number in range(FEW + 5)]
    try:
        for number, name in enumerate(names):
            run(session, f"CREATE TABLE {quoted(name)} (id int PRIMARY KEY, v{number} int, UNIQUE u (v{number}))")
        with sent_statements(session) as for_one:
            alone = describe(session, names[3:4])
        with sent_statements(session) as for_many:
            together = describe(session, names)
        assert {folded: table for folded, table in together.items() if folded in alone} == alone
        assert [together[name.fold()].columns[1].name for name in names] == [f"v{number}" for number in range(len(names))]
        assert [together[name.fold()].unique_indexes[1].columns for name in names] == [(f"v{number}",) for number in range(len(names))]
        assert len(for_many) == len(for_one) <= 4
        run(session, f"INSERT INTO {quoted(names[-1])} VALUES (1, 1)")
        with sent_statements(session) as looks:
            assert tables_with_rows(session, names) == {names[-1].fold()}
        assert len(looks) <= 4
    finally:
        run(session, "DROP TABLE IF EXISTS " + ", ".join(map(quoted, names)))


def test_a_table_is_found_without_regard_to_case_and_described_as_the_server_spells_it(session: Connection, table: TableName) -> None:
    run(session, f"CREATE TABLE {quoted(table)} (a int)")
    shouting = TableName(table.schema.upper(), table.table.upper())
    found = describe(session, [shouting])[table.fold()]
    assert TableName(found.schema, found.table) == table


def test_of_names_that_differ_in_case_only_the_one_spelled_as_upstream_spells_it_counts(session: Connection, table: TableName) -> None:
    twin = TableName(table.schema, table.table.upper())
    run(session, f"CREATE TABLE {quoted(table)} (a int)")
    try:
        run(session, f"CREATE TABLE IF NOT EXISTS {quoted(twin)} (b int)")
        if [column.name for column in described(session, twin).columns] == ["a"]:
            pytest.skip("this server does not distinguish names of different case")
        assert [column.name for column in described(session, table).columns] == ["a"]
        with pytest.raises(NeedsOperator, match="only in case"):
            describe(session, [TableName(table.schema, table.table.capitalize())])
    finally:
        run(session, f"DROP TABLE IF EXISTS {quoted(twin)}")


def test_a_table_has_rows_only_if_it_exists_and_holds_one(session: Connection, table: TableName) -> None:
    assert tables_with_rows(session, [table]) == frozenset()
    run(session, f"CREATE TABLE {quoted(table)} (a int)")
    assert tables_with_rows(session, [table]) == frozenset()
    run(session, f"INSERT INTO {quoted(table)} VALUES (1)")
    assert tables_with_rows(session, [table, TableName(SCHEMA, "missing")]) == {table.fold()}
    assert tables_with_rows(session, []) == frozenset()
