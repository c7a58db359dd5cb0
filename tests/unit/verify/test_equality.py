import pytest

from applier.sinks.mysql.table_text import MYSQL
from applier.sinks.sqlite.table_reader import SQLITE
from applier.sinks.table_reader import read_float, write_float
from applier.verify.value import is_equal
from tests.unit.verify.pairs import column_pair

JSON = column_pair("json", "longtext")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"b": 1, "aa": 2}', '{"aa":2,"b":1}'),
        ("[1, 2.0, 1e2]", "[1.0,2,100]"),
        ('"\\u00e9"', '"é"'),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("0.1", "0.10000000000000000"),
        ("null", " null "),
        ("-0.0", "0"),
    ],
)
def test_equal_documents_are_equal_however_they_are_written(one, other):
    assert is_equal(JSON, one.encode(), other.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("0", "false"),
        ("0", "null"),
        ('"1"', "1"),
        ("[1, 2]", "[2, 1]"),
        ('{"a": 1}', '{"a": 1, "b": null}'),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.1000000000000001"),
        ("[]", "{}"),
        ('"a"', '"a "'),
        ("[" * 100_000, "[" * 100_001),
        ("{", "}"),
    ],
)
def test_different_documents_are_different(one, other):
    assert not is_equal(JSON, one.encode(), other.encode())


def test_null_equals_only_null():
    assert is_equal(JSON, None, None)
    assert not is_equal(JSON, None, b"null")
    assert not is_equal(JSON, b"null", None)


@pytest.mark.parametrize(
    ("upstream", "sink", "expected"), [("[1,2.5]", "[1.0, 2.50]", True), ("[1,0.1]", "0000803fcdcccc3d", True), ("[1]", "[2]", False)]
)
def test_vectors_are_compared_by_their_numbers(upstream, sink, expected):
    assert is_equal(column_pair("vector(2)", "longtext"), upstream.encode(), sink.encode()) is expected


@pytest.mark.parametrize(
    ("types", "one", "other", "expected"),
    [
        (("float", "double"), "3.140000104904175", "3.14", True),
        (("float", "double"), "3.140000104904175", "3.15", False),
        (("int", "double"), "5", "5", True),
        (("bigint", "double"), "9007199254740993", "9007199254740992", False),
    ],
)
def test_numbers_of_different_types_are_compared_by_value(types, one, other, expected):
    assert is_equal(column_pair(*types), one.encode(), other.encode()) is expected


def test_other_forms_are_compared_by_their_bytes():
    assert not is_equal(column_pair("varchar(9)"), b"a", b"A")


@pytest.mark.parametrize("number", [0.0, 1.0, -12.5, 1e22, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 0.001, 123456789.125])
def test_the_wide_form_of_a_number_reads_back_as_it(number):
    assert read_float(write_float(number)) == number


def test_the_wide_form_is_digits_and_the_place_of_the_point():
    assert [write_float(number) for number in (12.5, -0.001, 1500.0, -0.0)] == [b"125x2", b"-1x-2", b"15x4", b"0"]


def test_floats_of_a_file_are_wide_too():
    assert column_pair("float", kinds=(MYSQL, SQLITE)).is_wide
