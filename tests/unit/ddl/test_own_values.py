"""Which values a DDL gives to old rows that another server may make otherwise: everything that is not on the list of portable ones."""

import pytest

from applier.ddl.column_type import ColumnType
from applier.ddl.old_values import own_values

COLUMNS = {
    "a": ColumnType(base="int"),
    "at": ColumnType(base="datetime"),
    "big": ColumnType(base="bigint", unsigned=True),
    "t": ColumnType(base="varchar", arguments=(40,), charset="utf8mb4"),
}


def column_of(clause):
    return own_values(f"ALTER TABLE s.t ADD COLUMN {clause}", lambda: COLUMNS)


@pytest.mark.parametrize(
    "definition",
    [
        "VARCHAR(90) DEFAULT (CURRENT_USER())",
        "VARCHAR(90) DEFAULT CURRENT_USER",
        "VARCHAR(90) DEFAULT (@v)",
        "VARCHAR(900) DEFAULT (@@sql_mode)",
        "VARCHAR(20) DEFAULT (DAYNAME(at))",
        "VARCHAR(20) DEFAULT (DATE_FORMAT(at, '%W'))",
        "INT DEFAULT (WEEK(at))",
        "DECIMAL(20,10) DEFAULT (1/3)",
        "DOUBLE DEFAULT (a / 3)",
        "CHAR(36) DEFAULT (UUID())",
        "CHAR(36) DEFAULT uuid()",
        "INT DEFAULT (FLOOR(RAND() * 10))",
        "VARCHAR(9) DEFAULT (DATABASE())",
        "DATETIME DEFAULT (UTC_TIMESTAMP())",
        "DATETIME DEFAULT (SYSDATE())",
        "VARCHAR(30) DEFAULT (CURRENT_DATE)",
        "BIGINT DEFAULT (NEXT VALUE FOR q)",
        "BIGINT DEFAULT NEXTVAL(q)",
        "INT DEFAULT (big - 1)",
        "INT DEFAULT (stored(1))",
        "INT DEFAULT (other + 1)",
        "VARCHAR(9) DEFAULT (UPPER(t))",
        "VARCHAR(9) CHARACTER SET latin1 DEFAULT (CONCAT(t, 'x'))",
        "INT NOT NULL AUTO_INCREMENT UNIQUE",
        "SERIAL",
        "SOMETHING DEFAULT (1 + 1)",
    ],
)
def test_what_a_default_computes_is_not_upstreams_unless_it_is_on_the_list(definition):
    assert column_of(f"n {definition}") == "n"
    assert column_of(f"(m INT DEFAULT 5, n {definition})") == "n"


@pytest.mark.parametrize(
    "definition",
    [
        "INT",
        "INT DEFAULT NULL",
        "INT DEFAULT 5 COMMENT 'DEFAULT (UUID())'",
        "INT DEFAULT (5)",
        "INT DEFAULT (-5)",
        "DECIMAL(5,2) DEFAULT (-1.5)",
        "DECIMAL(5,2) DEFAULT 1.5",
        "VARCHAR(20) CHARACTER SET latin1 DEFAULT 'x' NOT NULL AFTER a",
        "TEXT DEFAULT ('x')",
        "BIT(1) DEFAULT b'1'",
        "VARBINARY(4) DEFAULT x'41'",
        "BOOLEAN DEFAULT TRUE",
        "BOOLEAN DEFAULT (TRUE)",
        "INT DEFAULT (NULL)",
        "INT DEFAULT (a + 1)",
        "INT DEFAULT (IF(a > 5, 1, 2))",
        "VARCHAR(90) CHARACTER SET utf8mb4 DEFAULT (CONCAT(t, '-', a))",
        "JSON DEFAULT (JSON_ARRAY())",
        "JSON DEFAULT json_object()",
        "DATE DEFAULT (CURRENT_DATE)",
        "DATE DEFAULT curdate()",
        "DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
        "DATETIME(6) DEFAULT NOW(6)",
        "INT COLUMN_FORMAT DEFAULT STORAGE DEFAULT",
        "INT REFERENCES u (id) ON DELETE SET DEFAULT",
        "INT AS (a + 1) STORED",
        "INT CHECK (n > DEFAULT(a))",
    ],
)
def test_constants_and_portable_defaults_are_upstreams(definition):
    assert column_of(f"n {definition}") == ""


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t (a CHAR(36) DEFAULT (UUID()))",
        "ALTER TABLE t MODIFY a CHAR(36) DEFAULT (UUID())",
        "ALTER TABLE t ALTER COLUMN a SET DEFAULT (UUID())",
        "ALTER",
    ],
)
def test_what_gives_old_rows_no_values_is_not_asked(query):
    assert own_values(query, lambda: COLUMNS) == ""
