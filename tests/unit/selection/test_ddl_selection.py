"""What a filter and routes make of each kind of statement: names changed, left out, or refused."""

import pytest

from applier.ddl import policy
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.selection import EventFilter, Route, TableFilter, TableSelection, select_ddl

FILTER = ["shop.*", "!shop.log_*"]
ROUTES = [("shop.*", "archive.{table}_v2"), ("crm.*", "crm2.{table}")]


def ddl(query, table="a", schema="shop", ddl_type=3):
    return DdlEvent(commit_ts=Ts(7), schema=schema, table=table, query=query, ddl_type=ddl_type)


def selection(tables=(), routes=(), event_filters=()):
    return TableSelection(TableFilter.parse(tables), tuple(Route.parse(*route) for route in routes), tuple(event_filters))


def filtered(event, tables=FILTER):
    return select_ddl(event, selection(tables))


def routed(event, routes=ROUTES, tables=()):
    return select_ddl(event, selection(tables, routes))


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (ddl("CREATE TABLE a (id INT)"), "applied"),
        (ddl("CREATE TABLE log_1 (id INT)", "log_1"), "left out"),
        (ddl("CREATE TABLE `Log_1` (id INT)", "Log_1"), "left out"),
        (ddl("ALTER TABLE log_1 ADD x INT", "log_1", ddl_type=5), "left out"),
        (ddl("DROP TABLE a, b", ddl_type=4), "applied"),
        (ddl("DROP TABLE log_1, log_2", "log_1", ddl_type=4), "left out"),
        (ddl("DROP TABLE a, log_1", ddl_type=4), "refused"),
        (ddl("TRUNCATE TABLE log_1", "log_1", ddl_type=11), "left out"),
        (ddl("CREATE INDEX i ON log_1 (x)", "log_1", ddl_type=7), "left out"),
        (ddl("RENAME TABLE a TO b", "b", ddl_type=14), "applied"),
        (ddl("RENAME TABLE a TO log_a", "log_a", ddl_type=14), "applied"),
        (ddl("RENAME TABLE log_a TO a", "a", ddl_type=14), "refused"),
        (ddl("ALTER TABLE log_a RENAME TO a", "a", ddl_type=14), "refused"),
        (ddl("RENAME TABLE log_a TO log_b", "log_b", ddl_type=14), "left out"),
        (ddl("RENAME TABLE crm.a TO shop.a", "a", ddl_type=14), "refused"),
        (ddl("RENAME TABLE a TO log_t, b TO a, log_t TO b", "b", ddl_type=47), "refused"),
        (ddl("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b", ddl_type=42), "applied"),
        (ddl("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE log_b", ddl_type=42), "refused"),
        (ddl("CREATE TABLE a LIKE b"), "applied"),
        (ddl("CREATE TABLE a LIKE log_b"), "refused unless kept"),
        (ddl("CREATE TABLE a LIKE crm.b"), "refused unless kept"),
        (ddl("CREATE TABLE log_a LIKE b", "log_a"), "left out"),
        (ddl("CREATE TABLE a (b INT, FOREIGN KEY (b) REFERENCES log_b (id))"), "applied"),
        (ddl("CREATE VIEW v AS SELECT id FROM a", "v", ddl_type=21), "applied"),
        (ddl("CREATE VIEW v AS SELECT id FROM a JOIN log_a ON 1", "v", ddl_type=21), "refused"),
        (ddl("CREATE VIEW v AS WITH log_a AS (SELECT 1 AS id) SELECT id FROM log_a", "v", ddl_type=21), "applied"),
        (ddl("CREATE DATABASE shop", "", ddl_type=1), "applied"),
        (ddl("CREATE DATABASE crm", "", "crm", ddl_type=1), "left out"),
        (ddl("ALTER DATABASE CHARACTER SET utf8mb4", "", "crm", ddl_type=26), "left out"),
        (ddl("ALTER DATABASE CHARACTER SET utf8mb4", "", ddl_type=26), "applied"),
        (ddl("DROP DATABASE crm", "", "crm", ddl_type=2), "left out"),
        (ddl("DROP DATABASE shop", "", ddl_type=2), "refused"),
        (ddl("ALTER SEQUENCE log_s START 3", "log_s", ddl_type=35), "left out"),
        (ddl("ALTER SEQUENCE s START 3", "s", ddl_type=35), "applied"),
        (ddl("EXCHANGE what", "log_1", ddl_type=42), "refused"),
        (ddl("EXCHANGE what", "a", ddl_type=42), "refused"),
        (ddl("SOMETHING of the schema", "", "crm", ddl_type=99), "left out"),
        (ddl("SOMETHING of the schema", "", ddl_type=99), "refused"),
    ],
)
def test_a_filter_decides_by_the_tables_that_a_statement_changes(event, outcome):
    found = filtered(event)
    refused = "" if found.refusal is None else "refused" if found.refusal.kept is None else "refused unless kept"
    assert outcome == ("left out" if found.left_out else refused or "applied")
    # What is applied stays as it came; what is not keeps upstream's names.
    assert (found.name, found.query) == (event.name, event.query)


def test_a_schema_that_is_wholly_in_is_dropped():
    found = filtered(ddl("DROP DATABASE shop", "", ddl_type=2), ["shop.*"])
    assert (found.query, found.left_out, found.refusal) == ("DROP DATABASE shop", "", None)


@pytest.mark.parametrize(
    ("query", "table", "text"),
    [
        ("CREATE TABLE a (id INT) COMMENT 'a'", "a", "CREATE TABLE `a_v2` (id INT) COMMENT 'a'"),
        ("CREATE TABLE `shop`.`a` (a INT)", "a", "CREATE TABLE `archive`.`a_v2` (a INT)"),
        ("CREATE TABLE a LIKE crm.b", "a", "CREATE TABLE `a_v2` LIKE `crm2`.b"),
        ("CREATE TABLE a LIKE hr.b", "a", "CREATE TABLE `a_v2` LIKE hr.b"),
        ("ALTER TABLE /* a */ a ADD a INT", "a", "ALTER TABLE /* a */ `a_v2` ADD a INT"),
        ("RENAME TABLE a TO b", "b", "RENAME TABLE `a_v2` TO `b_v2`"),
        ("RENAME TABLE shop.a TO hr.b", "b", "RENAME TABLE `archive`.`a_v2` TO hr.b"),
        ("ALTER TABLE a RENAME AS shop.b", "b", "ALTER TABLE `a_v2` RENAME AS `archive`.`b_v2`"),
        ("DROP TABLE IF EXISTS `a`, shop.`b`", "a", "DROP TABLE IF EXISTS `a_v2`, `archive`.`b_v2`"),
        ("TRUNCATE a", "a", "TRUNCATE `a_v2`"),
        ("CREATE UNIQUE INDEX a ON a (a)", "a", "CREATE UNIQUE INDEX a ON `a_v2` (a)"),
        ("ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES b (a)", "a", "ALTER TABLE `a_v2` ADD FOREIGN KEY (x) REFERENCES `b_v2` (a)"),
        ("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b", "a", "ALTER TABLE `a_v2` EXCHANGE PARTITION p WITH TABLE `b_v2`"),
        (
            "CREATE VIEW v AS SELECT shop.a.id, a.n, x.n FROM shop.a JOIN crm.b AS x ON x.id = a.id",
            "v",
            "CREATE VIEW `v_v2` AS SELECT `archive`.`a_v2`.id, `a_v2`.n, x.n FROM `archive`.`a_v2` JOIN `crm2`.b AS x ON x.id = `a_v2`.id",
        ),
        (
            "CREATE VIEW v AS WITH a AS (SELECT 1 AS id) SELECT a.id FROM a JOIN b ON a.id = b.id",
            "v",
            "CREATE VIEW `v_v2` AS WITH a AS (SELECT 1 AS id) SELECT a.id FROM a JOIN `b_v2` ON a.id = `b_v2`.id",
        ),
        ("CREATE VIEW v AS SELECT hr.c.id, shop.c.n FROM hr.c JOIN shop.c", "v", None),
    ],
)
def test_a_route_changes_names_and_nothing_else(query, table, text):
    found = routed(ddl(query, table))
    assert (found.refusal, found.left_out) == (None, "")
    expected = text or "CREATE VIEW `v_v2` AS SELECT hr.c.id, `archive`.`c_v2`.n FROM hr.c JOIN `archive`.`c_v2`"
    assert (found.query, found.schema, found.table) == (expected, "archive", f"{table}_v2")


def test_a_name_without_a_schema_gets_one_where_the_schemas_differ_in_the_sink():
    found = routed(ddl("ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES b (id)"), [("shop.a", "archive.{table}")])
    assert (found.query, found.schema) == ("ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES `shop`.`b` (id)", "archive")


def test_schemas_follow_the_route_that_takes_them_whole():
    made = routed(ddl("CREATE DATABASE IF NOT EXISTS shop COLLATE utf8mb4_bin", "", ddl_type=1), tables=["shop.*"])
    assert (made.schema, made.query) == ("archive", "CREATE DATABASE IF NOT EXISTS `archive` COLLATE utf8mb4_bin")
    dropped = routed(ddl("DROP DATABASE `shop`", "", ddl_type=2), tables=["shop.*"])
    assert dropped.query == "DROP DATABASE `archive`"
    altered = routed(ddl("ALTER DATABASE CHARACTER SET utf8mb4", "", ddl_type=26), tables=["shop.*"])
    assert (altered.schema, altered.query) == ("archive", "ALTER DATABASE CHARACTER SET utf8mb4")


@pytest.mark.parametrize(
    ("event", "routes", "why"),
    [
        (ddl("DROP DATABASE shop", "", ddl_type=2), [("shop.*", "archive.{table}")], "several schemas"),
        (ddl("DROP DATABASE shop", "", ddl_type=2), [("shop.a", "archive.{table}")], "several schemas"),
        (ddl("DROP DATABASE archive", "", "archive", ddl_type=2), [("shop.*", "archive.{table}")], "several schemas"),
        (ddl("RENAME TABLE s1 TO s2", "s2", ddl_type=14), [("shop.s?", "shop.s")], "shop.s1 and shop.s2 are both shop.s"),
        (ddl("DROP TABLE s1, s2", "s1", ddl_type=4), [("shop.s?", "shop.s")], "two tables"),
        (ddl("ALTER SEQUENCE s START 3", "s", ddl_type=35), [("crm.*", "x.{table}")], "cannot read"),
    ],
)
def test_what_routes_cannot_do_is_refused(event, routes, why):
    found = routed(event, routes)
    assert found.refusal is not None
    assert why in found.refusal.why
    assert found.query == event.query


def test_a_table_like_one_that_is_left_out_has_the_sinks_names_in_case_the_sink_has_it():
    found = routed(ddl("CREATE TABLE a LIKE log_a"), tables=FILTER)
    assert (found.query, found.table) == ("CREATE TABLE `a_v2` LIKE `log_a_v2`", "a_v2")
    assert found.refusal is not None
    assert found.refusal.kept == TableName("shop", "log_a")


def test_a_swap_with_a_table_that_is_left_out_names_it():
    found = filtered(ddl("RENAME TABLE a TO log_a, log_n TO a", ddl_type=47))
    assert found.refusal is not None
    assert found.refusal.why == "source.tables excludes shop.log_n, which becomes shop.a: its rows were never read"


def test_an_event_filter_leaves_ddls_of_some_tables_out():
    by_type = EventFilter.parse(TableFilter.parse(["shop.a"]), ["truncate table", "drop_index"])
    by_text = EventFilter.parse(TableFilter.parse(["*.*"]), [], [r"^drop\s+table.*_old"])
    chosen = selection(event_filters=[by_type, by_text])
    assert select_ddl(ddl("TRUNCATE TABLE a", ddl_type=11), chosen).left_out == "source.event_filter excludes it"
    assert not select_ddl(ddl("TRUNCATE TABLE b", "b", ddl_type=11), chosen).left_out
    assert select_ddl(ddl("DROP TABLE a_old", "a_old", ddl_type=4), chosen).left_out
    assert not select_ddl(ddl("DROP TABLE a", ddl_type=4), chosen).left_out
    everything = selection(event_filters=[EventFilter.parse(TableFilter.parse(["shop.*"]), ["all ddl"])])
    assert select_ddl(ddl("CREATE DATABASE shop", "", ddl_type=1), everything).left_out
    assert select_ddl(ddl("NOT SQL", ddl_type=99), everything).left_out
    assert not select_ddl(ddl("CREATE DATABASE crm", "", "crm", ddl_type=1), everything).left_out


def test_a_refusal_stops_with_its_reason_and_remedy_and_what_is_left_out_is_skipped():
    refused = filtered(ddl("RENAME TABLE log_a TO a", "a", ddl_type=14))
    with pytest.raises(NeedsOperator, match="never read: RENAME TABLE log_a TO a") as caught:
        policy.is_skipped(refused, {})
    assert "--ts 7" in caught.value.remedy
    assert policy.is_skipped(filtered(ddl("DROP TABLE log_a", "log_a", ddl_type=4)), {"drop_table": "stop"})
