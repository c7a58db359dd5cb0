"""ALTER TABLE and index DDL of upstream, executed on a file that holds rows."""

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator
from tests.rig.sqlite_file import SqliteFile, three_rows

ALTERS = [
    ("ADD COLUMN `c` INT", [(1, 10, "x", None), (2, None, None, None), (3, -5, "z", None)]),
    ("ADD `c` VARCHAR(5) DEFAULT 'it''s' COMMENT 'FIRST, AFTER'", [(1, 10, "x", "it's"), (2, None, None, "it's"), (3, -5, "z", "it's")]),
    ("ADD COLUMN `c` INT NOT NULL DEFAULT 7 AFTER `id`", [(1, 7, 10, "x"), (2, 7, None, None), (3, 7, -5, "z")]),
    ("ADD COLUMN (`c` INT DEFAULT 1, `d` INT DEFAULT 2)", [(1, 10, "x", 1, 2), (2, None, None, 1, 2), (3, -5, "z", 1, 2)]),
    ("ADD COLUMN IF NOT EXISTS `a` TEXT, ADD `c` INT DEFAULT 7", [(1, 10, "x", 7), (2, None, None, 7), (3, -5, "z", 7)]),
    ("DROP COLUMN `a`", [(1, "x"), (2, None), (3, "z")]),
    ("DROP COLUMN IF EXISTS `nope`", [(1, 10, "x"), (2, None, None), (3, -5, "z")]),
    ("MODIFY COLUMN `b` TEXT FIRST", [("x", 1, 10), (None, 2, None), ("z", 3, -5)]),
    ("CHANGE COLUMN `a` `c` VARCHAR(11) AFTER `b`", [(1, "x", "10"), (2, None, None), (3, "z", "-5")]),
    ("RENAME COLUMN `a` TO `b`, RENAME COLUMN `b` TO `a`", [(1, 10, "x"), (2, None, None), (3, -5, "z")]),
    ("DROP COLUMN `a`, ADD COLUMN `a` INT DEFAULT 4", [(1, "x", 4), (2, None, 4), (3, "z", 4)]),
    ("ADD COLUMN `c` INT DEFAULT 1, DROP COLUMN `b`, ADD INDEX `kc`(`c`), MODIFY `a` BIGINT", [(1, 10, 1), (2, None, 1), (3, -5, 1)]),
    ("ALTER COLUMN `a` SET DEFAULT 5, ALTER COLUMN `b` DROP DEFAULT", [(1, 10, "x"), (2, None, None), (3, -5, "z")]),
    ("ALTER COLUMN `a` SET INVISIBLE", [(1, 10, "x"), (2, None, None), (3, -5, "z")]),
]


@pytest.mark.parametrize(("clauses", "rows"), ALTERS)
def test_alter_keeps_rows_exactly_and_fills_new_columns_as_mysql_does(file, clauses, rows):
    three_rows(file)
    file.ddl(f"ALTER TABLE `t` {clauses}")
    assert sorted(file.rows(), key=repr) == sorted(rows, key=repr)
    assert file.tables() == ["shop.t"]


def test_a_column_that_is_there_already_is_not_what_if_not_exists_made_upstream(file):
    three_rows(file)
    with pytest.raises(FatalSinkError, match="already has its columns"):
        file.ddl("ALTER TABLE `t` ADD COLUMN IF NOT EXISTS `a` TEXT")


def test_an_index_that_is_there_already_must_be_the_one_of_the_statement(file):
    three_rows(file)
    file.ddl("CREATE INDEX IF NOT EXISTS `ka` ON `t` (`a`)")
    with pytest.raises(NeedsOperator, match="same name"):
        file.ddl("CREATE INDEX IF NOT EXISTS `ka` ON `t` (`b`)")


def test_an_index_that_alter_table_finds_must_be_the_one_of_the_statement(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` ADD INDEX `ka2` (`a`)")
    file.ddl("ALTER TABLE `t` ADD INDEX IF NOT EXISTS `ka2` (`a`), ADD COLUMN `c` INT DEFAULT 7")
    assert [row[-1] for row in file.rows()] == [7, 7, 7]
    with pytest.raises(NeedsOperator, match="same name"):
        file.ddl("ALTER TABLE `t` ADD INDEX IF NOT EXISTS `ka2` (`b`)")


def test_indexes_follow_renamed_and_dropped_columns(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` ADD INDEX `ab`(`a`,`b`)", "ALTER TABLE `t` RENAME COLUMN `a` TO `c`", "ALTER TABLE `t` DROP COLUMN `b`")
    assert file.indexes() == {"shop.t.ka": (False, ["c"]), "shop.t.ab": (False, ["c"])}


def test_two_columns_exchange_their_names_with_their_values_and_indexes(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` RENAME COLUMN `a` TO `b`, RENAME COLUMN `b` TO `a`")
    assert list(file.types()) == ["id", "b", "a"]
    assert file.indexes() == {"shop.t.ka": (False, ["b"]), "shop.t.ub": (True, ["a"])}


IMPLICIT = [
    ("INT", 0), ("BIGINT UNSIGNED", 0), ("BIT(3)", 0), ("YEAR", 0), ("DOUBLE", 0.0), ("DECIMAL(5,2)", "0.00"), ("DECIMAL(5)", "0"),
    ("VARCHAR(3)", ""), ("VARBINARY(3)", b""), ("BINARY(3)", b"\0\0\0"), ("DATE", "0000-00-00"), ("DATETIME", "0000-00-00 00:00:00"),
    ("DATETIME(3)", "0000-00-00 00:00:00.000"), ("TIME(1)", "00:00:00.0"), ("ENUM('q','r')", "q"), ("SET('q','r')", ""), ("JSON", "null"),
]  # fmt: skip


@pytest.mark.parametrize(("mysql", "value"), IMPLICIT)
def test_a_not_null_column_without_default_takes_mysqls_implicit_one(file, mysql, value):
    three_rows(file)
    file.ddl(f"ALTER TABLE `t` ADD COLUMN `c` {mysql} NOT NULL")
    assert {row[3] for row in file.rows()} == {value}
    assert file.columns()[3][2] is True


EXPLICIT = [
    ("DECIMAL(10,2) NOT NULL DEFAULT 0", "0.00"), ("DECIMAL(10,2) DEFAULT '1.005'", "1.01"), ("INT DEFAULT '5'", 5), ("INT DEFAULT 1.5", 2),
    ("BIT(8) DEFAULT b'101'", 5), ("VARCHAR(9) DEFAULT x'4142'", "AB"), ("VARBINARY(9) DEFAULT X'bb00b0'", b"\xbb\x00\xb0"),
    ("BINARY(3) DEFAULT 'a'", b"a\0\0"), ("INT DEFAULT 0x10", 16),
    ("DOUBLE DEFAULT 1e3", 1000.0), ("DATETIME(2) DEFAULT '2020-01-02'", "2020-01-02 00:00:00.00"), ("TINYINT(1) DEFAULT TRUE", 1),
    ("BIGINT UNSIGNED DEFAULT 18446744073709551615", "18446744073709551615"), ("ENUM('a','b') DEFAULT 'b'", "b"),
    ("CHAR(5) DEFAULT 'x  '", "x"), ("SET('a','b') DEFAULT 'b,a'", "a,b"), ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "2023-11-14 22:13:20"),
    ("FLOAT DEFAULT 0.1", 0.1),
    ("DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "2023-11-14 22:13:20"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "value"), EXPLICIT)
def test_existing_rows_take_the_default_as_the_columns_type_stores_it(file, definition, value):
    three_rows(file)
    file.ddl(f"ALTER TABLE `t` ADD COLUMN `c` {definition}")
    found = {row[3] for row in file.rows()}
    assert found == {value}
    assert type(found.pop()) is type(value)


def test_current_timestamp_is_given_in_the_zone_of_the_wire(tmp_path):
    file = SqliteFile(tmp_path / "replica.db", zone="Asia/Shanghai")
    three_rows(file)
    file.ddl("ALTER TABLE `t` ADD COLUMN `c` TIMESTAMP DEFAULT CURRENT_TIMESTAMP")
    assert {row[3] for row in file.rows()} == {"2023-11-15 06:13:20"}
    file.close()


def test_a_later_default_does_not_reach_rows_that_were_there_before(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` ADD COLUMN `c` INT DEFAULT 1", "ALTER TABLE `t` ALTER COLUMN `c` SET DEFAULT 2")
    assert {row[3] for row in file.rows()} == {1}
    assert file.types()["c"] == "int DEFAULT 2"


INDEXES = [
    ("ALTER TABLE `t` ADD INDEX `i`(`a`, `b`)", {"shop.t.i": (False, ["a", "b"])}),
    ("CREATE INDEX `i` ON `t` (`a`)", {"shop.t.i": (False, ["a"])}),
    ("CREATE UNIQUE INDEX `i` USING BTREE ON `shop`.`t` (`a`) COMMENT 'x'", {"shop.t.i": (True, ["a"])}),
    ("ALTER TABLE `t` ADD UNIQUE (`a`)", {"shop.t.a": (True, ["a"])}),
    ("ALTER TABLE `t` ADD CONSTRAINT `q` UNIQUE INDEX (`a`)", {"shop.t.q": (True, ["a"])}),
    ("ALTER TABLE `t` ADD KEY (`a`), ADD KEY (`a`)", {"shop.t.a": (False, ["a"]), "shop.t.a_2": (False, ["a"])}),
    ("ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY (`b`,`a`) REFERENCES `o`(`i`,`j`)", {"shop.t.f": (False, ["b", "a"])}),
    ("ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `o`(`i`)", {}),
    ("ALTER TABLE `t` ADD INDEX `i`((`a` + 1))", {"shop.t.i": (False, [None])}),
]


@pytest.mark.parametrize(("query", "added"), INDEXES)
def test_indexes_are_added(file, query, added):
    three_rows(file)
    before = file.indexes()
    file.ddl(query)
    assert file.indexes() == before | added
    assert len(file.rows()) == 3


@pytest.mark.parametrize("query", ["ALTER TABLE `t` DROP INDEX `KA`", "DROP INDEX `ka` ON `t`", "ALTER TABLE `t` DROP KEY `ka`"])
def test_indexes_are_dropped(file, query):
    three_rows(file)
    file.ddl(query, "DROP INDEX IF EXISTS `ka` ON `t`", "ALTER TABLE `t` DROP INDEX IF EXISTS `ka`")
    assert list(file.indexes()) == ["shop.t.ub"]


def test_an_index_is_renamed(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` RENAME INDEX `ub` TO `u2`")
    assert file.indexes() == {"shop.t.ka": (False, ["a"]), "shop.t.u2": (True, ["b"])}


def test_the_primary_key_is_dropped_and_added(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` DROP PRIMARY KEY")
    assert file.described().primary_key == ()
    assert file.columns()[0] == ("id", "INTEGER", True, 0)
    file.connection.execute('DELETE FROM "shop.t" WHERE b IS NULL')
    file.ddl("ALTER TABLE `t` ADD PRIMARY KEY (`b`,`id`)")
    assert file.described().primary_key == ("b", "id")
    assert file.rows() == [(1, 10, "x"), (3, -5, "z")]


def test_an_index_that_is_unknown_stops(file):
    three_rows(file)
    with pytest.raises(NeedsOperator, match="no such index") as raised:
        file.ddl("ALTER TABLE `t` DROP INDEX `nope`")
    assert raised.value.facts["statement"] == "ALTER TABLE `t` DROP INDEX `nope`"


HARMLESS = [
    "ALTER TABLE `t` COMMENT = 'x, ADD COLUMN `y`'", "ALTER TABLE `t` AUTO_INCREMENT = 500", "ALTER TABLE `t` /*T![ttl] REMOVE TTL */",
    "ALTER TABLE `t` CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "ALTER TABLE `t` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "ALTER TABLE `t` ALTER INDEX `ka` INVISIBLE",
    "ALTER TABLE `t` SET TIFLASH REPLICA 1", "ALTER TABLE `t` REMOVE TTL", "ALTER TABLE `t`",
    "ALTER TABLE `t` TTL = `d` + INTERVAL 3 MONTH TTL_ENABLE = 'ON'", "ALTER TABLE `t` DROP FOREIGN KEY `fk`", "ALTER TABLE `t` FORCE",
    "ALTER TABLE `t` ADD CONSTRAINT `c` CHECK (`a` > 0) NOT ENFORCED", "ALTER TABLE `t` DROP CHECK `c`",
    "ALTER TABLE `t` SHARD_ROW_ID_BITS = 4", "ALTER DATABASE `shop` CHARACTER SET = utf8mb4",
    "ALTER TABLE `t` ROW_FORMAT = DYNAMIC, ALGORITHM = INPLACE, LOCK = NONE",
    "ALTER TABLE `t` ADD PARTITION (PARTITION `p1` VALUES LESS THAN (3))", "ALTER TABLE `t` REMOVE PARTITIONING",
    "ALTER TABLE `t` REORGANIZE PARTITION `p0` INTO (PARTITION `p1` VALUES LESS THAN (3))",
    "ALTER TABLE `t` PARTITION BY HASH (`id`) PARTITIONS 4",
]  # fmt: skip


@pytest.mark.parametrize("query", HARMLESS)
def test_what_changes_no_row_and_no_key_changes_nothing(file, query):
    three_rows(file)
    before = (file.rows(), file.columns(), file.indexes(), file.types())
    file.ddl(query)
    assert (file.rows(), file.columns(), file.indexes(), file.types()) == before


def test_all_partitions_are_all_rows(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` TRUNCATE PARTITION ALL")
    assert file.rows() == []


STOPS = [
    "ALTER TABLE `t` DROP PARTITION `p0`", "ALTER TABLE `t` FIRST PARTITION LESS THAN (3)",
    "ALTER TABLE `t` TRUNCATE PARTITION `p0`", "ALTER TABLE `t` EXCHANGE PARTITION `p0` WITH TABLE `u` WITHOUT VALIDATION",
    "RECOVER TABLE `t`", "FLASHBACK TABLE `t` TO `t2`",
    "ALTER TABLE `t` SOMETHING NEW", "ALTER TABLE `t` ADD COLUMN `g` BFILE", "ALTER TABLE `t` ADD COLUMN `g` INT SOMETHING",
    "ALTER TABLE `t` CONVERT TO CHARACTER SET binary", "CREATE TABLE `q` AS SELECT * FROM `t`", "CREATE SEQUENCE `s`", "",
    "CREATE TABLE `q` (`a` INT", "ALTER TABLE `t` ADD COLUMN `c` INT DEFAULT 'unclosed", "ALTER TABLE `t` DROP COLUMN `nope`",
    "ALTER TABLE `t` ADD COLUMN `g` INT AS (`a` / 2)", "ALTER TABLE `t` ADD COLUMN `u` VARCHAR(36) DEFAULT (UUID())",
    "ALTER TABLE `t` RENAME COLUMN `a` TO `b`", "ALTER TABLE `t` MODIFY `a` INT AFTER `nope`", "ALTER TABLE `t` ADD INDEX `ka`(`b`)",
]  # fmt: skip


@pytest.mark.parametrize("query", STOPS)
def test_what_cannot_be_translated_stops_with_the_statement_and_leaves_the_file_as_it_was(file, query):
    three_rows(file)
    before = file.connection.execute("SELECT * FROM sqlite_master").fetchall()
    with pytest.raises(NeedsOperator) as raised:
        file.ddl(query)
    assert raised.value.facts["table"] == "shop.t"
    assert query in str(raised.value)
    assert raised.value.remedy
    assert file.connection.execute("SELECT * FROM sqlite_master").fetchall() == before
    assert len(file.rows()) == 3


def test_an_index_of_an_expression_that_sqlite_computes_otherwise_is_empty_and_can_be_renamed_and_dropped(file):
    three_rows(file)
    file.ddl("ALTER TABLE `t` ADD INDEX `low`((lower(`b`)))")
    (text,) = file.connection.execute("SELECT sql FROM sqlite_master WHERE name = 'shop.t.low'").fetchone()
    assert text.endswith("WHERE 0")
    file.ddl("ALTER TABLE `t` MODIFY `a` BIGINT")
    file.ddl("ALTER TABLE `t` RENAME INDEX `low` TO `lower`")
    assert "shop.t.lower" in file.indexes()
    file.ddl("ALTER TABLE `t` DROP INDEX `lower`")
    assert "shop.t.lower" not in file.indexes()
    with pytest.raises(NeedsOperator, match="exactly"):
        file.ddl("ALTER TABLE `t` ADD UNIQUE INDEX `low`((lower(`b`)))")
    assert len(file.rows()) == 3


GENERATED = [
    ("INT AS (`a` * 2 + 1) STORED", [21, None, -9]),
    ("INT GENERATED ALWAYS AS (-(`a`)) VIRTUAL", [-10, None, 5]),
    ("VARCHAR(20) AS (concat(`b`, _utf8mb4'-', `id`)) STORED", ["x-1", None, "z-3"]),
    ("INT AS (if(`a` > 0, 1, 0))", [1, 0, 0]),
    ("INT AS (coalesce(`a`, 0))", [10, 0, -5]),
    ("INT AS (`a` is null)", None),
    ("VARCHAR(9) AS (upper(`b`))", None),
    ("VARCHAR(9) AS (json_extract(`b`, '$.a'))", None),
]


@pytest.mark.parametrize(("definition", "values"), GENERATED)
def test_generated_columns_are_computed_where_sqlite_computes_the_very_same(file, definition, values):
    three_rows(file)
    if values is None:
        with pytest.raises(NeedsOperator, match="exactly"):
            file.ddl(f"ALTER TABLE `t` ADD COLUMN `g` {definition}")
        return
    file.ddl(f"ALTER TABLE `t` ADD COLUMN `g` {definition}")
    assert [row[3] for row in file.rows()] == values
    assert file.described().columns[3].generated
    file.ddl("ALTER TABLE `t` ADD COLUMN `h` INT NOT NULL FIRST")
    assert [row[4] for row in file.rows("shop.t", "id")] == values
