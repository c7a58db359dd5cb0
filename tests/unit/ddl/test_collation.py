"""Charsets without a collation get TiDB's."""

import pytest

from applier.ddl.charset import with_tidb_collations

BIN = " COLLATE utf8mb4_bin"


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t (a VARCHAR(9)) CHARSET=utf8mb4|",
        "CREATE TABLE t (a VARCHAR(9)) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4| COMMENT='x' PARTITION BY HASH (id) PARTITIONS 2",
        "create table `t` (a varchar(9) character set utf8mb4| not null, b char(1) charset 'utf8mb4'| default ')')",
        "CREATE DATABASE IF NOT EXISTS s CHARACTER SET = utf8mb4|",
        "ALTER DATABASE s DEFAULT CHARSET `utf8mb4`|",
        "ALTER TABLE t ADD a VARCHAR(9) CHARSET utf8mb4|, ADD b VARCHAR(9) CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4|",
        "ALTER TABLE t ADD COLUMN (a TEXT CHARSET utf8mb4|, b INT)",
    ],
)
def test_a_charset_without_a_collation_is_completed(query: str) -> None:
    assert with_tidb_collations(query.replace("|", "")) == query.replace("|", BIN)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t (a VARCHAR(9)) CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
        "CREATE TABLE t (a VARCHAR(9)) COLLATE=utf8mb4_general_ci, DEFAULT CHARSET=utf8mb4",
        "CREATE TABLE t (a VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci)",
        "CREATE TABLE t (`CHARSET` INT, charset INT, b BLOB) CHARSET=binary",
        "CREATE TABLE t (a VARCHAR(9) AS (CAST(b AS CHAR CHARACTER SET utf8mb4)))",
        "CREATE TABLE t (a INT COMMENT 'CHARSET utf8mb4') /* CHARSET=utf8mb4 */",
        "CREATE TABLE t (a VARCHAR(9)) CHARSET=binary",
        "CREATE VIEW v AS SELECT CAST(a AS CHAR CHARACTER SET utf8mb4) FROM t",
        "DROP TABLE t",
        "CREATE TABLE t (a INT) CHARSET",
        "",
    ],
)
def test_everything_else_stays_as_it_is(query: str) -> None:
    assert with_tidb_collations(query) == query


def test_charsets_get_tidbs_own_collation() -> None:
    assert with_tidb_collations("CREATE TABLE t (a CHAR CHARSET gbk, b CHAR CHARSET gb18030)") == (
        "CREATE TABLE t (a CHAR CHARSET gbk COLLATE gbk_chinese_ci, b CHAR CHARSET gb18030 COLLATE gb18030_chinese_ci)"
    )
    assert with_tidb_collations("CREATE TABLE t (a CHAR CHARSET ascii, b CHAR CHARSET latin1)") == (
        "CREATE TABLE t (a CHAR CHARSET ascii COLLATE ascii_bin, b CHAR CHARSET latin1 COLLATE latin1_bin)"
    )
