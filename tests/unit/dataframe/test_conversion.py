"""Values of the decoder as values of Spark's types: what fits is exact, what does not is an error."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from applier.dataframe.conversion import clean_text, conversion_to
from applier.model.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (ByteType(), -128, -128),
        (LongType(), "42", 42),
        (DecimalType(20, 0), 2**64 - 1, Decimal(2**64 - 1)),
        (DecimalType(38, 4), "-1.5", Decimal("-1.5000")),
        (DecimalType(10, 2), "1.5000", Decimal("1.50")),
        (DoubleType(), 0.1, 0.1),
        (BooleanType(), 1, True),
        (StringType(), "a\udcffb", "a\ufffdb"),
        (StringType(), 7, "7"),
        (BinaryType(), b"\xff", b"\xff"),
        (BinaryType(), "a\udcff", b"a\xff"),
        (DateType(), "2024-02-29", date(2024, 2, 29)),
        (TimestampNTZType(), "2024-02-29 01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500_000)),  # noqa: DTZ001 - no zone
        (TimestampType(), "2024-02-29 01:02:03", datetime(2024, 2, 28, 17, 2, 3, tzinfo=UTC)),
    ],
)
def test_a_value_is_exact(kind, value, wanted):
    found = conversion_to(kind, "+08:00")(value)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "+08:00"])
def test_the_zone_of_the_wire_is_a_name_or_an_offset(zone):
    assert conversion_to(TimestampType(), zone)("2024-02-29 01:02:03") == datetime(2024, 2, 28, 17, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ByteType(), 128),
        (LongType(), 2**63),
        (LongType(), "1.5"),
        (DecimalType(10, 2), "1.505"),
        (DecimalType(4, 2), "100"),
        (DecimalType(4, 2), "no"),
        (BooleanType(), 2),
        (StringType(), b"\xff"),
        (DateType(), "0000-00-00"),
        (DateType(), 5),
        (TimestampType(), "2024-00-00 00:00:00"),
        (TimestampNTZType(), "0000-00-00 00:00:00"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_and_no_null(kind, value):
    with pytest.raises(ValueError):
        conversion_to(kind, "UTC")(value)


def test_a_type_that_no_column_can_have_is_named():
    with pytest.raises(ConfigError, match="array<string>"):
        conversion_to(ArrayType(StringType()), "UTC")


def test_text_that_is_valid_stays_itself():
    assert clean_text("smörgås 𝄞") == "smörgås 𝄞"
