"""Indexes and foreign keys that upstream has left unnamed have upstream's names in the sink, on a real server."""

import pytest

from applier.ddl.generated_name import MYSQL_NAMING, TableNames, with_generated_names
from applier.model.errors import NeedsOperator
from applier.sinks.ledger_entry import DdlState
from tests.integration.mysql_replica import SHOP, Replica, read, run

OF_MYSQL = [
    ("CREATE TABLE t (a INT UNIQUE, b INT, PRIMARY KEY (a), KEY (a), KEY a_3 (b), UNIQUE (a, b))", "ALTER TABLE t ADD INDEX (a)"),
    ("CREATE TABLE t (`primary` INT, b INT, KEY (`primary`), KEY (`primary`, b))", "ALTER TABLE t ADD UNIQUE (`primary`)"),
    ("CREATE TABLE t (id SERIAL, KEY (id))", "ALTER TABLE t RENAME INDEX id TO b, ADD b INT UNIQUE, ADD INDEX (b), ADD KEY (id)"),
    ("CREATE TABLE t (a INT, b INT, KEY (a))", "ALTER TABLE t DROP INDEX a, MODIFY a INT UNIQUE, ADD INDEX (a, b), ADD INDEX (b)"),
    ("CREATE TABLE t (a INT, KEY ((a + 1)), KEY (a, (a + 2)), KEY (a))", "ALTER TABLE t DROP INDEX functional_index, ADD KEY ((a + 3))"),
]

FOREIGN_KEY = "FOREIGN KEY (a) REFERENCES p (id)"


def indexes(url: str, table: str = "t") -> set[str]:
    query = f"SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{SHOP}' AND TABLE_NAME = '{table}'"
    return {name for (name,) in read(url, query)}


def foreign_keys(url: str) -> list[tuple[str, str]]:
    query = f"SELECT TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = '{SHOP}'"
    return sorted(tuple(row) for row in read(url, query))  # type: ignore[misc]


def test_an_index_of_an_expression_is_dropped_by_the_name_that_tidb_gave_it(shop: Replica, url: str) -> None:
    has_expressions = "MariaDB" not in read(url, "SELECT VERSION()")[0][0]
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY ((a + 1)))", "t")
    shop.ddl("ALTER TABLE t ADD INDEX ((a + 2)), ADD INDEX (a)", "t")
    expected = {"expression_index", "expression_index_2"} if has_expressions else set()
    assert indexes(url) == {"PRIMARY", "a"} | expected
    shop.ddl("ALTER TABLE t DROP INDEX expression_index", "t")
    shop.ddl("ALTER TABLE t DROP INDEX a, ADD INDEX (a)", "t")
    assert indexes(url) == {"PRIMARY", "a_2"} | expected - {"expression_index"}
    shop.ddl("RENAME TABLE t TO u", "u")
    shop.ddl("DROP INDEX expression_index_2 ON u", "u")
    assert indexes(url, "u") == {"PRIMARY", "a_2"}


def test_a_unique_index_of_an_expression_goes_with_upstreams(shop: Replica, url: str) -> None:
    query = "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE ((a % 2)))"
    if "MariaDB" in read(url, "SELECT VERSION()")[0][0]:
        with pytest.raises(NeedsOperator, match="unique index of an expression"):
            shop.ddl(query, "t")
        return
    shop.ddl(query, "t")
    shop.ddl("ALTER TABLE t DROP INDEX expression_index", "t")
    shop.write(*(f"REPLACE INTO {SHOP}.t (id, a) VALUES ({number}, {number})" for number in range(4)))
    assert read(url, f"SELECT COUNT(*) FROM {SHOP}.t") == [(4,)]


@pytest.mark.parametrize("query", ["ALTER TABLE t DROP INDEX k, ADD b INT", "DROP INDEX k ON t", "ALTER TABLE t RENAME INDEX k TO l"])
def test_an_index_that_is_missing_for_no_known_reason_stops_the_replica(shop: Replica, url: str, query: str) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY k (a))", "t")
    run(url, f"ALTER TABLE {SHOP}.t RENAME INDEX k TO other")
    with pytest.raises(NeedsOperator, match="no index of the name") as stopped:
        shop.ddl(query, "t")
    assert stopped.value.facts["index"] == "k"
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE]
    # The remedy.
    run(url, f"ALTER TABLE {SHOP}.t RENAME INDEX other TO k")
    shop.ddl(query, "t")
    assert indexes(url) == {"PRIMARY", "l"} if "RENAME" in query else {"PRIMARY"}


def test_foreign_keys_of_one_name_in_two_tables_are_dropped_apart(shop: Replica, url: str) -> None:
    shop.ddl("CREATE TABLE p (id INT PRIMARY KEY)", "p")
    for table in ("t", "u"):
        shop.ddl(f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, {FOREIGN_KEY})", table)
    shop.ddl(f"ALTER TABLE t ADD {FOREIGN_KEY}", "t")
    assert foreign_keys(url) == [("t", "fk_1"), ("t", "fk_2"), ("u", "fk_1#2")]
    assert indexes(url) == indexes(url, "u") == {"PRIMARY", "fk_1"}
    shop.ddl("RENAME TABLE u TO v", "v")
    shop.ddl("ALTER TABLE v DROP FOREIGN KEY fk_1", "v")
    shop.ddl("ALTER TABLE t DROP FOREIGN KEY fk_2", "t")
    shop.ddl(f"ALTER TABLE t ADD {FOREIGN_KEY}", "t")
    assert foreign_keys(url) == [("t", "fk_1"), ("t", "fk_3")]
    # The server would take away the index of a key that it made itself, where another one begins with its columns.
    shop.ddl("ALTER TABLE v ADD INDEX wide (a, id)", "v")
    shop.ddl("DROP INDEX fk_1 ON v", "v")
    assert indexes(url, "v") == {"PRIMARY", "wide"}


def test_a_foreign_key_that_the_server_has_renamed_with_its_table_is_found(shop: Replica, url: str) -> None:
    shop.ddl("CREATE TABLE p (id INT PRIMARY KEY)", "p")
    shop.ddl(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, CONSTRAINT t_ibfk_1 {FOREIGN_KEY})", "t")
    shop.ddl("RENAME TABLE t TO u", "u")
    shop.ddl("ALTER TABLE u DROP FOREIGN KEY t_ibfk_1", "u")
    assert foreign_keys(url) == []


@pytest.mark.parametrize(("create", "alter"), OF_MYSQL)
def test_the_names_that_the_server_itself_gives_are_known(shop: Replica, url: str, create: str, alter: str) -> None:
    if "((" in create and "MariaDB" in read(url, "SELECT VERSION()")[0][0]:
        return
    create, alter = (text.replace("TABLE t", f"TABLE {SHOP}.t", 1) for text in (create, alter))
    shop.ddl("CREATE TABLE t (id INT)", "t")
    run(url, f"DROP TABLE {SHOP}.t", create)
    made = dict.fromkeys((name.casefold() for name in indexes(url)), ())
    run(url, alter)
    wanted = indexes(url)
    named = with_generated_names(alter, TableNames(made), MYSQL_NAMING)
    run(url, f"DROP TABLE {SHOP}.t", with_generated_names(create, TableNames(), MYSQL_NAMING), named)
    assert indexes(url) == wanted
