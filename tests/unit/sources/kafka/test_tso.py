"""A TSO holds its time, exact to the millisecond."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.model.position import CLOCK_SKEW_MS, MAX_TS, NO_TS, Ts, holds_all_since
from applier.sources.ticdc.tso import LOGICAL_BITS, TSO_TIMELINE, datetime_of, implausible, physical_ms, ts_at


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


def test_a_record_proves_the_beginning_only_if_it_is_older_than_the_margin_between_clocks():
    start_ts = Ts(1_000_000 << LOGICAL_BITS)
    assert holds_all_since(1_000_000 - CLOCK_SKEW_MS, start_ts, TSO_TIMELINE)
    assert not holds_all_since(1_000_000 - CLOCK_SKEW_MS + 1, start_ts, TSO_TIMELINE)


NOW_MS = 1_764_000_000_000


@pytest.mark.parametrize(
    ("ts", "reason"),
    [
        (NOW_MS << LOGICAL_BITS, None),
        (NOW_MS + 3_600_000 << LOGICAL_BITS, None),
        (NOW_MS + 3_600_001 << LOGICAL_BITS, "is in the future (2025-11-24 17:00:00 UTC)"),
        (MAX_TS, "is in the future (4199-11-24 01:22:57 UTC)"),
        (ts_at(datetime(2015, 1, 1, tzinfo=UTC)), None),
        (ts_at(datetime(2015, 1, 1, tzinfo=UTC)) - 1, "is before 2015, when there was no TiDB"),
        (NOW_MS // 1000, "is a Unix time in seconds"),
        (NOW_MS, "is a Unix time in milliseconds"),
        (NOW_MS * 1000, "is a Unix time in microseconds"),
        (5, "is before 2015, when there was no TiDB"),
    ],
)
def test_a_number_that_no_cluster_gives_now_is_no_tso(ts, reason):
    assert implausible(ts, NOW_MS) == reason
