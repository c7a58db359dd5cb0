"""The shortest text of a 32-bit number is that of TiCDC (Go's ``strconv``), for subnormal numbers too."""

import pytest

from applier.mysql.float32 import shortest, single_precision


@pytest.mark.parametrize(
    "number", [0.0, 3.14, 0.1, -1e-7, 123456.79, 16777216.0, 3.4028235e38, 1.1754944e-38, 1.1754942e-38, 1e-45, -4e-45]
)
def test_a_number_is_the_double_of_its_shortest_text(number):
    assert shortest(single_precision(number)) == number


def test_a_number_beyond_the_greatest_has_none():
    with pytest.raises(OverflowError):
        single_precision(3.5e38)
