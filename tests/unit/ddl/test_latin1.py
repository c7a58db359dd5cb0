"""TiDB's latin1 holds every character, so the sink has utf8mb4 for it."""

import pytest

from applier.ddl.charset import with_latin1_as_utf8

KEPT = " CHARACTER SET latin1 COLLATE latin1_bin"


@pytest.mark.parametrize(
    ("query", "there"),
    [
        (
            "CREATE TABLE t (a CHAR(2) CHARACTER SET latin1 PRIMARY KEY) DEFAULT CHARSET=latin1 COLLATE=latin1_bin",
            "CREATE TABLE t (a CHAR(2) CHARACTER SET utf8mb4 PRIMARY KEY) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        ),
        ("CREATE TABLE t (a TEXT CHARSET 'latin1' DEFAULT (_latin1'é'))", "CREATE TABLE t (a TEXT CHARSET utf8mb4 DEFAULT (_utf8mb4'é'))"),
        ("CREATE DATABASE d CHARACTER SET = LATIN1", "CREATE DATABASE d CHARACTER SET = utf8mb4"),
        (
            "ALTER TABLE t CONVERT TO CHARACTER SET latin1, ADD b TEXT CHARSET latin1",
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD b TEXT CHARSET utf8mb4",
        ),
        ("CREATE VIEW v AS SELECT CONVERT(a USING latin1) FROM t", "CREATE VIEW v AS SELECT CONVERT(a USING utf8mb4) FROM t"),
    ],
)
def test_latin1_becomes_utf8mb4(query, there):
    assert with_latin1_as_utf8(query) == there


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE latin1 (latin1 INT, `charset` INT COMMENT 'CHARSET latin1')",
        "CREATE TABLE t (a INT) CHARSET = utf8 -- latin1",
        "CREATE TABLE t (a INT) COMMENT 'latin1",
        "latin1",
    ],
)
def test_everything_else_stays_as_it_is(query):
    assert with_latin1_as_utf8(query) == query


def test_a_column_that_is_too_long_in_utf8mb4_stays_latin1():
    assert with_latin1_as_utf8("CREATE TABLE t (a VARCHAR(16384), b VARCHAR(16383)) CHARSET=latin1") == (
        f"CREATE TABLE t (a VARCHAR(16384){KEPT}, b VARCHAR(16383)) CHARSET=utf8mb4"
    )
    long = "ALTER TABLE t MODIFY a VARCHAR(20000) CHARACTER SET latin1"
    assert with_latin1_as_utf8(long) == long


@pytest.mark.parametrize("key", ["UNIQUE KEY (a, b)", "PRIMARY KEY (a(500), b)"])
def test_columns_of_a_unique_key_that_would_be_too_long_stay_latin1(key):
    assert with_latin1_as_utf8(f"CREATE TABLE t (a VARCHAR(768), b CHAR(255), c CHAR(9), {key}) CHARSET latin1") == (
        f"CREATE TABLE t (a VARCHAR(768){KEPT}, b CHAR(255){KEPT}, c CHAR(9), {key}) CHARSET utf8mb4"
        if "a, b" in key
        else f"CREATE TABLE t (a VARCHAR(768), b CHAR(255), c CHAR(9), {key}) CHARSET utf8mb4"
    )
    assert with_latin1_as_utf8("CREATE TABLE t (a VARCHAR(769) UNIQUE, b VARCHAR(768) UNIQUE) CHARSET latin1") == (
        f"CREATE TABLE t (a VARCHAR(769){KEPT} UNIQUE, b VARCHAR(768) UNIQUE) CHARSET utf8mb4"
    )


def test_another_index_that_would_be_too_long_is_cut():
    made = "CREATE TABLE t (a VARCHAR(3000), b VARCHAR(100), c INT, KEY x (a, c, `b` DESC), KEY y (b), KEY z (a(900))) CHARSET latin1"
    assert with_latin1_as_utf8(made) == (
        "CREATE TABLE t (a VARCHAR(3000), b VARCHAR(100), c INT, KEY x (a(380), c, `b`(100) DESC), KEY y (b), KEY z (a(768))) "
        "CHARSET utf8mb4"
    )
