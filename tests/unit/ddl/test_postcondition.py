"""What a DDL wants of the catalogue, read from its text."""

import pytest

from applier.ddl.conditions import Postcondition, postconditions_of


def there(what: str, *names: str) -> list[Postcondition]:
    return [Postcondition(what, name, is_present=True) for name in names]


def gone(what: str, *names: str) -> list[Postcondition]:
    return [Postcondition(what, name, is_present=False) for name in names]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("ALTER TABLE t ADD COLUMN c INT DEFAULT 1 AFTER b", there("column", "c")),
        ("ALTER TABLE `s`.`t` ADD `a,b` DECIMAL(10,2), ADD COLUMN IF NOT EXISTS d INT", there("column", "a,b", "d")),
        ("alter table t add column (c int, d decimal(3,1))", there("column", "c", "d")),
        ("ALTER TABLE t DROP COLUMN c, DROP d", gone("column", "c", "d")),
        ("ALTER TABLE t DROP COLUMN IF EXISTS c", gone("column", "c")),
        ("ALTER TABLE t ADD INDEX i (a, b), ADD UNIQUE KEY u (c), ADD KEY k (d)", there("index", "i", "u", "k")),
        ("ALTER TABLE t ADD UNIQUE u (c)", there("index", "u")),
        ("ALTER TABLE t DROP INDEX i, DROP KEY k", gone("index", "i", "k")),
        ("ALTER TABLE t CHANGE a b INT, CHANGE COLUMN c c BIGINT", [Postcondition("column", "b", is_present=True, formerly="a")]),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", there("index", "PRIMARY")),
        ("ALTER TABLE t ADD COLUMN c INT, MODIFY a BIGINT, COMMENT = 'x'", there("column", "c")),
        (
            "ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (30), PARTITION p4 VALUES LESS THAN (40))",
            there("partition", "p3", "p4"),
        ),
        ("ALTER TABLE t DROP PARTITION p0", gone("partition", "p0")),
        ("ALTER TABLE t DROP PARTITION IF EXISTS p0, p1", gone("partition", "p0", "p1")),
        ("ALTER TABLE t ADD INDEX type (a), ADD vector INT", [*there("index", "type"), *there("column", "vector")]),
        ("CREATE UNIQUE INDEX i ON t (a)", there("index", "i")),
        ("DROP INDEX i ON s.t", gone("index", "i")),
    ],
)
def test_clauses_with_a_result_in_the_catalogue_are_understood(query: str, wanted: list[Postcondition]) -> None:
    assert postconditions_of(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t ADD INDEX (a)",
        "ALTER TABLE t ADD INDEX USING BTREE (a)",
        "ALTER TABLE t ADD COLUMNAR INDEX c (a)",
        "ALTER TABLE t ADD VECTOR INDEX v ((VEC_COSINE_DISTANCE(e)))",
        "ALTER TABLE t DROP PRIMARY KEY",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t ADD COLUMN c INT, RENAME INDEX a TO b",
        "ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u (a)",
        "ALTER TABLE t",
        "ALTER TABLE t ADD COLUMN `c",
    ],
)
def test_one_clause_that_cannot_be_judged_leaves_the_whole_to_the_operator(query: str) -> None:
    assert postconditions_of(query) is None
