"""DDLs whose text spells a name in another case than the sink, on servers that distinguish the cases."""

from collections.abc import Iterator

import pytest

from applier.model.errors import NeedsOperator
from applier.sinks.ledger_entry import DdlState
from tests.integration.mysql_replica import SHOP, Replica, read, replica, run


@pytest.fixture
def shop(url: str, least_privileged_url: str) -> Iterator[Replica]:
    run(url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.Orders (id INT PRIMARY KEY)", f"INSERT INTO {SHOP}.Orders VALUES (1)")
    with replica(least_privileged_url) as opened:
        yield opened


def tables(url: str) -> set[str]:
    return {name for (name,) in read(url, f"SHOW TABLES FROM {SHOP}")}


def test_each_kind_of_ddl_finds_the_table_that_it_means(shop: Replica, url: str) -> None:
    shop.ddl("ALTER TABLE orders ADD COLUMN n INT", "Orders")
    shop.ddl("CREATE INDEX i ON ORDERS (n)", "Orders")
    shop.ddl("CREATE TABLE Copies LIKE oRDERS", "Copies")
    shop.ddl("CREATE TABLE Parts (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES orders (id))", "Parts")
    shop.ddl("CREATE VIEW seen AS SELECT orders.id, c.n FROM orders JOIN copies AS C ON c.id = ORDERS.id", "seen")
    shop.ddl("RENAME TABLE copies TO Kept, orders TO Moved", "Kept")
    shop.ddl("TRUNCATE TABLE moved", "Moved")
    shop.ddl("DROP VIEW SEEN", "seen")
    shop.ddl(f"DROP TABLE {SHOP.upper()}.KEPT", "Kept")
    found = "CREATE TABLE IF NOT EXISTS PARTS (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES MOVED (id))"
    shop.ddl(found, "Parts", log=(("sql_mode", ""), ("time_zone", "UTC")))
    assert tables(url) == {"Moved", "Parts"}
    assert read(url, f"SELECT * FROM {SHOP}.Moved") == []
    assert {entry.state for entry in shop.sink.bookkeeping.ledger()} == {DdlState.DONE}


@pytest.mark.parametrize("condition", ["", "IF EXISTS "])
def test_a_table_that_is_dropped_under_another_spelling_is_gone(shop: Replica, url: str, condition: str) -> None:
    shop.ddl(f"DROP TABLE {condition}orders", "Orders")
    assert tables(url) == set()


def test_a_schema_is_dropped_under_another_spelling(shop: Replica, url: str) -> None:
    shop.ddl(f"DROP DATABASE IF EXISTS {SHOP.title()}")
    assert read(url, f"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{SHOP}'") == [(0,)]


@pytest.mark.parametrize("query", ["DROP TABLE orders", "ALTER TABLE Orders ADD n INT", "RENAME TABLE x TO oRDERS"])
def test_two_tables_that_are_one_upstream_stop_the_ddl(shop: Replica, url: str, query: str) -> None:
    run(url, f"CREATE TABLE {SHOP}.orders (id INT PRIMARY KEY)")
    with pytest.raises(NeedsOperator, match="differ only in case") as caught:
        shop.ddl(query, "Orders")
    assert "Orders" in caught.value.facts["found"]
    assert "orders" in caught.value.facts["found"]
    assert tables(url) == {"Orders", "orders"}
    assert shop.sink.bookkeeping.ledger() == []
