"""A DDL for a server that lacks types, kinds of indexes and collations of TiDB."""

import pytest

from applier.ddl.adaptation import (
    MARIADB_COLLATIONS,
    UPSTREAM,
    Target,
    adapted,
    indexes_by_name,
    left_out,
    refuse_inexpressible,
    without_missing_indexes,
)
from applier.ddl.clause import without_ignored_clauses
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts

MARIADB = Target(
    has_vectors=False, has_vector_indexes=False, has_expression_indexes=False, has_intervals=False, collations=MARIADB_COLLATIONS
)
MYSQL = Target(has_vector_indexes=False, has_intervals=False)


def event(query: str) -> DdlEvent:
    return DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=0)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (
            "CREATE TABLE t (a VECTOR(3), b VECTOR NOT NULL COMMENT 'VECTOR')",
            "CREATE TABLE t (a LONGTEXT, b LONGTEXT NOT NULL COMMENT 'VECTOR')",
        ),
        ("CREATE TABLE t (`vector` INT, a VECTOR<FLOAT>(3))", "CREATE TABLE t (`vector` INT, a LONGTEXT)"),
        (
            "ALTER TABLE t ADD COLUMN (a VECTOR(2), b INT), MODIFY c VECTOR",
            "ALTER TABLE t ADD COLUMN (a LONGTEXT, b INT), MODIFY c LONGTEXT",
        ),
        ("ALTER TABLE t CHANGE a vector VECTOR(3) FIRST", "ALTER TABLE t CHANGE a vector LONGTEXT FIRST"),
        ("ALTER TABLE t DROP COLUMN vector", "ALTER TABLE t DROP COLUMN vector"),
        ("ALTER TABLE t ADD COLUMN a, MODIFY b", "ALTER TABLE t ADD COLUMN a, MODIFY b"),
        ("ALTER TABLE t COLLATE = 'utf8mb4_0900_ai_ci'", "ALTER TABLE t COLLATE = utf8mb4_uca1400_nopad_ai_ci"),
        (
            "CREATE TABLE t (a CHAR(3) COLLATE UTF8MB4_0900_BIN) COLLATE utf8mb4_0900_as_cs",
            "CREATE TABLE t (a CHAR(3) COLLATE utf8mb4_nopad_bin) COLLATE utf8mb4_uca1400_nopad_as_cs",
        ),
        (
            "CREATE VIEW v AS SELECT a COLLATE utf8mb4_0900_ai_ci FROM t",
            "CREATE VIEW v AS SELECT a COLLATE utf8mb4_uca1400_nopad_ai_ci FROM t",
        ),
        ("ALTER DATABASE s COLLATE utf8mb4_general_ci", "ALTER DATABASE s COLLATE utf8mb4_general_ci"),
        ("ALTER TABLE t COMMENT 'COLLATE utf8mb4_0900_ai_ci'", "ALTER TABLE t COMMENT 'COLLATE utf8mb4_0900_ai_ci'"),
        ("ALTER TABLE t COLLATE", "ALTER TABLE t COLLATE"),
        ("ALTER TABLE t COLLATE =", "ALTER TABLE t COLLATE ="),
        ("ALTER TABLE t ADD a VECTOR(3", "ALTER TABLE t ADD a VECTOR(3"),
        ("CREATE TABLE t (a 'unclosed", "CREATE TABLE t (a 'unclosed"),
        ("nonsense COLLATE utf8mb4_0900_bin", "nonsense COLLATE utf8mb4_nopad_bin"),
    ],
)
def test_types_and_collations_that_the_server_lacks_are_said_in_other_words(query: str, wanted: str) -> None:
    assert adapted(query, MARIADB) == wanted
    assert adapted(query, UPSTREAM) == query


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("CREATE TABLE t (a VECTOR, b VECTOR(3))", "CREATE TABLE t (a VECTOR(16383), b VECTOR(3))"),
        ("CREATE TABLE t (a INT COLLATE utf8mb4_0900_bin)", "CREATE TABLE t (a INT COLLATE utf8mb4_0900_bin)"),
    ],
)
def test_a_server_with_vectors_takes_as_many_dimensions_as_upstream(query: str, wanted: str) -> None:
    assert adapted(query, MYSQL) == wanted


LEFT_OUT = [
    ("CREATE TABLE t (a INT, KEY low ((LOWER(b))), KEY b (a))", "CREATE TABLE t (a INT, KEY b (a))", ["low"]),
    ("CREATE TABLE t (a INT, KEY two (a, (b + 1)))", "CREATE TABLE t (a INT)", ["two"]),
    ("CREATE TABLE t (a VECTOR(3), VECTOR INDEX v ((VEC_L2_DISTANCE(a))))", "CREATE TABLE t (a VECTOR(3))", ["v"]),
    ("CREATE TABLE t (a INT, KEY ((a + 1)))", "CREATE TABLE t (a INT)", [""]),
    ("ALTER TABLE t ADD INDEX low ((LOWER(b))), ADD c INT", "ALTER TABLE t ADD c INT", ["low"]),
    ("ALTER TABLE t ADD HYBRID INDEX h (a) PARAMETER '{}'", "ALTER TABLE t", ["h"]),
    ("ALTER TABLE t ADD (INDEX i ((a + 1)), INDEX j (a))", "ALTER TABLE t ADD ( INDEX j (a))", ["i"]),
    ("ALTER TABLE t ADD (INDEX i ((a + 1)), INDEX j ((a + 2))), ADD k INT", "ALTER TABLE t ADD k INT", ["i", "j"]),
    ("ALTER TABLE t ADD INDEX i (a) WHERE a > 0", "ALTER TABLE t", ["i"]),
    ("CREATE INDEX low ON t ((LOWER(b)))", "", ["low"]),
    ("CREATE COLUMNAR INDEX c ON t (a)", "", ["c"]),
    ("CREATE INDEX plain ON t (a, b(10) DESC)", "CREATE INDEX plain ON t (a, b(10) DESC)", []),
    ("ALTER TABLE t ADD FOREIGN KEY f (a) REFERENCES o (b)", "ALTER TABLE t ADD FOREIGN KEY f (a) REFERENCES o (b)", []),
    ("ALTER TABLE t ADD INDEX broken", "ALTER TABLE t ADD INDEX broken", []),
    ("DROP INDEX low ON t", "DROP INDEX low ON t", []),
    ("DROP TABLE t", "DROP TABLE t", []),
    ("nonsense", "nonsense", []),
]


@pytest.mark.parametrize(("query", "wanted", "names"), LEFT_OUT)
def test_an_index_that_the_server_cannot_have_is_left_out(query: str, wanted: str, names: list[str]) -> None:
    assert " ".join(without_ignored_clauses(query, target=MARIADB).split()) == " ".join(wanted.split())
    assert left_out(query, MARIADB) == names
    refuse_inexpressible(event(query), MARIADB)
    assert left_out(query, UPSTREAM) == []


def test_mysql_has_indexes_of_expressions() -> None:
    query = "ALTER TABLE t ADD UNIQUE INDEX low ((LOWER(b)))"
    assert without_ignored_clauses(query, target=MYSQL) == query
    refuse_inexpressible(event(query), MYSQL)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE UNIQUE INDEX low ON t ((LOWER(b)))",
        "CREATE TABLE t (a INT, CONSTRAINT low UNIQUE ((a + 1)))",
        "ALTER TABLE t ADD UNIQUE KEY low (a) WHERE a > 0",
    ],
)
def test_a_unique_index_is_never_left_out(query: str) -> None:
    with pytest.raises(NeedsOperator, match="unique index of an expression") as stopped:
        refuse_inexpressible(event(query), MARIADB)
    assert stopped.value.facts["index"] == "low"


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t LAST PARTITION LESS THAN (5)",
        "ALTER TABLE t FIRST PARTITION LESS THAN (5)",
        "ALTER TABLE t MERGE FIRST PARTITION LESS THAN (5)",
        "ALTER TABLE t SPLIT MAXVALUE PARTITION LESS THAN (5)",
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a) INTERVAL (10) FIRST PARTITION LESS THAN (10) LAST PARTITION LESS THAN (90)",
    ],
)
def test_bounds_of_interval_partitions_name_no_partition(query: str) -> None:
    with pytest.raises(NeedsOperator, match="INTERVAL"):
        refuse_inexpressible(event(query), MYSQL)
    refuse_inexpressible(event(query), UPSTREAM)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("ALTER TABLE t DROP INDEX gone", "ALTER TABLE t"),
        ("ALTER TABLE t DROP INDEX gone, DROP INDEX Here", "ALTER TABLE t DROP INDEX Here"),
        ("ALTER TABLE t RENAME INDEX gone TO lost, ADD c INT", "ALTER TABLE t ADD c INT"),
        ("ALTER TABLE t RENAME INDEX gone TO here", "ALTER TABLE t RENAME INDEX gone TO here"),
        ("ALTER TABLE t ALTER INDEX gone INVISIBLE, ALTER INDEX here VISIBLE", "ALTER TABLE t ALTER INDEX here VISIBLE"),
        ("ALTER TABLE t DROP COLUMN gone", "ALTER TABLE t DROP COLUMN gone"),
        ("DROP INDEX gone ON t", ""),
        ("DROP INDEX here ON t", "DROP INDEX here ON t"),
        ("nonsense", "nonsense"),
    ],
)
def test_what_is_done_to_an_index_that_was_left_out_is_left_out_too(query: str, wanted: str) -> None:
    assert " ".join(without_missing_indexes(query, {"here"}).split()) == wanted


def test_the_indexes_that_a_statement_names() -> None:
    assert indexes_by_name("ALTER TABLE t DROP INDEX a, ADD INDEX b (c), RENAME INDEX d TO e, ALTER INDEX f VISIBLE") == ["a", "d", "f"]
    assert indexes_by_name("DROP INDEX a ON t") == ["a"]
    assert indexes_by_name("CREATE INDEX a ON t (b)") == indexes_by_name("nonsense") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("CREATE TABLE t (g POINT NOT NULL SRID 4326, a INT)", "CREATE TABLE t (g POINT NOT NULL, a INT)"),
        ("ALTER TABLE t MODIFY a INT VISIBLE, ADD h GEOMETRY SRID 0", "ALTER TABLE t MODIFY a INT, ADD h GEOMETRY"),
        ("CREATE TABLE t (visible INT DEFAULT (srid + 1) VISIBLE)", "CREATE TABLE t (visible INT DEFAULT (srid + 1))"),
        (
            "CREATE TABLE t (a INT COMMENT 'VISIBLE SRID 1', b INT INVISIBLE)",
            "CREATE TABLE t (a INT COMMENT 'VISIBLE SRID 1', b INT INVISIBLE)",
        ),
    ],
)
def test_mariadb_does_without_what_says_nothing_of_values(query, expected):
    of_mariadb = Target(has_srid=False, has_column_visibility=False)
    assert adapted(query, of_mariadb).replace(" ,", ",").replace(" )", ")").rstrip() == expected
    assert adapted(query, Target()) == query


@pytest.mark.parametrize(
    ("query", "target"),
    [
        ("CREATE TABLE t (a INT, CHECK (a > 5) NOT ENFORCED)", Target(has_unenforced_checks=False)),
        ("ALTER TABLE t ALTER CHECK c ENFORCED", Target(has_unenforced_checks=False)),
        ("ALTER TABLE t ADD PERIOD FOR p(a, b)", Target(has_periods=False)),
    ],
)
def test_what_a_server_lacks_and_the_sink_needs_is_refused_by_name(query, target):
    event = DdlEvent(commit_ts=Ts(7), schema="s", table="t", query=query, ddl_type=5)
    with pytest.raises(NeedsOperator, match="the sink's server"):
        refuse_inexpressible(event, target)
    refuse_inexpressible(event, Target())
