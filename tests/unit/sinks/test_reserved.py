"""Events on the bookkeeping's schema, and on the database's own, stop."""

import pytest

from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.mysql.names import SYSTEM_SCHEMAS
from applier.sinks.reserved import Reserved

RESERVED = Reserved("applier", SYSTEM_SCHEMAS)


def ddl(query: str, schema: str = "shop") -> DdlEvent:
    return DdlEvent(commit_ts=Ts(5), schema=schema, table="t", query=query, ddl_type=0)


@pytest.mark.parametrize(
    "query",
    [
        "DROP DATABASE applier",
        "drop schema if exists `APPLIER`",
        "CREATE DATABASE IF NOT EXISTS Applier",
        "ALTER DATABASE applier CHARACTER SET latin1",
        "DROP TABLE a, applier.progress",
        "DROP TABLE IF EXISTS `Applier`.`progress`",
        "RENAME TABLE applier.progress TO shop.p",
        "RENAME TABLE shop.p TO a, shop.q TO applier.progress",
        "ALTER TABLE t RENAME TO applier.t",
        "CREATE TABLE t LIKE applier.progress",
        "CREATE TABLE applier.t (id INT)",
        "TRUNCATE applier.progress",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE applier.progress",
        "CREATE VIEW v AS SELECT * FROM a JOIN applier.progress",
        "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES applier.progress (name))",
        "DROP INDEX i ON applier.progress",
        "DROP TABLE t /*!50100 , applier.progress */",
        "OPTIMIZE TABLE applier . progress",
        "DROP DATABASE applier, shop",
    ],
)
def test_a_ddl_on_the_bookkeepings_schema_stops_with_the_way_out(query: str) -> None:
    with pytest.raises(NeedsOperator, match=r"bookkeeping.*\[sink\] schema") as caught:
        RESERVED.refuse_ddl(ddl(query))
    assert caught.value.facts == {"schema": "applier", "table": "shop.t", "commit_ts": 5, "query": query}


@pytest.mark.parametrize("query", ["DROP TABLE progress", "NOT UNDERSTOOD", "DROP TABLE x."])
def test_a_ddl_in_the_bookkeepings_schema_stops(query: str) -> None:
    with pytest.raises(NeedsOperator, match="bookkeeping"):
        RESERVED.refuse_ddl(ddl(query, schema="aPPlier"))


@pytest.mark.parametrize("schema", sorted(SYSTEM_SCHEMAS))
def test_a_ddl_on_a_schema_of_the_database_itself_stops(schema: str) -> None:
    for query in (f"DROP DATABASE {schema.upper()}", f"DROP TABLE `{schema}`.user", f"CREATE TABLE t LIKE {schema}.user"):
        with pytest.raises(NeedsOperator, match="system schema"):
            RESERVED.refuse_ddl(ddl(query))


@pytest.mark.parametrize(
    "query",
    [
        "DROP DATABASE applier2",
        "DROP TABLE applier",
        "CREATE TABLE t (applier INT, `sys` INT, mysql TEXT COMMENT 'DROP DATABASE applier')",
        "CREATE VIEW v AS SELECT applier FROM information_schema.tables AS sys",
        "CREATE TABLE mysql (id INT)",
        "OPTIMIZE TABLE t -- applier.progress",
    ],
)
def test_other_names_are_let_through(query: str) -> None:
    RESERVED.refuse_ddl(ddl(query))


def test_rows_stop_by_schema() -> None:
    assert RESERVED.holds(TableName("Applier", "x"))
    assert RESERVED.holds(TableName("mysql", "user"))
    assert not RESERVED.holds(TableName("shop", "applier"))
    with pytest.raises(NeedsOperator, match="bookkeeping") as caught:
        RESERVED.refuse_rows(TableName("Applier", "x"), topic="feed", offset=3)
    assert caught.value.facts == {"schema": "applier", "table": "Applier.x", "topic": "feed", "offset": 3}


def test_a_sink_that_needs_no_schema_reserves_none() -> None:
    free = Reserved("", frozenset())
    free.refuse_ddl(ddl("DROP DATABASE applier"))
    assert not free.holds(TableName("applier", "progress"))
    assert not free.holds(TableName("", "progress"))


def test_another_schema_of_the_bookkeeping_frees_the_first_one() -> None:
    moved = Reserved("Books", SYSTEM_SCHEMAS)
    moved.refuse_ddl(ddl("DROP DATABASE applier"))
    with pytest.raises(NeedsOperator):
        moved.refuse_ddl(ddl("DROP DATABASE books"))
