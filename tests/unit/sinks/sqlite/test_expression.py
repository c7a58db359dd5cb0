"""Generated columns of SQLite hold what their type makes of the value in MySQL, or their DDL stops."""

import pytest

from applier.model.errors import NeedsOperator
from applier.sinks.sqlite.dialect import SqliteDialect

TABLE = (
    "CREATE TABLE `t` (`id` INT PRIMARY KEY, `a` INT, `z` INT(5) ZEROFILL, `u` BIGINT UNSIGNED, `d` DECIMAL(10,2), `e` DECIMAL(10,4), "
    "`day` DATE, `at` DATETIME(3), `ts` TIMESTAMP, `v` VARCHAR(9), `c` CHAR(5), `k` ENUM('x','y'), {})"
)
ROW = (1, 7, 42, 5, "1.50", "2.5000", "2020-00-00", "2021-02-03 04:05:06.700", "2021-02-03 04:05:06", "ab  ", "cd", 1)
TYPES = (3, 3, 3, 8, 246, 246, 10, 12, 7, 15, 254, 247)


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
    literals = [SqliteDialect().literal(column, kind, 0)(value) for column, kind, value in zip(columns, TYPES, ROW, strict=True)]
    names = [column.name for column in columns]
    for text, _ in SqliteDialect().replaces(description, names, ["(" + ",".join(literals) + ")"]):
        file.connection.execute(text)
    return file.connection.execute('SELECT g FROM "shop.t"').fetchone()[0]


@pytest.mark.parametrize(("definition", "value"), EXPRESSED)
def test_the_type_of_a_generated_column_converts_its_value(file, definition, value):
    assert value_of(file, definition) == value


@pytest.mark.parametrize(
    "definition",
    [
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
    ],
)
def test_what_sqlite_cannot_express_stops_with_the_ddl(file, definition):
    with pytest.raises(NeedsOperator):
        file.ddl(TABLE.format(f"`g` {definition}"))
    assert file.tables() == []
