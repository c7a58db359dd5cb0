"""One structure, whichever server describes it: the rows below are what MariaDB 10.11 and MySQL 9.7 showed of the same statements."""

from typing import Any

import pytest

from applier.mysql.catalogue import column_of
from applier.mysql.structure import Check, Expression, expression_of


def row(column_type: str, default: str | None, extra: str = "", **more: Any) -> dict[str, Any]:
    known = {"COLUMN_NAME": "c", "IS_NULLABLE": "YES", "CHARACTER_SET_NAME": None, "COLLATION_NAME": None, "COLUMN_COMMENT": ""}
    return known | {"COLUMN_TYPE": column_type, "COLUMN_DEFAULT": default, "EXTRA": extra, "GENERATION_EXPRESSION": None} | more


def mariadb(column_type: str, default: str | None = "NULL", extra: str = "", **more: Any) -> dict[str, Any]:
    return row(column_type, default, extra, IS_GENERATED="NEVER", **more)


@pytest.mark.parametrize(
    ("of_mariadb", "of_mysql"),
    [
        (mariadb("int(11)"), row("int", None)),
        (mariadb("bigint(20) unsigned"), row("bigint unsigned", None)),
        (mariadb("year(4)", "2020"), row("year", "2020")),
        (mariadb("tinyint(1)", "1"), row("tinyint(1)", "1")),
        (mariadb("int(10) unsigned zerofill", "0000000005"), row("int(10) unsigned zerofill", "0000000005")),
        (mariadb("varchar(10)", "'it''s \"x\"'"), row("varchar(10)", 'it\'s "x"')),
        (mariadb("varchar(10)", "'a\\\\b\\n'"), row("varchar(10)", "a\\b\n")),
        (mariadb("varchar(10)", "'NULL'"), row("varchar(10)", "NULL")),
        (mariadb("varchar(20)", "'CURRENT_TIMESTAMP'"), row("varchar(20)", "CURRENT_TIMESTAMP")),
        (mariadb("varchar(5)", "'x'"), row("varchar(5)", "_utf8mb4\\'x\\'", "DEFAULT_GENERATED")),
        (mariadb("decimal(10,2)", "1.50"), row("decimal(10,2)", "1.50")),
        (mariadb("bit(5)", "b'101'"), row("bit(5)", "b'101'")),
        (mariadb("binary(3)", "'a\\0\\0'"), row("binary(3)", "0x61")),
        (mariadb("varbinary(4)", "'a''b'"), row("varbinary(4)", "0x612762")),
        (mariadb("date", "curdate()"), row("date", "curdate()", "DEFAULT_GENERATED")),
        (mariadb("timestamp", "current_timestamp()"), row("timestamp", "CURRENT_TIMESTAMP")),
        (
            mariadb("datetime(3)", "current_timestamp(3)", "on update current_timestamp(3)"),
            row("datetime(3)", "CURRENT_TIMESTAMP(3)", "DEFAULT_GENERATED on update CURRENT_TIMESTAMP(3)"),
        ),
        (
            mariadb("bigint(20)", "NULL", "VIRTUAL GENERATED", GENERATION_EXPRESSION="`q` + 1"),
            row("bigint", None, "VIRTUAL GENERATED", GENERATION_EXPRESSION="(`q` + 1)"),
        ),
        (
            mariadb("varchar(40)", "NULL", "STORED GENERATED", GENERATION_EXPRESSION="concat(`a`,'x')"),
            row("varchar(40)", None, "STORED GENERATED", GENERATION_EXPRESSION="concat(`a`,_utf8mb4\\'x\\')"),
        ),
        (
            mariadb("varchar(5)", CHARACTER_SET_NAME="utf8mb3", COLLATION_NAME="utf8mb3_bin"),
            row("varchar(5)", None, CHARACTER_SET_NAME="utf8", COLLATION_NAME="utf8_bin"),
        ),
    ],
    ids=lambda value: f"{value['COLUMN_TYPE']} {value['COLUMN_DEFAULT']}",
)
def test_a_column_that_servers_word_differently_is_the_same(of_mariadb: dict[str, Any], of_mysql: dict[str, Any]) -> None:
    assert column_of(of_mariadb, []) == column_of(of_mysql, [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (row("int", None), row("int unsigned", None)),
        (row("int", None), row("bigint", None)),
        (row("varchar(3)", None), row("varchar(4)", None)),
        (row("int", None), row("int", "0")),
        (row("int", None), row("int", None, IS_NULLABLE="NO")),
        (row("varchar(20)", "CURRENT_TIMESTAMP"), row("varchar(20)", "CURRENT_TIMESTAMP", "DEFAULT_GENERATED")),
        (mariadb("varchar(20)", "NULL"), mariadb("varchar(20)", "'NULL'")),
        (row("varchar(5)", "a"), row("varchar(5)", "A")),
        (row("enum('a','b')", None), row("enum('a','B')", None)),
        (row("varchar(5)", None, COLLATION_NAME="utf8mb4_bin"), row("varchar(5)", None, COLLATION_NAME="utf8mb4_general_ci")),
        (row("int", None, "auto_increment"), row("int", None)),
        (row("int", None, "INVISIBLE"), row("int", None)),
        (
            row("int", None, "VIRTUAL GENERATED", GENERATION_EXPRESSION="`a`"),
            row("int", None, "STORED GENERATED", GENERATION_EXPRESSION="`a`"),
        ),
        (row("datetime", None), row("datetime", None, "on update CURRENT_TIMESTAMP")),
        (row("binary(3)", "0x61"), row("binary(3)", "0x62")),
        (row("int", None), row("int", None, COLUMN_COMMENT="x")),
    ],
)
def test_a_column_that_means_something_else_is_another(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert column_of(one, []) != column_of(other, [])


def test_mariadbs_json_is_json() -> None:
    shown = mariadb("longtext", CHARACTER_SET_NAME="utf8mb4", COLLATION_NAME="utf8mb4_bin")
    assert column_of(shown, [Check(name="", clause=Expression("json_valid(`c`)"))]) == column_of(row("json", None), [])
    assert column_of(shown, [Check(name="", clause=Expression("json_valid(`d`)"))]).type == "longtext"


@pytest.mark.parametrize(
    ("of_mariadb", "of_mysql"),
    [
        ("`q` + 1", "(`q` + 1)"),
        ("concat(`a`,'x')", "concat(`a`,_utf8mb4\\'x\\')"),
        (
            "`a` <> 'it\\'s' and `q` in (1,2) or `d` > 'x'",
            "(((`a` <> _utf8mb4\\'it\\\\\\'s\\') and (`q` in (1,2))) or (`d` > _utf8mb4\\'x\\'))",
        ),
        ("`a` is null or `b` between 1 and 2", "((`a` is null) or (`b` between 1 and 2))"),
        ("case when `a` = 1 then 'x' else 'y' end", "(case when (`a` = 1) then _utf8mb4\\'x\\' else _utf8mb4\\'y\\' end)"),
        ("`a` + `b` * `c`", "(`a` + (`b` * `c`))"),
        ("(`a` + `b`) * `c`", "((`a` + `b`) * `c`)"),
    ],
)
def test_an_expression_that_servers_word_differently_is_the_same(of_mariadb: str, of_mysql: str) -> None:
    assert expression_of(of_mariadb) == expression_of(of_mysql)
    assert hash(expression_of(of_mariadb)) == hash(expression_of(of_mysql))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(`a` + `b`) * `c`", "`a` + `b` * `c`"),
        ("`a` - (`b` - `c`)", "`a` - `b` - `c`"),
        ("'A'", "'a'"),
        ("`a`", "`A b`"),
        ("not (`a` and `b`)", "(not `a`) and `b`"),
        ("no such ( syntax", "no such ( other"),
    ],
)
def test_an_expression_that_means_something_else_is_another(one: str, other: str) -> None:
    assert expression_of(one) != expression_of(other)
