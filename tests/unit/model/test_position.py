"""Timestamps and places: exact, and spelled as they are read."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.model.position import LOGICAL_BITS, MAX_TS, NO_TS, Offset, Place, Stream, Ts, datetime_of, physical_ms, ts_at


@pytest.mark.parametrize(
    ("ts", "moment"),
    [
        (NO_TS, datetime(1970, 1, 1, tzinfo=UTC)),
        (Ts(1_700_000_000_123 << LOGICAL_BITS | 7), datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)),
        (MAX_TS, datetime(4199, 11, 24, 1, 22, 57, 663_000, tzinfo=UTC)),
    ],
)
def test_the_moment_of_a_ts_is_exact_to_the_millisecond(ts, moment):
    assert datetime_of(ts) == moment


@given(st.integers(0, MAX_TS))
def test_a_moment_leads_back_to_the_first_ts_of_its_millisecond(ts):
    assert ts_at(datetime_of(Ts(ts))) == physical_ms(Ts(ts)) << LOGICAL_BITS


@given(st.datetimes(datetime(1970, 1, 2), datetime(4199, 1, 1), timezones=st.just(timezone(timedelta(hours=8)))))  # noqa: DTZ001 - the zone is beside it
def test_the_ts_at_a_moment_lies_in_its_very_millisecond(moment):
    assert timedelta(0) <= moment - datetime_of(ts_at(moment)) < timedelta(milliseconds=1)


def test_a_stream_is_read_as_it_is_written():
    stream = Stream("a/b", 12)
    assert Stream.parse(str(stream)) == stream
    assert str(Place(stream, Offset(7))) == "a/b/12@7"


@pytest.mark.parametrize("text", ["", "feed", "feed/", "/3", "feed/-1", "feed/x"])
def test_what_is_no_stream_is_refused(text):
    with pytest.raises(ValueError, match="TOPIC/PARTITION"):
        Stream.parse(text)
