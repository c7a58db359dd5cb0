"""Rows as lines of a bulk load, and its statement: what is written, and what is left to REPLACE."""

import pytest

from applier.planner.port import BulkDialect, ColumnDescription, TableDescription, WireColumn
from applier.sinks.mysql.bulk_load import LOAD_BYTES
from applier.sinks.mysql.dialect import MysqlDialect

DIALECT = MysqlDialect()


def column(sql_type, mysql_type, *, is_bytes=False, name="c", nullable=True, labels=()):
    binary = "blob" in sql_type or "binary" in sql_type
    described = ColumnDescription(
        name=name, sql_type=sql_type, nullable=nullable, labels=labels, binary=binary, is_set=sql_type.startswith("set")
    )
    return WireColumn(described, mysql_type, is_bytes)


NUMBER = column("bigint(20)", 8, is_bytes=True, nullable=False)
TEXT = column("varchar(20)", 15)
BLOB = column("blob", 252, is_bytes=True)


def lines(columns, *rows):
    render = DIALECT.bulk_line(columns)
    assert render is not None
    return render(list(zip(*rows, strict=True)))


def test_the_dialect_loads_in_bulk():
    assert isinstance(DIALECT, BulkDialect)


@pytest.mark.parametrize("rows", [[(1, "a")], [(1, "a"), (-2, "b")]])
def test_fields_and_lines_end_with_control_characters(rows):
    assert lines([NUMBER, TEXT], *rows) == b"".join(b"%d\x1f%s\x1e" % (number, text.encode()) for number, text in rows)


def test_a_single_column_has_no_field_end():
    assert lines([TEXT], ("",), ("a",)) == b"\x1ea\x1e"


@pytest.mark.parametrize("value", ["\t\n\r\\'\"\0\x1a", "None", "NULL", "\\N", "N", '{"a":"\\u0001\\n"}', "é😀", "%s %d %%"])
def test_texts_are_written_as_they_are(value):
    assert lines([NUMBER, TEXT], (1, value)) == b"1\x1f" + value.encode() + b"\x1e"


def test_ends_and_escapes_within_a_text_are_escaped():
    assert lines([TEXT], ("a\x1fb\x1ec\x1bd",), ("x",)) == b"a\x1b\x1fb\x1b\x1ec\x1b\x1bd\x1ex\x1e"


@pytest.mark.parametrize("sql_type", ["datetime", "datetime(3)", "datetime(6)"])
def test_ends_and_escapes_within_a_time_are_escaped(sql_type):
    assert lines([column(sql_type, 12)], ("\x1b2020-01-01 00:00:00",), ("\x1f",)) == b"\x1b\x1b2020-01-01 00:00:00\x1e\x1b\x1f\x1e"


def test_ends_within_texts_are_seen_also_where_their_number_is_right():
    assert lines([TEXT, TEXT], ("a\x1fb", "c")) == b"a\x1b\x1fb\x1fc\x1e"


@pytest.mark.parametrize("kind", [column("int", 3), TEXT, BLOB, column("double", 5), column("year(4)", 13), column("decimal(3,1)", 246)])
def test_null_is_no_text(kind):
    assert lines([NUMBER, kind], (1, None)) == b"1\x1f\x1bN\x1e"


@pytest.mark.parametrize("kind", [column("int", 3, nullable=False), column("varchar(9)", 15, nullable=False)])
def test_null_for_a_column_that_takes_none_is_left_to_replace(kind):
    assert lines([kind], (None,)) is None


def test_bytes_are_hexadecimal_digits():
    assert lines([NUMBER, BLOB], (1, b"\0\xff\x1f"), (2, b"")) == b"1\x1f00ff1f\x1e2\x1f\x1e"


def test_the_year_0_has_four_digits():
    assert lines([column("year(4)", 13), TEXT], (0, "a"), (2005, None)) == b"0000\x1fa\x1e2005\x1f\x1bN\x1e"


@pytest.mark.parametrize(("value", "text"), [(3.14, b"3.14"), (3.4028235e38, b"3.4028234663852886e+38"), (-0.0, b"-0.0")])
def test_floats_are_texts_that_are_read_as_the_same_32_bits(value, text):
    assert lines([column("float", 4)], (value,)) == text + b"\x1e"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (column("char(3)", 254), "a "),
        (column("binary(3)", 254, is_bytes=True), b"a"),
        (column("datetime", 12), "2020-01-01 00:00:00.5"),
        (column("datetime(3)", 12), "2020-01-01 00:00:00.0001"),
        (column("enum('a')", 247, labels=("a",)), 2),
        (column("set('a')", 248, labels=("a",)), 2),
        (column("timestamp", 7, nullable=False), None),
        (column("float", 4), 1e39),
        (TEXT, "a\udcff"),
        (TEXT, 1.5j),
        (TEXT, b"a\x1f"),
        (BLOB, "a"),
        (NUMBER, "1"),
    ],
)
def test_a_value_that_needs_more_care_is_left_to_replace(kind, value):
    assert lines([kind, TEXT], (value, "a\x1f")) is None


@pytest.mark.parametrize(
    "kind",
    [
        column("longtext", 225),
        column("float(5,2)", 4),
        column("geometry", 255),
        column("inet6", 15),
        column("varchar(20)", 3),
        column("varbinary(20)", 15),
        column("varchar(20)", 15, is_bytes=True),
    ],
)
def test_a_type_that_is_not_proven_is_not_loaded(kind):
    assert DIALECT.bulk_line([NUMBER, kind]) is None


def test_the_statement_leaves_nothing_to_the_servers_settings():
    columns = [
        column("bigint(20)", 8, name="id"),
        column("blob", 252, is_bytes=True, name="b`b"),
        column("bit(3)", 16, name="bits"),
        column("enum('a')", 247, labels=("a",), name="e"),
    ]
    table = TableDescription(schema="s`", table="t", columns=tuple(each.column for each in columns), unique_keys=())
    [(text, data, rows)] = DIALECT.bulk_loads(table, ["id", "b`b", "bits", "e"], [(b"1", 1), (b"2", 2)])
    assert (data, rows) == (b"12", 3)
    assert text == (
        b"LOAD DATA LOCAL INFILE 'applier-rows' REPLACE INTO TABLE `s```.`t` CHARACTER SET utf8mb4 FIELDS TERMINATED BY X'1f'"
        b" ENCLOSED BY '' ESCAPED BY X'1b' LINES STARTING BY '' TERMINATED BY X'1e' (`id`,@applier_1,@applier_2,@applier_3)"
        b" SET `b``b`=UNHEX(@applier_1),`bits`=CAST(@applier_2 AS UNSIGNED),`e`=CAST(@applier_3 AS UNSIGNED)"
    )


@pytest.mark.parametrize(
    ("other", "read"),
    [
        ("int(11)", b" (`id`,`c`)"),
        ("bit(3)", b" (@applier_0,@applier_1) SET `id`=@applier_0,`c`=CAST(@applier_1 AS UNSIGNED)"),
    ],
)
def test_an_auto_increment_column_is_assigned_where_another_one_is(other, read):
    key = ColumnDescription(name="id", sql_type="int(11)", nullable=False, auto_increment=True)
    table = TableDescription(schema="s", table="t", columns=(key, column(other, 3).column), unique_keys=())
    [(text, _, _)] = DIALECT.bulk_loads(table, ["id", "c"], [(b"1", 1)])
    assert text.endswith(read)


def test_loads_are_cut_by_bytes_and_a_batch_is_never_cut():
    table = TableDescription(schema="s", table="t", columns=(NUMBER.column,), unique_keys=())
    half = b"x" * (LOAD_BYTES // 2)
    loads = list(DIALECT.bulk_loads(table, ["c"], [(half, 1), (half, 2), (half, 3), (half * 3, 4)]))
    assert [(len(data) // len(half), rows) for _, data, rows in loads] == [(2, 3), (1, 3), (3, 4)]
    assert list(DIALECT.bulk_loads(table, ["c"], [])) == []
