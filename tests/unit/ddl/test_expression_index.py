"""A unique index of an expression that the sink may compute otherwise is a plain one; upstream's name stays."""

import pytest

from applier.ddl.column_type import ColumnType
from applier.ddl.generated import KnownColumn, makes_unique_of_expression, without_unportable_uniqueness
from applier.ddl.generated_name import MYSQL_NAMING, TIDB_NAMING, TableNames, with_generated_names

INT, TEXT = ColumnType(base="int"), ColumnType(base="varchar", arguments=(40,))
TABLE = {
    "a": KnownColumn(INT),
    "f": KnownColumn(ColumnType(base="float")),
    "t": KnownColumn(TEXT),
    "v": KnownColumn(INT, "`f`"),
    "p": KnownColumn(INT, "`a` + 1"),
    "s": KnownColumn(INT, "`f` * 2", is_stored=True),
}

PLAIN = [
    (
        "CREATE TABLE t (ts TIMESTAMP, f FLOAT, UNIQUE day ((DATE(ts)) DESC), CONSTRAINT c UNIQUE KEY ((CONCAT(f))))",
        "CREATE TABLE t (ts TIMESTAMP, f FLOAT, KEY day ((DATE(ts)) DESC), KEY `c` ((CONCAT(f))))",
    ),
    (
        "CREATE TABLE t (v VARCHAR(9), a INT, CONSTRAINT c UNIQUE INDEX low USING BTREE (a, (LOWER(v))) COMMENT 'x', UNIQUE (a))",
        "CREATE TABLE t (v VARCHAR(9), a INT, KEY low USING BTREE (a, (LOWER(v))) COMMENT 'x', UNIQUE (a))",
    ),
    (
        "CREATE TABLE t (v TEXT, CONSTRAINT UNIQUE `k` ((MD5(v))), CONSTRAINT `unique` UNIQUE USING HASH ((MD5(v))))",
        "CREATE TABLE t (v TEXT, KEY `k` ((MD5(v))), KEY `unique` USING HASH ((MD5(v))))",
    ),
    ("ALTER TABLE t ADD UNIQUE k ((f + 1)), ADD UNIQUE l ((a + 1))", "ALTER TABLE t ADD KEY k ((f + 1)), ADD UNIQUE l ((a + 1))"),
    (
        "ALTER TABLE t ADD COLUMN (d DECIMAL(5,2), UNIQUE k ((d + 1))), ADD CONSTRAINT c UNIQUE ((a % 2)), LOCK = NONE",
        "ALTER TABLE t ADD COLUMN (d DECIMAL(5,2), KEY k ((d + 1))), ADD KEY `c` ((a % 2)), LOCK = NONE",
    ),
    ("ALTER TABLE t MODIFY a FLOAT, ADD UNIQUE k ((a + 1))", "ALTER TABLE t MODIFY a FLOAT, ADD KEY k ((a + 1))"),
    # A text has a collation, and a virtual column is computed by the sink too.
    ("CREATE UNIQUE INDEX k ON t ((CONCAT(t, 'x')))", "CREATE INDEX k ON t ((CONCAT(t, 'x')))"),
    ("CREATE UNIQUE INDEX k ON t ((v + 1))", "CREATE INDEX k ON t ((v + 1))"),
    ("CREATE /* x */ UNIQUE\nINDEX k ON t (a, (LOWER(t)))", "CREATE /* x */ INDEX k ON t (a, (LOWER(t)))"),
    ("CREATE UNIQUE INDEX k ON t ((gone + 1))", "CREATE INDEX k ON t ((gone + 1))"),
]

KEPT = [
    "CREATE TABLE t (a INT, b BIGINT, UNIQUE k ((a + b)), UNIQUE l (a, (IF(a > b, 1, 0))), UNIQUE m ((COALESCE(a, 0))))",
    "ALTER TABLE t RENAME COLUMN a TO b, ADD UNIQUE k ((b * 2))",
    "CREATE UNIQUE INDEX k ON t ((a + 1))",
    "CREATE UNIQUE INDEX k ON t ((p + 1))",
    "CREATE UNIQUE INDEX k ON t ((s + 1))",
    "CREATE TABLE t (f FLOAT, t VARCHAR(9), UNIQUE k (f, t(3)), PRIMARY KEY (f), KEY ((LOWER(t))))",
    "CREATE INDEX k ON t ((LOWER(t)))",
    "DROP INDEX `unique` ON t",
    "CREATE TABLE t (a INT, UNIQUE k ((a",
    "CREATE TABLE t (a INT, UNIQUE k)",
]


@pytest.mark.parametrize(("query", "wanted"), PLAIN)
def test_what_the_sink_may_compute_otherwise_is_not_unique_there(query, wanted):
    assert without_unportable_uniqueness(query, TABLE) == wanted
    assert makes_unique_of_expression(query)
    assert without_unportable_uniqueness(wanted, TABLE) == wanted


@pytest.mark.parametrize("query", KEPT)
def test_every_other_index_stays_as_it_is(query):
    assert without_unportable_uniqueness(query, TABLE) == query


@pytest.mark.parametrize(
    ("naming", "named", "unnamed", "other"),
    [(TIDB_NAMING, "c", "expression_index", "expression_index_2"), (MYSQL_NAMING, "i", "functional_index", "functional_index_2")],
)
def test_a_plain_index_has_the_name_that_upstream_gave_the_unique_one(naming, named, unnamed, other):
    query = "CREATE TABLE t (f FLOAT, CONSTRAINT c UNIQUE i ((f + 1)), UNIQUE ((f + 2)), CONSTRAINT UNIQUE KEY ((f + 3)))"
    found = without_unportable_uniqueness(with_generated_names(query, TableNames(), naming), {})
    assert found.replace("`", "") == f"CREATE TABLE t (f FLOAT, KEY {named} ((f + 1)), KEY {unnamed} ((f + 2)), KEY {other} ((f + 3)))"
