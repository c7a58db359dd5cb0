"""A statement is directed at the scratch table: its own name is replaced, and nothing else."""

import pytest

from applier.model.events import TableName
from applier.sinks.mysql.ddl.comparison import retargeted, with_default

SCRATCH = TableName("applier", "scratch_1")
DEFAULT = " DEFAULT CHARACTER SET latin1"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE TABLE t (t INT)", "CREATE TABLE {s} (t INT)"),
        ("create table if not exists `shop` . `t` (id INT)", "create table if not exists {s} (id INT)"),
        ("CREATE TABLE `a b` LIKE t", "CREATE TABLE {s} LIKE t"),
        ("CREATE TABLE t (p INT, FOREIGN KEY (p) REFERENCES t (id))", "CREATE TABLE {s} (p INT, FOREIGN KEY (p) REFERENCES t (id))"),
        ("ALTER TABLE shop.t ADD COLUMN `table` INT", "ALTER TABLE {s} ADD COLUMN `table` INT"),
        ("CREATE UNIQUE INDEX `on` ON t (v)", "CREATE UNIQUE INDEX `on` ON {s} (v)"),
        ("DROP INDEX k ON shop.t", "DROP INDEX k ON {s}"),
        ("CREATE TABLE `t` (\n  PERIOD FOR SYSTEM_TIME (`a`, `b`)\n)", "CREATE TABLE {s} (\n  PERIOD FOR SYSTEM_TIME (`a`, `b`)\n)"),
    ],
)
def test_the_table_of_a_statement_is_replaced(statement: str, expected: str) -> None:
    assert retargeted(statement, SCRATCH) == expected.format(s="`applier`.`scratch_1`")


@pytest.mark.parametrize("statement", ["DROP TABLE t", "RENAME TABLE t TO u", "CREATE VIEW t AS SELECT 1", "THIS IS NO SQL", ""])
def test_another_statement_has_no_table_to_replace(statement: str) -> None:
    assert retargeted(statement, SCRATCH) is None


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE TABLE t (v VARCHAR(9))", "CREATE TABLE t (v VARCHAR(9)){d}"),
        (
            "CREATE TABLE t (v CHAR COLLATE utf8mb4_bin) COMMENT 'COLLATE'",
            "CREATE TABLE t (v CHAR COLLATE utf8mb4_bin){d} COMMENT 'COLLATE'",
        ),
        ("CREATE TABLE t (id INT) PARTITION BY HASH (id) PARTITIONS 2", "CREATE TABLE t (id INT){d} PARTITION BY HASH (id) PARTITIONS 2"),
        ("CREATE TABLE t (v INT) DEFAULT CHARSET=utf8mb4", "CREATE TABLE t (v INT) DEFAULT CHARSET=utf8mb4"),
        ("CREATE TABLE t (v INT) COLLATE = utf8mb4_bin", "CREATE TABLE t (v INT) COLLATE = utf8mb4_bin"),
        ("CREATE TABLE t LIKE u", "CREATE TABLE t LIKE u"),
        ("CREATE TABLE t (LIKE u)", "CREATE TABLE t (LIKE u)"),
    ],
)
def test_a_table_without_a_character_set_takes_its_schemas(statement: str, expected: str) -> None:
    assert with_default(statement, DEFAULT) == expected.format(d=DEFAULT)
