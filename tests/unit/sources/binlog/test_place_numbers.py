"""Places in a binlog as numbers: they ascend along the log, and are read back."""

import pytest

from applier.model.errors import SourceError
from applier.sources.binlog.position import BinlogPosition


def test_numbers_ascend_from_position_to_file_to_the_next_server_and_are_read_back():
    places = [
        BinlogPosition(*parts) for parts in ((0, 1, 4), (0, 1, 2**32 - 1), (0, 2, 4), (0, 2**24 - 1, 4), (1, 1, 4), (127, 2**24 - 1, 9))
    ]
    numbers = [place.number for place in places]
    assert numbers == sorted(set(numbers))
    assert [BinlogPosition.of(number) for number in numbers] == places


@pytest.mark.parametrize("parts", [(0, 1, 2**32), (0, 2**24, 4), (128, 1, 4)])
def test_a_place_that_cannot_be_numbered_says_what_to_do(parts):
    with pytest.raises(SourceError, match="cannot be numbered") as raised:
        _ = BinlogPosition(*parts).number
    assert "split the transaction" in raised.value.remedy
