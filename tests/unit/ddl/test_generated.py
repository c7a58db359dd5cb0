"""What stays generated in a sink, what becomes a plain column, and what stops."""

import pytest

from applier.ddl.adaptation import Target
from applier.ddl.column_type import ColumnType
from applier.ddl.generated import KnownColumn, Unportable, in_generated_words_of, keyed_virtual, unknown_values, unportable_columns
from applier.ddl.parser import PLAIN_COLUMN
from applier.planner.table_check import generated_difference

MYSQL, MARIADB = Target(), Target(has_generated_keys=False)
INT, FLOAT, TEXT = ColumnType(base="int"), ColumnType(base="float"), ColumnType(base="varchar", arguments=(40,))


def plain(expression):
    return KnownColumn(TEXT, comment=f"upstream's own /*: GENERATED ALWAYS AS ({expression}) STORED */")


TABLE = {
    "id": KnownColumn(INT, is_indexed=True),
    "a": KnownColumn(INT),
    "f": KnownColumn(FLOAT),
    "s": plain("CONCAT(f)"),
    "v": KnownColumn(TEXT, "concat(`f`)"),
    "w": KnownColumn(TEXT, "concat(`a`,'-')", is_indexed=True),
    "p": KnownColumn(INT, "`a` + 1", is_stored=True),
}


LISTED = (
    r"ALTER TABLE t ADD (g TEXT COMMENT '/*: GENERATED ALWAYS AS (f) STORED *\/', h INT), "
    r"MODIFY s TEXT COMMENT '/*: GENERATED ALWAYS AS (f) STORED *\/' AFTER id"
)


@pytest.mark.parametrize(
    ("query", "mysql", "mariadb"),
    [
        ("CREATE TABLE t (a INT, g INT AS (a + 1) STORED)", None, None),
        (
            "CREATE TABLE t (ts TIMESTAMP, d DATE GENERATED ALWAYS AS (DATE(ts)) STORED NOT NULL UNIQUE)",
            r"CREATE TABLE t (ts TIMESTAMP, d DATE COMMENT '/*: GENERATED ALWAYS AS (DATE(ts)) STORED *\/' NOT NULL UNIQUE)",
            r"CREATE TABLE t (ts TIMESTAMP, d DATE COMMENT '/*: GENERATED ALWAYS AS (DATE(ts)) STORED *\/' NOT NULL UNIQUE)",
        ),
        (
            "CREATE TABLE t (f FLOAT, g TEXT AS (CONCAT(f)) PERSISTENT COMMENT 'it''s')",
            r"CREATE TABLE t (f FLOAT, g TEXT COMMENT 'it''s /*: GENERATED ALWAYS AS (CONCAT(f)) STORED *\/')",
            r"CREATE TABLE t (f FLOAT, g TEXT COMMENT 'it''s /*: GENERATED ALWAYS AS (CONCAT(f)) STORED *\/')",
        ),
        ("CREATE TABLE t (f FLOAT, g TEXT AS (CONCAT(f)))", None, None),
        ("CREATE TABLE t (f FLOAT DEFAULT NULL, g INT DEFAULT (1) COMMENT 'AS (f) STORED')", None, None),
        # MariaDB refuses NOT NULL of a generated column (1064), and one in a primary key (1903).
        (
            "CREATE TABLE t (a INT, g INT AS (a + 1) VIRTUAL NOT NULL, h INT AS (a + 1) STORED NULL)",
            None,
            "CREATE TABLE t (a INT, g INT AS (a + 1) VIRTUAL, h INT AS (a + 1) STORED)",
        ),
        (
            "CREATE TABLE t (a INT, g INT AS (a + 1) STORED NOT NULL, PRIMARY KEY (g))",
            None,
            r"CREATE TABLE t (a INT, g INT COMMENT '/*: GENERATED ALWAYS AS (a + 1) STORED *\/' NOT NULL, PRIMARY KEY (g))",
        ),
        # What it names is computed by the sink too, and is not portable.
        (
            "CREATE TABLE t (f FLOAT, v VARCHAR(9) AS (CONCAT(f)), g VARCHAR(9) AS (v) STORED)",
            r"CREATE TABLE t (f FLOAT, v VARCHAR(9) AS (CONCAT(f)), g VARCHAR(9) COMMENT '/*: GENERATED ALWAYS AS (v) STORED *\/')",
            r"CREATE TABLE t (f FLOAT, v VARCHAR(9) AS (CONCAT(f)), g VARCHAR(9) COMMENT '/*: GENERATED ALWAYS AS (v) STORED *\/')",
        ),
        ("ALTER TABLE t ADD COLUMN g INT AS (a * 2) STORED", None, None),
        (
            "ALTER TABLE t ADD (g TEXT AS (f) STORED, h INT), MODIFY s TEXT AS (f) STORED AFTER id",
            LISTED,
            LISTED,
        ),
        ("ALTER TABLE t MODIFY a FLOAT, ADD g INT", None, None),
        ("DROP TABLE t", None, None),
        ("no statement (", None, None),
    ],
)
def test_a_stored_column_that_no_sink_computes_as_upstream_is_a_plain_one(query, mysql, mariadb):
    assert in_generated_words_of(MYSQL, query, TABLE) == (mysql or query)
    assert in_generated_words_of(MARIADB, query, TABLE) == (mariadb or query)


def test_a_long_expression_is_left_out_of_the_comment():
    query = f"CREATE TABLE t (f FLOAT, g TEXT AS (CONCAT(f, '{'x' * 1100}')) STORED)"
    wanted = r"CREATE TABLE t (f FLOAT, g TEXT COMMENT '/*: GENERATED ALWAYS AS () STORED *\/')"
    assert in_generated_words_of(MYSQL, query, {}) == wanted
    own = f"CREATE TABLE t (f FLOAT, g TEXT AS (f) STORED COMMENT '{'x' * 1024}')"
    assert in_generated_words_of(MYSQL, own, {}) == own.replace(" AS (f) STORED", "")


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("CREATE TABLE t (f FLOAT, g VARCHAR(9) AS (CONCAT(f)) UNIQUE)", "g"),
        ("CREATE TABLE t (f FLOAT, g VARCHAR(9) AS (CONCAT(f)), KEY k (f, g(3)))", "g"),
        ("CREATE TABLE t (f FLOAT, g VARCHAR(9) AS (CONCAT(f)) STORED UNIQUE)", ""),
        ("CREATE TABLE t (a INT, g VARCHAR(9) AS (CONCAT(a)) UNIQUE)", ""),
        ("CREATE UNIQUE INDEX k ON t (id, v)", "v"),
        ("CREATE INDEX k ON t (id, s)", ""),
        ("DROP INDEX k ON t", ""),
        ("ALTER TABLE t ADD INDEX k (V)", "v"),
        ("ALTER TABLE t ADD COLUMN g VARCHAR(9) AS (UPPER(w)) KEY", "g"),
        ("ALTER TABLE t DROP COLUMN v, ADD v INT, ADD INDEX (v)", ""),
        # Its expression was portable over INT.
        ("ALTER TABLE t MODIFY a DOUBLE", "w"),
        ("ALTER TABLE t MODIFY a BIGINT", ""),
        ("ALTER TABLE t MODIFY w VARCHAR(9) AS (LOWER(a))", "w"),
    ],
)
def test_an_index_of_a_virtual_column_that_the_sink_computes_otherwise_stops(query, column):
    assert keyed_virtual(query, MYSQL, TABLE) == column


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("CREATE TABLE t (f FLOAT, g TEXT AS (f) STORED)", ""),
        ("ALTER TABLE t ADD g TEXT AS (f) STORED", "g"),
        ("ALTER TABLE t ADD g TEXT AS (f) VIRTUAL", ""),
        ("ALTER TABLE t ADD g INT AS (a + 1) STORED", ""),
        ("ALTER TABLE t CHANGE s s2 TEXT AS (f) STORED", "s2"),
        ("ALTER TABLE t MODIFY f DOUBLE", "s"),
        ("ALTER TABLE t MODIFY a BIGINT", ""),
        ("ALTER TABLE t MODIFY a DECIMAL(9,1)", "p"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", "s"),
        ("ALTER TABLE t MODIFY f DOUBLE, DROP COLUMN s", ""),
        ("ALTER TABLE t RENAME COLUMN a TO b", ""),
        ("ALTER TABLE t ADD b INT, DROP COLUMN v", ""),
    ],
)
def test_values_of_old_rows_that_only_upstream_computes_stop(query, column):
    assert unknown_values(query, MYSQL, TABLE) == column


def test_an_expression_over_a_column_that_was_renamed_may_mean_any():
    table = {"id": KnownColumn(INT), "new": KnownColumn(FLOAT), "s": plain("CONCAT(f)")}
    assert unknown_values("ALTER TABLE t MODIFY new DOUBLE", MYSQL, table) == "s"
    assert unknown_values("ALTER TABLE t MODIFY id BIGINT", MYSQL, {"id": KnownColumn(INT), "s": plain("")}) == "s"


def test_a_table_shows_what_it_must_not_compute():
    made_by_hand = {
        "f": KnownColumn(FLOAT),
        "stored": KnownColumn(TEXT, "concat(`f`)", is_stored=True),
        "virtual": KnownColumn(TEXT, "concat(`f`)"),
        "indexed": KnownColumn(TEXT, "concat(`f`)", is_indexed=True),
        "portable": KnownColumn(TEXT, "concat('a')", is_stored=True, is_indexed=True),
        "unknown": KnownColumn(None, "concat('a')", is_stored=True),
        "plain": plain("CONCAT(f)"),
    }
    assert unportable_columns(made_by_hand) == [
        Unportable("stored", is_stored=True),
        Unportable("indexed", is_stored=False),
        Unportable("unknown", is_stored=True),
    ]


@pytest.mark.parametrize("remedy", [PLAIN_COLUMN, generated_difference("s").remedy], ids=["skipped", "made by hand"])
def test_a_column_that_a_remedy_makes_plain_is_known_to_later_ddls(remedy):
    comment = remedy[remedy.index("/*:") : remedy.index("*/") + 2].replace("…", "CONCAT(f)")
    table = TABLE | {"s": KnownColumn(TEXT, comment=comment)}
    assert unknown_values("ALTER TABLE t MODIFY f DOUBLE", MYSQL, table) == "s"
