"""A DDL whose object exists already counts as done only if the sink has all that the statement makes, in the rows too."""

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
LIMITS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
EXISTING = {
    "a table": (
        ["CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x', KEY k (v))"],
        "CREATE TABLE t (id INT, v VARCHAR(9) DEFAULT 'x', PRIMARY KEY (id), INDEX k (v))",
    ),
    "a table if not exists": (["CREATE TABLE t (id INT PRIMARY KEY)"], "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)"),
    "a qualified table": (["CREATE TABLE t (id INT PRIMARY KEY)"], f"CREATE TABLE `{SHOP}`.`t` (id INT PRIMARY KEY)"),
    "a table with a foreign key": (
        ["CREATE TABLE t (id INT PRIMARY KEY, p INT, KEY fk_1 (p), CONSTRAINT fk_1 FOREIGN KEY (p) REFERENCES t (id))"],
        "CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))",
    ),
    "a column": (["CREATE TABLE t (id INT PRIMARY KEY, c INT DEFAULT 7)"], "ALTER TABLE t ADD COLUMN c INT DEFAULT 7"),
    "a column in old rows": (
        ["CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(5) NOT NULL DEFAULT '')", ROWS, "ALTER TABLE t ADD c INT DEFAULT 7"],
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
    ),
    "an index": (["CREATE TABLE t (id INT PRIMARY KEY, v INT, UNIQUE u (id, v))"], "ALTER TABLE t ADD UNIQUE INDEX u (id, v)"),
    "an index by CREATE": (["CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY k (v))", ROWS], "CREATE INDEX k ON t (v)"),
    "a primary key": (["CREATE TABLE t (id INT NOT NULL, PRIMARY KEY (id))"], "ALTER TABLE t ADD PRIMARY KEY (id)"),
    "a partition": (
        [f"CREATE TABLE t (id INT PRIMARY KEY) {LIMITS}"],
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (20))",
    ),
    "a column that is gone": (["CREATE TABLE t (id INT PRIMARY KEY)", ROWS], "ALTER TABLE t DROP COLUMN c"),
    "a changed column": (["CREATE TABLE t (id INT PRIMARY KEY, b BIGINT)"], "ALTER TABLE t CHANGE a b BIGINT"),
    "a column and a modified one": (
        ["CREATE TABLE t (id INT PRIMARY KEY, v BIGINT, c INT)"],
        "ALTER TABLE t ADD COLUMN c INT, MODIFY v BIGINT",
    ),
}

DIFFERENT = {
    "a table with another key": (
        ["CREATE TABLE t (id INT, v INT, PRIMARY KEY (id, v))"],
        "CREATE TABLE t (id INT, v INT NOT NULL, PRIMARY KEY (id))",
        "PRIMARY",
    ),
    "a table with other types": (["CREATE TABLE t (id INT PRIMARY KEY)"], "CREATE TABLE t (id BIGINT PRIMARY KEY)", "id"),
    "a table with another collation": (
        ["CREATE TABLE t (id VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY)"],
        "CREATE TABLE t (id VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY)",
        "utf8mb4_general_ci",
    ),
    "a table with rows": (["CREATE TABLE t (id INT PRIMARY KEY)", ROWS], "CREATE TABLE t (id INT PRIMARY KEY)", "rows"),
    "a table if not exists": (["CREATE TABLE t (other INT PRIMARY KEY)"], "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)", "id"),
    "a table like another": (["CREATE TABLE t (other INT PRIMARY KEY)"], "CREATE TABLE t LIKE model", "id"),
    "a column of another type": (["CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(3))"], "ALTER TABLE t ADD COLUMN c BIGINT", "varchar(3)"),
    "a column with another default": (
        ["CREATE TABLE t (id INT PRIMARY KEY)", ROWS, "ALTER TABLE t ADD c INT DEFAULT 7"],
        "ALTER TABLE t ADD COLUMN c VARCHAR(20)",
        "int",
    ),
    "a column with values of its own": (
        ["CREATE TABLE t (id INT PRIMARY KEY)", ROWS, "ALTER TABLE t ADD c INT DEFAULT 7", "ALTER TABLE t ALTER c SET DEFAULT NULL"],
        "ALTER TABLE t ADD COLUMN c INT",
        "old rows",
    ),
    "a column with values in another case": (
        ["CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(3) COLLATE utf8mb4_general_ci DEFAULT 'a')", "INSERT INTO t VALUES (1, 'A')"],
        "ALTER TABLE t ADD COLUMN c VARCHAR(3) COLLATE utf8mb4_general_ci DEFAULT 'a'",
        "old rows",
    ),
    "a column at another place": (["CREATE TABLE t (id INT PRIMARY KEY, c INT, v INT)"], "ALTER TABLE t ADD COLUMN c INT", "order"),
    "an index on other columns": (
        ["CREATE TABLE t (id INT PRIMARY KEY, v INT, UNIQUE u (v))"],
        "ALTER TABLE t ADD UNIQUE INDEX u (id, v)",
        "u",
    ),
    "an index that is not unique": (["CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY u (v))"], "CREATE UNIQUE INDEX u ON t (v)", "unique"),
    "another primary key": (["CREATE TABLE t (id INT NOT NULL, v INT PRIMARY KEY)"], "ALTER TABLE t ADD PRIMARY KEY (id)", "PRIMARY"),
    "a renamed column": (["CREATE TABLE t (id INT PRIMARY KEY, b INT)"], "ALTER TABLE t RENAME COLUMN a TO b", ""),
}


@pytest.mark.parametrize("what", EXISTING)
def test_a_ddl_whose_whole_result_exists_counts_as_done(shop: Replica, url: str, what: str) -> None:
    prepared, query = EXISTING[what]
    prepare(url, prepared)
    before = read(url, f"SHOW CREATE TABLE {SHOP}.t")
    shop.ddl(query, "t")
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]
    assert read(url, f"SHOW CREATE TABLE {SHOP}.t") == before


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_ddl_whose_result_differs_stops_and_names_the_difference(shop: Replica, url: str, what: str) -> None:
    prepared, query, named = DIFFERENT[what]
    run(url, f"CREATE TABLE {SHOP}.model (id INT PRIMARY KEY)")
    prepare(url, prepared)
    before = read(url, f"SHOW CREATE TABLE {SHOP}.t")
    with pytest.raises(FatalSinkError, match=r"exists|[Dd]uplicate|[Mm]ultiple|[Uu]nknown column") as caught:
        shop.ddl(query, "t")
    assert named in str(caught.value)
    assert "applier ddl done" in caught.value.remedy
    assert (caught.value.facts["query"], caught.value.facts["commit_ts"]) == (query, shop.ts)
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.INTENT]
    assert read(url, f"SHOW CREATE TABLE {SHOP}.t") == before
    assert [row for row in read(url, "SHOW TABLES FROM applier") if "scratch" in row[0]] == []


def test_a_table_without_a_collation_takes_that_of_its_schema(shop: Replica, url: str) -> None:
    run(url, f"ALTER DATABASE {SHOP} CHARACTER SET latin1 COLLATE latin1_bin", f"CREATE TABLE {SHOP}.t (id VARCHAR(9) PRIMARY KEY)")
    shop.ddl("CREATE TABLE t (id VARCHAR(9) PRIMARY KEY)", "t")
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


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


@pytest.mark.parametrize("what", ["a table with rows", "a column with values of its own", "an index that is not unique"])
def test_the_remedy_of_a_ddl_whose_result_differs_drops_nothing_that_holds_rows(shop: Replica, url: str, what: str) -> None:
    prepared, query, _ = DIFFERENT[what]
    run(url, f"CREATE TABLE {SHOP}.model (id INT PRIMARY KEY)")
    prepare(url, prepared)
    with pytest.raises(FatalSinkError) as caught:
        shop.ddl(query, "t")
    words = {"a table with rows": "Or rename it", "a column with values of its own": "`applier verify`"}
    assert words.get(what, "drop the index, which holds no rows") in caught.value.remedy
    assert ("drop" in caught.value.remedy) == (what == "an index that is not unique")


def test_a_column_that_an_if_not_exists_found_is_compared_too(shop: Replica, url: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, c VARCHAR(3))")
    with pytest.raises(FatalSinkError, match="column c"):
        shop.ddl("ALTER TABLE t ADD COLUMN IF NOT EXISTS c BIGINT", "t")
    run(url, f"ALTER TABLE {SHOP}.t MODIFY c BIGINT")
    shop.sink.settle(shop.sink.raise_epoch().fence)
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]


@pytest.mark.parametrize(
    "columns", ["ADD COLUMN IF NOT EXISTS c INT DEFAULT 5, ADD d INT", "ADD COLUMN IF NOT EXISTS (c INT DEFAULT 5, d INT)"]
)
def test_a_column_that_was_made_by_hand_is_compared_also_if_the_statement_makes_another_one(shop: Replica, url: str, columns: str) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
    prepare(url, [ROWS, "ALTER TABLE t ADD c INT", "ALTER TABLE t ALTER c SET DEFAULT 5"])
    with pytest.raises(FatalSinkError, match="column c: old rows hold other values"):
        shop.ddl(f"ALTER TABLE t {columns}", "t")
    run(url, f"UPDATE {SHOP}.t SET c = 5")
    shop.sink.settle(shop.sink.raise_epoch().fence)
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE, DdlState.DONE]


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
