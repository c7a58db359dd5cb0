"""DROP, TRUNCATE, RENAME and views of upstream, executed on a file."""

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator
from applier.model.events import TableName
from tests.rig.sqlite_file import three_rows


def test_tables_are_dropped_and_an_absent_one_is_dropped_already(file):
    three_rows(file)
    file.ddl("CREATE TABLE `u` (`a` INT)", "DROP TABLE `shop`.`t`, `u`", "DROP TABLE `t`", "DROP TABLE IF EXISTS `t`")
    assert file.tables() == []


def test_drop_schema_drops_its_tables_and_views_only(file):
    three_rows(file)
    file.ddl("CREATE VIEW `v` AS SELECT `id` FROM `t`", "CREATE TABLE `shop2`.`t` (`a` INT)", "DROP DATABASE `SHOP`")
    assert (file.tables(), file.views()) == (["shop2.t"], [])


def test_truncate_empties_the_table_and_keeps_its_definition(file):
    three_rows(file)
    before = (file.types(), file.indexes())
    file.ddl("TRUNCATE TABLE `t`")
    assert (file.rows(), file.types(), file.indexes()) == ([], *before)
    with pytest.raises(FatalSinkError, match="does not exist in the sink"):
        file.ddl("TRUNCATE `nope`")


@pytest.mark.parametrize(
    "query", ["RENAME TABLE `shop`.`t` TO `other`.`n`", "ALTER TABLE `t` RENAME TO `other`.`n`", "ALTER TABLE `t` RENAME AS `other`.`n`"]
)
def test_a_table_is_renamed_with_its_rows_and_the_names_of_its_indexes(file, query):
    three_rows(file)
    rows = file.rows()
    file.ddl(query)
    assert file.tables() == ["other.n"]
    assert file.rows("other.n") == rows
    assert file.indexes("other.n") == {"other.n.ka": (False, ["a"]), "other.n.ub": (True, ["b"])}


def test_a_chain_of_renames_exchanges_two_tables(file):
    three_rows(file)
    file.ddl("CREATE TABLE `u` (`z` INT, KEY `ka`(`z`))", "RENAME TABLE `t` TO `tmp`, `u` TO `t`, `tmp` TO `u`")
    assert list(file.types()) == ["z"]
    assert len(file.rows("shop.u")) == 3


def test_a_rename_may_change_the_case_only_but_not_take_a_name_in_use(file):
    three_rows(file)
    file.ddl("RENAME TABLE `t` TO `T`", "CREATE TABLE `u` (`a` INT)")
    assert file.tables() == ["shop.T", "shop.u"]
    with pytest.raises(FatalSinkError, match="already"):
        file.ddl("RENAME TABLE `u` TO `t`")


def test_a_view_reads_the_tables_of_its_schemas(file):
    three_rows(file)
    file.ddl("CREATE TABLE `other`.`o` (`id` INT PRIMARY KEY, `n` INT)", schema="shop")
    file.insert("other.o", (1, 100), (3, 300))
    file.ddl(
        "CREATE OR REPLACE ALGORITHM = UNDEFINED DEFINER = `root`@`%` SQL SECURITY DEFINER VIEW `v` (`i`,`n`) AS "
        "SELECT `shop`.`t`.`id`,`o`.`n` FROM (`shop`.`t`) JOIN `other`.`o` ON `t`.`id`=`o`.`id` WHERE `shop`.`t`.`id`<10"
    )
    assert file.rows("shop.v") == [(1, 100), (3, 300)]
    file.ddl("CREATE OR REPLACE VIEW `v` AS WITH `c` AS (SELECT `id` FROM `t`) SELECT COUNT(*) AS `n` FROM `c`")
    assert file.rows("shop.v") == [(3,)]
    file.ddl("DROP VIEW `shop`.`v`")
    assert file.views() == []


def test_a_view_that_sqlite_does_not_understand_stops(file):
    three_rows(file)
    with pytest.raises(NeedsOperator, match="query"):
        file.ddl("CREATE VIEW `v` AS SELECT soundex_of(`b`) FROM `t`")
    assert file.views() == []


def test_tables_are_altered_and_renamed_under_a_view(file):
    three_rows(file)
    file.ddl("CREATE VIEW `v` AS SELECT `id` FROM `t`", "ALTER TABLE `t` DROP COLUMN `a`", "RENAME TABLE `t` TO `t2`")
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY)")
    assert file.rows("shop.v") == []


def test_a_table_of_somebody_else_is_described_renamed_and_dropped_but_not_altered(file):
    file.connection.execute('CREATE TABLE "shop.t" (id INTEGER PRIMARY KEY, n BIGINT UNSIGNED, d DECIMAL(5,2), b BLOB)')
    assert [column.sql_type for column in file.described().columns] == [
        "sqlite INTEGER INTEGER", "sqlite INTEGER BIGINT UNSIGNED", "sqlite NUMERIC DECIMAL(5,2)", "sqlite BLOB BLOB",
    ]  # fmt: skip
    with pytest.raises(NeedsOperator, match="did not create this table"):
        file.ddl("ALTER TABLE `t` ADD COLUMN `c` INT")
    with pytest.raises(FatalSinkError, match="floating point"):
        file.put(TableName("shop", "t"), (8, 8, 246, 252), (1, 2**64 - 1, None, None))
    with pytest.raises(FatalSinkError, match="floating point"):
        file.put(TableName("shop", "t"), (8, 8, 246, 252), (1, 1, "1.50", None))
    file.ddl("RENAME TABLE `t` TO `u`", "DROP TABLE `u`")
    assert file.tables() == []


def test_a_view_finds_its_table_under_another_spelling(file):
    file.ddl("CREATE TABLE `Ärger` (`id` INT PRIMARY KEY)", "CREATE VIEW `v` AS SELECT `id` FROM `SHOP`.`ärger`")
    file.connection.execute('INSERT INTO "shop.Ärger" VALUES (1)')
    assert file.connection.execute('SELECT "id" FROM "shop.v"').fetchall() == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE t u",
        "DROP TABLE t; DROP TABLE u",
        "DROP DATABASE shop, crm",
        "TRUNCATE TABLE t u",
        "CREATE GLOBAL TEMPORARY TABLE u (a INT)",
    ],
)
def test_a_statement_of_which_a_part_is_not_understood_changes_nothing(file, query):
    three_rows(file)
    before = (file.tables(), file.rows())
    with pytest.raises(NeedsOperator, match="cannot be translated for SQLite"):
        file.ddl(query)
    assert (file.tables(), file.rows()) == before
