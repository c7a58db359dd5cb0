import pytest

from applier.sinks.mysql.table_text import MARIADB, MYSQL, TIDB
from applier.sinks.sqlite.table_reader import SQLITE
from applier.sinks.table_pair import Form, pair_columns, pair_tables
from tests.unit.verify.pairs import BOTH, column_pair, side_column, side_table, table_pair


@pytest.mark.parametrize(
    ("upstream", "sink", "form", "scale"),
    [
        ("int", "bigint unsigned", Form.INTEGER, 0),
        ("bit(8)", "int", Form.INTEGER, 0),
        ("decimal(10,2)", "decimal(12,4)", Form.DECIMAL, 4),
        ("bigint", "decimal(20,0)", Form.DECIMAL, 0),
        ("float", "float", Form.DOUBLE, 0),
        ("int", "double", Form.DOUBLE, 0),
        ("varchar(9)", "longtext", Form.TEXT, 0),
        ("binary(3)", "blob", Form.BYTES, 0),
        ("date", "datetime(3)", Form.MOMENT, 3),
        ("datetime", "timestamp(6)", Form.MOMENT, 6),
        ("time", "time(2)", Form.MOMENT, 2),
        ("enum('a','b')", "enum('a','b')", Form.ORDINAL, 0),
        ("enum('a','b')", "enum('b','a')", Form.LABEL, 0),
        ("json", "longtext", Form.JSON, 0),
        ("vector(3)", "longtext", Form.VECTOR, 0),
    ],
)
def test_values_of_related_types_are_compared(upstream, sink, form, scale):
    pair = column_pair(upstream, sink)
    assert (pair.form, pair.scale) == (form, scale)


@pytest.mark.parametrize(
    ("upstream", "sink"),
    [
        ("int", "varchar(9)"),
        ("varchar(9)", "varbinary(9)"),
        ("enum('a')", "set('a')"),
        ("enum('a')", "varchar(9)"),
        ("date", "time"),
        ("date", "timestamp"),
        ("decimal(65,0)", "decimal(65,30)"),
        ("json", "int"),
        ("geometry", "geometry"),
    ],
)
def test_values_of_other_types_are_not(upstream, sink):
    assert pair_columns(side_column("c", upstream), side_column("c", sink), BOTH) is None


def test_numbers_are_written_with_digits_and_exponent_where_servers_print_them_differently():
    assert not column_pair("double", kinds=(MYSQL, MARIADB)).is_wide
    assert column_pair("double", kinds=(TIDB, MARIADB)).is_wide
    assert column_pair("double", kinds=(MYSQL, SQLITE)).is_wide


def test_a_file_has_labels_and_no_ordinals():
    assert column_pair("enum('a')", kinds=(MYSQL, SQLITE)).form is Form.LABEL


def test_what_is_missing_too_many_or_of_another_type_is_a_problem():
    upstream = side_table(side_column("id", "int"), side_column("A", "int"), side_column("b", "int"))
    sink = side_table(side_column("id", "int"), side_column("a", "json"), side_column("c", "int"))
    assert pair_tables(upstream, sink, BOTH) == (
        "column b is missing; column c is too many; column A has types that cannot be compared: int upstream, json in the sink"
    )


@pytest.mark.parametrize(
    ("columns", "kinds", "ranged"),
    [
        ([side_column("a", "int"), side_column("b", "date")], BOTH, 2),
        ([side_column("a", "int"), side_column("b", "enum('x')")], BOTH, 1),
        ([side_column("a", "enum('x')"), side_column("b", "int")], BOTH, 0),
        ([side_column("a", "varchar(9)", collation="utf8mb4_bin"), side_column("b", "int")], BOTH, 2),
        ([side_column("a", "bigint unsigned"), side_column("b", "int")], BOTH, 2),
        ([side_column("a", "bigint unsigned"), side_column("b", "int")], (MYSQL, SQLITE), 0),
        ([side_column("a", "bigint"), side_column("b", "decimal(9,1)")], (MYSQL, SQLITE), 1),
        ([side_column("a", "varchar(9)", collation="utf8mb4_bin"), side_column("b", "int")], (MYSQL, SQLITE), 0),
    ],
)
def test_ranges_are_cut_along_columns_that_both_sides_order_alike(columns, kinds, ranged):
    assert len(table_pair(*columns, key=("a", "b"), kinds=kinds).ranged) == ranged


def test_two_collations_of_different_order_cut_no_ranges():
    tables = [side_table(side_column("id", "char(3)", collation=name)) for name in ("utf8mb4_general_ci", "utf8mb4_unicode_ci")]
    assert pair_tables(*tables, BOTH).ranged == ()


def test_a_table_without_a_key_has_none():
    assert table_pair(side_column("a", "int"), key=()).key == ()
