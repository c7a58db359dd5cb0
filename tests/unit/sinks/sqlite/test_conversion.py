"""MODIFY COLUMN: existing values become exactly what MySQL makes of them, or the DDL stops and nothing has changed."""

import pytest

from applier.model.errors import NeedsOperator

BIG = str(2**64 - 1)
EXACT = [
    ("INT", "BIGINT", 5, 5), ("BIGINT", "TINYINT", -128, -128), ("BIGINT", "BIGINT UNSIGNED", 5, 5), ("BIGINT UNSIGNED", "BIGINT", 7, 7),
    ("BIGINT UNSIGNED", "VARCHAR(20)", BIG, BIG), ("BIGINT UNSIGNED", "DECIMAL(20,0)", BIG, BIG), ("INT", "DECIMAL(6,2)", -5, "-5.00"),
    ("INT", "VARCHAR(3)", -12, "-12"), ("INT", "DOUBLE", 3, 3.0), ("INT", "FLOAT", 16777217, 16777216.0), ("BIT(8)", "INT", 200, 200),
    ("VARCHAR(30)", "INT", " 007", 7), ("VARCHAR(30)", "BIGINT UNSIGNED", BIG, BIG), ("VARCHAR(9)", "DECIMAL(5,1)", "1.25", "1.3"),
    ("VARCHAR(9)", "DOUBLE", "0.1", 0.1), ("VARCHAR(9)", "TEXT", "é", "é"), ("TEXT", "VARCHAR(2)", "é😀", "é😀"),
    ("VARCHAR(9)", "CHAR(3)", "a  ", "a"), ("VARCHAR(9)", "VARBINARY(9)", "é", "é".encode()), ("VARCHAR(9)", "BINARY(4)", "a", b"a\0\0\0"),
    ("VARBINARY(9)", "VARCHAR(9)", "é".encode(), "é"), ("BLOB", "VARBINARY(2)", b"ab", b"ab"),
    ("DECIMAL(65,0)", "DECIMAL(65,10)", "9" * 55, "9" * 55 + "." + "0" * 10),
    ("DECIMAL(40,0)", "DECIMAL(40,0) UNSIGNED", "9" * 40, "9" * 40),
    ("DECIMAL(5,2)", "DECIMAL(9,4)", "1.50", "1.5000"), ("DECIMAL(5,2)", "DECIMAL(5,1)", "-1.25", "-1.3"),
    ("DECIMAL(5,2)", "DECIMAL(5,0)", "-0.40", "0"), ("DECIMAL(5,2)", "INT", "2.50", 3), ("DECIMAL(5,2)", "VARCHAR(9)", "2.50", "2.50"),
    ("DECIMAL(5,2)", "DOUBLE", "2.50", 2.5), ("FLOAT", "DOUBLE", 1.1, 1.100000023841858), ("DOUBLE", "FLOAT", 0.1234567890123, 0.12345679),
    ("ENUM('a','b')", "ENUM('a','b','c')", "b", "b"), ("ENUM('a','b')", "ENUM('b','a')", "b", "b"),
    ("ENUM('a','b')", "VARCHAR(5)", "b", "b"), ("ENUM('a','b')", "INT", "b", 2), ("SET('a','b')", "INT", "a,b", 3),
    ("SET('a','b')", "SET('b','a')", "a,b", "b,a"), ("VARCHAR(5)", "ENUM('x','y')", "y", "y"), ("VARCHAR(5)", "SET('x','y')", "y,x", "x,y"),
    ("DATE", "DATETIME(2)", "2020-02-30", "2020-02-30 00:00:00.00"),
    ("DATETIME", "DATETIME(3)", "2020-01-01 01:02:03", "2020-01-01 01:02:03.000"),
    ("DATETIME(3)", "DATETIME", "2020-01-01 01:02:03.000", "2020-01-01 01:02:03"),
    ("TIMESTAMP(3)", "TIMESTAMP(6)", "2020-01-01 01:02:03.120", "2020-01-01 01:02:03.120000"),
    ("TIME", "TIME(1)", "-838:59:59", "-838:59:59.0"), ("DATETIME", "VARCHAR(30)", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
    ("VARCHAR(30)", "DATE", "2020-01-02", "2020-01-02"), ("VARCHAR(30)", "DATETIME(1)", "2020-01-02T03:04:05", "2020-01-02 03:04:05.0"),
    ("VARCHAR(30)", "TIME", "12:00:00", "12:00:00"), ("VARCHAR(4)", "YEAR", "2020", 2020), ("JSON", "LONGTEXT", '{"a": 1}', '{"a": 1}'),
    ("YEAR", "VARCHAR(4)", 2020, "2020"), ("YEAR", "YEAR(4)", 2020, 2020), ("VARCHAR(3) CHARACTER SET gbk", "VARCHAR(9)", "表", "表"),
]  # fmt: skip
STOPS = [
    ("BIGINT", "INT", 2**31), ("INT", "INT UNSIGNED", -1), ("BIGINT UNSIGNED", "BIGINT", BIG), ("INT", "VARCHAR(2)", 100),
    ("INT", "DECIMAL(3,2)", 10), ("INT(5) ZEROFILL", "VARCHAR(9)", 7), ("INT", "YEAR", 99), ("INT", "JSON", 1),
    ("BIT(8)", "VARCHAR(8)", 65), ("DOUBLE", "VARCHAR(30)", 0.1), ("DOUBLE", "DECIMAL(9,2)", 0.1), ("DOUBLE", "INT", 0.5),
    ("DOUBLE", "FLOAT", 1e300), ("VARCHAR(9)", "INT", "x"), ("VARCHAR(9)", "INT", "1.5"), ("VARCHAR(9)", "DECIMAL(5,1)", "1e3"),
    ("VARCHAR(9)", "VARCHAR(2)", "abc"), ("TEXT", "TINYTEXT", "é" * 128), ("VARCHAR(9)", "JSON", "1"),
    ("VARBINARY(9)", "VARCHAR(9)", b"\xff"), ("VARBINARY(9)", "VARBINARY(1)", b"ab"), ("VARBINARY(9)", "INT", b"1"),
    ("VARCHAR(9) CHARACTER SET gbk", "VARBINARY(9)", "表"), ("VARBINARY(9)", "VARCHAR(9) CHARACTER SET gbk", b"a"),
    ("DECIMAL(5,2)", "DECIMAL(3,2)", "10.00"), ("DECIMAL(5,2)", "DECIMAL(5,2) UNSIGNED", "-1.00"), ("DECIMAL(5,2)", "TINYINT", "300.00"),
    ("ENUM('a','b')", "ENUM('a')", "b"), ("SET('a','b')", "SET('a')", "a,b"), ("VARCHAR(5)", "ENUM('x')", "X"),
    ("DATETIME", "TIMESTAMP", "1969-12-31 00:00:00"), ("DATETIME", "TIMESTAMP", "2020-02-30 00:00:00"),
    ("DATETIME(3)", "DATETIME", "2020-01-01 00:00:00.900"), ("DATETIME", "DATE", "2020-01-01 12:00:00"), ("TIME(1)", "TIME", "00:00:00.5"),
    ("VARCHAR(30)", "DATE", "20200102"), ("VARCHAR(30)", "TIME", "noon"), ("VARCHAR(30)", "DATETIME", "now"), ("VARCHAR(30)", "YEAR", "99"),
    ("VARCHAR(30)", "DATE", "2020-02-31"), ("VARCHAR(30)", "DATETIME", "0000-00-00 00:00:00"),
    ("JSON", "VARCHAR(2)", "[1]"), ("VECTOR(1)", "JSON", "[1]"), ("INT", "INT NOT NULL", None),
]  # fmt: skip


def made(file, mysql, value):
    file.ddl(f"CREATE TABLE `t` (`id` INT PRIMARY KEY, `c` {mysql}, `z` INT, KEY `kc`(`z`))")
    file.insert("shop.t", (1, value, 3), (2, value, 4))


@pytest.mark.parametrize(("old", "new", "value", "expected"), EXACT)
def test_a_value_becomes_what_mysql_makes_of_it(file, old, new, value, expected):
    made(file, old, value)
    file.insert("shop.t", (3, None, None))
    file.ddl(f"ALTER TABLE `t` MODIFY COLUMN `c` {new}")
    assert file.rows() == [(1, expected, 3), (2, expected, 4), (3, None, None)]
    assert type(file.rows()[0][1]) is type(expected)
    assert file.indexes() == {"shop.t.kc": (False, ["z"])}


@pytest.mark.parametrize(("old", "new", "value"), STOPS)
def test_a_value_that_is_not_certain_stops_and_nothing_has_changed(file, old, new, value):
    made(file, old, value)
    before = file.types()
    with pytest.raises(NeedsOperator) as raised:
        file.ddl(f"ALTER TABLE `t` MODIFY COLUMN `c` {new}")
    assert "c" in raised.value.facts["reason"]
    assert str(value) not in raised.value.facts["reason"] or value is None or len(str(value)) < 4
    assert (file.types(), file.rows()) == (before, [(1, value, 3), (2, value, 4)])


@pytest.mark.parametrize(("old", "new", "_value"), [stop for stop in STOPS if stop[2] is not None])
def test_without_values_every_type_may_become_any_other(file, old, new, _value):
    made(file, old, None)
    file.ddl(f"ALTER TABLE `t` MODIFY COLUMN `c` {new}")
    assert file.rows() == [(1, None, 3), (2, None, 4)]


def test_null_in_a_column_that_becomes_not_null_stops_and_an_empty_table_does_not(file):
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `c` INT)", "ALTER TABLE `t` MODIFY `c` VARCHAR(3) NOT NULL")
    assert file.types()["c"] == "varchar(3) NOT NULL"


def test_text_that_is_not_utf8_survives_a_longer_type(file):
    made(file, "VARCHAR(9)", "x")
    file.connection.execute("UPDATE \"shop.t\" SET c = CAST(x'41ff' AS TEXT)")
    file.ddl("ALTER TABLE `t` MODIFY `c` VARCHAR(19)", "ALTER TABLE `t` ADD COLUMN `n` INT NOT NULL FIRST")
    assert file.connection.execute('SELECT DISTINCT hex(c), typeof(c) FROM "shop.t"').fetchall() == [("41FF", "text")]
