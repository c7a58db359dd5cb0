"""A DDL that finds its result made by hand stops: only the operator knows whether the table and its rows are upstream's."""

import re
from collections.abc import Iterator

import pytest

from applier.model.errors import FatalSinkError
from applier.sinks.ledger_entry import DdlState
from tests.integration.mysql_replica import SHOP, Replica, clean, read, run


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean(mysql_url)
    run(mysql_url, f"CREATE SCHEMA {SHOP} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    yield mysql_url
    clean(mysql_url)


def prepare(url: str, statements: list[str]) -> None:
    """Run statements on the table t of the schema."""
    run(url, *(re.sub(r"\b(TABLE|INTO|REFERENCES) t\b", rf"\1 {SHOP}.t", statement) for statement in statements))


ROWS = "INSERT INTO t (id) VALUES (1)"
EXISTING = {
    "an equal table": (["CREATE TABLE t (id INT PRIMARY KEY)"], "CREATE TABLE t (id INT PRIMARY KEY)"),
    "a table with rows": (["CREATE TABLE t (id INT PRIMARY KEY)", ROWS], "CREATE TABLE t (id INT PRIMARY KEY)"),
    "a table if not exists": (["CREATE TABLE t (id INT PRIMARY KEY)"], "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)"),
    "a column": (["CREATE TABLE t (id INT PRIMARY KEY, c INT DEFAULT 7)"], "ALTER TABLE t ADD COLUMN c INT DEFAULT 7"),
    "a column if not exists": (["CREATE TABLE t (id INT PRIMARY KEY, c INT)"], "ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT"),
    "an index": (["CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY k (v))"], "CREATE INDEX k ON t (v)"),
    "a primary key": (["CREATE TABLE t (id INT NOT NULL, PRIMARY KEY (id))"], "ALTER TABLE t ADD PRIMARY KEY (id)"),
    "a column that is gone": (["CREATE TABLE t (id INT PRIMARY KEY)"], "ALTER TABLE t DROP COLUMN c"),
}


@pytest.mark.parametrize("what", EXISTING)
def test_a_ddl_that_finds_its_result_stops_until_the_operator_says_that_it_is_done(shop: Replica, url: str, what: str) -> None:
    prepared, query = EXISTING[what]
    prepare(url, prepared)
    before = read(url, f"SHOW CREATE TABLE {SHOP}.t")
    with pytest.raises(FatalSinkError) as caught:
        shop.ddl(query, "t")
    assert "applier ddl done" in caught.value.remedy
    assert "applier ddl retry" in caught.value.remedy
    assert (caught.value.facts["query"], caught.value.facts["commit_ts"]) == (query, shop.ts)
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.INTENT]
    # A new start sends it again, and compares nothing.
    with pytest.raises(FatalSinkError):
        shop.sink.settle(shop.sink.raise_epoch().fence)
    assert shop.sink.bookkeeping.resolve_ddl(shop.ts, SHOP, "t", DdlState.DONE) == 1
    shop.sink.settle(shop.sink.raise_epoch().fence)
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]
    assert read(url, f"SHOW CREATE TABLE {SHOP}.t") == before


@pytest.mark.parametrize("query", [f"CREATE DATABASE {SHOP}", f"CREATE DATABASE IF NOT EXISTS {SHOP}", "DROP TABLE t", "DROP VIEW v"])
def test_a_schema_that_exists_and_what_is_dropped_already_need_no_operator(shop: Replica, url: str, query: str) -> None:
    shop.ddl(query, query.rpartition(" ")[2] if "DROP" in query else "")
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]
    assert read(url, f"SHOW TABLES FROM {SHOP}") == []


def test_a_column_that_upstream_had_too_when_the_statement_made_another_is_left_alone(shop: Replica, url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, c VARCHAR(3))", f"INSERT INTO {SHOP}.t VALUES (1, 'x')")
    shop.ddl("ALTER TABLE t ADD COLUMN IF NOT EXISTS c BIGINT, ADD COLUMN IF NOT EXISTS d INT DEFAULT 7", "t")
    assert read(url, f"SELECT * FROM {SHOP}.t") == [(1, "x", 7)]
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


CONDITIONS = {
    "a column and an index": "ADD COLUMN IF NOT EXISTS c VARCHAR(3), ADD INDEX IF NOT EXISTS i (c), ADD COLUMN d INT",
    "in parentheses": "ADD COLUMN IF NOT EXISTS (c VARCHAR(3), d INT)",
    "what is gone": "DROP COLUMN IF EXISTS gone, DROP INDEX IF EXISTS gone, DROP FOREIGN KEY IF EXISTS gone, ADD COLUMN d INT",
    "a change of what is not there": "MODIFY COLUMN IF EXISTS gone BIGINT, CHANGE COLUMN IF EXISTS gone other INT, ADD COLUMN d INT",
}


@pytest.mark.parametrize("what", CONDITIONS)
def test_conditions_are_resolved_clause_by_clause(shop: Replica, url: str, what: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, c VARCHAR(3), KEY i (c))", f"INSERT INTO {SHOP}.t VALUES (1, 'x')")
    shop.ddl(f"ALTER TABLE t {CONDITIONS[what]}", "t")
    assert read(url, f"SELECT * FROM {SHOP}.t") == [(1, "x", None)]
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


@pytest.mark.parametrize(
    "columns", ["ADD COLUMN IF NOT EXISTS c INT DEFAULT 5, ADD d INT", "ADD COLUMN IF NOT EXISTS (c INT DEFAULT 5, d INT)"]
)
def test_a_column_that_was_made_by_hand_stops_also_if_the_statement_makes_another_one(shop: Replica, url: str, columns: str) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
    prepare(url, [ROWS, "ALTER TABLE t ADD c INT"])
    with pytest.raises(FatalSinkError, match="found what it makes: column c") as caught:
        shop.ddl(f"ALTER TABLE t {columns}", "t")
    assert "applier ddl done" in caught.value.remedy


def test_a_column_that_upstream_had_too_keeps_its_values(shop: Replica, url: str) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
    shop.ddl("ALTER TABLE t ADD c INT", "t")
    prepare(url, [ROWS])
    shop.ddl("ALTER TABLE t ADD COLUMN IF NOT EXISTS c BIGINT DEFAULT 5, ADD COLUMN IF NOT EXISTS d INT DEFAULT 7", "t")
    assert read(url, f"SELECT * FROM {SHOP}.t") == [(1, None, 7)]


def test_old_rows_of_a_new_json_column_hold_the_value_null(shop: Replica, url: str) -> None:
    prepare(url, ["CREATE TABLE t (id INT PRIMARY KEY)", ROWS])
    shop.ddl("ALTER TABLE t ADD COLUMN j JSON NOT NULL COMMENT 'new' AFTER id, ADD COLUMN (k JSON NOT NULL, l JSON)", "t")
    assert read(url, f"SELECT id, CAST(j AS CHAR), CAST(k AS CHAR), l FROM {SHOP}.t") == [(1, "null", "null", None)]
    # MariaDB checks every JSON column of a row that is written.
    run(url, f"UPDATE {SHOP}.t SET id = 2")
