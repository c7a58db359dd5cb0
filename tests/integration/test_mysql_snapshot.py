"""Tables as text that shows whether a DDL ran."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, make_url

from applier.model.events import TableName
from applier.sinks.mysql.ddl.snapshot import has_moved, snapshot, states_of
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.integration.odd_name import QUOTED, odd_schema, odd_table, quoted, run


@pytest.fixture(scope="module")
def session(mysql_url: str) -> Iterator[Connection]:
    with odd_schema(mysql_url) as opened:
        yield opened


@pytest.fixture
def table(session: Connection, request: pytest.FixtureRequest) -> Iterator[TableName]:
    with odd_table(session, request.node.name) as name:
        yield name


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
