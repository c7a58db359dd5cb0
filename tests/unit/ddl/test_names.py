"""Names in the statements that TiDB prints (open_protocol.md 2.12), and in those of the wire's test records."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.ddl import DdlKind, ddl_type_name, identity, parse_ddl, same_ddl, touches
from applier.ddl.policy import DDL_TYPE_NAMES
from applier.model.events import DdlEvent, FoldedName, TableName

RECORDS = json.loads((Path(__file__).parents[2] / "data" / "ddl_statements.json").read_text())
K = DdlKind


def ddl(query, table="t", schema="S", ts=1):
    return DdlEvent(commit_ts=ts, schema=schema, table=table, query=query, ddl_type=0)


def names(text):
    """'a q.b' are S.a and q.b."""
    return tuple(TableName(*(name.split(".") if "." in name else ("S", name))) for name in text.split())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["name"])
def test_the_statements_of_the_wire_records(record):
    event = ddl(record["query"], record["table"], record["schema"])
    statement = parse_ddl(event)
    assert (statement and statement.kind) == record["kind"]
    found = touches(event)
    assert (found and sorted([*name] for name in found)) == record["touches"]


@pytest.mark.parametrize(
    ("query", "kind", "roles"),
    [
        ("CREATE TABLE `a` (`i` INT)", K.CREATE_TABLE, {"creates": "a"}),
        ("create table a", K.CREATE_TABLE, {"creates": "a"}),
        (f"CREATE TABLE a (`i` INT{',`c` VARCHAR(100) DEFAULT 0' * 900})", K.CREATE_TABLE, {"creates": "a"}),
        ("CREATE TABLE IF NOT EXISTS `q`.`a` (`i` INT);", K.CREATE_TABLE, {"creates": "q.a", "if_not_exists": True}),
        ("CREATE TABLE `a` LIKE `q`.`b`", K.CREATE_TABLE_LIKE, {"creates": "a", "needs": "q.b", "sources": "q.b"}),
        ("CREATE TABLE a (LIKE b)", K.CREATE_TABLE_LIKE, {"creates": "a", "needs": "b"}),
        ("CREATE GLOBAL TEMPORARY TABLE a (i INT) ON COMMIT DELETE ROWS", K.CREATE_TABLE, {"creates": "a"}),
        (
            "CREATE TABLE a (i INT, CONSTRAINT f FOREIGN KEY (i) REFERENCES `p` (`i`) ON DELETE CASCADE)",
            K.CREATE_TABLE,
            {"creates": "a", "mentions": "p"},
        ),
        ("CREATE TABLE a (i INT COMMENT 'LIKE x; DROP', b VARCHAR(9) DEFAULT 'it''s \\' `')", K.CREATE_TABLE, {"creates": "a"}),
        ("DROP TABLE `S`.`a`", K.DROP_TABLE, {"drops": "a"}),
        ("DROP TABLE IF EXISTS a, q.b CASCADE", K.DROP_TABLE, {"drops": "a q.b", "if_exists": True}),
        ("DROP VIEW IF EXISTS `v`", K.DROP_VIEW, {"drops": "v", "if_exists": True}),
        ("TRUNCATE TABLE `a`", K.TRUNCATE_TABLE, {"needs": "a"}),
        ("TRUNCATE q.a", K.TRUNCATE_TABLE, {"needs": "q.a"}),
        ("RENAME TABLE `S`.`a` TO `q`.`b`", K.RENAME_TABLE, {"renames": "a q.b", "sources": "a"}),
        ("RENAME TABLE a TO x, b TO a, x TO b", K.RENAME_TABLE, {"renames": "a x b a x b", "sources": "a b x"}),
        ("ALTER TABLE a RENAME b", K.RENAME_TABLE, {"renames": "a b"}),
        ("ALTER TABLE a RENAME TO b", K.RENAME_TABLE, {"renames": "a b"}),
        ("ALTER TABLE a RENAME AS q.b", K.RENAME_TABLE, {"renames": "a q.b"}),
        ("ALTER TABLE a RENAME = b", K.RENAME_TABLE, {"renames": "a b"}),
        ("ALTER TABLE a RENAME TO b, COMMENT = 'x'", K.ALTER_TABLE, {"needs": "a", "renames": "a b"}),
        ("ALTER TABLE a ADD COLUMN (x INT, y INT), RENAME TO b", K.ALTER_TABLE, {"needs": "a", "renames": "a b"}),
        ("ALTER TABLE a RENAME COLUMN x TO y", K.ALTER_TABLE, {"needs": "a"}),
        ("ALTER TABLE a RENAME INDEX x TO y, RENAME KEY z TO w", K.ALTER_TABLE, {"needs": "a"}),
        (
            "ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (i) REFERENCES q.p (i), DROP COLUMN y",
            K.ALTER_TABLE,
            {"needs": "a", "mentions": "q.p"},
        ),
        ("ALTER TABLE a DROP PARTITION p0, p1", K.ALTER_TABLE, {"needs": "a"}),
        ("ALTER TABLE a ORDER BY x, y", K.ALTER_TABLE, {"needs": "a"}),
        ("ALTER TABLE a REORGANIZE PARTITION p0,p1 INTO (PARTITION p VALUES LESS THAN (9))", K.ALTER_TABLE, {"needs": "a"}),
        ("ALTER TABLE a CONVERT TO CHARACTER SET UTF8MB4", K.ALTER_TABLE, {"needs": "a"}),
        ("ALTER TABLE a /*T![ttl] TTL_ENABLE = 'OFF' */", K.ALTER_TABLE, {"needs": "a"}),
        ("ALTER TABLE a REMOVE PARTITIONING", K.ALTER_TABLE, {"needs": "a"}),
        (
            "ALTER TABLE `a` EXCHANGE PARTITION `p` WITH TABLE `q`.`b` WITHOUT VALIDATION",
            K.EXCHANGE_PARTITION,
            {"needs": "a q.b", "sources": "a q.b"},
        ),
        ("CREATE UNIQUE INDEX `i` ON `a` (`x`)", K.CREATE_INDEX, {"needs": "a"}),
        ("CREATE INDEX IF NOT EXISTS i USING BTREE ON q.a (x) COMMENT 'c'", K.CREATE_INDEX, {"needs": "q.a"}),
        ("DROP INDEX IF EXISTS `i` ON `a`", K.DROP_INDEX, {"needs": "a"}),
        ("RECOVER TABLE `a`", K.RECOVER_TABLE, {"creates": "a"}),
        ("RECOVER TABLE BY JOB 53", K.RECOVER_TABLE, {"creates": "t"}),
        ("FLASHBACK TABLE a TO b", K.RECOVER_TABLE, {"creates": "b"}),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", K.CREATE_VIEW, {"creates": "v", "or_replace": True}),
        (
            (
                "CREATE ALGORITHM = MERGE DEFINER = CURRENT_USER() SQL SECURITY INVOKER VIEW v AS "
                "SELECT TRIM(BOTH 'x' FROM `a`.`n`), TRIM('x' FROM 'y') "
                "FROM (`S`.`a` AS `x`) JOIN `q`.`b` `y` ON 1 WHERE 1 IN (SELECT 1 FROM c, d AS e)"
            ),
            K.CREATE_VIEW,
            {"creates": "v", "mentions": "a q.b c d"},
        ),
        ("CREATE DATABASE `n`", K.CREATE_SCHEMA, {"schema": "n"}),
        ("CREATE SCHEMA IF NOT EXISTS n CHARSET utf8mb4", K.CREATE_SCHEMA, {"schema": "n", "if_not_exists": True}),
        ("ALTER DATABASE `n` COLLATE utf8mb4_bin", K.ALTER_SCHEMA, {"schema": "n"}),
        ("ALTER DATABASE CHARACTER SET utf8mb4", K.ALTER_SCHEMA, {"schema": "S"}),
        ("ALTER DATABASE CHAR SET = utf8mb4", K.ALTER_SCHEMA, {"schema": "S"}),
        ("DROP GLOBAL TEMPORARY TABLE a", K.DROP_TABLE, {"drops": "a"}),
        ("RECOVER TABLE a 53", K.RECOVER_TABLE, {"creates": "a"}),
        ("DROP SCHEMA IF EXISTS n", K.DROP_SCHEMA, {"schema": "n", "if_exists": True}),
        ("# one\n-- two\n/* three */ DROP /*T! four */ TABLE a -- five", K.DROP_TABLE, {"drops": "a"}),
        ("DROP TABLE `a``b`", K.DROP_TABLE, {"drops": "a`b"}),
        ("DROP TABLE 1a.2b", K.DROP_TABLE, {"drops": "1a.2b"}),
    ],
)
def test_the_names_of_a_statement_by_role(query, kind, roles):
    statement = parse_ddl(ddl(query))
    assert statement is not None
    assert statement.kind is kind
    for role in ("needs", "creates", "drops", "mentions"):
        assert getattr(statement, role) == names(roles.get(role, "")), role
    assert tuple(name for pair in statement.renames for name in pair) == names(roles.get("renames", ""))
    if "sources" in roles:
        assert statement.sources == names(roles["sources"])
    for word, default in (("schema", ""), ("if_exists", False), ("if_not_exists", False), ("or_replace", False)):
        assert getattr(statement, word) == roles.get(word, default), word


@pytest.mark.parametrize(
    "query",
    [
        "",
        ";",
        "'a'",
        "DROP",
        "FROB TABLE a",
        "DROP SEQUENCE a",
        "DROP TABLE a; DROP TABLE b",
        "DROP TABLE a b",
        "DROP TABLE 'a'",
        'DROP TABLE "a"',
        "DROP TABLE `a",
        "DROP TABLE a /* never closed",
        "DROP TABLE a,",
        "CREATE TABLE a AS SELECT * FROM b",
        "CREATE TABLE a TABLE b",
        "CREATE TABLE a (i INT) AS VALUES ROW(1)",
        "FLASHBACK TABLE a TO TIMESTAMP '2025-01-01 00:00:00'",
        "FLASHBACK TABLE a, b TO TIMESTAMP '2025-01-01 00:00:00'",
        "CREATE TABLE a (i INT); DROP TABLE b",
        "CREATE VIEW v AS SELECT 1; DROP TABLE b",
        "CREATE SEQUENCE s",
        "CREATE SQL VIEW v AS SELECT 1",
        "CREATE INDEX i ON a",
        "CREATE DATABASE a; DROP DATABASE b",
        "RENAME USER a TO b",
        "RENAME TABLE a b",
        "ALTER VIEW v AS SELECT 1",
        "ALTER TABLE a SOMETHING NEW",
        "ALTER TABLE a 'x'",
        "ALTER TABLE a DROP COLUMN x; DROP TABLE b",
        "ALTER TABLE a RENAME TO b c",
        "FLASHBACK CLUSTER TO TIMESTAMP 'x'",
    ],
)
def test_what_is_not_wholly_understood_may_touch_everything(query):
    assert parse_ddl(ddl(query)) is None
    assert touches(ddl(query)) is None


def test_the_event_names_a_table_too_and_the_statement_all_others():
    assert touches(ddl("RENAME TABLE `S`.`Old` TO `S`.`New`", "New")) == {FoldedName("s", "old"), FoldedName("s", "new")}
    assert touches(ddl("CREATE TABLE a (i INT)", "B")) == {FoldedName("s", "a"), FoldedName("s", "b")}


def test_a_schema_ddl_touches_all_tables_of_the_schema():
    assert touches(ddl("DROP DATABASE `Shop`", "", "Shop")) == {FoldedName("shop", "")}
    assert touches(ddl("CREATE DATABASE x", "", "")) == {FoldedName("x", "")}


def test_case_and_words_do_not_make_another_ddl():
    one = identity(ddl("RENAME TABLE `S`.`a` TO `S`.`B`", "B"))
    other = identity(ddl("alter table A rename to s.b", "b", "s"))
    assert one == other
    assert same_ddl(one, other)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (ddl("RENAME TABLE c TO b", "b"), False),
        (ddl("RENAME TABLE a TO b", "b", ts=2), False),
        (ddl("RENAME TABLE a TO b", "a"), False),
        (ddl("who knows", "b"), True),
    ],
)
def test_two_ddls_are_the_same_by_ts_name_and_names_touched(other, same):
    one = identity(ddl("RENAME TABLE a TO b", "b"))
    assert same_ddl(one, identity(other)) is same
    assert same_ddl(identity(other), one) is same


WORDS = st.sampled_from(
    """CREATE ALTER DROP RENAME TRUNCATE RECOVER TABLE DATABASE VIEW INDEX IF NOT EXISTS LIKE TO AS ON BY JOB ADD COLUMN PARTITION EXCHANGE
    WITH REFERENCES FROM JOIN SELECT ORDER OR REPLACE DEFINER SQL SECURITY = @ ( ) , ; . ` ' " /* */ -- # `a` 'b' a 1""".split()  # noqa: SIM905
)


@given(st.lists(WORDS).map(" ".join) | st.text())
def test_any_text_gives_a_statement_or_none(text):
    event = ddl(text)
    statement, touched = parse_ddl(event), touches(event)
    assert (statement is None) == (touched is None)
    assert touched is None or FoldedName("s", "t") in touched


@pytest.mark.parametrize(("code", "name"), [(1, "create_schema"), (14, "rename_table"), (61, "multi_schema_change"), (300, "type_300")])
def test_ddl_types_are_called_as_tidb_calls_them(code, name):
    assert ddl_type_name(code) == name
    assert len(set(DDL_TYPE_NAMES.values())) == len(DDL_TYPE_NAMES)
