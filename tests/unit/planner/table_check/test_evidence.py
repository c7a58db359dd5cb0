"""What upstream's own statements explain."""

import pytest

from applier.model.events import DdlEvent, FoldedName
from applier.model.position import Ts
from applier.planner.table_check import Evidence, UniqueIndex, unique_keys_of

ORDERS = FoldedName("shop", "orders")


def ddl(query: str, table: str = "orders", ts: int = 1) -> DdlEvent:
    return DdlEvent(commit_ts=Ts(ts), schema="shop", table=table, query=query, ddl_type=0)


@pytest.mark.parametrize(
    ("query", "name", "columns"),
    [
        ("CREATE TABLE t (a INT, b VARCHAR(10) UNIQUE, c INT)", "", {"b"}),
        ("CREATE TABLE t (a DECIMAL(10,2) NOT NULL UNIQUE KEY)", "", {"a"}),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "", {"a"}),
        ("CREATE TABLE t (`A b` INT, b INT, UNIQUE KEY `U` (`A b`, b(10) DESC))", "u", {"a b", "b"}),
        ("CREATE TABLE t (a INT, b INT, CONSTRAINT x UNIQUE (a, b) USING BTREE)", "", {"a", "b"}),
        ("CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b) /*T![clustered_index] CLUSTERED */)", "", {"a", "b"}),
        ("CREATE UNIQUE INDEX u ON shop.t (a, b)", "u", {"a", "b"}),
        ("CREATE UNIQUE INDEX u ON t ((lower(a)))", "u", set()),
        ("ALTER TABLE t ADD UNIQUE u (a)", "u", {"a"}),
        ("ALTER TABLE t ADD UNIQUE INDEX IF NOT EXISTS u (a)", "u", {"a"}),
        ("ALTER TABLE t DROP COLUMN z, ADD COLUMN a INT UNIQUE", "", {"a"}),
        ("ALTER TABLE t ADD a INT UNIQUE", "", {"a"}),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT UNIQUE", "", {"a"}),
        ("ALTER TABLE t ADD COLUMN (a INT, b INT UNIQUE)", "", {"b"}),
        ("ALTER TABLE t CHANGE old new INT UNIQUE", "", {"new"}),
        ("ALTER TABLE t CHANGE COLUMN old new INT UNIQUE", "", {"new"}),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "", {"a"}),
    ],
)
def test_unique_keys_are_read_from_a_statement(query: str, name: str, columns: set[str]) -> None:
    assert (name, columns) in unique_keys_of(query)


@pytest.mark.parametrize("query", ["CREATE TABLE t (a INT, KEY k (a))", "ALTER TABLE t ADD INDEX k (a)", "no 'statement"])
def test_a_statement_without_unique_keys_makes_none(query: str) -> None:
    assert unique_keys_of(query) == []


def test_an_index_is_explained_by_the_statement_that_made_it() -> None:
    evidence = Evidence([ddl("CREATE TABLE orders (id INT PRIMARY KEY, a INT, b INT)"), ddl("CREATE UNIQUE INDEX u ON orders (A, b)")])
    assert evidence.explains_unique_index(ORDERS, UniqueIndex("u", ("a", "B")))
    assert not evidence.explains_unique_index(ORDERS, UniqueIndex("u", ("a",)))
    assert not evidence.explains_unique_index(FoldedName("shop", "other"), UniqueIndex("u", ("a", "b")))


def test_an_index_of_expressions_is_explained_by_its_name() -> None:
    evidence = Evidence([ddl("CREATE UNIQUE INDEX U ON orders ((lower(a)))")])
    assert evidence.explains_unique_index(ORDERS, UniqueIndex("u", ()))
    assert not evidence.explains_unique_index(ORDERS, UniqueIndex("v", ()))


def test_a_table_keeps_the_statements_of_its_earlier_names() -> None:
    evidence = Evidence(
        [
            ddl("CREATE TABLE first (id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_general_ci UNIQUE)", "first"),
            ddl("RENAME TABLE first TO second, second TO orders", "second", 2),
        ]
    )
    assert evidence.explains_unique_index(ORDERS, UniqueIndex("a", ("a",)))
    assert evidence.explains_collation(ORDERS, "utf8mb4_general_ci")


def test_a_copy_of_a_definition_is_explained_by_the_statements_of_its_model() -> None:
    evidence = Evidence([ddl("CREATE TABLE m (a INT UNIQUE)", "m"), ddl("CREATE TABLE orders LIKE m", "orders", 2)])
    assert evidence.explains_unique_index(ORDERS, UniqueIndex("a", ("a",)))


def test_a_collation_is_explained_by_the_table_or_its_schema_only() -> None:
    evidence = Evidence(
        [
            DdlEvent(commit_ts=Ts(1), schema="shop", table="", query="CREATE DATABASE shop COLLATE utf8mb4_unicode_ci", ddl_type=1),
            DdlEvent(commit_ts=Ts(1), schema="bank", table="", query="CREATE DATABASE bank COLLATE utf8mb4_general_ci", ddl_type=1),
        ]
    )
    assert evidence.explains_collation(ORDERS, "UTF8MB4_unicode_ci")
    assert not evidence.explains_collation(ORDERS, "utf8mb4_general_ci")


def test_a_view_is_explained_by_the_last_statement_that_gave_its_name() -> None:
    evidence = Evidence([ddl("CREATE TABLE orders (a INT)")])
    assert not evidence.explains_view(ORDERS)
    evidence.add(ddl("DROP TABLE orders", ts=2))
    evidence.add(ddl("CREATE VIEW orders AS SELECT 1 AS a", ts=3))
    assert evidence.explains_view(ORDERS)
    evidence.add(ddl("DROP VIEW orders", ts=4))
    evidence.add(ddl("RENAME TABLE others TO orders", ts=5))
    assert not evidence.explains_view(ORDERS)


def test_a_statement_that_cannot_be_parsed_counts_for_its_own_table() -> None:
    evidence = Evidence([ddl("CREATE BLURB UNIQUE KEY u (a)")])
    assert evidence.explains_unique_index(ORDERS, UniqueIndex("u", ("a",)))


def test_a_column_is_upstreams_if_a_statement_before_has_made_it():
    evidence = Evidence(
        [
            ddl("CREATE TABLE old (id INT PRIMARY KEY)", ts=5),
            ddl("ALTER TABLE old ADD a INT", ts=6),
            ddl("RENAME TABLE old TO orders", ts=7),
            ddl("ALTER TABLE orders ADD b INT", ts=9),
        ]
    )
    assert [evidence.has_column(ORDERS, name, Ts(9)) for name in ("ID", "a", "b")] == [True, True, False]
    assert evidence.has_column(FoldedName("shop", "loaded"), "a", Ts(9)) is None
