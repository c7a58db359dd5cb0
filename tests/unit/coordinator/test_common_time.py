"""Up to which time streams can be read together with so many bytes."""

import pytest

from applier.coordinator.pace import Unread, common_time


@pytest.mark.parametrize(
    ("streams", "size", "upto"),
    [
        ([Unread(10, 2.0, 1000)], 20, 20),
        ([Unread(0, 1.0, 1000), Unread(0, 3.0, 1000)], 40, 10),
        ([Unread(0, 1.0, 1000), Unread(10, 1.0, 1000)], 30, 20),
        ([Unread(0, 1.0, 1000), Unread(90, 1.0, 1000)], 30, 30),
        ([Unread(0, 1.0, 5), Unread(0, 1.0, 1000)], 30, 25),
        ([Unread(0, 1.0, 5), Unread(0, 1.0, 5)], 30, 5),
    ],
    ids=["one", "two rates", "one begins later", "one is too far ahead", "one ends", "all end"],
)
def test_the_common_time_is_where_the_bytes_are_used_up(streams, size, upto):
    assert common_time(streams, size) == pytest.approx(upto)


def test_what_all_streams_have_up_to_the_common_time_is_what_was_given():
    streams = [Unread(3 * number % 50, 1 + number % 7, 40 + number * 11 % 300) for number in range(100)]
    upto = common_time(streams, 5_000)
    assert sum(min(one.size, max(0.0, one.rate * (upto - one.begins))) for one in streams) == pytest.approx(5_000)
