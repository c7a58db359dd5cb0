"""Many rows rendered at once are what the same rows are value by value, in both outputs. That a server reads them so: integration tests."""

import re
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from applier.model.errors import NeedsOperator
from applier.planner.port import ColumnDescription, TableDescription, WireColumn
from applier.sinks.mysql.dialect import MysqlDialect
from applier.sinks.mysql.fitting import data_type_of, fitting_literal_of
from applier.sinks.mysql.row import lines_of, rows_text_of
from tests.integration.literal_case import CASES, Case

MOST_BYTES = 10_000_000
LITERAL = r"(?:NULL|x'(?:[0-9a-f]{2})*'|'(?:[^'\\]|\\.)*'|[-+.0-9e]+)"
ROW = rf"\({LITERAL}(?:,{LITERAL})*\)"
ESCAPES = {"\\0": "\0", "\\'": "'", "\\\\": "\\"}


def wire(mysql_type: int, sql_type: str, *, is_bytes: bool = False, **more: Any) -> WireColumn:
    facts: dict[str, Any] = {"nullable": True, "binary": is_bytes} | more
    return WireColumn(ColumnDescription(name="c", sql_type=sql_type, **facts), mysql_type, is_bytes)


def labels_of(sql_type: str) -> tuple[str, ...]:
    return tuple(re.findall(r"'((?:[^']|'')*)'", sql_type)) if sql_type.startswith(("enum", "set")) else ()


def wire_of(case: Case) -> WireColumn:
    labels = labels_of(case.sql_type)
    return wire(case.mysql_type, case.sql_type, is_bytes=case.is_bytes, labels=labels, is_set=case.sql_type.startswith("set"))


def at_once(columns: Sequence[WireColumn], *rows: tuple[Any, ...]) -> str | None:
    text = rows_text_of(columns, MOST_BYTES)(list(zip(*rows, strict=True)))
    return None if text is None else text.decode()


def one_by_one(columns: Sequence[WireColumn], *rows: tuple[Any, ...]) -> str:
    functions = [fitting_literal_of(column.column, column.mysql_type, is_bytes=column.is_bytes) for column in columns]
    return ",".join(f"({','.join(literal(value) for literal, value in zip(functions, row, strict=True))})" for row in rows)


def read_back(text: str | None, columns: Sequence[WireColumn]) -> list[tuple[Any, ...]]:
    """Return what a server makes of the literals: two that mean the same are the same."""
    assert text is not None
    assert re.fullmatch(rf"{ROW}(?:,{ROW})*", text, re.DOTALL)
    found = re.findall(LITERAL, text, re.DOTALL)
    values = [value_of(literal, columns[number % len(columns)]) for number, literal in enumerate(found)]
    return list(zip(*[iter(values)] * len(columns), strict=True))


def value_of(literal: str, column: WireColumn) -> Any:
    if literal == "NULL":
        return None
    if literal.startswith("x'"):
        return bytes.fromhex(literal[2:-1])
    if literal.startswith("'"):
        literal = re.sub(r"\\.", lambda match: ESCAPES[match[0]], literal[1:-1], flags=re.DOTALL)
    return number_of(literal, column)


def number_of(text: str, column: WireColumn) -> Any:
    """Return the bytes of a FLOAT or a DOUBLE; the text itself for other columns."""
    if column.mysql_type in (4, 5):
        return struct.pack("<f" if column.column.sql_type.startswith("float") else "<d", float(text))
    return text


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[WireColumn], list[tuple[Any, ...]]]:
    """Columns of any types, with rows of hostile values."""
    chosen = draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=5))
    rows = st.tuples(*(st.sampled_from([*case.values, None]) for case in chosen))
    return list(map(wire_of, chosen)), draw(st.lists(rows, min_size=1, max_size=20))


@given(cases())
def test_rows_of_any_types_say_at_once_what_they_say_one_by_one(case: tuple[list[WireColumn], list[tuple[Any, ...]]]) -> None:
    columns, rows = case
    assert read_back(at_once(columns, *rows), columns) == read_back(one_by_one(columns, *rows), columns)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_hostile_values_of_a_type_are_written_in_one_group(case: Case) -> None:
    columns, rows = [wire_of(case)], [(value,) for value in case.values]
    for group in (rows, [*rows, (None,)], *([row] for row in rows)):
        assert read_back(at_once(columns, *group), columns) == read_back(one_by_one(columns, *group), columns)


def read_lines(content: bytes, columns: Sequence[WireColumn]) -> list[tuple[Any, ...]]:
    """Return what a server makes of the lines of a bulk load, in the words of ``read_back``."""
    fields, rows, row = [""], [], []
    signs = iter(content.decode())
    for sign in signs:
        if sign == "\x1b":
            following = next(signs)
            fields[-1] += "\x1bN" if following == "N" else following
        elif sign in "\x1f\x1e":
            row.append(fields[-1])
            fields.append("")
            if sign == "\x1e":
                rows.append(tuple(stored(field, column) for field, column in zip(row, columns, strict=True)))
                row = []
        else:
            fields[-1] += sign
    assert (row, fields[-1]) == ([], "")
    return rows


def stored(field: str, column: WireColumn) -> Any:
    if field == "\x1bN":
        return None
    if column.is_bytes:
        return bytes.fromhex(field)
    if data_type_of(column.column) == "year":
        assert len(field) == 4
        return str(int(field))
    return number_of(field, column)


@given(cases())
@example(([wire(15, "varchar(9)"), wire(13, "year(4)")], [("a\x1fb\x1ec\x1bN", 0), (None, None), ("'\\\0", 2024)]))
@example(([wire(5, "double"), wire(4, "float")], [(-0.0, 3.4028235e38), (None, -0.0), (1.5, 3.14)]))
@example(([wire(252, "blob", is_bytes=True), wire(248, "set('a','b')", labels=("a", "b"))], [(b"\0\xff\x1e", 3), (None, 0)]))
def test_both_outputs_mean_the_same_values(case: tuple[list[WireColumn], list[tuple[Any, ...]]]) -> None:
    """A load may leave rows to a REPLACE; what it writes is what the REPLACE writes."""
    columns, rows = case
    if render := lines_of(columns):
        lines = render(list(zip(*rows, strict=True)))
        assert lines is None or read_lines(lines, columns) == read_back(at_once(columns, *rows), columns)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_statement_writes_at_once_a_load_takes(case: Case) -> None:
    """Of a type that is loaded, only a text that is not UTF-8 is left to REPLACE."""
    columns = [wire_of(case)]
    render = lines_of(columns)
    for value in [*case.values, None]:
        if render and "\\udc" not in ascii(value):
            lines = render([[value]])
            assert lines is not None
            assert read_lines(lines, columns) == read_back(at_once(columns, (value,)), columns)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (wire(5, "double"), [float("inf"), 1.0]),
        (wire(4, "float"), [float("nan"), 1.0]),
        (wire(247, "enum('a')", labels=("a",)), [1.5, 1]),
        (wire(247, "enum('a')"), [0, 0]),
    ],
)
def test_a_load_takes_no_value_that_a_statement_refuses_or_whose_meaning_is_open(column: WireColumn, values: list[Any]) -> None:
    render = lines_of([column])
    assert render is None or render([values]) is None


@given(st.lists(st.tuples(st.text(st.characters(codec=None)) | st.none(), st.integers() | st.none()), min_size=1, max_size=8))
def test_any_text_and_any_number_are_the_same_text_both_ways(rows: list[tuple[str | None, int | None]]) -> None:
    columns = [wire(15, "varchar(9)"), wire(3, "int")]
    try:
        exact = one_by_one(columns, *rows)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        assert at_once(columns, *rows) is None
    else:
        assert at_once(columns, *rows) == exact


INT, NAME, AMOUNT, SCORE, RAW = (
    wire(3, "int"),
    wire(15, "varchar(9)"),
    wire(246, "decimal(9,2)"),
    wire(5, "double"),
    wire(15, "blob", is_bytes=True),
)


def test_plain_rows_are_formatted_at_once() -> None:
    assert at_once([INT, NAME, AMOUNT, SCORE], (1, "é", "2.50", 0.5), (2, "f", "3", -1e30)) == "(1,'é','2.50',0.5),(2,'f','3',-1e+30)"


@pytest.mark.parametrize("value", [3.4028235e38, 3.40282347e38, 3.4028234663852886e38, -3.40282347e38])
def test_any_spelling_of_the_greatest_float_is_written_in_range(value: float) -> None:
    columns = [wire(4, "float")]
    assert read_back(at_once(columns, (value,), (1.0,)), columns) == read_back(one_by_one(columns, (value,), (1.0,)), columns)
    assert abs(float(re.findall(r"[-+.0-9e]+", at_once(columns, (value,)) or "")[0])) == 3.4028234663852886e38


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((None, None, None, None), "(NULL,NULL,NULL,NULL)"),
        ((1, "it's", "2", 1.0), "(1,'it\\'s','2',1.0)"),
        ((1, "\\", "2", 1.0), "(1,'\\\\','2',1.0)"),
        ((1, "\0", "2", 1.0), "(1,'\\0','2',1.0)"),
        ((1, "\udcff", "2", 1.0), "(1,x'ff','2',1.0)"),
        ((1, "x", "2", -0.0), "(1,'x','2','-0')"),
        ((1, "x", "2','3", -1.0), "(1,'x','2\\',\\'3',-1.0)"),
    ],
)
def test_a_column_that_needs_care_does_not_slow_down_the_others(values: tuple[Any, ...], text: str) -> None:
    """Its neighbours keep the short form: a quoted DECIMAL, a float without an exponent."""
    assert at_once([INT, NAME, AMOUNT, SCORE], values) == text


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (wire(12, "datetime"), "2020-01-01 10:00:00.5"),
        (wire(11, "time(1)"), "10:00:00.12"),
        (wire(12, "datetime(3)"), "2020-01-01 10:00:00.1234"),
        (wire(254, "char(9)"), "a "),
        (wire(254, "char(9)"), " "),
        (wire(254, "binary(3)", is_bytes=True), b"ab"),
        (wire(5, "double(5,1)"), 1.25),
        (wire(7, "timestamp", nullable=False), None),
        (wire(3, "int", nullable=False), None),
        (wire(247, "enum('a')", labels=("a",)), 2),
        (wire(248, "set('a')", labels=("a",), is_set=True), 2),
        (wire(3, "int"), "1 OR 1"),
        (wire(3, "int"), 1.5),
        (wire(5, "double"), float("inf")),
        (wire(15, "varchar(9)"), 7),
        (wire(15, "varchar(9)"), b"x"),
        (wire(15, "blob", is_bytes=True), "x"),
        (wire(6, "int"), 1),
    ],
)
@pytest.mark.parametrize("null", [False, True], ids=["", "beside NULL"])
def test_what_is_refused_one_by_one_leaves_the_whole_group(column: WireColumn, value: Any, *, null: bool) -> None:
    rows = [(value, 1), *([(None, 2)] if null else [])]
    with pytest.raises(Exception):  # noqa: B017 - whatever it is
        one_by_one([column, INT], *rows)
    assert at_once([column, INT], *rows) is None


def test_what_fits_is_taken() -> None:
    columns = [
        wire(12, "datetime"),
        wire(11, "time(3)"),
        wire(254, "char(9)"),
        wire(15, "varchar(9)"),
        wire(254, "binary(2)", is_bytes=True),
    ]
    rows = [("2020-01-01 10:00:00", "10:00:00.123", "a", "b.", b"ab"), ("2020-01-01 10:00:00.0", "10:00:00.120", "", "b ", None)]
    assert at_once(columns, *rows) == (
        "('2020-01-01 10:00:00','10:00:00.123','a','b.',x'6162'),('2020-01-01 10:00:00.0','10:00:00.120','','b ',NULL)"
    )


def test_a_group_that_is_too_large_for_a_statement_is_left() -> None:
    assert rows_text_of([NAME], 10)([["x" * 6]]) == b"('xxxxxx')"
    assert rows_text_of([NAME], 9)([["x" * 6]]) is None
    assert rows_text_of([NAME], 9)([["é" * 4]]) is None


def test_a_column_that_cannot_hold_the_type_needs_the_operator() -> None:
    with pytest.raises(NeedsOperator):
        MysqlDialect().rows_text(TableDescription(schema="s", table="t", columns=(), unique_keys=()), [wire(15, "int")])
