"""Values whose column gets another type: what upstream's TiDB makes of them, or that a sink must stop.

The same cases run on SQLite and on each server. Values are as SQL writes them; a result is what ``CAST(c AS CHAR)`` shows, ``STOP`` that
the servers differ (mostly seen with MySQL 9.7 and MariaDB 10.11), or that upstream's sql_mode decides.
"""

STOP = "stop"
CONVERSIONS = [
    # The cases of the review: one topic, three results.
    ("DATETIME(6)", "DATETIME", "'2020-01-02 03:04:01.600000'", STOP),
    ("DATETIME(6)", "DATETIME", "'2020-01-02 03:04:01.000000'", "2020-01-02 03:04:01"),
    ("DATETIME(3)", "DATE", "'2020-01-02 23:59:59.600'", STOP),
    ("DATETIME(3)", "DATE", "'2020-01-02 00:00:00.000'", "2020-01-02"),
    ("VARCHAR(9)", "INT", "'1.5'", STOP),
    ("VARCHAR(9)", "INT", "' 007'", "7"),
    ("VARCHAR(30)", "DATE", "'2023-02-31'", STOP),
    ("VARCHAR(30)", "DATE", "'2023-02-28'", "2023-02-28"),
    ("FLOAT", "VARCHAR(30)", "0.5", STOP),
    # Numbers: in range, and not.
    ("BIGINT", "INT", "2147483647", "2147483647"),
    ("BIGINT", "INT", "2147483648", STOP),
    ("INT", "INT UNSIGNED", "-1", STOP),
    ("BIGINT UNSIGNED", "BIGINT", "18446744073709551615", STOP),
    ("INT", "DECIMAL(6,2)", "-5", "-5.00"),
    ("INT", "DECIMAL(3,2)", "10", STOP),
    ("INT", "YEAR", "99", STOP),
    ("INT", "VARCHAR(3)", "-12", "-12"),
    ("INT", "VARCHAR(2)", "123", STOP),
    ("INT(5) ZEROFILL", "VARCHAR(9)", "7", STOP),
    ("BIT(8)", "INT", "200", "200"),
    ("INT", "BIT(8)", "300", STOP),
    ("BIT(8)", "VARCHAR(8)", "65", STOP),
    ("DECIMAL(5,2)", "DECIMAL(5,1)", "-1.25", "-1.3"),
    ("DECIMAL(5,2)", "DECIMAL(3,1)", "99.99", STOP),
    ("DECIMAL(5,2)", "DECIMAL(5,2) UNSIGNED", "-1.00", STOP),
    ("DECIMAL(5,2)", "INT", "2.50", "3"),
    ("DECIMAL(5,2)", "TINYINT", "127.50", STOP),
    ("DECIMAL(5,2)", "VARCHAR(9)", "2.50", "2.50"),
    ("FLOAT", "DOUBLE", "0.5", "0.5"),
    ("DOUBLE", "FLOAT", "1e300", STOP),
    ("DOUBLE", "DECIMAL(9,2)", "0.125", STOP),
    ("YEAR", "VARCHAR(4)", "2020", "2020"),
    # Texts, bytes, labels.
    ("VARCHAR(9)", "VARCHAR(2)", "'ab'", "ab"),
    ("VARCHAR(9)", "VARCHAR(2)", "'abc'", STOP),
    ("VARCHAR(9)", "CHAR(2)", "'a   '", "a"),
    ("TEXT", "TINYTEXT", "REPEAT('é', 128)", STOP),
    ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET latin1", "'é'", "é"),
    ("VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9) CHARACTER SET utf8mb4", "'é'", "é"),
    ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET gbk", "'é日'", "é日"),
    ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET gbk", "'😀'", STOP),
    ("VARBINARY(9)", "VARBINARY(1)", "'ab'", STOP),
    ("VARBINARY(9)", "VARCHAR(9)", "'ab'", "ab"),
    ("VARBINARY(9)", "VARCHAR(9)", "X'ff'", STOP),
    ("VARCHAR(9)", "DECIMAL(5,1)", "'1.25'", "1.3"),
    ("VARCHAR(9)", "DECIMAL(5,1)", "'1e2'", STOP),
    ("VARCHAR(9)", "YEAR", "'2020'", "2020"),
    ("VARCHAR(9)", "YEAR", "'20'", STOP),
    ("VARCHAR(30)", "DATETIME", "'2020-01-02 03:04:05'", "2020-01-02 03:04:05"),
    ("VARCHAR(30)", "DATETIME", "'2020-01-02 03:04:05.5'", STOP),
    ("VARCHAR(30)", "TIME", "'12:00:00'", "12:00:00"),
    ("VARCHAR(30)", "TIME", "'12:00'", STOP),
    ("VARCHAR(9)", "JSON", "'1'", STOP),
    ("VARCHAR(5)", "ENUM('x','y')", "'y'", "y"),
    ("VARCHAR(5)", "ENUM('x','y')", "'2'", STOP),
    ("ENUM('a','b')", "ENUM('b','c')", "'b'", "b"),
    ("ENUM('a','b')", "ENUM('b','c')", "'a'", STOP),
    ("ENUM('a','b')", "INT", "'b'", "2"),
    ("SET('a','b')", "SET('b','a')", "'a,b'", "b,a"),
    ("SET('a','b')", "SET('b')", "'a,b'", STOP),
    # Times.
    ("DATE", "DATETIME(2)", "'2020-01-02'", "2020-01-02 00:00:00.00"),
    ("DATETIME(3)", "VARCHAR(30)", "'2020-01-02 03:04:05.120'", "2020-01-02 03:04:05.120"),
    ("DATETIME", "VARCHAR(10)", "'2020-01-02 03:04:05'", STOP),
    ("TIME(1)", "TIME", "'00:00:00.5'", STOP),
    ("DATETIME", "BIGINT", "'2020-01-02 03:04:05'", STOP),
    # In the zone of upstream's session, +08:00.
    ("TIMESTAMP NULL", "DATE", "'2020-01-01 16:00:00'", "2020-01-02"),
    ("TIMESTAMP NULL", "DATE", "'2020-01-01 00:00:00'", STOP),
    ("DATETIME", "TIMESTAMP NULL", "'2020-01-02 00:00:00'", "2020-01-01 16:00:00"),
    ("DATETIME(1)", "TIMESTAMP NULL", "'2020-01-02 00:00:00.5'", STOP),
    # What old NULLs become.
    ("INT", "INT NOT NULL", "NULL", STOP),
    ("INT", "BIGINT NOT NULL", "5", "5"),
]

NARROWED = [
    ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET utf8mb3", "'日'", "日"),
    ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET utf8mb3", "'😀'", STOP),
    ("VARCHAR(9)", "VARCHAR(9) CHARACTER SET ascii", "'é'", STOP),
    ("VARCHAR(9)", "VARCHAR(2) CHARACTER SET ascii", "'abc'", STOP),
]
"""To kinds of UTF-8 that do not hold all of it, which a type does not name."""
CONVERSIONS_TO_CHARSETS = [
    ("VARCHAR(9)", "gbk", "'é日'", "é日"),
    ("VARCHAR(9)", "gbk", "'😀'", STOP),
    ("TEXT", "utf8mb3 COLLATE utf8mb3_bin", "'日'", "日"),
    ("TEXT", "utf8mb3", "'😀'", STOP),
    ("CHAR(9)", "ascii", "'é'", STOP),
    ("CHAR(9)", "ascii", "'a'", "a"),
    ("VARCHAR(9) CHARACTER SET gbk", "utf8mb4", "'日'", "日"),
    ("INT", "ascii", "5", "5"),
]
"""Type of a column, character set of CONVERT TO, value, what it becomes: each text as by MODIFY."""
