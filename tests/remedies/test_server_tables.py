"""Statements and tables that the sink's server cannot take as they are: each remedy is done, and the replica goes on."""

import pytest

from tests.builders.handwritten import CREATE_SCHEMA, ddl, resolved
from tests.remedies.test_server_sink import SCHEMA, feed
from tests.rig.walked_feed import order

__all__ = ["feed"]

pytestmark = pytest.mark.on_one_server("mariadb", reason="what a server refuses, and its statements for users, differ between servers")

REPAIRS = {
    "a partition": (
        ["ALTER TABLE {s}.orders PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1))"],
        None,
        ["ALTER TABLE {s}.orders ADD PARTITION (PARTITION p1 VALUES LESS THAN MAXVALUE)"],
    ),
    "a type": (
        ["ALTER TABLE {s}.orders MODIFY note INT"],
        None,
        ["ALTER TABLE {s}.orders MODIFY note VARCHAR(20)"],
    ),
    "names of rows": (
        ["CREATE TABLE {s}.ORDERS (id INT)", "RENAME TABLE {s}.orders TO {s}.Orders"],
        None,
        ["RENAME TABLE {s}.ORDERS TO {s}.mine"],
    ),
    "names of a DDL": (
        ["CREATE TABLE {s}.ORDERS (id INT)"],
        ("ALTER TABLE orders COMMENT = 'x'", 5),
        ["RENAME TABLE {s}.ORDERS TO {s}.mine"],
    ),
    "an object in the way": (
        ["CREATE TABLE {s}.other (mine INT)"],
        ("CREATE TABLE other (id INT PRIMARY KEY)", 3),
        ["RENAME TABLE {s}.other TO {s}.others"],
    ),
    "a column that is missing": (
        ["ALTER TABLE {s}.orders DROP COLUMN note"],
        ("ALTER TABLE orders MODIFY note VARCHAR(30)", 12),
        ["ALTER TABLE {s}.orders ADD note VARCHAR(20)"],
    ),
}


def test_a_virtual_column_is_made_by_hand_without_its_index(newcomer, feed):
    feed.everywhere(ddl(23, "ALTER TABLE orders ADD v VARCHAR(20) AS (UPPER(note)), ADD KEY (v)", t=5))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 6, "index or key")
    feed.sql(f"ALTER TABLE {SCHEMA}.orders ADD v VARCHAR(20) AS (UPPER(note))")
    newcomer.follow(said, only="ddl skip")
    newcomer.succeeds("catchup")


@pytest.mark.parametrize("name", REPAIRS)
def test_a_table_is_repaired(name, newcomer, feed):
    damage, event, repair = REPAIRS[name]
    feed.sql(*(statement.format(s=SCHEMA) for statement in damage))
    if event is not None:
        feed.everywhere(ddl(23, event[0], table="other" if "other" in event[0] else "orders", t=event[1]))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    said = newcomer.applier("catchup")
    assert said.code in {4, 6}, said.stderr
    feed.sql(*(statement.format(s=SCHEMA) for statement in repair))
    newcomer.succeeds("catchup")
    assert newcomer.succeeds("catchup").stdout.startswith("nothing to apply")


BY_HAND = {
    "a charset that the server lacks": ("CREATE TABLE other (a VARCHAR(9)) CHARACTER SET gb18030", "other", 3),
    "an unknown word": ("ALTER TABLE orders IMAGINE", "orders", 5),
    "bounds of intervals": ("ALTER TABLE orders FIRST PARTITION LESS THAN (10)", "orders", 9),
    "a text that is not UTF-8": ("CREATE TABLE `a\udcff` (id INT PRIMARY KEY)", "a", 3),
    "partitions of other rows": ("ALTER TABLE orders TRUNCATE PARTITION p0", "orders", 19),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_ddl_is_done_by_hand_and_settled_by_the_command_of_the_remedy(name, newcomer, feed):
    query, table, ddl_type = BY_HAND[name]
    if "PARTITION p0" in query:
        feed.sql(f"ALTER TABLE {SCHEMA}.orders PARTITION BY KEY (id) PARTITIONS 4")
    feed.everywhere(ddl(23, query, table=table, t=ddl_type))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    said = newcomer.applier("catchup")
    assert said.code in {4, 6}, said.stderr
    newcomer.succeeds(said.commands[0])
    newcomer.succeeds("catchup")
    assert feed.rows() == [(1, "new")]


def test_a_collation_is_named_for_the_server(newcomer, feed):
    feed.everywhere(ddl(23, "CREATE TABLE other (a VARCHAR(9) COLLATE utf8mb4_mine_ci)", "other"))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 4, "utf8mb4_mine_ci")
    newcomer.change({"ddl.collations": {"utf8mb4_mine_ci": "utf8mb4_bin"}})
    newcomer.succeeds("catchup")


@pytest.mark.parametrize("schema", ["mysql", f"{SCHEMA}_books"])
def test_a_schema_of_the_server_is_left_out(schema, newcomer, feed):
    head, body = ddl(23, "CREATE TABLE t (id INT PRIMARY KEY)", "t")
    feed.everywhere((head | {"scm": schema}, body))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 6, "schema")
    newcomer.change({"source.tables": ["*.*", f"!{schema}.*"]})
    newcomer.succeeds("catchup")
    assert feed.rows() == [(1, "new")]


def test_the_default_of_a_schema_with_tables_is_changed_by_hand(newcomer, feed):
    newcomer.change({"source.route": []})
    feed.everywhere((CREATE_SCHEMA[0] | {"ts": 23, "scm": SCHEMA}, {"q": f"CREATE DATABASE {SCHEMA} COLLATE utf8mb4_unicode_ci", "t": 1}))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 6, "holds tables")
    feed.sql(said.remedy.partition("this statement in the sink: ")[2].partition(";")[0])
    newcomer.succeeds("catchup")


def test_an_address_where_no_server_is_gets_corrected(newcomer, feed):
    newcomer.change({"sink.url": "mysql+pymysql://user@127.0.0.1:1/", "run.retry_for_s": 1})
    newcomer.fails("migrate", 4, "127.0.0.1")
    newcomer.change({"sink.url": feed.url})
    newcomer.succeeds("migrate")


def test_a_server_without_tls_is_reached_without_it(newcomer, feed):
    newcomer.change({"sink.tls_mode": "required"})
    newcomer.fails("migrate", 4)
    newcomer.change({"sink.tls_mode": None})
    newcomer.succeeds("migrate")


def test_a_user_without_privileges_gets_them(newcomer, feed):
    feed.sql(
        "CREATE OR REPLACE USER walked@'%' IDENTIFIED BY 'walked'",
        f"GRANT ALL ON {SCHEMA}_books.* TO walked@'%'",
        f"GRANT SELECT, TRIGGER ON {SCHEMA}.* TO walked@'%'",
    )
    try:
        newcomer.change({"sink.url": "mysql+pymysql://walked:walked@" + feed.url.rpartition("@")[2]})
        feed.write(order(24, 1))
        feed.everywhere(resolved(30))
        newcomer.fails("catchup", 4, "denied")
        feed.sql(f"GRANT INSERT, DELETE, UPDATE ON {SCHEMA}.* TO walked@'%'")
        newcomer.succeeds("catchup")
        assert feed.rows() == [(1, "new")]
    finally:
        feed.sql("DROP USER walked@'%'")
