"""Generated columns of SQLite hold what their type makes of the value in MySQL, or their DDL stops."""

import pytest

from applier.ddl.generated import Unportable
from applier.model.errors import NeedsOperator
from applier.sinks.sqlite.dialect import SqliteDialect

TABLE = (
    "CREATE TABLE `t` (`id` INT PRIMARY KEY, `a` INT, `z` INT(5) ZEROFILL, `u` BIGINT UNSIGNED, `w` INT UNSIGNED, "
    "`d` DECIMAL(10,2), `e` DECIMAL(10,4), `day` DATE, "
    "`at` DATETIME(3), `ts` TIMESTAMP, `v` VARCHAR(9), `c` CHAR(5), `k` ENUM('x','y'), {})"
)
ROW = (1, 7, 42, 5, 9, "1.50", "2.5000", "2020-00-00", "2021-02-03 04:05:06.700", "2021-02-03 04:05:06", "ab  ", "cd", 1)
TYPES = (3, 3, 3, 8, 3, 246, 246, 10, 12, 7, 15, 254, 247)


EXPRESSED = [
    ("INT AS (`a` + 1) STORED", 8),
    ("BIT(8) AS (`a`)", 7),
    ("TINYINT AS (`a` * 100)", 127),
    ("TINYINT UNSIGNED AS (-`a`)", 0),
    ("BIGINT AS (`a` * 100)", 700),
    ("DECIMAL(10,2) AS (`a`) STORED", "7.00"),
    ("DECIMAL(10,0) AS (`a`)", "7"),
    ("DOUBLE AS (`a`)", 7.0),
    ("VARCHAR(5) AS (`a`)", "7"),
    ("DECIMAL(10,2) AS (`d`)", "1.50"),
    ("DECIMAL(10,2) AS (coalesce(`d`, `d`)) STORED", "1.50"),
    ("VARCHAR(20) AS (`d`)", "1.50"),
    ("VARCHAR(20) AS (concat(`d`, '-', `day`))", "1.50-2020-00-00"),
    ("DATE AS (`day`)", "2020-00-00"),
    ("DATETIME AS (`day`)", "2020-00-00 00:00:00"),
    ("DATETIME(3) AS (`day`) STORED", "2020-00-00 00:00:00.000"),
    ("DATETIME(3) AS (`at`)", "2021-02-03 04:05:06.700"),
    ("CHAR(9) AS (`v`)", "ab"),
    ("VARCHAR(9) AS (`v`)", "ab  "),
    ("CHAR(9) AS (concat(`c`, '  '))", "cd"),
    ("VARCHAR(3) AS (concat(`v`, `c`))", "ab "),
    ("ENUM('x','y') AS (`k`)", "x"),
    ("VARCHAR(5) AS (`k`)", "x"),
]


def value_of(file, definition):
    file.ddl(TABLE.format(f"`g` {definition}"))
    description = file.described()
    columns = description.columns[: len(ROW)]
    literals = [SqliteDialect().literal(column, kind)(value) for column, kind, value in zip(columns, TYPES, ROW, strict=True)]
    names = [column.name for column in columns]
    for text, _ in SqliteDialect().replaces(description, names, ["(" + ",".join(literals) + ")"]):
        file.connection.execute(text)
    return file.connection.execute('SELECT g FROM "shop.t"').fetchone()[0]


@pytest.mark.parametrize(("definition", "value"), EXPRESSED)
def test_the_type_of_a_generated_column_converts_its_value(file, definition, value):
    assert value_of(file, definition) == value


INEXACT = [
    "DECIMAL(10,1) AS (`d`)",
    "DECIMAL(10,2) AS (`a` * 2)",
    "DECIMAL(10,4) AS (coalesce(`d`, `e`))",
    "VARCHAR(20) AS (coalesce(`d`, `e`))",
    "VARCHAR(20) AS (if(`a` > 0, `day`, `at`))",
    "DECIMAL(10,2) AS (`v`)",
    "INT AS (`v`)",
    "INT AS (`d`)",
    "VARCHAR(9) AS (`z`)",
    "VARCHAR(9) AS (concat(`z`, 'x'))",
    "VARCHAR(30) AS (concat(`a` * 2, 'x'))",
    "VARCHAR(30) AS (`a` * 2)",
    "BIGINT UNSIGNED AS (`a` * 2)",
    "FLOAT AS (`a`)",
    "YEAR AS (`a`)",
    "DATE AS (`at`)",
    "DATE AS (`v`)",
    "DATETIME AS (`at`)",
    "DATETIME AS (`ts`)",
    "TIMESTAMP AS (`day`)",
    "TIME AS (`at`)",
    "ENUM('x','y','z') AS (`k`)",
    "SET('x','y') AS (`k`)",
    "BINARY(4) AS (`c`)",
    "JSON AS (`v`)",
    "VARCHAR(30) AS (concat(`ts`))",
    "BIGINT AS (`w` - `a`)",
]


@pytest.mark.parametrize("definition", INEXACT)
def test_what_sqlite_cannot_express_stops_with_the_ddl(file, definition):
    with pytest.raises(NeedsOperator):
        file.ddl(TABLE.format(f"`g` {definition}"))
    assert file.tables() == []


@pytest.mark.parametrize("definition", INEXACT)
def test_the_values_of_a_stored_column_come_with_the_rows_where_sqlite_cannot_express_it(file, definition):
    file.ddl(TABLE.format(f"`g` {definition} STORED"))
    (column,) = [column for column in file.described().columns if column.name == "g"]
    assert not column.generated
    assert file.unportable() == ()


OLD_ROWS = "only upstream can compute"


def test_a_stored_column_in_the_primary_key_is_a_plain_one(file):
    file.ddl("CREATE TABLE `t` (`a` INT, `g` INT AS (`a` + 1) STORED NOT NULL, PRIMARY KEY (`g`))")
    assert [column.generated for column in file.described().columns] == [False, False]
    assert file.described().primary_key == ("g",)


def test_old_rows_keep_the_values_of_such_a_column_unless_upstream_computes_them_again(file):
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `f` FLOAT, `n` INT, `g` VARCHAR(20) AS (concat(`f`)) STORED)")
    file.insert("shop.t", (1, 0.1, 2, "0.1 of upstream"))
    file.ddl("ALTER TABLE `t` ADD COLUMN `m` INT NOT NULL, RENAME COLUMN `f` TO `e`, MODIFY `n` BIGINT")
    assert file.connection.execute('SELECT e, g FROM "shop.t"').fetchall() == [(0.1, "0.1 of upstream")]
    assert "GENERATED ALWAYS AS (concat(`e`)) STORED" in file.types()["g"]
    for query in (
        "ALTER TABLE `t` MODIFY `e` DOUBLE",
        "ALTER TABLE `t` MODIFY `g` VARCHAR(30) AS (concat(`e`)) STORED",
        "ALTER TABLE `t` MODIFY `g` VARCHAR(20) AS (concat(`e`, 'x')) STORED",
        "ALTER TABLE `t` ADD `h` VARCHAR(20) AS (concat(`e`)) STORED",
    ):
        with pytest.raises(NeedsOperator, match=OLD_ROWS):
            file.ddl(query)
    file.ddl("ALTER TABLE `t` DROP COLUMN `e`, DROP COLUMN `g`")


def test_a_column_whose_expression_becomes_inexact_stops_where_there_are_rows(file):
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `n` INT, `g` VARCHAR(20) AS (concat(`n`)) STORED)")
    file.connection.execute('INSERT INTO "shop.t" (id, n) VALUES (1, 5)')
    with pytest.raises(NeedsOperator, match=OLD_ROWS):
        file.ddl("ALTER TABLE `t` MODIFY `n` FLOAT")
    file.connection.execute('DELETE FROM "shop.t"')
    file.ddl("ALTER TABLE `t` MODIFY `n` FLOAT")
    assert not any(column.generated for column in file.described().columns)


def test_generated_columns_that_somebody_made_by_hand_are_shown(file):
    file.connection.execute(
        'CREATE TABLE "shop.t" (id INTEGER PRIMARY KEY, n TEXT, a TEXT AS (n || 1) STORED, b TEXT AS (n || 1), c TEXT AS (n || 2))'
    )
    file.connection.execute('CREATE INDEX "shop.t.i" ON "shop.t" (c)')
    assert file.unportable() == (Unportable("a", is_stored=True), Unportable("c", is_stored=False))
