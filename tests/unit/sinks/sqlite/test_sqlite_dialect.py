"""Literals and statements, executed on a file: what was written is what is read."""

import math
import pickle

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.planner.port import ColumnDescription, TableDescription
from applier.sinks.sqlite.dialect import SqliteDialect
from applier.sinks.sqlite.literal_value import blob, plain

T = TableName("shop", "t")
HOSTILE = st.text(st.characters(), max_size=20) | st.text("'\"\\\0;-/*\n%:\udc80\udcffé😀", max_size=12)
BIG = 2**64 - 1


def stored(file, literal):
    file.connection.text_factory = bytes
    return file.connection.execute(f"SELECT {literal}, typeof({literal})").fetchone()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=HOSTILE.filter(lambda text: not any("\ud800" <= c <= "\udc7f" or "\udd00" <= c <= "\udfff" for c in text)))
def test_any_text_is_stored_byte_for_byte(file, value):
    assert stored(file, plain(value)) == (value.encode("utf-8", "surrogateescape"), b"text")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.binary(max_size=40))
def test_any_bytes_are_stored_byte_for_byte(file, value):
    assert stored(file, blob(value)) == (value, b"blob")
    assert stored(file, plain(value)) == (value, b"text")


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.floats(allow_nan=False))
@example(value=6.146577296557088e-305)
@example(value=5e-324)
@example(value=-1.7976931348623157e308)
def test_any_float_is_read_back_as_the_same_one(file, value):
    found, kind = stored(file, plain(value))
    assert (found, kind) == (value, b"real")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.integers(-(2**63), BIG))
def test_any_integer_is_exact(file, value):
    found, kind = stored(file, plain(value))
    assert (int(found), kind) == (value, b"integer" if value < 2**63 else b"text")


def test_nan_is_refused_and_null_is_null(file):
    with pytest.raises(FatalSinkError, match="NaN"):
        plain(math.nan)
    assert (plain(None), blob(None)) == ("NULL", "NULL")


EXACT = [
    ("BIGINT UNSIGNED", 8, [0, 1, 2**53 + 1, 2**63 - 1, 2**63, BIG], [0, 1, 2**53 + 1, 2**63 - 1, str(2**63), str(BIG)]),
    ("BIGINT", 8, [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ("BIT(64)", 16, [5, BIG], [5, str(BIG)]),
    ("BIT(63)", 16, [5, 2**63 - 1], [5, 2**63 - 1]),
    ("DECIMAL(65,30)", 246, ["1" * 35 + "." + "2" * 30, "-0.00", "1e5", "1.50"], ["1" * 35 + "." + "2" * 30, "-0.00", "1e5", "1.50"]),
    ("DECIMAL(65,0)", 246, ["9" * 65], ["9" * 65]),
    ("VARCHAR(30)", 15, ["007", "1e3", " x ", "18446744073709551615"], ["007", "1e3", " x ", "18446744073709551615"]),
    ("YEAR", 13, [1901, 0], [1901, 0]),
    ("ENUM('x','it''s','3')", 247, [0, 1, 2, 3], ["", "x", "it's", "3"]),
    ("SET('a','b','c')", 248, [0, 1, 2, 5, 7], ["", "a", "b", "a,c", "a,b,c"]),
    ("VARBINARY(9)", 15, ["é", b"\xff\x00"], ["é".encode(), b"\xff\x00"]),
    ("DATETIME(3)", 12, ["0000-00-00 00:00:00.000"], ["0000-00-00 00:00:00.000"]),
    ("TIME(3)", 11, ["-838:59:59.000"], ["-838:59:59.000"]),
    ("FLOAT", 4, [0.1, 3], [0.1, 3.0]),
    ("JSON", 245, ['{"a": "\\u0000"}'], ['{"a": "\\u0000"}']),
]


@pytest.mark.parametrize("is_key", [False, True])
@pytest.mark.parametrize(("mysql", "wire", "values", "expected"), EXACT)
def test_values_are_exact_in_columns_and_in_keys_and_are_found_for_delete(file, mysql, wire, values, expected, is_key):
    file.ddl(f"CREATE TABLE `t` (`c` {mysql}, `n` INT, PRIMARY KEY (`{'c' if is_key else 'n'}`))")
    file.put(T, (wire, 3), *[(value, n) for n, value in enumerate(values)])
    file.put(T, (wire, 3), *[(value, n) for n, value in enumerate(values)])
    assert [row[0] for row in file.rows("shop.t", "n")] == expected
    file.delete(T, ["c"], [wire], *[(value,) for value in values[1:]])
    assert [row[0] for row in file.rows()] == expected[:1]


def test_a_set_of_64_members_and_the_greatest_mask_are_exact(file):
    labels = [f"m{n}" for n in range(64)]
    file.ddl(f"CREATE TABLE `t` (`c` SET({','.join(map(repr, labels))}), `n` INT PRIMARY KEY)")
    file.put(T, (248, 3), (BIG, 1), (1 << 63, 2))
    assert [row[0] for row in file.rows("shop.t", "n")] == [",".join(labels), "m63"]


def test_small_unsigned_numbers_compare_sort_and_join_as_numbers(file):
    file.ddl("CREATE TABLE `t` (`c` BIGINT UNSIGNED PRIMARY KEY)", "CREATE TABLE `s` (`c` INT PRIMARY KEY)")
    file.put(T, (8,), (10,), (9,), (100,), (BIG,))
    file.insert("shop.s", (9,), (100,))
    assert [row[0] for row in file.rows()] == [9, 10, 100, str(BIG)]
    assert file.connection.execute('SELECT count(*) FROM "shop.t" JOIN "shop.s" USING (c)').fetchone() == (2,)


def test_composite_and_null_keys_are_deleted_by_an_index(file):
    file.ddl("CREATE TABLE `t` (`a` INT, `b` VARCHAR(9), `rowid` INT, UNIQUE (`a`,`b`))")
    file.put(T, (3, 15, 3), (1, "x", 1), (1, None, 2), (None, None, 3), (2, "x", 4), (2, "y", 5))
    file.delete(T, ["a", "b"], [3, 15], (1, "x"), (1, None), (None, None), (7, "x"), (2, "y"))
    assert file.rows() == [(2, "x", 4)]
    text, _ = next(iter(SqliteDialect().deletes(file.described(), ["a", "b"], [["1", "'x'"]])))
    plan = " ".join(row[3] for row in file.connection.execute(f"EXPLAIN QUERY PLAN {text}"))
    assert "SEARCH t USING" in plan
    assert "(a=? AND b=?)" in plan


def test_null_in_a_key_of_one_column_is_found(file):
    file.ddl("CREATE TABLE `t` (`a` INT UNIQUE)")
    file.put(T, (3,), (None,), (1,), (2,))
    file.delete(T, ["a"], [3], (None,), (2,))
    assert file.rows() == [(1,)]


def table(*names):
    columns = tuple(ColumnDescription(name=name, sql_type="int", nullable=True) for name in names)
    return TableDescription(schema="s", table="t", columns=columns, unique_keys=())


def test_statements_are_cut_by_rows_and_by_size_in_the_order_of_the_rows():
    dialect = SqliteDialect(max_bytes=20, max_rows=3)
    found = list(dialect.replaces(table("a"), ["a"], ["(1)", "(2)", "(3)", "(4)", "('" + "x" * 40 + "')", "(5)"]))
    assert [rows for _, rows in found] == [3, 1, 1, 1]
    assert found[0][0] == 'REPLACE INTO "s.t" ("a") VALUES (1),(2),(3)'
    assert [rows for _, rows in dialect.deletes(table("a"), ["a"], [["1"], ["2"], ["3"], ["4"]])] == [3, 1]
    assert list(dialect.replaces(table("a"), ["a"], [])) == []
    assert list(dialect.deletes(table("a", "b"), ["a", "b"], [])) == []


def test_a_table_whose_columns_take_all_names_of_the_rowid_is_refused():
    with pytest.raises(FatalSinkError, match="rowid"):
        list(SqliteDialect().deletes(table("rowid", "_ROWID_", "oid"), ["rowid", "oid"], [["1", "2"]]))


@pytest.mark.parametrize(
    ("mysql", "wire", "value"),
    [
        ("ENUM('a')", 247, 2),
        ("SET('a')", 248, 2),
        ("ENUM('a')", 248, 1),
        ("VARCHAR(3)", 247, 1),
        ("SET('a')", 15, "a"),
        ("ENUM('a')", 247, -1),
    ],
)
def test_a_value_whose_label_the_sink_does_not_know_stops(file, mysql, wire, value):
    file.ddl(f"CREATE TABLE `t` (`c` {mysql})")
    with pytest.raises(FatalSinkError) as raised:
        file.put(T, (wire,), (value,))
    assert raised.value.facts["column"] == "c"


@pytest.mark.parametrize(("mysql", "wire", "value"), [("INT", 15, "x"), ("DOUBLE", 15, "x"), ("INT", 5, 1.5)])
def test_strict_tables_refuse_what_does_not_fit_instead_of_converting_it(file, mysql, wire, value):
    file.ddl(f"CREATE TABLE `t` (`c` {mysql})")
    with pytest.raises(Exception, match="cannot store"):
        file.put(T, (wire,), (value,))


def test_the_dialect_crosses_to_executors():
    assert pickle.loads(pickle.dumps(SqliteDialect())) == SqliteDialect()  # noqa: S301 - our own bytes
