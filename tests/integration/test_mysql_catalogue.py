"""The sink's catalogue, and tables as text that shows whether a DDL ran."""

import json
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
from sqlalchemy import Connection, make_url

from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.planner.catalogue import TableDescription
from applier.sinks.mysql.catalogue import describe, tables_with_rows
from applier.sinks.mysql.ddl.snapshot import has_moved, snapshot, states_of
from applier.sinks.mysql.information_schema import FEW
from applier.sinks.mysql.session import Purpose, driver_of, open_session
from applier.sinks.settings import SinkSettings
from tests.integration.sent_statements import sent_statements

SCHEMA = "catalogue-täble %s:x"
QUOTED = f"`{SCHEMA}`"


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    connection = open_session(SinkSettings(url=mysql_url), Purpose.CONTROL)
    run(connection, f"DROP DATABASE IF EXISTS {QUOTED}")
    run(connection, f"CREATE DATABASE {QUOTED} DEFAULT CHARACTER SET utf8mb4")
    yield connection
    run(connection, f"DROP DATABASE {QUOTED}")
    connection.close()


@pytest.fixture
def table(session: Connection, request: pytest.FixtureRequest) -> Iterator[TableName]:
    """A name of the test's own, with everything in it that a name can have; the table is dropped in the end."""
    name = TableName(SCHEMA, f"t-{crc32(request.node.name.encode())} %d:é")
    yield name
    run(session, f"DROP TABLE IF EXISTS {quoted(name)}")


def quoted(name: TableName) -> str:
    return f"`{name.schema}`.`{name.table}`"


def run(connection: Connection, statement: str) -> None:
    # As DDL runs: with autocommit off, MariaDB's EXCHANGE PARTITION waits for itself.
    connection.commit()
    driver = driver_of(connection)
    driver.autocommit(True)
    with driver.cursor() as cursor:
        cursor.execute(statement)
    driver.autocommit(False)


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
            pytest.skip("this server does not tell names of different case apart")
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


DDLS = {
    "add column": "ALTER TABLE {t} ADD COLUMN more int",
    "drop column": "ALTER TABLE {t} DROP COLUMN b",
    "modify column": "ALTER TABLE {t} MODIFY COLUMN b bigint NULL",
    "add index": "ALTER TABLE {t} ADD INDEX extra (b)",
    "rename index": "ALTER TABLE {t} RENAME INDEX by_b TO other",
    "comment": "ALTER TABLE {t} COMMENT 'new'",
    "set default": "ALTER TABLE {t} ALTER COLUMN b SET DEFAULT 9",
    "drop table": "DROP TABLE {t}",
    "rename table": "RENAME TABLE {t} TO {other}",
    "drop partition": "ALTER TABLE {t} DROP PARTITION p0",
    "add partition": "ALTER TABLE {t} ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))",
    "exchange partition": "ALTER TABLE {t} EXCHANGE PARTITION p1 WITH TABLE {other}",
}
COLUMNS = "(a int NOT NULL AUTO_INCREMENT, b int NULL, PRIMARY KEY (a), KEY by_b (b))"
PARTITIONS = " PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"


@pytest.mark.parametrize("ddl", DDLS)
@pytest.mark.parametrize("filled", [True, False], ids=["with rows", "empty"])
def test_a_snapshot_shows_that_a_ddl_ran(session: Connection, table: TableName, ddl: str, *, filled: bool) -> None:
    other = TableName(table.schema, table.table + " other")
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS}{PARTITIONS if 'partition' in ddl else ''}")
    if filled:
        run(session, f"INSERT INTO {quoted(table)} VALUES (1, 1), (15, 1)")
    if ddl == "exchange partition":
        run(session, f"CREATE TABLE {quoted(other)} {COLUMNS}")
    try:
        before = snapshot(session, [table, other])
        assert snapshot(session, [other, table]) == before
        run(session, DDLS[ddl].format(t=quoted(table), other=quoted(other)))
        were, now = states_of(before), states_of(snapshot(session, [table, other]))
        assert not were.has_same_definitions(now, [table, other]) or has_moved(were, now)
    finally:
        run(session, f"DROP TABLE IF EXISTS {quoted(other)}")


def test_a_snapshot_shows_a_truncate_by_the_rows_that_are_gone(session: Connection, table: TableName) -> None:
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS}")
    run(session, f"INSERT INTO {quoted(table)} VALUES (1, 1)")
    before = states_of(snapshot(session, [table]))
    run(session, f"TRUNCATE TABLE {quoted(table)}")
    assert (before.has_rows(table), states_of(snapshot(session, [table])).has_rows(table)) == (True, False)


def test_storage_ids_of_tables_that_were_created_again_prove_nothing(session: Connection, table: TableName) -> None:
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS}{PARTITIONS}")
    before = states_of(snapshot(session, [table]))
    assert has_moved(before, before) is False
    run(session, f"DROP TABLE {quoted(table)}")
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS}{PARTITIONS}")
    now = states_of(snapshot(session, [table]))
    assert before.has_same_definitions(now, [table])
    assert has_moved(before, now) is None


def test_a_snapshot_shows_that_a_table_was_created(session: Connection, table: TableName) -> None:
    before = snapshot(session, [table])
    assert json.loads(before) == {str(table.fold()): None}
    run(session, f"CREATE TABLE {quoted(table)} (a int)")
    assert snapshot(session, [table]) != before


def test_a_snapshot_does_not_change_without_a_ddl(session: Connection, table: TableName) -> None:
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS} COMMENT 'x'")
    run(session, f"INSERT INTO {quoted(table)} VALUES (1, 1)")
    before = snapshot(session, [table])
    run(session, f"INSERT INTO {quoted(table)} VALUES (NULL, 2)")
    run(session, f"DELETE FROM {quoted(table)} WHERE a = 1")
    run(session, f"ANALYZE TABLE {quoted(table)}")
    assert snapshot(session, [table]) == before


def test_exchange_of_a_partition_shows_as_swapped_storage_ids(session: Connection, table: TableName) -> None:
    other = TableName(table.schema, table.table + " other")
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS}{PARTITIONS}")
    run(session, f"CREATE TABLE {quoted(other)} {COLUMNS}")
    try:
        before = storage_ids(session, table)["p1"], storage_ids(session, other)[""]
        run(session, DDLS["exchange partition"].format(t=quoted(table), other=quoted(other)))
        assert (storage_ids(session, other)[""], storage_ids(session, table)["p1"]) == before
    finally:
        run(session, f"DROP TABLE IF EXISTS {quoted(other)}")


def storage_ids(connection: Connection, name: TableName) -> dict[str, int]:
    ids: dict[str, int] = json.loads(snapshot(connection, [name]))[str(name.fold())]["storage_ids"]
    return ids


def test_a_snapshot_of_a_schema_shows_its_existence_and_its_character_set_and_not_its_tables(session: Connection) -> None:
    schema = TableName("catalogue_made", "")
    run(session, "DROP DATABASE IF EXISTS catalogue_made")
    states: list[Any] = [snapshot(session, [schema])]
    for statement in ("CREATE DATABASE catalogue_made CHARACTER SET latin1", "ALTER DATABASE catalogue_made CHARACTER SET utf8mb4"):
        run(session, statement)
        states.append(snapshot(session, [schema]))
    run(session, "CREATE TABLE catalogue_made.t (a int)")
    assert snapshot(session, [schema]) == states[-1]
    run(session, "DROP DATABASE catalogue_made")
    assert snapshot(session, [schema]) == states[0]
    assert len(set(states)) == 3


def test_a_view_is_seen_too(session: Connection, table: TableName) -> None:
    view = TableName(table.schema, table.table + " view")
    before = snapshot(session, [view])
    run(session, f"CREATE VIEW {quoted(view)} AS SELECT 1 AS one")
    try:
        assert snapshot(session, [view]) != before
    finally:
        run(session, f"DROP VIEW {quoted(view)}")


def test_a_view_looks_the_same_whatever_schema_the_session_is_in(session: Connection, table: TableName) -> None:
    view = TableName(table.schema, table.table + " view")
    run(session, f"CREATE TABLE {quoted(table)} (a int)")
    run(session, f"CREATE VIEW {quoted(view)} AS SELECT a FROM {quoted(table)}")
    try:
        run(session, "USE information_schema")
        before = snapshot(session, [view])
        run(session, f"USE {QUOTED}")
        assert snapshot(session, [view]) == before
    finally:
        run(session, f"DROP VIEW {quoted(view)}")


def test_without_the_process_privilege_storage_ids_are_unknown(session: Connection, table: TableName, mysql_url: str) -> None:
    run(session, f"CREATE TABLE {quoted(table)} {COLUMNS}")
    for user in ("catalogue_reader@'%'", "catalogue_reader@localhost"):
        run(session, f"DROP USER IF EXISTS {user}")
        run(session, f"CREATE USER {user} IDENTIFIED BY 'reader'")
        run(session, f"GRANT SELECT, CREATE, ALTER ON *.* TO {user}")
    try:
        url = make_url(mysql_url).set(username="catalogue_reader", password="reader").render_as_string(hide_password=False)  # noqa: S106
        reader = open_session(SinkSettings(url=url), Purpose.CONTROL)
        states = json.loads(snapshot(reader, [table]))
        reader.close()
        assert states[str(table.fold())]["storage_ids"] is None
        assert states[str(table.fold())]["has_rows"] is False
    finally:
        run(session, "DROP USER catalogue_reader@'%', catalogue_reader@localhost")
