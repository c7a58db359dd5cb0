"""The text of literals. That a server reads them back as meant is the integration test's matter."""

import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.model.errors import FatalSinkError
from applier.mysql.literals import literal_of
from applier.planner.port import BulkDialect, ColumnDescription, RowsDialect
from applier.sinks.mysql.dialect import MysqlDialect


def column(sql_type: str = "text", *, nullable: bool = True, labels: tuple[str, ...] = ()) -> ColumnDescription:
    return ColumnDescription(name="c", sql_type=sql_type, nullable=nullable, labels=labels)


def render(mysql_type: int, value: object, *, is_bytes: bool = False, sql_type: str = "text", labels: tuple[str, ...] = ()) -> str:
    return literal_of(column(sql_type, labels=labels), mysql_type, is_bytes=is_bytes)(value)


@pytest.mark.parametrize("mysql_type", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 225, *range(245, 255)])
@pytest.mark.parametrize("is_bytes", [False, True])
def test_null_is_null_in_every_type(mysql_type: int, is_bytes: bool) -> None:  # noqa: FBT001 - a parameter
    assert render(mysql_type, None, is_bytes=is_bytes) == "NULL"


@pytest.mark.parametrize("mysql_type", [1, 2, 3, 8, 9, 13, 16, 247, 248])
def test_integers_are_exact_digits(mysql_type: int) -> None:
    assert [render(mysql_type, value) for value in (0, -1, 2**64 - 1)] == ["0", "-1", "18446744073709551615"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0e0"), (-0.0, "'-0'"), (1.5, "1.5e0"), (-2.25, "-2.25e0"), (1e22, "1e+22"), (5e-324, "5e-324"), (0.1, "0.1e0")],
)
def test_doubles_carry_an_exponent_and_keep_the_sign_of_zero(value: float, text: str) -> None:
    assert render(5, value, sql_type="double") == text


def test_a_float_is_the_double_that_equals_the_stored_32_bits() -> None:
    assert render(4, 3.14, sql_type="float") == "3.140000104904175e0"
    assert render(4, 3.14, sql_type="FLOAT unsigned") == "3.140000104904175e0"
    assert render(4, 3.14, sql_type="double") == "3.14e0"


def test_a_number_beyond_a_floats_range_is_left_for_the_database_to_refuse() -> None:
    assert render(4, 1e39, sql_type="float") == "1e+39"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_any_float_reads_back_as_the_same_bits(value: float) -> None:
    digits = render(4, value, sql_type="float").strip("'")
    assert struct.pack("<f", float(digits)) == struct.pack("<f", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_a_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        render(5, value, sql_type="double")


def test_decimals_are_bare_so_that_they_are_not_compared_as_floating_point() -> None:
    assert [render(246, value) for value in ("12.30", "-0.000001", "9" * 65)] == ["12.30", "-0.000001", "9" * 65]


@pytest.mark.parametrize("value", ["1e5", "", "1.", "0x10", "1); DROP TABLE t; --", "٣", "9" * 66, "1\n"])
def test_what_does_not_look_like_a_decimal_is_a_string(value: str) -> None:
    assert render(246, value) == f"'{value}'"


@pytest.mark.parametrize("mysql_type", [7, 10, 11, 12, 14, 15, 225, 245, 246, 249, 250, 251, 252, 253, 254])
def test_nothing_ends_a_string_but_its_own_quote(mysql_type: int) -> None:
    assert render(mysql_type, "a'b\\c\0d\"e`f%s:g\n\u2028é😀") == "'a\\'b\\\\c\\0d\"e`f%s:g\n\u2028é😀'"


@pytest.mark.parametrize("mysql_type", [15, 249, 250, 251, 252, 253, 254])
def test_bytes_are_hexadecimal(mysql_type: int) -> None:
    assert render(mysql_type, b"\x00'\xff", is_bytes=True) == "x'0027ff'"
    assert render(mysql_type, b"", is_bytes=True) == "x''"


def test_text_that_is_not_utf8_is_hexadecimal_as_a_whole() -> None:
    assert render(15, "é\udcff'") == "x'c3a9ff27'"


def test_an_enum_or_set_that_the_sinks_column_cannot_hold_stops() -> None:
    assert render(247, 2, labels=("a", "b")) == "2"
    assert render(247, 0, labels=("a", "b")) == "0"
    assert render(248, 3, labels=("a", "b")) == "3"
    for mysql_type, value in ((247, 3), (248, 4), (247, -1)):
        with pytest.raises(FatalSinkError) as caught:
            render(mysql_type, value, labels=("a", "b"))
        assert caught.value.facts["column"] == "c"


@pytest.mark.parametrize(
    ("mysql_type", "is_bytes", "value"),
    [
        (3, False, "1 OR 1"),
        (8, False, 1.5),
        (5, False, "1"),
        (4, False, "1"),
        (246, False, 1),
        (15, False, 7),
        (15, False, b"x"),
        (15, True, "x"),
        (6, False, 1),
        (247, False, "a"),
    ],
)
def test_a_value_of_another_type_is_refused_and_never_rendered(mysql_type: int, is_bytes: bool, value: object) -> None:  # noqa: FBT001 - a parameter
    with pytest.raises((TypeError, ValueError, AttributeError)):
        render(mysql_type, value, is_bytes=is_bytes, sql_type="float" if mysql_type == 4 else "text")


def test_a_column_that_cannot_be_null_refuses_null() -> None:
    with pytest.raises(TypeError):
        literal_of(column("int", nullable=False), 3)(None)


def test_a_type_that_the_protocol_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="200"):
        literal_of(column(), 200)


def test_the_dialect_crosses_to_executors_and_renders_many_rows_at_once() -> None:
    dialect = MysqlDialect(max_packet_bytes=7)
    assert isinstance(dialect, RowsDialect)
    assert isinstance(dialect, BulkDialect)
    assert pickle.loads(pickle.dumps(dialect)) == dialect  # noqa: S301
