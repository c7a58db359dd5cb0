"""Which columns of the sink hold which values of the wire as they are."""

import pytest

from applier.model.errors import NeedsOperator, RowRefused
from applier.planner.port import ColumnDescription
from applier.sinks.mysql.fitting import fitting_literal_of

BLOBS = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
TYPES = {
    1: "TINYINT",
    2: "SMALLINT",
    3: "INT",
    4: "FLOAT",
    5: "DOUBLE",
    7: "TIMESTAMP",
    8: "BIGINT",
    10: "DATE",
    11: "TIME",
    12: "DATETIME",
    13: "YEAR",
    16: "BIT",
    225: "VECTOR",
    245: "JSON",
    246: "DECIMAL",
    247: "ENUM",
    248: "SET",
}


def column(sql_type: str, *, nullable: bool = True, labels: tuple[str, ...] = ()) -> ColumnDescription:
    binary = sql_type.partition("(")[0] in BLOBS
    return ColumnDescription(name="c", sql_type=sql_type, nullable=nullable, labels=labels, binary=binary)


def render(sql_type: str, mysql_type: int, value: object, *, is_bytes: bool = False, nullable: bool = True) -> str:
    return fitting_literal_of(column(sql_type, nullable=nullable), mysql_type, is_bytes=is_bytes)(value)


@pytest.mark.parametrize(
    ("mysql_type", "sql_type"),
    [
        (3, "varchar(20)"),
        (3, "enum('a','b')"),
        (3, "year(4)"),
        (3, "float"),
        (3, "bit(8)"),
        (3, "datetime"),
        (8, "double"),
        (13, "varchar(4)"),
        (4, "int(11)"),
        (4, "decimal(10,2)"),
        (5, "float"),
        (246, "int"),
        (246, "double"),
        (246, "varchar(20)"),
        (7, "date"),
        (12, "timestamp"),
        (12, "time"),
        (10, "timestamp"),
        (11, "datetime"),
        (11, "int"),
        (16, "blob"),
        (245, "varbinary(9)"),
        (247, "varchar(20)"),
        (247, "int"),
        (247, "set('a')"),
        (248, "enum('a')"),
        (248, "bigint unsigned"),
    ],
)
def test_values_of_another_kind_need_the_operator_with_both_types(mysql_type: int, sql_type: str) -> None:
    with pytest.raises(NeedsOperator) as caught:
        fitting_literal_of(column(sql_type), mysql_type)
    assert caught.value.exit_code == 6
    facts = caught.value.facts
    assert (facts["column"], facts["sink_type"], facts["upstream_type"]) == ("c", sql_type, TYPES[mysql_type])
    assert caught.value.remedy


@pytest.mark.parametrize("sql_type", ["enum('a','b')", "set('a')", "int", "json", "datetime", "uuid", "varbinary(9)"])
def test_text_goes_into_text_only(sql_type: str) -> None:
    with pytest.raises(NeedsOperator, match="upstream_type=text"):
        fitting_literal_of(column(sql_type), 15)


@pytest.mark.parametrize("sql_type", ["varchar(9)", "text", "int", "json"])
def test_bytes_go_into_bytes_only(sql_type: str) -> None:
    with pytest.raises(NeedsOperator, match="upstream_type=binary string"):
        fitting_literal_of(column(sql_type), 15, is_bytes=True)


def test_a_column_that_the_server_calls_binary_holds_bytes_whatever_its_type_is_called() -> None:
    named = ColumnDescription(name="c", sql_type="varchar(9)", nullable=True, binary=True)
    assert fitting_literal_of(named, 15, is_bytes=True)(b"a") == "x'61'"


@pytest.mark.parametrize(
    ("mysql_type", "sql_type", "value"),
    [
        (1, "bigint(20) unsigned", 1),
        (3, "TINYINT", 1),
        (3, "decimal(10,0)", 1),
        (3, "double", 1),
        (2, "float", 1),
        (13, "year(4)", 2020),
        (16, "bit(64)", 1),
        (16, "bigint unsigned", 1),
        (4, "double", 1.5),
        (246, "decimal(65,30)", "1.5"),
        (7, "datetime(6)", "2020-01-01 00:00:00.123456"),
        (10, "datetime", "2020-01-01"),
        (245, "longtext", "{}"),
        (225, "longtext", "[1]"),
        (245, "json", "{}"),
        (15, "longtext", "a "),
        (252, "varchar(9)", "a "),
        (6, "int", None),
    ],
)
def test_wider_columns_are_taken(mysql_type: int, sql_type: str, value: object) -> None:
    assert render(sql_type, mysql_type, value)


@pytest.mark.parametrize(
    ("mysql_type", "sql_type", "value"),
    [
        (11, "time", "10:00:00.5"),
        (11, "time(1)", "-838:59:58.25"),
        (12, "datetime", "2020-01-01 10:00:00.000001"),
        (7, "timestamp(3)", "2020-01-01 10:00:00.1234"),
    ],
)
def test_a_fraction_that_the_column_cuts_is_refused(mysql_type: int, sql_type: str, value: str) -> None:
    with pytest.raises(RowRefused, match="fractional digits of a second") as caught:
        render(sql_type, mysql_type, value)
    assert caught.value.facts["column"] == "c"


@pytest.mark.parametrize(
    ("mysql_type", "sql_type", "value"),
    [(11, "time", "10:00:00.000"), (11, "time(1)", "10:00:00.500"), (12, "datetime", "2020-01-01 10:00:00"), (12, "datetime(3)", None)],
)
def test_a_fraction_of_zeros_loses_nothing(mysql_type: int, sql_type: str, value: str | None) -> None:
    assert render(sql_type, mysql_type, value) == ("NULL" if value is None else f"'{value}'")


def test_spaces_at_the_end_are_refused_by_char_only() -> None:
    with pytest.raises(RowRefused, match="removes trailing spaces"):
        render("char(9)", 15, "a ")
    assert render("char(9)", 254, "a") == "'a'"
    assert render("char(9)", 254, None) == "NULL"
    assert render("varchar(9)", 15, "a ") == "'a '"


def test_a_short_value_is_refused_by_binary_only() -> None:
    with pytest.raises(RowRefused, match="pads values to 3 bytes"):
        render("binary(3)", 15, b"ab", is_bytes=True)
    assert render("binary(3)", 254, b"ab\0", is_bytes=True) == "x'616200'"
    assert render("binary(3)", 254, None, is_bytes=True) == "NULL"
    assert render("varbinary(3)", 254, b"ab", is_bytes=True) == "x'6162'"


def test_digits_behind_the_point_are_refused_by_a_column_that_rounds() -> None:
    with pytest.raises(RowRefused, match="2 digits after the decimal point"):
        render("double(10,2)", 5, 1.239)
    assert render("double(10,2)", 5, 1.23) == "1.23e0"
    assert render("double(10,2)", 5, 1e16) == "1e+16"
    assert render("float(5,1)", 4, None) == "NULL"


def test_null_is_refused_by_a_timestamp_that_would_become_the_current_time() -> None:
    with pytest.raises(RowRefused, match="NOT NULL"):
        render("timestamp", 7, None, nullable=False)
    assert render("timestamp", 7, "2020-01-01 00:00:00", nullable=False) == "'2020-01-01 00:00:00'"
