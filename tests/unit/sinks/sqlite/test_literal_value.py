"""What old rows hold in a column that was added with a literal DEFAULT: what MariaDB and MySQL put there, or a stop."""

import pytest

from applier.model.errors import NeedsOperator
from tests.rig.sqlite_file import three_rows

TYPES = (
    "TINYINT", "INT", "BIGINT UNSIGNED", "BIT(5)", "YEAR", "DECIMAL(6,2)", "FLOAT", "DOUBLE", "DATE", "DATETIME", "DATETIME(3)",
    "TIMESTAMP",
    "TIME", "TIME(2)", "CHAR(3)", "VARCHAR(9)", "BINARY(3)", "VARBINARY(9)", "TEXT", "BLOB", "JSON", "ENUM('a','1','b')", "SET('a','b')",
    "VECTOR(3)", "BOOL",
)  # fmt: skip
DEFAULTS = (
    "0", "1", "7", "1.5", "-1", "-2.5", "99", "2024", "20240102", "20240102030405", "101010", "'0'", "'1.5'", "'07'", "' 7'", "'x'", "''",
    "'2024'", "'24'", "'2024-01-02'", "'2024-1-2'", "'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.678'", "'20240102'", "'0000-00-00'",
    "'10:00'", "'1:2:3'", "'10:00:00.5'", "'10'", "'-10:00'", "'1 10:00'", "'a'", "'a,b'", "X'41'", "b'101'", "0x07", "1e2", "'1e2'",
    "1e999",
    "TRUE", "18446744073709551615", "99999999999999999999999", "'NaN'", "'Infinity'", "'é'", "X''", "'²'", "NULL", "-0", ".5", "5.",
)  # fmt: skip

# From MariaDB 10.11 and MySQL 9.7, which agree on these.
EXPECTED = [
    ("INT", "'1.5'", 2),
    ("INT", "1.5", 2),
    ("INT", "-2.5", -3),
    ("INT", "'1e2'", 100),
    ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
    ("YEAR", "0", 0),
    ("YEAR", "'0'", 2000),
    ("YEAR", "7", 2007),
    ("YEAR", "'07'", 2007),
    ("YEAR", "99", 1999),
    ("YEAR", "2024", 2024),
    ("DECIMAL(6,2)", "'1.5'", "1.50"),
    ("FLOAT", "1e2", 100.0),
    ("DATE", "0", "0000-00-00"),
    ("DATE", "20240102", "2024-01-02"),
    ("DATETIME", "0", "0000-00-00 00:00:00"),
    ("DATETIME(3)", "20240102030405", "2024-01-02 03:04:05.000"),
    ("DATETIME", "'20240102'", "2024-01-02 00:00:00"),
    ("TIMESTAMP", "0", "0000-00-00 00:00:00"),
    ("TIME", "'10:00'", "10:00:00"),
    ("TIME", "'1:2:3'", "01:02:03"),
    ("TIME", "'-10:00'", "-10:00:00"),
    ("TIME", "'1 10:00'", "34:00:00"),
    ("TIME", "'10'", "00:00:10"),
    ("TIME", "101010", "10:10:10"),
    ("TIME(2)", "1.5", "00:00:01.50"),
    ("TIME(2)", "'10:00:00.5'", "10:00:00.50"),
    ("VARCHAR(9)", "1.5", "1.5"),
    ("BINARY(3)", "7", b"7\0\0"),
    ("BIT(5)", "2.5", 3),
]


@pytest.mark.parametrize("nullable", ["", " NOT NULL"])
@pytest.mark.parametrize(("kind", "default", "value"), EXPECTED)
def test_old_rows_hold_what_a_server_puts_there(file, kind, default, value, nullable):
    three_rows(file)
    file.ddl(f"ALTER TABLE `t` ADD COLUMN `c` {kind}{nullable} DEFAULT {default}")
    assert {row[-1] for row in file.rows()} == {value}


@pytest.mark.parametrize("kind", TYPES)
def test_no_default_of_any_type_raises_another_error_than_ours(file, kind):
    three_rows(file)
    before = file.rows()
    for nullable in ("", " NOT NULL"):
        for default in DEFAULTS:
            try:
                file.ddl(f"ALTER TABLE `t` ADD COLUMN `c` {kind}{nullable} DEFAULT {default}")
            except NeedsOperator:
                assert file.rows() == before
            else:
                file.ddl("ALTER TABLE `t` DROP COLUMN `c`")
                assert file.rows() == before


@pytest.mark.parametrize(("kind", "default"), [("TIME", "1.5"), ("TIME", "'10:00:00.5'"), ("ENUM('a','1')", "1"), ("VARCHAR(9)", "1e2")])
def test_a_default_that_servers_read_differently_stops(file, kind, default):
    three_rows(file)
    with pytest.raises(NeedsOperator, match="cannot be converted exactly") as caught:
        file.ddl(f"ALTER TABLE `t` ADD COLUMN `c` {kind} DEFAULT {default}")
    assert caught.value.facts["column"] == "c"
