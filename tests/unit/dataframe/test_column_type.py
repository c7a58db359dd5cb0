"""Which Spark type a column has."""

import pytest

from applier.dataframe.conversion import Digits, spark_type, wider
from applier.model.events import ColumnShape
from applier.sources.column_flags import Flag, column_of


@pytest.mark.parametrize(
    ("mysql_type", "flags", "wanted"),
    [
        (1, 0, "TINYINT"),
        (1, Flag.UNSIGNED, "SMALLINT"),
        (9, 0, "INT"),
        (9, Flag.UNSIGNED, "INT"),
        (3, Flag.UNSIGNED, "BIGINT"),
        (8, Flag.UNSIGNED, "DECIMAL(20,0)"),
        (15, 0, "STRING"),
        (15, Flag.BINARY, "BINARY"),
        (245, Flag.BINARY, "STRING"),
        (11, 0, "STRING"),
        (248, 0, "DECIMAL(20,0)"),
    ],
)
def test_a_column_has_the_type_that_holds_all_its_values(mysql_type, flags, wanted):
    assert spark_type(column_of("c", mysql_type, int(flags))) == wanted


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([], "DECIMAL(38,18)"),
        (["1.50", "-123.4567", "0.1"], "DECIMAL(38,4)"),
        (["7"], "DECIMAL(38,0)"),
        (["9" * 30 + "." + "1" * 10], "STRING"),
        (["000." + "1" * 38], "DECIMAL(38,38)"),
    ],
)
def test_a_decimal_has_the_scale_of_its_values(values, wanted):
    digits = Digits()
    for value in values:
        digits = digits.with_value(value)
    assert spark_type(ColumnShape("c", 246), digits) == wanted


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("INT", "INT", "INT"),
        ("BIGINT", "SMALLINT", "BIGINT"),
        ("INT", "STRING", "STRING"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("DATE", "INT", "STRING"),
        ("BINARY", "STRING", "BINARY"),
    ],
)
def test_a_column_that_was_modified_has_the_type_that_holds_both(one, other, wanted):
    assert wider(one, other) == wider(other, one) == wanted
