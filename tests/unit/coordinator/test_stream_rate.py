"""How many records a stream has per unit of upstream time."""

import pytest

from applier.coordinator.pace import HURRY, StreamRate
from applier.model.range_report import RangeId, RangeReport, ResumePoint
from tests.timeline.scenario import P0


def read(rate, records, first, last, *, resolved=0):
    hold = (ResumePoint(0, first), ResumePoint(records - 1, last)) if last else ()
    rate.learn(RangeReport(range=RangeId(P0, 0, records), resolved_ts=resolved, resume_points=hold), records)
    return rate


def test_nothing_is_known_until_events_of_two_times_were_read():
    rate = read(StreamRate(), 1, 1000, 1000, resolved=1001)
    assert (rate.per_ts, rate.first_ts) == (0.0, 1000)
    assert read(rate, 10, 1100, 1105, resolved=1106).per_ts > 0
    assert rate.first_ts == 1000


def test_time_passes_from_the_last_event_that_was_read_and_not_from_the_checkpoint():
    rate = read(StreamRate(), 100, 10**17, 10**17 + 50, resolved=10**17 + 51)
    assert rate.per_ts == 2.0
    assert read(rate, 100, 10**17 + 60, 10**17 + 100, resolved=10**17 + 101).per_ts == pytest.approx(2.0)


def test_a_burst_weighs_as_little_as_it_was_short():
    rate = StreamRate()
    for second in range(10):
        read(rate, 10, 1000 * second + 1, 1000 * second + 1000, resolved=1000 * second + 1001)
    steady = rate.per_ts
    read(rate, 1000, 10_001, 10_002, resolved=10_003)
    read(rate, 10, 10_010, 11_010, resolved=11_011)
    assert rate.per_ts < 100 * steady


def test_more_and_more_is_read_of_a_stream_that_promises_nothing_until_it_does():
    rate = read(StreamRate(), 100, 1, 101, resolved=102)
    for hurry in (HURRY, HURRY**2):
        read(rate, 100, 103 + 100 * int(hurry), 203 + 100 * int(hurry))
        assert rate._hurry == hurry
    read(rate, 1, 10**6, 10**6, resolved=10**6 + 1)
    assert rate._hurry == 1
