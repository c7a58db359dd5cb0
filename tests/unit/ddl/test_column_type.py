"""Column types of MySQL: families, ranges, lengths."""

import pytest

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.model.events import TableName
from tests.builders.table_definition import created


def type_of(definition: str) -> ColumnType:
    return created(f"CREATE TABLE t (c {definition})").columns[0].type


@pytest.mark.parametrize(
    ("definition", "lowest", "highest"),
    [
        ("TINYINT", -128, 127),
        ("TINYINT UNSIGNED", 0, 255),
        ("MEDIUMINT", -(2**23), 2**23 - 1),
        ("BIGINT UNSIGNED", 0, 2**64 - 1),
        ("BIT", 0, 1),
        ("BIT(64)", 0, 2**64 - 1),
        ("YEAR", 0, 2155),
    ],
)
def test_whole_numbers_have_the_range_of_their_type(definition: str, lowest: int, highest: int) -> None:
    column = type_of(definition)
    assert (column.lowest, column.highest) == (lowest, highest)


@pytest.mark.parametrize(
    ("definition", "family", "precision", "scale"),
    [
        ("DECIMAL", TypeFamily.DECIMAL, 10, 0),
        ("DECIMAL(20,5)", TypeFamily.DECIMAL, 20, 5),
        ("DATETIME(3)", TypeFamily.DATETIME, 3, 3),
        ("TIME", TypeFamily.TIME, 10, 0),
    ],
)
def test_decimals_and_times_have_their_digits(definition: str, family: TypeFamily, precision: int, scale: int) -> None:
    column = type_of(definition)
    assert (column.family, column.precision, column.scale) == (family, precision, scale)
    assert ColumnType(base="decimal").scale == 0


@pytest.mark.parametrize(
    ("definition", "characters", "size"),
    [
        ("CHAR", 1, None),
        ("VARBINARY(9)", 9, None),
        ("TEXT", None, 65_535),
        ("LONGBLOB", None, 2**32 - 1),
        ("INT", None, None),
    ],
)
def test_texts_and_bytes_have_a_length_or_a_size(definition: str, characters: int | None, size: int | None) -> None:
    column = type_of(definition)
    assert (column.max_characters, column.max_bytes) == (characters, size)


def test_a_charset_behind_other_options_counts_too() -> None:
    assert str(type_of("VARCHAR(9) NOT NULL CHARSET gbk")) == "varchar(9) character set gbk"
    assert str(type_of("VARCHAR(9) NOT NULL CHARSET binary")) == "varbinary(9)"


def test_a_table_keeps_its_definition_under_another_name() -> None:
    table = created("CREATE TABLE t (c INT PRIMARY KEY)")
    moved = table.renamed(TableName("q", "u"))
    assert (moved.name, moved.columns, moved.primary_key) == (TableName("q", "u"), table.columns, table.primary_key)
